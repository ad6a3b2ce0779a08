// A list of rows with one Tab stop. Rows change in place; new ones wait while somebody points
// at the list or has the focus in it.

import { hasLetters } from "./keys.js";
import { announce, button, el, put, replace } from "./dom.js";

/** Rows of a page. */
export const PAGE = 100;

/**
 * `columns` are `{name, title, cell, side}`; `key` names a row; `open` is what Enter does, and
 * `copy` is what `c` copies. Newer rows have a larger `order`.
 */
export function list({ label, columns, key, open, copy, order = () => 0 }) {
  const rows = new Map();
  const body = el("tbody", {});
  const waiting = el("div", { class: "pill", hidden: true });
  const heads = columns.map((it) => el("th", { scope: "col", role: "columnheader", class: [`c-${it.name}`, it.side].filter(Boolean).join(" ") }, it.title));
  const table = el("table", { class: "list", role: "grid", "aria-label": label }, el("thead", {}, el("tr", { role: "row" }, heads)), body);
  const element = el("div", { on: { keydown: keys, pointerleave: settle, focusout: () => setTimeout(settle) } }, waiting, table);
  let older = [];

  function row(value) {
    const id = key(value);
    let entry = rows.get(id);
    if (!entry) {
      entry = { element: el("tr", { role: "row", tabindex: "-1", "data-key": id }), shape: "" };
      entry.element.addEventListener("click", (event) => {
        if (event.target.closest("button, a") || getSelection()?.toString()) return;
        open(entry.value);
      });
      entry.element.addEventListener("focus", () => stop(entry.element));
      rows.set(id, entry);
    }
    const shape = JSON.stringify(value);
    if (shape !== entry.shape) {
      entry.shape = shape;
      entry.value = value;
      replace(entry.element, columns.map((it) => el("td", { role: "gridcell", class: [`c-${it.name}`, it.side].filter(Boolean).join(" ") }, it.cell(value))));
      for (const it of entry.element.querySelectorAll("a, button:not(.deed)")) it.tabIndex = -1;
    }
    return entry.element;
  }

  /** Gives the one Tab stop to this row. */
  function stop(element) {
    for (const it of body.querySelectorAll("tr[tabindex='0']")) it.tabIndex = -1;
    if (element) element.tabIndex = 0;
  }

  const isTouched = () => element.matches(":hover") || element.contains(document.activeElement);
  const isAtTop = () => (element.closest(".scroll")?.scrollTop ?? 0) < 4;

  /** The newest rows, in their order. */
  function show(values, first = false) {
    if (first) clear();
    const before = new Set(rows.keys());
    const fresh = values.map(key).filter((id) => !before.has(id));
    for (const value of values) if (first || before.has(key(value))) row(value);
    if (!first && (isTouched() || !isAtTop())) {
      pending = values;
      if (fresh.length) hold(fresh.length);
      return;
    }
    arrange(values, first ? [] : fresh);
  }
  let pending = null;

  function hold(count) {
    waiting.hidden = false;
    const text = `${count} new`;
    if (waiting.textContent === text) return;
    replace(waiting, button(text, () => release(true)));
    announce(`${text} in the list`);
  }

  function release(toTop) {
    if (!pending) return;
    const values = pending;
    pending = null;
    const fresh = values.map(key).filter((id) => !rows.has(id));
    arrange(values, fresh);
    if (toTop) {
      element.closest(".scroll").scrollTop = 0;
      body.querySelector("tr")?.focus();
    }
  }

  function settle() {
    if (pending && !isTouched() && isAtTop()) release(false);
  }

  function arrange(values, fresh) {
    waiting.hidden = true;
    waiting.replaceChildren();
    pending = null;
    const first = new Set(values.map(key));
    older = older.filter((id) => !first.has(id));
    const last = values.length ? order(values.at(-1)) : Infinity;
    const passed = [];
    for (const id of [...rows.keys()]) {
      if (first.has(id) || older.includes(id)) continue;
      // New rows pushed it off the first page. What else is missing is gone.
      if (order(rows.get(id).value) <= last && values.length >= PAGE) {
        passed.push(id);
        continue;
      }
      rows.get(id).element.remove();
      rows.delete(id);
    }
    older = [...passed, ...older];
    const all = [...values.map(row), ...older.map((id) => rows.get(id).element)];
    all.forEach((it, at) => {
      if (body.children[at] !== it) body.insertBefore(it, body.children[at] ?? null);
    });
    for (const id of fresh) rows.get(id)?.element.classList.add("fresh");
    if (!body.querySelector("tr[tabindex='0']")) stop(body.firstElementChild);
  }

  /** More rows at the end. */
  function add(values) {
    for (const value of values) {
      const id = key(value);
      const known = rows.has(id);
      const element = row(value);
      if (known) continue;
      older.push(id);
      put(body, element);
    }
  }

  function keys(event) {
    const at = event.target.closest("tr[data-key]");
    if (!at || event.target !== at || event.ctrlKey || event.metaKey || event.altKey) return;
    const all = [...body.children];
    if (event.key.length === 1 && !hasLetters()) return;
    const [after, before] = [at.nextElementSibling, at.previousElementSibling];
    const to = { ArrowDown: after, j: after, ArrowUp: before, k: before, Home: all[0], End: all.at(-1) }[event.key];
    const value = rows.get(at.dataset.key).value;
    if (to !== undefined) {
      event.preventDefault();
      to?.focus();
    } else if (event.key === "Enter") {
      open(value);
    } else if (event.key === "c" && copy) {
      copy(value, at);
    }
  }

  /** Another filter: no row stays. */
  function clear() {
    rows.clear();
    older = [];
    body.replaceChildren();
  }

  function remove(id) {
    const next = rows.get(id)?.element.nextElementSibling;
    rows.get(id)?.element.remove();
    rows.delete(id);
    older = older.filter((it) => it !== id);
    next?.focus();
  }

  return { element, show, add, remove, count: () => rows.size };
}
