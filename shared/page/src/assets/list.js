// A list of rows with one Tab stop, and the view around it. Rows change in place; new ones wait
// while somebody points at the list or has the focus in it.

import { caller } from "./api.js";
import {
  action, announce, button, div, el, empty, errorPlace, keyOf, put, redraw, replace, rove, showError, span, view,
} from "./dom.js";
import { live } from "./live.js";

/** Rows of a page. */
export const PAGE = 100;

/**
 * `columns` are `{name, title, cell, side}`; a cell gets the value and what takes its row away.
 * `key` names a row; `open` is what Enter does. Newer rows have a larger `order`. `none` returns
 * what is shown without rows.
 */
export function list({ label, columns, key, open, none, order }) {
  const rows = new Map();
  const body = el("tbody", {});
  const [waiting, nothing] = [div("pill"), div()];
  const cells = (name, role, content) => columns.map((it) =>
    el(name, { role, class: `c-${it.name} ${it.side ?? ""}` }, content(it)));
  const head = el("thead", {}, el("tr", { role: "row" }, cells("th", "columnheader", (it) => it.title)));
  const table = el("table", { class: "list", role: "grid", "aria-label": label }, head, body);
  const on = { keydown: keys, pointerleave: settle, focusin: ({ target }) => stop(target.closest("tr[data-key]")),
    focusout: () => setTimeout(settle) };
  const element = el("div", { on }, waiting, table, nothing);
  let pending = null;

  /** The row of a value, made or changed. */
  function draw(value, mark) {
    const id = key(value);
    const click = (event) => {
      if (!event.target.closest("button, a") && !getSelection()?.toString()) open(rows.get(id).value);
    };
    const row = rows.get(id)
      ?? { element: el("tr", { role: "row", tabindex: "-1", "data-key": id, class: mark, on: { click } }) };
    const controls = () => [...row.element.querySelectorAll("a, button")];
    const shape = JSON.stringify(value);
    const fill = () => {
      const focused = controls().indexOf(document.activeElement);
      replace(row.element, cells("td", "gridcell", (it) => it.cell(value, () => remove(id))));
      for (const it of controls()) it.tabIndex = -1;
      if (row.element.tabIndex === 0) stop(row.element);
      controls()[focused]?.focus();
    };
    if (shape !== row.shape) redraw(row.element, fill);
    rows.set(id, Object.assign(row, { value, shape }));
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
  const isHeld = () => rows.size > 0 && (isTouched() || !isAtTop());

  /**
   * The newest rows, in their order; with `isNew` those of another filter. What is newer than
   * `until` and is not among them is gone. `others` are not of the filter, or not any more.
   */
  function show(page, isNew) {
    if (isNew) {
      rows.clear();
      replace(body);
      replace(nothing);
    }
    for (const it of [...page.others ?? [], ...page.rows]) if (rows.has(key(it))) draw(it);
    pending = page;
    if (isNew || !isHeld()) arrange(isNew ? "" : "fresh");
    else hold(page.rows.filter((it) => !rows.has(key(it))).length);
  }

  function hold(count) {
    const text = `${count} new`;
    if (!count || waiting.textContent === text) return;
    replace(waiting, button(text, toTop));
    announce(`${text} in the list`);
  }

  function toTop() {
    arrange("fresh");
    element.closest(".scroll").scrollTop = 0;
    body.firstElementChild?.focus();
  }

  function settle() {
    if (pending && !isHeld()) arrange("fresh");
  }

  function arrange(mark) {
    const { rows: values, until = -Infinity } = pending;
    pending = null;
    replace(waiting);
    const first = values.map((it) => draw(it, mark));
    for (const [id, { element: row, value }] of rows) {
      if (first.includes(row) || order(value) <= until) continue;
      row.remove();
      rows.delete(id);
    }
    body.prepend(...first);
    settled();
  }

  function add(values) {
    put(body, values.filter((it) => !rows.has(key(it))).map((it) => draw(it)));
    settled();
  }

  function settled() {
    if (!body.querySelector("tr[tabindex='0']")) stop(body.firstElementChild);
    if (rows.size) replace(nothing);
    else if (none && !nothing.firstChild) put(nothing, empty(...none()));
  }

  function keys(event) {
    const row = rows.get(event.target.dataset.key);
    if (!row || rove(event, [...body.children])) return;
    if (event.key === "Enter") open(row.value);
    else if (keyOf(event) === "c") row.element.querySelector(".id button")?.click();
  }

  function remove(id) {
    // It is gone already if somebody else has removed it, too.
    const row = rows.get(id)?.element;
    const near = row?.nextElementSibling ?? row?.previousElementSibling;
    row?.remove();
    (near ?? body.firstElementChild ?? document.querySelector("h1")).focus();
    rows.delete(id);
    settled();
  }

  /** What is shown, to show it again; `row` is that of the focus. */
  const state = () => ({
    rows: [...body.children].map((it) => rows.get(it.dataset.key).value),
    row: document.activeElement?.closest("tr")?.dataset.key,
  });
  const focus = (id) => rows.get(id)?.element.focus({ preventScroll: true });
  return { element, show, add, state, focus, count: () => rows.size };
}

/** What the lists showed when they were left, by their places in the history of the browser. */
const left = new Map();
const MOST_LEFT = 9;

/**
 * A view of a list that is read in pages and follows what is stored. `read(after, isNew)` yields
 * `{rows, next, note}` and what `show` of a list takes. `again` reads anew.
 */
export async function listView({ title, read, signal, note, actions, tools, ...of }) {
  const rows = list({ label: title, ...of });
  const status = el("span", { class: "note", role: "status" });
  const error = errorPlace();
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
        if (isFirst) rows.show(page, isNew);
        else rows.add(page.rows);
        isFirst = false;
        if (after || isNew) next = page.next ?? "";
        older.hidden = !next;
        if (page.note !== undefined) replace(status, page.note);
        showError(error);
      }
    } catch (why) {
      if (mine === turn && why.status) showError(error, why.message);
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
  const scroll = () => rows.element.closest(".scroll");

  // Back comes to the same place of the history, and finds the same rows there.
  const place = history.state?.list ?? crypto.randomUUID();
  const before = left.get(place);
  history.replaceState({ list: place }, "");
  signal.addEventListener("abort", () => {
    left.delete(place);
    // The view is made again, perhaps for another caller.
    if (history.state?.list === place) return;
    left.set(place, { ...rows.state(), next, top: scroll()?.scrollTop, caller: caller() });
    if (left.size > MOST_LEFT) left.delete(left.keys().next().value);
  });
  if (before?.caller === caller()) {
    next = before.next;
    older.hidden = !next;
    rows.show(before, true);
    signal.addEventListener("shown", () => {
      scroll().scrollTop = before.top;
      rows.focus(before.row);
      follow();
    });
  } else {
    await again();
  }
  const frame = view({
    title, actions,
    note: [note, !tools && status],
    tools: tools && div("filters", tools[0], status, span("grow"), tools[1]),
    body: [rows.element, div("older", older, error)],
    full: true,
  });
  return { frame, again };
}
