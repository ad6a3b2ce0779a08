// One task: what happened to it, why it failed, and how each generation reads it.

import { ENDED, call, headers, local, stateOf, taskPath } from "./api.js";
import { refineIn, sendNew } from "./chat.js";
import { action, announce, badge, button, dated, el, json, menu, plain, replace, said, shortId, stateWord, time, took } from "./dom.js";
import { icon } from "./icons.js";
import { webhookList } from "./lists.js";
import { live } from "./live.js";
import { artifact, cause, parts, words } from "./parts.js";
import { copyMenu } from "./snippets.js";
import { ownTurn, turnOf } from "./talk.js";

/** The view of a task. It is read again when something is stored. */
export async function taskView(id, signal) {
  const head = el("header", { class: "task-head" });
  const panels = { events: el("div", {}), messages: el("div", {}), artifacts: el("div", {}), webhooks: el("div", {}), wire: el("div", {}) };
  const shown = { state: "", seen: "", tab: "events", hooks: null };
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
    const seen = JSON.stringify([task, inside.facts?.version, inside.webhooks, inside.log?.length, inside.commits?.length]);
    if (seen === shown.seen || signal.aborted) return task;
    const state = stateOf(task.status);
    if (shown.state && shown.state !== state) announce(`The task is ${stateWord(state)}`);
    Object.assign(shown, { state, seen });
    cancel.hidden = ENDED.includes(state);
    replace(head, top(task, inside, cancel), bar);
    fill(panels, counts, shown, task, inside);
    return task;
  }
  const task = await read(true);
  read().catch(() => {});
  const first = (task.history ?? []).find((it) => it.role === "ROLE_USER");
  replace(panels.wire, generations(id), first && [el("h2", {}, "Send the same with"), el("div", { class: "row" }, copyMenu(() => first))]);
  live.addEventListener("change", () => read().catch(() => {}), { signal });
  return [head, el("div", { class: "scroll" }, el("div", { class: "body" }, Object.values(panels)))];
}

const TABS = [["events", "Events"], ["messages", "Messages"], ["artifacts", "Artifacts"], ["webhooks", "Webhooks"], ["wire", "On the wire"]];

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
  use("events");
  return el("div", { class: "tabs-of-view", role: "tablist", "aria-label": "Parts of the task", on: { keydown: move } }, all);
}

/** The head: where it is, what it is, and what one can do. */
function top(task, inside, cancel) {
  const it = inside.facts ?? {};
  const first = (task.history ?? []).find((own) => own.role === "ROLE_USER");
  const title = words(first).slice(0, 120) || `Task ${task.id}`;
  const state = stateOf(task.status);
  const fact = (name, value) => value !== undefined && value !== null && value !== "" && el("span", {}, name, " ", el("b", {}, value));
  return [
    el("div", { class: "path" }, el("a", { href: "#/tasks" }, "Tasks"), icon("right"), shortId(task.id), el("span", { class: "grow" }),
      cancel, button([icon("chat"), el("span", { class: "word" }, "Open in chat")], () => { location.hash = `#/chat/${encodeURIComponent(task.contextId)}`; }, { "aria-label": "Open in chat" }),
      first && button([icon("again"), el("span", { class: "word" }, "Send again")], () => sendNew({ parts: first.parts, skill: first.metadata?.["a2a-lambda/skillId"] ?? "" }), { "aria-label": "Send again" }),
      menu(icon("more"), () => [["Delete", () => remove(task.id), "danger"]], { class: "icon", label: "More" })),
    el("div", { class: "title" }, el("h1", { tabindex: "-1", dir: "auto" }, title), badge(state)),
    el("div", { class: "line-of-facts" }, fact("Skill", it.skill), it.tookMs !== undefined && fact("Took", took(it.tookMs)), fact("Turn", it.turn), it.attempt > 1 && fact("Attempt", it.attempt), it.handOvers > 0 && fact("Hand-overs", it.handOvers), fact("Version", it.version), fact("A2A", it.generation),
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
  const opened = [...panels.events.querySelectorAll("details[open] > summary")].map((it) => it.textContent);
  replace(panels.events, failed && failure(task.status?.message, inside), timeline(inside),
    inside.steps?.length > 0 && el("details", {}, el("summary", {}, `Kept results of ${inside.steps.length} steps`), json(inside.steps)));
  for (const it of panels.events.querySelectorAll("details > summary")) if (opened.includes(it.textContent)) it.parentNode.open = true;
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

/** Why the task failed: what clients see, and the cause that only the log has. */
function failure(status, inside) {
  const causes = (inside.log ?? []).filter((it) => it["error.code"]).map((it) => it["error.cause"]).filter(Boolean);
  return el("section", { class: "why", "aria-label": "Cause of the failure" },
    el("h2", {}, "Why it failed"),
    status && said(words(status)),
    cause(status),
    causes.length
      ? causes.map((it) => [el("h3", { class: "hint" }, "Cause, from the log"), el("pre", { tabindex: "0" }, it)])
      : el("p", { class: "hint" }, "The log since the start of the program has no further cause."));
}

/** The commits, the events and the log of a task in the order of time. */
function timeline({ error, waits, commits = [], events = [], log = [] }) {
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
  if (error) return el("p", { class: "quiet" }, "What happened is not shown without the inside of the task.");
  if (waits) return el("p", { class: "quiet" }, "Reading the events…");
  if (!entries.length) return el("p", { class: "quiet" }, "This task was stored in one write. It has no events.");
  return el("ol", { class: "timeline" }, entries.map((it) => el("li", { class: it.kind ?? "" }, it.at ? time(it.at) : el("span", {}), icon(markOf(it.text)), el("bdi", {}, it.text))));
}

/** The icon of an entry. */
function markOf(text) {
  const [, state] = /^State: ([a-z-]+)$/.exec(text) ?? [];
  if (state) return state;
  const marks = [["Step", "step"], ["Attempt", "again"], ["Event", "chat"], ["Stored", "store"], ["Failed", "warn"]];
  return marks.find(([word]) => text.startsWith(word))?.[1] ?? (/worker/.test(text) ? "worker" : "dot");
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
  if (!found.length && !withEvents.has(now.version)) found.push([`Stored version ${now.version}`, "dim"]);
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
  return { text: note.message ?? "", kind: note.level === "INFO" ? "dim" : "failure" };
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
