// One task: what happened to it, why it failed, and how each generation reads it.

import { ENDED, call, local, stateOf, taskPath } from "./api.js";
import { refineIn, sendNew } from "./chat.js";
import {
  action, announce, badge, button, counted, dated, dialog, div, el, hashOf, json, keyOf, menu, p, replace,
  rove, said, shortId, span, stateWord, took,
} from "./dom.js";
import { detail } from "./detail.js";
import { icon } from "./icons.js";
import { webhookList } from "./lists.js";
import { live } from "./live.js";
import { artifact, cause, parts, words } from "./parts.js";
import { copyMenu } from "./snippets.js";
import { ownTurn, turnOf } from "./talk.js";
import { tokensOf, waterfall } from "./waterfall.js";

const TABS = { trace: "Trace", messages: "Messages", artifacts: "Artifacts", webhooks: "Webhooks", wire: "On the wire" };
const NO_TRACE = "No trace: the task is older than the trace, it was removed for newer ones, "
  + "or another process did the work.";

/** The view of a task. It is read again when something is stored. */
export async function taskView(rest, signal) {
  // The address may end with the id of a row of the trace.
  const [, id, row] = /^(.*?)(?:\/([0-9a-f]{8}[.\w]*|wait-\d+))?$/s.exec(rest);
  const head = el("header", { class: "task-head" });
  const { bar, panels, counts } = tabs();
  const shown = { state: "", seen: "", hasRow: false };
  const [falls, hooks] = [traceOf(id, signal), webhookList()];
  replace(panels.webhooks, hooks.element);
  const cancel = action("Cancel", async () => {
    await call(taskPath(id, ":cancel"), { body: {} });
    await read();
  });
  /** What A2A shows comes first: the inside waits for the newest commits. */
  async function read(isFirst) {
    const known = isFirst ? { waits: true } : local(`tasks/${encodeURIComponent(id)}`).catch((error) => ({ error }));
    const [task, inside] = await Promise.all([call(taskPath(id, "?historyLength=100")), known]);
    const seen = JSON.stringify([task, inside.facts?.version, inside.webhooks, inside.trace]);
    if (seen === shown.seen || signal.aborted) return task;
    const state = stateOf(task.status);
    if (shown.state && shown.state !== state) announce(`The task is ${stateWord(state)}`);
    Object.assign(shown, { state, seen });
    cancel.hidden = ENDED.includes(state);
    replace(head, top(task, inside, cancel), bar);
    fill(panels, task, inside, falls);
    hooks.show(inside.webhooks ?? [], true);
    const lists = { messages: task.history, artifacts: task.artifacts, webhooks: inside.webhooks };
    for (const [name, list] of Object.entries(lists)) replace(counts[name], list?.length > 0 && list.length);
    if (row && !shown.hasRow && inside.trace) {
      shown.hasRow = true;
      falls.choose(row);
    }
    return task;
  }
  const task = await read(true);
  read().catch(() => {});
  const first = firstOf(task);
  const same = first && [el("h2", {}, "Send the same with"), div("row", copyMenu(() => first))];
  replace(panels.wire, generations(id), same);
  live.addEventListener("change", () => read().catch(() => {}), { signal });
  return [head, div("scroll", div("body", Object.values(panels)))];
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
      all[n].setAttribute("aria-selected", String(name === id));
      all[n].tabIndex = name === id ? 0 : -1;
    });
  }
  const keydown = (event) => { if (rove(event, all, ["ArrowRight", "ArrowLeft"])) document.activeElement.click(); };
  use("trace");
  const properties = { class: "tabs-of-view", role: "tablist", "aria-label": "Parts of the task", on: { keydown } };
  const bar = el("div", properties, all);
  return { bar, panels, counts };
}

const firstOf = (task) => (task.history ?? []).find((it) => it.role === "ROLE_USER");

/** A button of the head, whose word a narrow screen hides. */
const tool = (name, text, click) =>
  button([icon(name), span("word", text)], click, { "aria-label": text });

/** The head: where it is, what it is, and what one can do. */
function top(task, inside, cancel) {
  const it = inside.facts ?? {};
  const first = firstOf(task);
  const tokens = (inside.trace ?? []).reduce((sum, own) => sum + tokensOf(own), 0);
  const again = () => sendNew({ parts: first.parts, skill: first.metadata?.["a2a-lambda/skillId"] ?? "" });
  const entries = [
    ["Skill", it.skill], ["Took", took(it.tookMs)], ["", tokens > 0 && counted(tokens, "token")],
    ["Version", it.version], ["A2A", it.generation],
    ["Began", it.createdAt && dated(it.createdAt)], ["Expires", it.expiresAt && dated(it.expiresAt)],
  ];
  return [
    div("path",
      el("a", { href: "#/tasks" }, "Tasks"), icon("right"), shortId(task.id), span("grow"), cancel,
      tool("chat", "Open in chat", () => { location.hash = hashOf("chat", task.contextId); }),
      first && tool("again", "Send again", again),
      menu(icon("more"), () => [["Delete", () => remove(task.id), "danger"]], { class: "icon", label: "More" })),
    div("title",
      el("h1", { tabindex: "-1", dir: "auto" }, words(first).slice(0, 120) || `Task ${task.id}`),
      badge(stateOf(task.status))),
    div("line-of-facts", entries.filter(([, value]) => value)
      .map(([name, value]) => el("span", {}, name, " ", el("b", {}, value)))),
    inside.error && p("error", icon("warn"), `The inside is not shown: ${inside.error.message}`),
  ];
}

/** Asks once more, since nothing brings a deleted task back. */
function remove(id) {
  const gone = action("Delete", async () => {
    await call(`/a2a-lambda/tasks/${encodeURIComponent(id)}`, { method: "DELETE" });
    announce("The task is deleted");
    box.close();
    location.hash = "#/tasks";
  }, { class: "danger" });
  const box = dialog("Delete this task?",
    p("quiet", "Its messages and artifacts are gone. Nothing brings them back."),
    div("row", gone, button("Keep it", () => box.close())));
}

/** Fills the tabs. A fold that is open stays open. */
function fill(panels, task, inside, falls) {
  const hasFailed = ["failed", "rejected"].includes(stateOf(task.status));
  const rows = inside.trace ?? [];
  if (rows.length) falls.show(rows);
  replace(panels.trace, hasFailed && failure(task.status?.message, rows),
    rows.length ? falls.element : p("quiet", inside.waits ? "Reading the trace…" : NO_TRACE));
  const turn = (it) => (it.role === "ROLE_USER" ? ownTurn(it) : turnOf(parts(it.parts)));
  replace(panels.messages, (task.history ?? []).map(turn));
  const refined = (it) => artifact(it, () => refineIn(task.contextId, task.id, it.name || it.artifactId));
  replace(panels.artifacts, task.artifacts?.length
    ? task.artifacts.map(refined)
    : p("quiet", "This task has made nothing."));
}

/** The waterfall of a task, and the panel of the row that is opened. */
function traceOf(id, signal) {
  const wide = matchMedia("(min-width: 1100px)");
  const opened = { id: "", panel: null, line: null, row: null };
  const read = (row) => local(`tasks/${encodeURIComponent(id)}/trace/${row}`);
  const falls = waterfall((line, row) => {
    if (line?.id !== opened.id) history.replaceState(null, "", hashOf("task", id) + (line ? `/${line.id}` : ""));
    const isOther = line?.id !== opened.id || line?.end !== opened.line?.end;
    if (isOther) opened.panel = line && detail(line, read, close);
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

/** Why the task failed: what clients see, and the cause that only the trace has. */
function failure(status, rows) {
  const causes = rows.filter((it) => it.kind === "failure").map((it) => it.content?.cause).filter(Boolean);
  return el("section", { class: "why", "aria-label": "Cause of the failure" },
    el("h2", {}, "Why it failed"),
    status && said(words(status)),
    cause(status),
    causes.length
      ? causes.map((it) => [el("h3", { class: "hint" }, "Cause"), el("pre", { tabindex: "0" }, it)])
      : p("hint", "The trace has no further cause."));
}

/** The stored task, read by the own call of each generation. */
function generations(id) {
  const shown = el("div", { "aria-live": "polite" });
  const name = encodeURIComponent(id);
  const old = { version: "" };
  const ways = [
    ["1.0", "GET /tasks/{id}", () => call(`/tasks/${name}`)],
    ["0.3", "GET /v1/tasks/{id}", () => call(`/v1/tasks/${name}`, old)],
    ["0.1", "POST /tasks/get", () => call("/tasks/get", { ...old, body: { id, historyLength: 100 } })],
  ];
  const way = ([version, how, read]) => action(`A2A ${version}`, async () => {
    const task = await read();
    replace(shown, p("quiet", how), json(task));
  });
  return el("div", {}, div("row", ways.map(way)), shown);
}
