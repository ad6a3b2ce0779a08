// One task: what happened to it, why it failed, and how each generation reads it.

import { ENDED, call, headers, local, stateOf, taskPath } from "./api.js";
import { refineIn, sendNew } from "./chat.js";
import { action, announce, badge, button, dated, el, grouped, json, menu, replace, said, shortId, stateWord, time, took } from "./dom.js";
import { detail } from "./detail.js";
import { icon } from "./icons.js";
import { webhookList } from "./lists.js";
import { live } from "./live.js";
import { artifact, cause, parts, words } from "./parts.js";
import { copyMenu } from "./snippets.js";
import { ownTurn, turnOf } from "./talk.js";
import { tokensOf, waterfall } from "./waterfall.js";

/** The view of a task. It is read again when something is stored. */
export async function taskView(rest, signal) {
  // The address may end with the id of a row of the trace.
  const [, id, row] = /^(.*?)(?:\/([0-9a-f]{8}[.\w]*|wait-\d+))?$/s.exec(rest);
  const head = el("header", { class: "task-head" });
  const panels = { trace: el("div", {}), messages: el("div", {}), artifacts: el("div", {}), webhooks: el("div", {}), wire: el("div", {}) };
  const shown = { state: "", seen: "", tab: "trace", hooks: null, falls: traceOf(id, signal) };
  const counts = {};
  const bar = tabs(panels, shown, counts);
  const cancel = action("Cancel", async () => {
    await call(taskPath(id, ":cancel"), { method: "POST", body: {} });
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
    fill(panels, counts, shown, task, inside);
    if (row && !shown.hasRow && inside.trace) {
      shown.hasRow = true;
      shown.falls.choose(row);
    }
    return task;
  }
  const task = await read(true);
  read().catch(() => {});
  const first = (task.history ?? []).find((it) => it.role === "ROLE_USER");
  replace(panels.wire, generations(id), first && [el("h2", {}, "Send the same with"), el("div", { class: "row" }, copyMenu(() => first))]);
  live.addEventListener("change", () => read().catch(() => {}), { signal });
  return [head, el("div", { class: "scroll" }, el("div", { class: "body" }, Object.values(panels)))];
}

const TABS = [["trace", "Trace"], ["messages", "Messages"], ["artifacts", "Artifacts"], ["webhooks", "Webhooks"], ["wire", "On the wire"]];

/** The tabs of the view, with the arrows to move between them. */
function tabs(panels, shown, counts) {
  const all = TABS.map(([id, text]) => {
    counts[id] = el("span", { class: "count" });
    panels[id].id = `panel-${id}`;
    panels[id].setAttribute("role", "tabpanel");
    panels[id].setAttribute("aria-labelledby", `tab-${id}`);
    panels[id].tabIndex = 0;
    return button([text, counts[id]], () => use(id), { role: "tab", id: `tab-${id}`, "aria-controls": `panel-${id}` });
  });
  function use(id) {
    shown.tab = id;
    TABS.forEach(([name], n) => {
      panels[name].hidden = name !== id;
      all[n].setAttribute("aria-selected", String(name === id));
      all[n].tabIndex = name === id ? 0 : -1;
    });
  }
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const next = step && all.at((all.indexOf(document.activeElement) + step) % all.length);
    next?.click();
    next?.focus();
  };
  use("trace");
  return el("div", { class: "tabs-of-view", role: "tablist", "aria-label": "Parts of the task", on: { keydown: move } }, all);
}

/** The head: where it is, what it is, and what one can do. */
function top(task, inside, cancel) {
  const it = inside.facts ?? {};
  const first = (task.history ?? []).find((own) => own.role === "ROLE_USER");
  const tokens = (inside.trace ?? []).reduce((sum, own) => sum + tokensOf(own), 0);
  const title = words(first).slice(0, 120) || `Task ${task.id}`;
  const state = stateOf(task.status);
  const fact = (name, value) => value !== undefined && value !== null && value !== "" && el("span", {}, name, " ", el("b", {}, value));
  return [
    el("div", { class: "path" }, el("a", { href: "#/tasks" }, "Tasks"), icon("right"), shortId(task.id), el("span", { class: "grow" }),
      cancel, button([icon("chat"), el("span", { class: "word" }, "Open in chat")], () => { location.hash = `#/chat/${encodeURIComponent(task.contextId)}`; }, { "aria-label": "Open in chat" }),
      first && button([icon("again"), el("span", { class: "word" }, "Send again")], () => sendNew({ parts: first.parts, skill: first.metadata?.["a2a-lambda/skillId"] ?? "" }), { "aria-label": "Send again" }),
      menu(icon("more"), () => [["Delete", () => remove(task.id), "danger"]], { class: "icon", label: "More" })),
    el("div", { class: "title" }, el("h1", { tabindex: "-1", dir: "auto" }, title), badge(state)),
    el("div", { class: "line-of-facts" }, fact("Skill", it.skill), it.tookMs !== undefined && fact("Took", took(it.tookMs)), tokens > 0 && fact("Tokens", grouped(tokens)), fact("Turn", it.turn), it.attempt > 1 && fact("Attempt", it.attempt), it.handOvers > 0 && fact("Hand-overs", it.handOvers), fact("Version", it.version), fact("A2A", it.generation),
      it.createdAt && fact("Began", dated(it.createdAt)), it.leaseUntil && fact("Lease until", time(it.leaseUntil)), it.expiresAt && fact("Expires", dated(it.expiresAt)), el("a", { href: `#/tasks/context=${encodeURIComponent(task.contextId)}` }, "Its conversation")),
    inside.error && el("p", { class: "error" }, icon("warn"), `The inside is not shown: ${inside.error.message}`),
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
  const box = el("dialog", { "aria-labelledby": "delete-title", on: { close: () => box.remove() } },
    el("h2", { id: "delete-title" }, "Delete this task?"), el("p", { class: "quiet" }, "Its messages and artifacts are gone. Nothing brings them back."),
    el("div", { class: "row" }, gone, button("Keep it", () => box.close())));
  document.body.append(box);
  box.showModal();
}

/** Fills the tabs. A fold that is open stays open. */
function fill(panels, counts, shown, task, inside) {
  const failed = ["failed", "rejected"].includes(stateOf(task.status));
  const rows = inside.trace ?? [];
  const none = inside.waits ? "Reading the trace…" : "No trace: the task is older than the trace, it was removed for newer ones, or another process did the work.";
  if (rows.length) shown.falls.show(rows);
  replace(panels.trace, failed && failure(task.status?.message, rows), rows.length ? shown.falls.element : el("p", { class: "quiet" }, none));
  const messages = task.history ?? [];
  replace(panels.messages, messages.map((it) => (it.role === "ROLE_USER" ? ownTurn(it) : turnOf(parts(it.parts)))));
  const artifacts = task.artifacts ?? [];
  const refine = (it) => () => refineIn(task.contextId, task.id, it.name || it.artifactId);
  replace(panels.artifacts, artifacts.length ? artifacts.map((it) => artifact(it, refine(it))) : el("p", { class: "quiet" }, "This task has made nothing."));
  const hooks = inside.webhooks ?? [];
  if (!shown.hooks) {
    shown.hooks = webhookList();
    replace(panels.webhooks, shown.hooks.element);
  }
  shown.hooks.show(hooks, true);
  for (const [id, count] of [["messages", messages.length], ["artifacts", artifacts.length], ["webhooks", hooks.length]]) replace(counts[id], count > 0 && count);
}

/** The waterfall of a task, and the panel of the row that is opened. */
function traceOf(id, signal) {
  const wide = matchMedia("(min-width: 1100px)");
  const opened = { id: "", panel: null, line: null, row: null };
  const falls = waterfall((line, row) => {
    const isOther = line?.id !== opened.id || line?.end !== opened.line?.end;
    if (line?.id !== opened.id) history.replaceState(null, "", `#/task/${encodeURIComponent(id)}${line ? `/${line.id}` : ""}`);
    const read = (own) => local(`tasks/${encodeURIComponent(id)}/trace/${own}`);
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
    const old = [...falls.element.querySelectorAll(".detail, .detail-row")];
    // A panel that stays where it is keeps its focus.
    const stays = isBeside && opened.panel?.parentNode === falls.element;
    for (const it of old) if (!stays || it !== opened.panel) it.remove();
    if (!opened.panel || stays) return;
    if (isBeside) falls.element.append(opened.panel);
    else opened.row.after(el("div", { class: "detail-row", role: "row" }, el("div", { role: "gridcell" }, opened.panel)));
  }
  wide.addEventListener("change", place, { signal });
  falls.element.addEventListener("keydown", (event) => {
    if (event.target.closest(".detail") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && opened.panel) close();
    else if (event.key.toLowerCase() === "c") opened.panel?.copy(event.shiftKey);
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
      : el("p", { class: "hint" }, "The trace has no further cause."));
}

/** The stored task, read by the own call of each generation. */
function generations(id) {
  const shown = el("div", { "aria-live": "polite" });
  const name = encodeURIComponent(id);
  const ways = [
    ["1.0", "GET /tasks/{id}", () => call(`/tasks/${name}`)],
    ["0.3", "GET /v1/tasks/{id}", () => old(`/v1/tasks/${name}`, { method: "GET" })],
    ["0.1", "POST /tasks/get", () => old("/tasks/get", { method: "POST", body: JSON.stringify({ id, historyLength: 100 }) })],
  ];
  return el("div", {}, el("div", { class: "row" }, ways.map(([version, how, read]) => action(`A2A ${version}`, async () => {
    const task = await read();
    replace(shown, el("p", { class: "quiet" }, how), json(task));
  }))), shown);
}

/** A call of an older generation, which names no version. */
async function old(path, options) {
  const { "A2A-Version": _, ...rest } = headers(options.body ? { "Content-Type": "application/json" } : {});
  const response = await fetch(path, { ...options, headers: rest, cache: "no-store" });
  const body = await response.json();
  if (!response.ok) throw new Error(body?.error?.message ?? body?.message ?? `HTTP ${response.status}`);
  return body;
}
