// What a task did, on one axis of time: turns, attempts, model calls, tools, steps and writes.

import { el, grouped, plain, replace, took } from "./dom.js";
import { icon } from "./icons.js";
import { hasLetters } from "./keys.js";

/** A pause of all work that is longer is cut out of the axis. */
const PAUSE = 2000;
/** The part of the axis that is left of it, in percent. */
const CUT = 3.6;
const ICONS = { turn: "down", attempt: "down", model: "model", tool: "tool", step: "step", write: "store", delivery: "send", handover: "worker", wait: "input-required", failure: "warn" };
const WORDS = { model: "model call", write: "stored writes", delivery: "deliveries", handover: "hand-over" };

/** The name of a step without its path and its worker: `chat/call/1.1#1>stock#1` as `stock`. */
const shortName = (name) => plain(name).split(">").at(-1).replace(/%3E/g, ">").replace(/%25/g, "%").replace(/^[^/]+\/(?=model#)/, "").replace(/^(?!model#)(.*)#1$/, "$1");

/** The rows of a trace as lines in their order, each with its depth. */
export function linesOf(rows, now = Date.now()) {
  const under = Map.groupBy(rows, (it) => it.parent ?? "");
  const ids = new Set(rows.map((it) => it.id));
  const lines = [];
  const add = (row, level, more = {}) => lines.push({ ...row, name: shortName(row.name), level, ...more });
  /** The end of a row; of a lost one the time when the next run began, or its last sign. */
  const endOf = (row, limit = now) => row.end ?? Math.max(row.start, row.lost ? limit : now);

  function group(list, kind, level) {
    if (!list.length) return;
    const name = `${list.length} ${list.length === 1 ? WORDS[kind].replace(/ies$/, "y").replace(/s$/, "") : WORDS[kind]}`;
    const error = list.find((it) => it.error)?.error;
    lines.push({ id: `${list[0].id}.${kind}`, kind, name, level, error, list, start: list[0].start, end: list.at(-1).end ?? list.at(-1).start });
  }
  function children(row, level, limit) {
    const list = under.get(row.id) ?? [];
    for (const it of list) {
      if (it.kind === "write" || it.kind === "delivery") continue;
      const inner = under.get(it.id) ?? [];
      // The step around a call of a model says nothing more than the call.
      const shown = it.kind === "model" && inner.length === 1 && inner[0].kind === "model" ? { ...inner[0], name: it.name } : it;
      add(shown, level, { end: endOf(shown, limit) });
      if (shown === it) children(it, level + 1, limit);
    }
    group(list.filter((it) => it.kind === "write"), "write", level);
  }

  const turns = Map.groupBy(rows.filter((it) => it.kind === "turn" && it.ended !== "duplicate"), (it) => it.turn);
  let before = null;
  for (const [number, runs] of turns) {
    const ends = runs.map((run, n) => endOf(run, runs[n + 1]?.start ?? Math.max(run.start, ...rows.filter((it) => it.parent === run.id).map((it) => it.end ?? it.start))));
    if (before !== null && runs[0].start > before) lines.push({ id: `wait-${number}`, kind: "wait", name: "Waits for you", level: 1, start: before, end: runs[0].start });
    const isOne = runs.length === 1;
    const last = runs.at(-1);
    const turn = { ...last, name: `Turn ${number}`, level: 1, start: runs[0].start, end: ends.at(-1), tokens: 0 };
    lines.push(turn);
    runs.forEach((run, n) => {
      if (n > 0) lines.push({ id: `${run.id}.over`, kind: "handover", name: "Hand-over", level: 2, note: { handedOver: "time was up", broken: "outage" }[runs[n - 1].ended] ?? "lease ended", start: Math.min(ends[n - 1], run.start), end: run.start });
      if (!isOne) add({ ...run, name: `Attempt ${run.attempt}`, kind: "attempt" }, 2, { end: ends[n] });
      children(run, isOne ? 2 : 3, ends[n]);
    });
    for (const it of rows) if (it.kind === "model" && runs.some((run) => it.id.startsWith(`${run.id}.`))) turn.tokens += tokensOf(it);
    before = ends.at(-1);
  }
  const loose = rows.filter((it) => it.kind !== "turn" && !ids.has(it.parent));
  group(loose.filter((it) => it.kind === "delivery"), "delivery", 1);
  group(loose.filter((it) => it.kind === "write"), "write", 1);
  for (const it of loose) if (!["write", "delivery"].includes(it.kind)) add(it, 1, { end: endOf(it) });
  return lines;
}

/** The tokens of a call of a model, or what was added up before. */
export const tokensOf = (row) => row.tokens ?? (row.inputTokens ?? 0) + (row.outputTokens ?? 0);

/** The axis: where a time is, in percent, which pauses are cut out, and its marks. */
function axisOf(lines) {
  const spans = [];
  const busy = lines.filter((it) => it.kind !== "wait").flatMap((it) => it.list?.map((own) => [own.start, own.end ?? own.start]) ?? [[it.start, it.end]]);
  for (const [from, to] of busy.sort((a, b) => a[0] - b[0])) {
    const last = spans.at(-1);
    if (last && from - last.to < PAUSE) last.to = Math.max(last.to, to);
    else spans.push({ from, to });
  }
  const total = Math.max(1, spans.reduce((sum, it) => sum + it.to - it.from, 0));
  const scale = (100 - CUT * (spans.length - 1)) / total;
  let at = 0;
  for (const it of spans) {
    it.at = at;
    at += (it.to - it.from) * scale + CUT;
  }
  const place = (time) => {
    const span = spans.findLast((it) => it.from <= time) ?? spans[0];
    return Math.min(100, span.at + Math.max(0, Math.min(time, span.to + CUT / scale) - span.from) * scale);
  };
  const zero = spans[0]?.from ?? 0;
  const step = [1, 2, 5].flatMap((n) => [1, 10, 100, 1000, 10000, 100000].map((ten) => n * ten)).sort((a, b) => a - b).find((it) => total / it <= 5) ?? total;
  const marks = spans.flatMap((it) => {
    const own = [];
    for (let ms = Math.ceil((it.from - zero) / step) * step; ms <= it.to - zero; ms += step) own.push({ at: place(zero + ms), ms });
    return own;
  });
  // A mark that the next one would cover is left out.
  const apart = marks.filter((it, n) => !marks[n + 1] || marks[n + 1].at - it.at > 8);
  return { place, cuts: spans.slice(1).map((it) => it.at - CUT), marks: apart };
}

function bar(line, axis) {
  const one = (from, to, first) => {
    const it = el("span", { class: `bar of-${line.lost ? "lost" : line.error ? "broke" : line.kept ? "kept" : line.kind}` });
    it.style.setProperty("--from", axis.place(from));
    it.style.setProperty("--for", axis.place(to) - axis.place(from));
    if (first !== undefined) it.style.setProperty("--first", `${(100 * first) / Math.max(1, to - from)}%`);
    return it;
  };
  if (line.list) return line.list.map((it) => one(it.start, it.kind === "write" ? it.start : it.end));
  return one(line.start, line.end, line.kind === "model" ? line.firstMs ?? 0 : undefined);
}

function column(at, kind, text) {
  const it = el("span", { class: kind }, text);
  it.style.setProperty("--from", at);
  return it;
}

/**
 * The waterfall of a task. `open` is called with the line that is opened, or `null`, and the
 * element of its row. `show` gets the rows of the trace.
 */
export function waterfall(open) {
  const grid = el("div", { class: "falls", role: "treegrid", "aria-label": "What the task did", on: { keydown: move } });
  const legend = el("p", { class: "legend" });
  const folded = new Set();
  const shown = { lines: [], opened: "" };

  function row(line, axis) {
    const isFold = ["turn", "attempt"].includes(line.kind);
    const note = line.lost ? "lost" : line.error ? plain(line.error) : line.note ?? (line.dropped && "not finished");
    const time = line.kept ? "kept" : line.kind === "write" ? "" : took(line.end - line.start);
    const tokens = tokensOf(line);
    const words = [line.name, WORDS[line.kind] ?? line.kind, note, time, tokens > 0 && `${tokens} tokens`].filter(Boolean).join(", ");
    const made = el("div", { class: `fall is-${line.kind} ${line.lost || line.error ? "bad" : ""}`, role: "row", "aria-level": line.level, "aria-label": words, "data-row": line.id, tabindex: -1, "aria-selected": String(line.id === shown.opened), "aria-expanded": isFold ? String(!folded.has(line.id)) : undefined, on: { click: () => (isFold && line.id === shown.opened ? fold(line.id) : choose(line.id)) } },
      el("span", { class: "name", role: "gridcell" }, icon(ICONS[line.kind] ?? "dot"), el("bdi", { class: "cut", title: line.name }, line.name), note && el("span", { class: "note cut" }, note)),
      el("span", { class: "bars", role: "gridcell", "aria-hidden": "true" }, axis.cuts.map((at) => column(at, "gap")), bar(line, axis)),
      el("span", { class: "took", role: "gridcell" }, time),
      el("span", { class: "tokens", role: "gridcell" }, tokens > 0 && grouped(tokens)));
    made.style.setProperty("--level", line.level);
    return made;
  }

  function draw() {
    const focused = document.activeElement?.closest?.("[data-row]")?.dataset.row;
    const axis = axisOf(shown.lines);
    let hidden = Infinity;
    const visible = shown.lines.filter((line) => {
      if (line.level > hidden) return false;
      hidden = folded.has(line.id) ? line.level : Infinity;
      return true;
    });
    const head = el("div", { class: "fall head-row", role: "row" }, el("span", { class: "name", role: "columnheader" }, "Name"),
      el("span", { class: "bars", role: "columnheader", "aria-label": "Time" }, axis.marks.map((it) => column(it.at, "tick", it.ms ? took(it.ms).replace(".0 s", " s") : "0"))),
      el("span", { class: "took", role: "columnheader" }, "Took"), el("span", { class: "tokens", role: "columnheader" }, "Tokens"));
    replace(grid, head, visible.map((line) => row(line, axis)));
    const rows = [...grid.querySelectorAll("[data-row]")];
    const own = rows.find((it) => it.dataset.row === focused) ?? rows.find((it) => it.dataset.row === shown.opened) ?? rows[0];
    if (own) own.tabIndex = 0;
    if (focused) own?.focus({ preventScroll: true });
    replace(legend, ["model", "tool", "step", "write"].map((kind) => total(shown.lines, kind)));
  }

  function fold(id) {
    if (!folded.delete(id)) folded.add(id);
    draw();
    choose(shown.opened);
  }

  function choose(id) {
    shown.opened = id;
    const line = shown.lines.find((it) => it.id === id || it.list?.some((own) => own.id === id)) ?? null;
    let element = null;
    for (const it of grid.querySelectorAll("[data-row]")) {
      const is = it.dataset.row === line?.id;
      it.setAttribute("aria-selected", String(is));
      if (is) element = it;
    }
    open(line, element, shown.lines);
  }

  function move(event) {
    const rows = [...grid.querySelectorAll("[data-row]")];
    const at = rows.indexOf(event.target);
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.length === 1 && !hasLetters()) return;
    const isOpen = event.target.getAttribute("aria-expanded");
    const to = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (to !== undefined) {
      for (const it of rows) it.tabIndex = -1;
      const next = rows[Math.max(0, Math.min(rows.length - 1, to))];
      next.tabIndex = 0;
      next.focus();
    } else if (event.key === "Enter") choose(event.target.dataset.row);
    else if ((event.key === "ArrowLeft" && isOpen === "true") || (event.key === "ArrowRight" && isOpen === "false")) fold(event.target.dataset.row);
    else return;
    event.preventDefault();
  }

  return {
    element: el("div", { class: "waterfall" }, el("div", { class: "fall-scroll" }, grid), legend),
    choose,
    show(rows) {
      shown.lines = linesOf(rows);
      draw();
      if (shown.opened) choose(shown.opened);
    },
  };
}

/** The sum of a kind, which is the legend of its colour too. */
function total(lines, kind) {
  const own = lines.filter((it) => it.kind === kind).flatMap((it) => it.list ?? it);
  if (!own.length) return null;
  const name = { model: "model call", tool: "tool", step: "step", write: "write" }[kind];
  const ms = own.reduce((sum, it) => sum + ((it.end ?? it.start) - it.start), 0);
  return el("span", {}, el("i", { class: `bar of-${kind}` }), el("b", {}, `${own.length} ${name}${own.length === 1 ? "" : "s"}`), kind !== "write" && [" ", took(ms)], kind === "model" && ", pale until the first token");
}

/** Opens the fold of a conversation: a row leads to the page of the task. */
export const linkTo = (task) => (line) => { if (line) location.hash = `#/task/${encodeURIComponent(task)}/${line.id}`; };
