// The chat: messages, live events, questions and files.

import { ASKS, ENDED, call, message, stateOf, taskPath } from "./api.js";
import { action, announce, badge, button, el, field, put, replace, said } from "./dom.js";
import { fileBox } from "./files.js";
import { artifact, cause, parts, words } from "./parts.js";
import { follow } from "./stream.js";

/** Events that a task shows at once; older ones can be shown on request. */
const SHOWN = 200;

const log = el("div", { id: "log", role: "log", "aria-label": "Messages", "aria-live": "off" });
const known = new Map();
let context = "";
let skills = [];

/** The view. It keeps its messages while other views are shown. */
export function chatView(listed) {
  skills = listed;
  const text = el("textarea", { id: "say", rows: 2, on: { keydown: enter } });
  const skill = el("select", { id: "say-skill" }, el("option", { value: "" }, "The agent chooses"), skills.map((it) => el("option", { value: it.id }, it.name)));
  const place = el("p", { class: "quiet", id: "chat-context" });
  const files = fileBox();
  const composer = el("form", { class: "composer", "aria-label": "New message", on: { submit } },
    field("Message", text, "Enter sends, Shift and Enter makes a new line. Files can be dropped on the chat."),
    files.element,
    el("div", { class: "row" }, el("label", { for: "say-skill" }, "Skill"), skill, files.button, el("button", { class: "main", type: "submit" }, "Send"), button("New conversation", () => renew(place))));
  function enter(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    composer.requestSubmit();
  }
  async function submit(event) {
    event.preventDefault();
    const attached = await files.parts();
    // The text is read last: it can be edited while files are uploaded.
    const sent = text.value.trim() ? [{ text: text.value }] : [];
    if (!attached || sent.length + attached.length === 0) return;
    text.value = "";
    files.clear();
    send({ parts: [...sent, ...attached], skill: skill.value });
    text.focus();
  }
  showContext(place);
  return el("div", { on: files.drop }, el("h1", { tabindex: "-1" }, "Chat"), place, log, composer);
}

function showContext(place = document.getElementById("chat-context")) {
  if (place) replace(place, context ? `Conversation ${context}` : "A new conversation begins with your next message.");
}

function renew(place) {
  context = "";
  known.clear();
  log.replaceChildren();
  showContext(place);
  announce("A new conversation");
}

/** Continues an earlier conversation with the next message. */
export function continueContext(id) {
  renew(null);
  context = id;
}

/** Sends a message of the user and shows what happens. */
export async function send({ parts: sent, skill = "", task = "" }) {
  const metadata = skill ? { "a2a-lambda/skillId": skill } : undefined;
  const more = { metadata };
  if (context) more.contextId = context;
  if (task) more.taskId = task;
  const secret = task && known.get(task)?.state === "auth-required";
  put(log, el("article", { class: "panel user", "aria-label": "Your message" }, secret ? said("(the answer is not shown)") : parts(sent)));
  // The continued task comes after the answer.
  if (task) put(log, panelOf(task).element);
  await run({ body: { message: message(sent, more) }, task });
}

/** Shows a task that exists and follows it. */
export async function openTask(id) {
  const task = await call(taskPath(id, "?historyLength=100"));
  if (task.contextId !== context) continueContext(task.contextId);
  showContext();
  const first = (task.history ?? []).find((it) => it.role === "ROLE_USER");
  if (first) put(log, el("article", { class: "panel user", "aria-label": "Your message" }, parts(first.parts)));
  const panel = panelOf(id);
  panel.show({ task, whole: true }, "");
  if (!ENDED.includes(panel.state) && !ASKS.includes(panel.state)) await run({ task: id });
}

async function run({ body, task }) {
  const stop = new AbortController();
  let panel = task ? panelOf(task) : null;
  const waiting = el("p", { class: "quiet" }, "Sent. The agent works…");
  put(log, waiting);
  const show = (event, id) => {
    waiting.remove();
    const named = event.task ?? event.statusUpdate ?? event.artifactUpdate ?? event.message;
    if (named?.contextId && !context) {
      context = named.contextId;
      showContext();
    }
    if (event.message) {
      put(log, el("article", { class: "panel", "aria-label": "Reply" }, parts(event.message.parts)));
      announce(`Reply: ${words(event.message)}`);
      return;
    }
    panel = panelOf(event.task?.id ?? named.taskId);
    panel.show(event, id);
  };
  const lost = (error) => panel?.connection(error ? "The connection is lost. The page connects again." : "");
  try {
    await follow({ body, task: body ? "" : task, show, lost, signal: stop.signal });
  } catch (error) {
    waiting.remove();
    const text = error.reason ? `${error.message} (${error.reason})` : error.message;
    put(log, el("p", { class: "error panel", role: "alert" }, text));
  }
}

function panelOf(id) {
  if (!known.has(id)) known.set(id, taskPanel(id));
  const panel = known.get(id);
  if (!panel.element.isConnected || panel.element.parentNode !== log) put(log, panel.element);
  return panel;
}

/** The panel of one task: state, events, artifacts and its open question. */
function taskPanel(id) {
  const panel = { state: "", seen: new Set() };
  const state = el("span", {});
  const connection = el("p", { class: "quiet", role: "status" });
  const events = el("ol", { class: "events" });
  const made = el("div", {});
  const question = el("div", {});
  const artifacts = new Map();
  const cancel = action("Cancel", async () => {
    panel.show({ task: await call(taskPath(id, ":cancel"), { method: "POST", body: {} }), whole: true }, "");
  });
  panel.element = el("article", { class: "panel", "aria-label": `Task ${id}` },
    el("div", { class: "row" }, state, el("a", { href: `#/task/${encodeURIComponent(id)}` }, id), el("span", { class: "grow" }), cancel),
    connection, el("details", { open: true }, el("summary", {}, "Events"), events), made, question);
  panel.connection = (text) => replace(connection, text);

  const line = (...children) => {
    put(events, el("li", {}, children));
    if (events.childElementCount > SHOWN) events.firstElementChild.remove();
  };
  const drawArtifact = (it) => {
    const element = artifact(it.value);
    it.element?.replaceWith(element);
    if (!it.element) put(made, element);
    it.element = element;
  };
  const setStatus = (status) => {
    if (!status) return;
    panel.state = stateOf(status);
    replace(state, badge(panel.state));
    cancel.hidden = ENDED.includes(panel.state);
    replace(question);
    if (ASKS.includes(panel.state)) ask(question, id, panel.state, status.message);
    if (ENDED.includes(panel.state)) put(question, status.message && el("div", {}, parts(status.message.parts)), cause(status.message));
    const text = words(status.message);
    announce(`${panel.state}${text ? `: ${text}` : ""}`);
  };
  panel.show = (event, eventId) => {
    if (eventId && panel.seen.has(eventId)) return;
    if (eventId) panel.seen.add(eventId);
    if (event.task) {
      for (const value of event.task.artifacts ?? []) {
        const it = { ...artifacts.get(value.artifactId), value };
        artifacts.set(value.artifactId, it);
        drawArtifact(it);
      }
      if (event.whole) line("Read: ", stateOf(event.task.status));
      setStatus(event.task.status);
    } else if (event.statusUpdate) {
      const { status, metadata } = event.statusUpdate;
      const text = words(status.message);
      line(stateOf(status), metadata?.["a2a-lambda/restarted"] ? " (the turn runs again)" : "", text ? `: ${text}` : "");
      setStatus(status);
    } else if (event.artifactUpdate) {
      const update = event.artifactUpdate;
      const name = update.artifact.name || update.artifact.artifactId;
      line(update.append ? "More of " : "Artifact ", name);
      if (!update.append) announce(`Artifact ${name}`);
      addArtifact(artifacts, update, drawArtifact);
    }
  };
  return panel;
}

/** Joins a chunk with its artifact. Text chunks become one text. */
function addArtifact(artifacts, { artifact: chunk, append }, draw) {
  const before = artifacts.get(chunk.artifactId);
  const it = { element: before?.element, value: { ...chunk, parts: [...(chunk.parts ?? [])] } };
  if (append && before) {
    const all = [...before.value.parts];
    for (const next of it.value.parts) {
      const last = all.at(-1);
      const joins = typeof last?.text === "string" && typeof next.text === "string" && !next.filename;
      if (joins) all[all.length - 1] = { ...last, text: last.text + next.text };
      else all.push(next);
    }
    it.value = { ...before.value, parts: all };
  }
  artifacts.set(chunk.artifactId, it);
  draw(it);
}

/** The form that answers a question where it is asked. */
function ask(place, task, state, asked) {
  const secret = state === "auth-required";
  const hint = asked?.metadata?.["a2a-lambda/auth"];
  const control = el("input", { type: secret ? "password" : "text", autocomplete: "off", dir: "auto" });
  const note = secret
    ? `${hint ? `Needed: ${[hint.authType, hint.service].filter(Boolean).join(" for ")}. ` : ""}The answer is stored sealed and never shown again.`
    : "The task continues with your answer.";
  const files = secret ? null : fileBox();
  const submit = async (event) => {
    event.preventDefault();
    const attached = files ? await files.parts() : [];
    if (!attached) return;
    replace(place);
    document.getElementById("say")?.focus();
    const text = control.value || !attached.length ? [{ text: control.value }] : [];
    send({ parts: [...text, ...attached], task });
  };
  const form = el("form", { "aria-label": "Answer", on: { submit, ...files?.drop } },
    said(words(asked) || "The agent asks."), field(secret ? "Credentials" : "Your answer", control, note), files?.element,
    el("div", { class: "row" }, el("button", { class: "main", type: "submit" }, "Answer"), files?.button));
  put(place, form);
  if (log.isConnected) control.focus();
}
