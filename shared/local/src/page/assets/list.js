// A list of rows with one Tab stop, and the view around it. Rows change in place; new ones wait
// while somebody points at the list or has the focus in it.

import {
  action, announce, button, div, el, empty, keyOf, plain, put, replace, rove, span, view,
} from "./dom.js";
import { live } from "./live.js";

/** Rows of a page. */
export const PAGE = 100;

/**
 * `columns` are `{name, title, cell, side}`; a cell gets the value and what takes its row away.
 * `key` names a row; `open` is what Enter does. Newer rows have a larger `order`.
 */
export function list({ label, columns, key, open, order = () => 0 }) {
  const rows = new Map();
  const body = el("tbody", {});
  const waiting = div("pill");
  const cells = (name, role, content) => columns.map((it) =>
    el(name, { role, class: `c-${it.name} ${it.side ?? ""}` }, content(it)));
  const head = el("thead", {}, el("tr", { role: "row" }, cells("th", "columnheader", (it) => it.title)));
  const table = el("table", { class: "list", role: "grid", "aria-label": label }, head, body);
  const on = { keydown: keys, pointerleave: settle, focusin: ({ target }) => stop(target.closest("tr[data-key]")),
    focusout: () => setTimeout(settle) };
  const element = el("div", { on }, waiting, table);
  let pending = null;

  /** The row of a value, made or changed. */
  function draw(value, isOlder, mark) {
    const id = key(value);
    const click = (event) => {
      if (!event.target.closest("button, a") && !getSelection()?.toString()) open(rows.get(id).value);
    };
    const row = rows.get(id)
      ?? { element: el("tr", { role: "row", tabindex: "-1", "data-key": id, class: mark, on: { click } }) };
    const shape = JSON.stringify(value);
    if (shape !== row.shape) {
      replace(row.element, cells("td", "gridcell", (it) => it.cell(value, () => remove(id))));
      for (const it of row.element.querySelectorAll("a, button")) it.tabIndex = -1;
    }
    rows.set(id, Object.assign(row, { value, shape, isOlder }));
    return row.element;
  }

  /** Gives the one Tab stop to this row, and to what can be done with it. */
  function stop(row) {
    if (!row) return;
    for (const it of body.querySelectorAll("[tabindex='0']")) it.tabIndex = -1;
    for (const it of [row, ...row.querySelectorAll(".deed")]) it.tabIndex = 0;
  }

  const isTouched = () => element.matches(":hover") || element.contains(document.activeElement);
  const isAtTop = () => (element.closest(".scroll")?.scrollTop ?? 0) < 4;

  /** The newest rows, in their order; with `isNew` those of another filter. */
  function show(values, isNew) {
    if (isNew) {
      rows.clear();
      replace(body);
    } else if (isTouched() || !isAtTop()) {
      const known = values.filter((it) => rows.has(key(it)));
      for (const it of known) draw(it, rows.get(key(it)).isOlder);
      pending = values;
      hold(values.length - known.length);
      return;
    }
    arrange(values, isNew ? "" : "fresh");
  }

  function hold(count) {
    const text = `${count} new`;
    if (!count || waiting.textContent === text) return;
    replace(waiting, button(text, toTop));
    announce(`${text} in the list`);
  }

  function toTop() {
    arrange(pending, "fresh");
    element.closest(".scroll").scrollTop = 0;
    body.firstElementChild?.focus();
  }

  function settle() {
    if (pending && !isTouched() && isAtTop()) arrange(pending, "fresh");
  }

  function arrange(values, mark) {
    pending = null;
    replace(waiting);
    const first = values.map((it) => draw(it, false, mark));
    const last = values.length < PAGE ? -Infinity : order(values.at(-1));
    for (const [id, row] of rows) {
      if (first.includes(row.element)) continue;
      // New rows pushed it off the first page. What else is missing is gone.
      row.isOlder ||= order(row.value) <= last;
      if (row.isOlder) continue;
      row.element.remove();
      rows.delete(id);
    }
    body.prepend(...first);
    if (!body.querySelector("tr[tabindex='0']")) stop(body.firstElementChild);
  }

  /** More rows at the end. */
  function add(values) {
    put(body, values.filter((it) => !rows.has(key(it))).map((it) => draw(it, true)));
    if (!body.querySelector("tr[tabindex='0']")) stop(body.firstElementChild);
  }

  function keys(event) {
    const row = rows.get(event.target.dataset.key);
    if (!row || rove(event, [...body.children])) return;
    if (event.key === "Enter") open(row.value);
    else if (keyOf(event) === "c") row.element.querySelector(".id button")?.click();
  }

  function remove(id) {
    const { element: row } = rows.get(id);
    row.nextElementSibling?.focus();
    row.remove();
    rows.delete(id);
  }

  return { element, show, add, count: () => rows.size };
}

/**
 * A view of a list that is read in pages and follows what is stored. `read(after, isNew)` yields
 * `{rows, next, note}`, and `none` returns what is shown without rows. `again` reads anew.
 */
export async function listView({ title, read, none, signal, note, actions, tools, ...of }) {
  const rows = list({ label: title, ...of });
  const status = el("span", { class: "note", role: "status" });
  const error = el("p", { class: "error", role: "alert" });
  const nothing = el("div", {});
  const older = action("Older", async () => {
    await show(next, false);
    announce(`${rows.count()} rows`);
  });
  let [turn, next, reads, isBehind] = [0, "", 0, false];

  async function show(after, isNew) {
    turn += 1;
    reads += 1;
    const mine = turn;
    let isFirst = !after;
    try {
      for await (const page of read(after, isNew)) {
        if (mine !== turn || signal.aborted) return;
        if (isFirst) rows.show(page.rows, isNew);
        else rows.add(page.rows);
        isFirst = false;
        if (after || isNew) next = page.next ?? "";
        older.hidden = !next;
        if (page.note !== undefined) replace(status, page.note);
        replace(nothing, !rows.count() && empty(...none()));
        error.textContent = "";
      }
    } catch (why) {
      if (mine === turn && why.status) error.textContent = plain(why.message);
    } finally {
      reads -= 1;
      if (isBehind && !reads) follow();
    }
  }

  /** Reads once more after the read that runs now, so that slow reads do not pile up. */
  function follow() {
    isBehind = reads > 0;
    if (!isBehind && !signal.aborted) show("", false);
  }
  live.addEventListener("change", follow, { signal });
  const again = () => show("", true);
  await again();
  const frame = view({
    title, actions,
    note: [note, !tools && status],
    tools: tools && div("filters", tools[0], status, span("grow"), tools[1]),
    body: [rows.element, nothing, div("older", older, error)],
    full: true,
  });
  return { frame, again };
}
