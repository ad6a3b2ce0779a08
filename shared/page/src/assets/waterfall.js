// What a task did, on one axis of time: turns, attempts, model calls, tools, steps and writes.

import {
  counted, div, el, grouped, hashOf, p, plain, redraw, replace, rove, span, took,
} from "./dom.js";
import { icon } from "./icons.js";

/** A pause of all work that is longer is cut out of the axis. */
const PAUSE = 2000;
/** The part of the axis that is left of it, in percent. */
const CUT = 3.6;
export const ICONS = {
  turn: "down", attempt: "down", write: "store", delivery: "send", handover: "worker", wait: "input-required",
  failure: "warn",
};
const WORDS = { model: "model call", write: "stored write", delivery: "delivery", handover: "hand-over" };
/** Why a worker handed a turn over, by how its run ended. */
const OVER = { handedOver: "time was up", broken: "outage" };
const isIn = (list, kind) => list.filter((it) => it.kind === kind);

/** The name of a step without its path and its worker: `chat/call/1.1#1>stock#1` as `stock`. */
const shortName = (name) => plain(name).split(">").at(-1)
  .replace(/%3E/g, ">").replace(/%25/g, "%")
  .replace(/^[^/]+\/(?=model#)/, "").replace(/^(?!model#)(.*)#1$/, "$1");

/** The rows of a trace as lines in their order, each with its depth. */
function linesOf(rows, now = Date.now()) {
  const under = Map.groupBy(rows, (it) => it.parent ?? "");
  const ids = new Set(rows.map((it) => it.id));
  const lines = [];
  /** What has ended the run whose rows are added, if that was an edit under `dev`. */
  let edited = "";
  const add = (row, level, more = {}) => lines.push({
    ...row, path: row.name, name: shortName(row.name), level, edited: row.lost && edited, ...more,
  });
  /** The end of a row; of a lost one the last sign of its run. */
  const endOf = (row, limit = row.start) => row.end ?? Math.max(row.start, row.lost ? limit : now);

  function group(list, kind, level) {
    if (!list.length) return;
    const name = counted(list.length, WORDS[kind]);
    const error = list.find((it) => it.error)?.error;
    const [{ id, start }, last] = [list[0], list.at(-1)];
    lines.push({ id: `${id}.${kind}`, kind, name, level, error, list, start, end: last.end ?? last.start });
  }
  function children(row, level, limit) {
    const list = under.get(row.id) ?? [];
    let count = 0;
    for (const it of list) {
      if (it.kind === "write" || it.kind === "delivery") continue;
      const inner = under.get(it.id) ?? [];
      // The step around a call of a model says nothing more than the call.
      const tries = it.kind === "model" ? isIn(inner, "model") : [];
      const isAround = tries.length === 1 && inner.length === 1;
      const { error, dropped } = it;
      const shown = isAround ? { ...inner[0], name: it.name, error: inner[0].error ?? error, dropped } : it;
      const isTry = it.kind === "model" && row.kind === "model";
      if (isTry) count += 1;
      const more = { end: endOf(shown, limit), isTry, tries: tries.length > 1 && waitsIn(tries) };
      add(isTry ? { ...shown, name: `try ${count}` } : shown, level, more);
      if (!isAround) children(it, level + 1, limit);
    }
    group(isIn(list, "write"), "write", level);
  }
  const rowsOf = (run) => rows.filter((it) => it.id.startsWith(`${run.id}.`));
  /** When a run ended. Nobody knows when its process died, but the run did the last of its rows. */
  function endOfRun(run) {
    const signs = rowsOf(run).map((it) => it.end ?? it.start);
    return endOf(run, Math.max(run.start, ...signs));
  }

  const turns = Map.groupBy(isIn(rows, "turn").filter((it) => it.ended !== "duplicate"), (it) => it.turn);
  let before = Infinity;
  for (const [number, runs] of turns) {
    const ends = runs.map(endOfRun);
    const [{ start }, isOne, end] = [runs[0], runs.length === 1, ends.at(-1)];
    if (start > before) {
      lines.push({ id: `wait-${number}`, kind: "wait", name: "Waits for you", level: 1, start: before, end: start });
    }
    const tokens = tokenSum(runs.flatMap(rowsOf));
    lines.push({ ...runs.at(-1), name: `Turn ${number}`, level: 1, start, end, tokens, hasAttempts: !isOne });
    runs.forEach((run, n) => {
      const [before, next] = [edited, runs[n + 1]];
      edited = next?.build > run.build ? `edited (build ${next.build})` : "";
      if (n > 0) {
        const over = { start: Math.min(ends[n - 1], run.start), end: run.start };
        const note = OVER[runs[n - 1].ended] ?? (before || "lease ended");
        lines.push({ id: `${run.id}.over`, kind: "handover", name: "Hand-over", level: 2, note, ...over });
      }
      // The store counts no attempt for a run after an edit or an outage.
      if (!isOne) add({ ...run, name: `Attempt ${n + 1}`, kind: "attempt" }, 2, { end: ends[n] });
      children(run, isOne ? 2 : 3, ends[n]);
    });
    before = end;
  }
  const loose = rows.filter((it) => it.kind !== "turn" && !ids.has(it.parent));
  for (const kind of ["delivery", "write"]) group(isIn(loose, kind), kind, 1);
  for (const it of loose) if (!["write", "delivery"].includes(it.kind)) add(it, 1, { end: endOf(it) });
  return lines;
}

/** The tries of a call of a model, and the waits between them. */
const waitsIn = (tries) => tries.flatMap((it, n) =>
  (n ? [{ kind: "wait", start: tries[n - 1].end ?? it.start, end: it.start }, it] : [it]));

/** The tokens of a call of a model, or what was added up before. */
export const tokensOf = (row) => row.tokens ?? (row.inputTokens ?? 0) + (row.outputTokens ?? 0);
/** The tokens of all calls of models among rows of a trace. */
export const tokenSum = (rows) => rows.reduce((sum, it) => sum + tokensOf(it), 0);

/** The axis: where a time is, in percent, which pauses are cut out, and its marks. */
function axisOf(lines) {
  const spans = [];
  // Between two attempts nothing runs.
  const idle = (it) => it.hasAttempts || ["wait", "handover"].includes(it.kind);
  const busy = lines.filter((it) => !idle(it)).flatMap((it) => it.list ?? it);
  for (const { start, end = start } of busy.sort((a, b) => a.start - b.start)) {
    const last = spans.at(-1);
    if (last && start - last.to < PAUSE) last.to = Math.max(last.to, end);
    else spans.push({ from: start, to: end });
  }
  const total = Math.max(1, spans.reduce((sum, it) => sum + it.to - it.from, 0));
  // Many pauses leave half of the axis for the work.
  const cut = Math.min(CUT, 50 / spans.length);
  const scale = (100 - cut * (spans.length - 1)) / total;
  let at = 0;
  for (const it of spans) {
    it.at = at;
    at += (it.to - it.from) * scale + cut;
  }
  const place = (time) => {
    const span = spans.findLast((it) => it.from <= time) ?? spans[0];
    return Math.min(100, span.at + Math.max(0, Math.min(time, span.to + cut / scale) - span.from) * scale);
  };
  const zero = spans[0]?.from ?? 0;
  const ten = 10 ** Math.floor(Math.log10(total / 5));
  const step = [1, 2, 5, 10].map((it) => it * ten).find((it) => total / it <= 5);
  const marks = spans.flatMap(({ from, to }) => {
    const first = Math.ceil((from - zero) / step);
    const own = Array.from({ length: Math.floor((to - zero) / step) - first + 1 }, (_, n) => (first + n) * step);
    return own.map((ms) => ({ at: place(zero + ms), ms }));
  });
  marks.forEach((it, n) => { it.to = marks[n + 1]?.at ?? 100; });
  return { place, cuts: spans.slice(1).map((it) => [it.at - cut, cut]), marks };
}

/** An element with values for its style. */
function styled(values, name, properties, ...children) {
  const it = el(name, properties, ...children);
  for (const [key, value] of Object.entries(values)) it.style.setProperty(key, value);
  return it;
}

function bar(line, axis) {
  return (line.list ?? (line.tries || [line])).map((it) => {
    const { kind: own, start, end = start, firstMs = 0 } = it;
    const kind = it.edited ? "wait" : it.lost ? "lost" : it.error ? "broke" : it.kept ? "kept" : own;
    const to = own === "write" ? start : end;
    const first = own === "model" ? (100 * firstMs) / Math.max(1, to - start) : 0;
    const from = axis.place(start);
    const values = { "--from": from, "--for": axis.place(to) - from, "--first": `${first}%` };
    return styled(values, "span", { class: `bar of-${kind}` });
  });
}

const gap = ([at, wide]) => styled({ "--from": at, "--for": wide }, "span", { class: "gap" });
const tick = ({ at, to, ms }) => styled({ "--from": at, "--for": to - at }, "span", { class: "tick" },
  el("span", {}, ms ? took(ms).replace(".0 s", " s") : "0"));

/**
 * The waterfall of a task. `open` is called with the line that is opened, or `null`, and the
 * element of its row. `show` gets the rows of the trace.
 */
export function waterfall(open) {
  const on = { keydown: move, focusin: ({ target }) => stop(target) };
  const grid = el("div", { class: "falls", role: "treegrid", "aria-label": "What the task did", on });
  const legend = p("legend");
  const folded = new Set();
  const shown = { lines: [], opened: "" };
  const all = () => [...grid.querySelectorAll("[data-row]")];

  function row(line, axis) {
    const { id, kind, name, level } = line;
    const isFold = ["turn", "attempt"].includes(kind);
    const isLost = line.lost && !line.edited;
    const note = isLost ? "lost" : line.error ? plain(line.error)
      : line.note ?? (line.edited || (line.dropped && "not finished"));
    const isDot = kind === "write" || (line.lost && line.end === line.start);
    const time = line.kept ? "kept" : isDot ? "" : precise(line.end - line.start);
    const tokens = tokensOf(line);
    const words = [name, WORDS[kind] ?? kind, note, time, tokens > 0 && `${tokens} tokens`].filter(Boolean).join(", ");
    const cell = (mark, ...children) => el("span", { class: mark, role: "gridcell" }, children);
    return styled({ "--level": level }, "div", {
      class: `fall is-${kind} ${isLost || line.error ? "bad" : ""}`,
      role: "row",
      tabindex: -1,
      "aria-level": level,
      "aria-label": words,
      "aria-selected": String(id === shown.opened),
      "aria-expanded": isFold ? String(!folded.has(id)) : undefined,
      "data-row": id,
      on: { click: () => (isFold && id === shown.opened ? fold(id) : choose(id)) },
    },
    cell("name", icon(ICONS[kind] ?? kind), el("bdi", { class: "cut", title: name }, name),
      note && span("note cut", note)),
    el("span", { class: "bars", role: "gridcell", "aria-hidden": "true" },
      axis.cuts.map(gap), bar(line, axis)),
    cell("took", time), cell("tokens", tokens > 0 && grouped(tokens)));
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
    const head = (mark, ...children) => el("span", { class: mark, role: "columnheader" }, children);
    replace(grid, el("div", { class: "fall head-row", role: "row" }, head("name", "Name"),
      el("span", { class: "bars", role: "columnheader", "aria-label": "Time" }, axis.marks.map(tick)),
      head("took", "Took"), head("tokens", "Tokens")), visible.map((line) => row(line, axis)));
    const rows = all();
    const of = (id) => rows.find((it) => it.dataset.row === id);
    const own = of(focused) ?? of(shown.opened) ?? rows[0];
    stop(own);
    if (focused) own?.focus({ preventScroll: true });
    replace(legend, ["model", "tool", "step", "write"].map((kind) => total(shown.lines, kind)));
  }

  /** Gives the one Tab stop to this row. */
  function stop(row) {
    if (row?.dataset.row) for (const it of all()) it.tabIndex = it === row ? 0 : -1;
  }

  function fold(id) {
    if (!folded.delete(id)) folded.add(id);
    draw();
    choose(shown.opened);
  }

  function choose(id) {
    shown.opened = id;
    const line = shown.lines.find((it) => it.id === id || it.list?.some((own) => own.id === id)) ?? null;
    const rows = all();
    for (const it of rows) it.ariaSelected = it.dataset.row === line?.id;
    open(line, rows.find((it) => it.dataset.row === line?.id));
  }

  function move(event) {
    const { dataset: { row: id } } = event.target;
    if (!id || rove(event, all())) return;
    const folds = { ArrowLeft: "true", ArrowRight: "false" };
    if (event.key === "Enter") choose(id);
    else if (folds[event.key] && folds[event.key] === event.target.ariaExpanded) fold(id);
    else return;
    event.preventDefault();
  }

  return {
    element: div("waterfall", div("fall-scroll", grid), legend),
    choose,
    lines: () => shown.lines,
    show(rows) {
      redraw(grid, () => {
        shown.lines = linesOf(rows);
        draw();
        if (shown.opened) choose(shown.opened);
      });
    },
  };
}

/** A duration with two decimals below 10 s: `2.94 s`. */
const precise = (ms) => (ms >= 1000 && ms < 9995 ? `${(ms / 1000).toFixed(2)} s` : took(ms));

/** The sum of a kind, which is the legend of its colour too. What was lost or kept is not in it. */
function total(lines, kind) {
  const own = isIn(lines, kind).flatMap((it) => it.list ?? it).filter((it) => !it.kept && !it.lost && !it.isTry);
  if (!own.length) return null;
  // Nothing runs between the tries of a call.
  const work = own.flatMap((it) => (it.tries ? isIn(it.tries, kind) : it));
  const ms = work.reduce((sum, it) => sum + ((it.end ?? it.start) - it.start), 0);
  const words = counted(own.length, kind === "model" ? "model call" : kind);
  return el("span", {}, el("i", { class: `bar of-${kind}` }), el("b", {}, words),
    kind !== "write" && [" ", precise(ms)], kind === "model" && ", pale until the first token");
}

/** Opens the fold of a conversation: a row leads to the page of the task. */
export const linkTo = (task) => (line) => { if (line) location.hash = `${hashOf("task", task)}/${line.id}`; };
