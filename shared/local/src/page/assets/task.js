// One task: what happened to it, why it failed, and how each generation reads it.

import { ENDED, call, headers, local, stateOf, taskPath } from "./api.js";
import { openTask, send } from "./chat.js";
import { action, announce, badge, button, el, facts, json, plain, replace, said, time } from "./dom.js";
import { artifact, cause, parts } from "./parts.js";
import { snippets } from "./snippets.js";
import { webhookTable } from "./lists.js";

/** How often an unfinished task is read again. */
const EVERY = 1000;

/** The view of a task. `alive` tells whether the view is still shown. */
export async function taskView(id, alive) {
  const head = el("div", {});
  const happened = el("div", {});
  const shown = { state: "", version: -1 };
  const read = async () => {
    const [task, inside] = await Promise.all([call(taskPath(id, "?historyLength=100")), local(`tasks/${encodeURIComponent(id)}`).catch((error) => ({ error }))]);
    const version = inside.facts?.version ?? shown.version + 1;
    const delivered = JSON.stringify([inside.webhooks, inside.log?.length]);
    if (version === shown.version && delivered === shown.delivered) return task;
    const opened = [...happened.querySelectorAll("details[open] > summary")].map((it) => it.textContent);
    const state = stateOf(task.status);
    if (shown.state && shown.state !== state) announce(`The task is ${state}`);
    Object.assign(shown, { state, version, delivered });
    shown.ended(ENDED.includes(state));
    replace(head, summary(task, inside));
    replace(happened, history(task, inside));
    for (const it of happened.querySelectorAll("details > summary")) {
      if (opened.includes(it.textContent)) it.parentNode.open = true;
    }
    return task;
  };
  const cancel = action("Cancel", async () => {
    await call(taskPath(id, ":cancel"), { method: "POST", body: {} });
    await read();
  });
  shown.ended = (ended) => { cancel.hidden = ended; };
  const task = await read();
  poll(read, shown, alive);
  const first = (task.history ?? []).find((it) => it.role === "ROLE_USER");
  return [
    el("h1", { tabindex: "-1" }, `Task ${id}`),
    head,
    el("div", { class: "row" }, cancel, actions(id, first)),
    happened,
    el("h2", {}, "As each generation reads it"),
    generations(id),
    first && [el("h2", {}, "Send the same with"), snippets(first)],
  ];
}

async function poll(read, shown, alive) {
  for (;;) {
    await new Promise((done) => setTimeout(done, EVERY));
    if (!alive()) return;
    if (ENDED.includes(shown.state)) continue;
    // The process may be away for a moment; the next read comes soon.
    await read().catch(() => {});
  }
}

function actions(id, first) {
  const gone = async () => {
    await call(`/a2a-lambda/tasks/${encodeURIComponent(id)}`, { method: "DELETE" });
    announce("The task is deleted");
    location.hash = "#/tasks";
  };
  return [
    action("Delete", gone, { class: "danger" }),
    first && button("Send again", () => {
      const skill = first.metadata?.["a2a-lambda/skillId"] ?? "";
      location.hash = "#/chat";
      setTimeout(() => send({ parts: first.parts, skill }), 0);
    }),
    action("Open in the chat", async () => {
      location.hash = "#/chat";
      await openTask(id);
    }),
  ];
}

function summary(task, inside) {
  const it = inside.facts ?? {};
  return el("div", { class: "panel" },
    el("p", {}, badge(stateOf(task.status))),
    facts([
      ["Conversation", task.contextId],
      ["Skill", it.skill],
      ["Created by", it.generation && `A2A ${it.generation}`],
      ["Version", it.version],
      ["Turn", it.turn],
      ["Attempt", it.attempt],
      ["Hand-overs", it.handOvers],
      ["Created", it.createdAt && time(it.createdAt)],
      ["Updated", it.updatedAt && time(it.updatedAt)],
      ["Lease until", it.leaseUntil && time(it.leaseUntil)],
    ]),
    inside.error && el("p", { class: "error" }, `The inside is not shown: ${inside.error.message}`));
}

function history(task, inside) {
  const status = task.status?.message;
  const failed = stateOf(task.status) === "failed";
  return [
    failed && failure(status, inside),
    el("h2", {}, "Timeline"),
    timeline(inside),
    inside.steps?.length ? el("details", {}, el("summary", {}, `Kept results of ${inside.steps.length} steps`), json(inside.steps)) : null,
    (task.history ?? []).length > 0 && el("details", {}, el("summary", {}, `Messages (${task.history.length})`), task.history.map((it) => el("div", { class: "panel" }, el("h3", {}, it.role === "ROLE_USER" ? "Client" : "Agent"), parts(it.parts)))),
    (task.artifacts ?? []).length > 0 && el("details", { open: true }, el("summary", {}, `Artifacts (${task.artifacts.length})`), task.artifacts.map(artifact)),
    inside.webhooks?.length ? [el("h2", {}, "Webhooks"), webhookTable(inside.webhooks)] : null,
  ];
}

/** Why the task failed: what clients see, and the cause that only the log has. */
function failure(status, inside) {
  const notes = (inside.log ?? []).filter((it) => it["error.code"]);
  const causes = notes.map((it) => it["error.cause"]).filter(Boolean);
  return el("section", { class: "panel", "aria-label": "Cause of the failure" },
    el("h2", {}, "Why it failed"),
    status && parts(status.parts),
    cause(status),
    causes.length
      ? causes.map((it) => el("div", {}, el("h3", {}, "Cause, from the log"), said(it)))
      : el("p", { class: "quiet" }, "The log since the start of the program has no further cause."));
}

/** The commits, the events and the log of a task in the order of time. */
function timeline({ commits = [], events = [], log = [] }) {
  const entries = [];
  let before = { version: 0, epoch: 0, turn: 0, attempt: 0, handOvers: 0, steps: [], state: "", waitsForWorker: false };
  const timeOf = new Map();
  const withEvents = new Set(events.map((it) => it.version));
  for (const commit of commits) {
    timeOf.set(commit.version, commit.at);
    entries.push(...changes(before, commit, withEvents).map(([text, kind]) => ({ at: commit.at, order: commit.version, text, kind })));
    before = { ...commit, handOvers: commit.handOvers ?? 0 };
  }
  for (const event of events) {
    const at = timeOf.get(event.version) ?? event.at;
    entries.push({ at, order: event.version + 0.5, ...eventText(event) });
  }
  for (const note of log) entries.push({ at: note.at, order: Infinity, ...noteText(note) });
  entries.sort((a, b) => (a.at ?? 0) - (b.at ?? 0) || a.order - b.order);
  if (!entries.length) return el("p", { class: "quiet" }, "This task was stored in one write. It has no events.");
  return el("ol", { class: "timeline" }, entries.map((it) => el("li", { class: it.kind ?? "" }, it.at ? time(it.at) : null, el("bdi", {}, it.text))));
}

/** What one commit changed, in words. */
function changes(before, now, withEvents) {
  const found = [];
  if (!before.version) found.push(["The task was created"]);
  if (now.turn > before.turn && before.version) found.push([`Turn ${now.turn} begins`]);
  if ((now.handOvers ?? 0) > before.handOvers) found.push([`The turn was handed over to another worker (hand-over ${now.handOvers})`]);
  if (now.waitsForWorker && !before.waitsForWorker) found.push(["The turn waits for a worker"]);
  if (now.attempt !== before.attempt && now.attempt > 0) found.push([`Attempt ${now.attempt} of turn ${now.turn}`]);
  else if (now.epoch > before.epoch && now.turn === before.turn && before.version && !ENDED.includes(now.state)) found.push(["Another worker took the turn"]);
  const known = new Set(before.steps);
  for (const step of now.steps) if (!known.has(step)) found.push([`Step ${step} finished`]);
  if (now.state !== before.state) found.push([`State: ${now.state}`, ["failed", "rejected"].includes(now.state) ? "failure" : ""]);
  // An event shows its own commit.
  if (!found.length && !withEvents.has(now.version)) found.push([`Stored version ${now.version}`, "quiet-entry"]);
  return found;
}

function eventText(event) {
  if (event.kind === "artifact") {
    return { text: `Event ${event.id}: ${event.append ? "more of artifact" : "artifact"} ${event.name ?? ""}` };
  }
  const again = event.metadata?.["a2a-lambda/restarted"] ? " (the turn runs again)" : "";
  return { text: `Event ${event.id}: ${event.state}${again}${event.text ? `: ${plain(event.text)}` : ""}` };
}

function noteText(note) {
  if (note["error.code"]) return { text: `Failed with ${note["error.code"]}${note["error.cause"] ? `: ${note["error.cause"]}` : ""}`, kind: "failure" };
  // The line of a call says how its turn ended, if it ran one.
  if (note.attempt !== undefined) {
    const error = note.message === "turn" ? note.error : note.task_error;
    return { text: `Attempt ${note.attempt} ended as ${note.state ?? "a reply"} after ${note.turn_ms ?? note.ms} ms${error ? ` (${error})` : ""}`, kind: error ? "failure" : "" };
  }
  return { text: note.message ?? "", kind: note.level === "INFO" ? "quiet-entry" : "failure" };
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
