// One task: what happened to it, why it failed, and how each generation reads it.

import { ENDED, call, inside as insideOf, stateOf, taskPath } from "./api.js";
import { refineIn, sendNew } from "./chat.js";
import {
  action, announce, badge, button, counted, dated, div, el, hashOf, json, keyOf, menu, p, replace, rove, said, shortId,
  span, stateWord, took,
} from "./dom.js";
import { detail } from "./detail.js";
import { icon } from "./icons.js";
import { askToDelete, webhookList } from "./lists.js";
import { live } from "./live.js";
import { artifact, cause, parts, words } from "./parts.js";
import { copyMenu } from "./snippets.js";
import { stateIn } from "./state.js";
import { ownTurn, turnOf } from "./talk.js";
import { tokenSum, waterfall } from "./waterfall.js";

const TABS = {
  trace: "Trace", state: "State", messages: "Messages", artifacts: "Artifacts", webhooks: "Webhooks", wire: "On the wire",
};
const NO_TRACE = "No trace: the task is older than the trace, it was removed for newer ones, "
  + "or another process did the work.";

/** The view of a task. It is read again when something is stored, and changes in place. */
export async function taskView(rest, signal) {
  // The address may end with the id of a row of the trace.
  const [, id, row] = /^(.*?)(?:\/([0-9a-f]{8}[.\w]*|wait-\d+))?$/s.exec(rest);
  const { bar, panels, counts } = tabs();
  const shown = { state: "", seen: "", hasRow: false };
  const [falls, hooks, readState] = [traceOf(id, signal), webhookList(), stateIn(panels.state, id)];
  replace(panels.webhooks, hooks.element);
  panels.state.addEventListener("open", readState);
  const cancel = action("Cancel", async () => {
    await call(taskPath(id, ":cancel"), { body: {} });
    await read();
  });
  /** What A2A shows comes first: the inside waits for the newest commits. */
  async function read(isFirst) {
    const known = isFirst ? { waits: true } : insideOf(id).catch((error) => ({ error }));
    const [task, inside] = await Promise.all([call(taskPath(id, "?historyLength=100")), known]);
    if (!isFirst) show(task, inside);
    return task;
  }
  const task = await read(true);
  const head = top(task, cancel);
  const fill = filled(panels, task, falls);
  function show(now, inside) {
    const seen = JSON.stringify([now, inside.facts?.version, inside.webhooks, inside.trace, inside.error?.message]);
    if (seen === shown.seen || signal.aborted) return;
    const state = stateOf(now.status);
    if (shown.state && shown.state !== state) announce(`The task is ${stateWord(state)}`);
    Object.assign(shown, { state, seen });
    cancel.hidden = ENDED.includes(state);
    head.show(now, inside);
    fill(now, inside);
    hooks.show({ rows: inside.webhooks ?? [] }, true);
    const lists = { messages: now.history, artifacts: now.artifacts, webhooks: inside.webhooks };
    for (const [name, list] of Object.entries(lists)) replace(counts[name], list?.length > 0 && list.length);
    if (row && !shown.hasRow && inside.trace) {
      shown.hasRow = true;
      falls.choose(row);
    }
  }
  show(task, { waits: true });
  const again = () => {
    // Another task may have written a session value or a document.
    if (!panels.state.hidden) readState();
    read().catch((error) => {
      // It was deleted elsewhere, or has expired: what is shown is no longer so.
      if (error.status === 404 && !signal.aborted) head.end();
    });
  };
  again();
  const first = firstOf(task);
  const same = first && [el("h2", {}, "Send the same with"), div("row", copyMenu(() => first))];
  replace(panels.wire, generations(id), same);
  // The newest generation is what most clients read.
  panels.wire.addEventListener("open", () => panels.wire.querySelector("button").click(), { once: true });
  live.addEventListener("change", again, { signal });
  return [el("header", { class: "task-head" }, head.element, bar), div("scroll", div("body", Object.values(panels)))];
}

/** The tabs of the view, their panels, and what shows their counts. */
function tabs() {
  const [panels, counts] = [{}, {}];
  const all = Object.entries(TABS).map(([id, text]) => {
    counts[id] = span("count");
    panels[id] = el("div", { role: "tabpanel", id: `panel-${id}`, "aria-labelledby": `tab-${id}`, tabindex: "0" });
    return button([text, counts[id]], () => use(id), { role: "tab", id: `tab-${id}`, "aria-controls": `panel-${id}` });
  });
  function use(id) {
    Object.keys(TABS).forEach((name, n) => {
      panels[name].hidden = name !== id;
      all[n].ariaSelected = name === id;
      all[n].tabIndex = name === id ? 0 : -1;
    });
    panels[id].dispatchEvent(new Event("open"));
  }
  const keydown = (event) => { if (rove(event, all, ["ArrowRight", "ArrowLeft"])) document.activeElement.click(); };
  use("trace");
  const properties = { class: "tabs-of-view", role: "tablist", "aria-label": "Parts of the task", on: { keydown } };
  const bar = el("div", properties, all);
  return { bar, panels, counts };
}

/** What began a task; nothing for a message that is not kept, whose place this text has. */
function firstOf(task) {
  const first = (task.history ?? []).find((it) => it.role === "ROLE_USER");
  return first && words(first) !== "The agent does not keep this message." ? first : undefined;
}

/** A button of the head, whose word a narrow screen hides. */
const tool = (name, text, click) =>
  button([icon(name), span("word", text)], click, { "aria-label": text });

/** The head: where it is, what it is, and what one can do. Only its state and its facts change. */
function top(task, cancel) {
  const first = firstOf(task);
  const [state, facts] = [span(), div("line-of-facts")];
  const error = p("error");
  const toTasks = () => { location.hash = "#/tasks"; };
  const remove = () => askToDelete("task", `tasks/${encodeURIComponent(task.id)}`, toTasks);
  const deeds = [
    tool("chat", "Open in chat", () => { location.hash = hashOf("chat", task.contextId); }),
    first && tool("again", "Send again", () => again(first)),
    menu(icon("more"), () => [["Delete", remove, "danger"]], { class: "icon", label: "More" }),
  ];
  const element = [
    div("path", el("a", { href: "#/tasks" }, "Tasks"), icon("right"), shortId(task.id), span("grow"), cancel, deeds),
    div("title", el("h1", { tabindex: "-1", dir: "auto" }, words(first).slice(0, 120) || `Task ${task.id}`), state),
    facts, error,
  ];
  function show({ status }, inside) {
    const it = inside.facts ?? {};
    const tokens = tokenSum(inside.trace ?? []);
    const entries = [
      ["Skill", it.skill], ["Took", took(it.tookMs)], ["", tokens > 0 && counted(tokens, "token")],
      ["Version", it.version], ["A2A", it.generation],
      ["Began", it.createdAt && dated(it.createdAt)], ["Expires", it.expiresAt && dated(it.expiresAt)],
    ];
    replace(state, badge(stateOf(status)));
    replace(facts, entries.filter(([, value]) => value)
      .map(([name, value]) => el("span", {}, name, " ", el("b", {}, value))));
    replace(error, inside.error && [icon("warn"), `The inside is not shown: ${inside.error.message}`]);
  }
  function end() {
    if (cancel.hidden && deeds[2].hidden) return;
    for (const it of [cancel, deeds[0], deeds[2]]) it.hidden = true;
    replace(state, badge("canceled", "Deleted"));
    replace(error, icon("warn"), "The task is deleted. This is what it was at ", dated(Date.now()), ".");
    announce("The task is deleted");
  }
  return { element, show, end };
}

/** Returns what fills the tabs. What has not changed stays, with its folds and the focus. */
function filled(panels, { id, contextId }, falls) {
  const [why, none] = [div(), p("quiet")];
  replace(panels.trace, why, falls.element, none);
  let skill = "";
  const refined = (it) => artifact(it, () => refineIn(contextId, id, it.name || it.artifactId, skill));
  const turn = (it) => (it.role === "ROLE_USER" ? ownTurn(it) : turnOf(parts(it.parts)));
  const [messages, artifacts] = [keyed(panels.messages, turn), keyed(panels.artifacts, refined)];
  const nothing = p("quiet", "This task has made nothing.");
  return (task, inside) => {
    const hasFailed = ["failed", "rejected"].includes(stateOf(task.status));
    const rows = inside.trace ?? [];
    skill = inside.facts?.skill ?? skill;
    if (rows.length) falls.show(rows);
    replace(why, hasFailed && failure(task, rows, falls));
    const missing = inside.error ? `No trace: ${inside.error.message}` : NO_TRACE;
    replace(none, !rows.length && (inside.waits ? "Reading the trace…" : missing));
    falls.element.hidden = !rows.length;
    messages(task.history ?? []);
    artifacts(task.artifacts ?? []);
    if (!task.artifacts?.length) panels.artifacts.append(nothing);
    else nothing.remove();
  };
}

/** Shows a list in a place. The node of a value stays where it is while the value is the same. */
function keyed(place, make) {
  let nodes = new Map();
  return (values) => {
    const before = nodes;
    const named = values.map((it) => [JSON.stringify(it), it]);
    nodes = new Map(named.map(([name, it]) => [name, before.get(name) ?? make(it)]));
    for (const [name, node] of before) if (!nodes.has(name)) node.remove();
    [...nodes.values()].forEach((node, n) => {
      if (place.children[n] !== node) place.insertBefore(node, place.children[n] ?? null);
    });
  };
}

/** The waterfall of a task, and the panel of the row that is opened. */
function traceOf(id, signal) {
  const wide = matchMedia("(min-width: 68.75em)");
  const opened = { id: "", panel: null, line: null, row: null };
  const read = (row) => insideOf(id, `/trace/${row}`);
  const falls = waterfall((line, row) => {
    if (line?.id !== opened.id) history.replaceState(null, "", hashOf("task", id) + (line ? `/${line.id}` : ""));
    const isOther = line?.id !== opened.id || line?.end !== opened.line?.end;
    if (isOther) opened.panel = line && detail(line, read, close, falls);
    Object.assign(opened, { id: line?.id ?? "", line, row });
    place();
  });
  function close() {
    const { row } = opened;
    falls.choose("");
    row?.focus();
  }
  /** Beside the waterfall, or below its row where there is no room. */
  function place() {
    const isBeside = wide.matches || !opened.row;
    const panel = opened.panel?.element;
    // A panel that stays where it is keeps its focus.
    const stays = isBeside && panel?.parentNode === falls.element;
    for (const it of falls.element.querySelectorAll(".detail, .detail-row")) if (!stays || it !== panel) it.remove();
    if (!panel || stays) return;
    if (isBeside) falls.element.append(panel);
    else opened.row.after(el("div", { class: "detail-row", role: "row" }, el("div", { role: "gridcell" }, panel)));
  }
  wide.addEventListener("change", place, { signal });
  falls.element.addEventListener("keydown", (event) => {
    const key = keyOf(event);
    if (key === "Escape" && opened.panel) close();
    else if (key.toLowerCase() === "c") opened.panel?.copy(event.shiftKey);
  });
  return falls;
}

/** Sends the first message of a task again. */
const again = ({ parts: all, metadata, referenceTaskIds: references }) =>
  sendNew({ parts: all, skill: metadata?.["a2a-lambda/skillId"] ?? "", references });

/** Where and why the task failed: what clients see, and the cause that only the trace has. */
function failure(task, rows, falls) {
  const { message: status } = task.status ?? {};
  const causes = rows.filter((it) => it.kind === "failure").map((it) => it.content?.cause).filter(Boolean);
  const lines = rows.length ? falls.lines() : [];
  const turn = lines.findLast((it) => it.kind === "turn");
  const isBroken = (it) => it.error && ["model", "tool", "step"].includes(it.kind) && it.start >= turn?.start;
  const place = lines.findLast(isBroken) ?? turn;
  // The store counts no attempt for an edit or an outage, the waterfall does.
  const attempts = lines.filter((it) => it.kind === "attempt" && it.turn === turn?.turn).length || 1;
  const where = place && ` in ${place.name.replace(/^T(?=urn \d)/, "t")}, attempt ${attempts}`;
  const first = firstOf(task);
  return el("section", { class: "why", "aria-label": "Cause of the failure" },
    el("h2", {}, badge(stateOf(task.status), [stateWord(stateOf(task.status)), where])),
    status && said(words(status)),
    cause(status),
    causes.length
      ? causes.map((it) => [el("h3", { class: "hint" }, "Cause"), el("pre", { tabindex: "0" }, it)])
      : p("hint", "The trace has no further cause."),
    div("row", place && button("Show the call", () => falls.choose(place.id), { class: "small" }),
      first && button("Send again", () => again(first), { class: "small" })));
}

/** The stored task, read by the own call of each generation. */
function generations(id) {
  const shown = el("div", { "aria-live": "polite" });
  const old = { version: "" };
  const ways = [
    ["1.0", "GET /tasks/{id}", () => call(taskPath(id))],
    ["0.3", "GET /v1/tasks/{id}", () => call(`/v1${taskPath(id)}`, old)],
    ["0.1", "POST /tasks/get", () => call("/tasks/get", { ...old, body: { id, historyLength: 100 } })],
  ];
  const way = ([version, how, read]) => action(`A2A ${version}`, async () => {
    const task = await read();
    replace(shown, p("quiet", how), json(task));
  });
  return el("div", {}, div("row", ways.map(way)), shown);
}
