// The chat: a conversation in its order, which comes back by its address.

import { ASKS, ENDED, call, message, taskPath } from "./api.js";
import { composer } from "./composer.js";
import {
  announce, badge, button, counted, div, el, empty, hashOf, iconButton, p, plain, put, replace, shortId, span,
  view,
} from "./dom.js";
import { icon } from "./icons.js";
import { readRows } from "./lists.js";
import { live } from "./live.js";
import { parts, prose, words } from "./parts.js";
import { follow } from "./stream.js";
import { ownTurn, taskPanel, turnOf } from "./talk.js";

/** Tasks of a conversation that are read at once. */
const TASKS = 20;
/** The conversation that the link Chat leads to. */
const LAST = "a2a-local-talk";
/** Replies without a task, which the agent does not keep. */
const REPLIES = "a2a-local-replies:";
const MOST_REPLIES = 100000;

const log = el("div", { id: "log", role: "log", "aria-label": "Messages", "aria-live": "off" });
const talk = {
  context: "", title: "", panels: new Map(), stop: new AbortController(), running: 0, box: null, followsEnd: true,
};
let skills = [];

const host = { changed, refine: (task, name) => talk.box.refine(task, name), drawn: toEnd };

/** The view. Its messages stay and go on while other views are shown. */
export async function chatView(listed, context, signal) {
  if (!talk.box || JSON.stringify(listed) !== JSON.stringify(skills)) talk.box = composer({ skills: listed, send });
  skills = listed;
  const wanted = context || talk.context || (sessionStorage.getItem(LAST) ?? "");
  if (!context && wanted) history.replaceState(null, "", address(wanted));
  if (wanted !== talk.context) await load(wanted);
  else talk.box.use(wanted, true);
  // The conversation of the last visit may be gone.
  if (!context && !log.childElementCount && talk.context) newTalk();
  const end = iconButton("down", "To the end", () => scrollToEnd(), { class: "icon to-end", hidden: true });
  const nodes = view({
    title: el("span", { id: "talk-title", dir: "auto" }),
    note: el("span", { id: "talk-note", class: "row" }),
    actions: button([icon("plus"), "New"], newTalk, { class: "plain", title: "New conversation (n)" }),
    body: div("talk", span("fill"), el("div", { id: "welcome" }), log),
    under: [end, talk.box.element],
    full: true,
  });
  dropAnywhere(signal);
  signal.addEventListener("shown", () => {
    const scroll = log.closest(".scroll");
    scroll.addEventListener("scroll", () => {
      talk.followsEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 40;
      end.hidden = talk.followsEnd;
    }, { signal });
    const seen = new ResizeObserver(toEnd);
    seen.observe(log);
    signal.addEventListener("abort", () => { seen.disconnect(); talk.box.forget(); });
    showHead();
    changed();
    scrollToEnd();
    talk.box.focus();
  });
  live.addEventListener("change", refresh, { signal });
  const ticks = setInterval(() => { for (const it of talk.panels.values()) it.tick(); }, 1000);
  signal.addEventListener("abort", () => clearInterval(ticks));
  return nodes;
}

const address = (context) => (context ? hashOf("chat", context) : "#/chat");

/** Files can be dropped on the whole view. */
function dropAnywhere(signal) {
  const main = document.getElementById("main");
  const outlined = (is) => main.classList.toggle("dropping", is);
  main.addEventListener("dragover", (event) => {
    talk.box.drop.dragover(event);
    outlined(event.defaultPrevented);
  }, { signal });
  main.addEventListener("dragleave", (event) => {
    if (!main.contains(event.relatedTarget)) outlined(false);
  }, { signal });
  main.addEventListener("drop", (event) => {
    outlined(false);
    talk.box.drop.drop(event);
  }, { signal });
}

function toEnd() {
  if (talk.followsEnd) scrollToEnd();
}

function scrollToEnd() {
  const scroll = log.closest(".scroll");
  if (scroll) scroll.scrollTop = scroll.scrollHeight;
}

function showHead() {
  const title = document.getElementById("talk-title");
  if (!title) return;
  replace(title, talk.title || "New conversation");
  const count = talk.panels.size;
  replace(document.getElementById("talk-note"), talk.context && shortId(talk.context),
    count > 0 && span("note", counted(count, "task")));
  document.title = `${plain(talk.title || "Chat")} · a2a-lambda`;
  replace(document.getElementById("welcome"), !log.childElementCount && welcome());
}

/** What a new conversation shows: what one can say. */
function welcome() {
  const first = skills.filter((it) => it.examples?.length).slice(0, 6);
  return empty("What should the agent do?", "Write a message, drop files, or begin with an example.",
    ...first.map(({ id, examples: [text] }) => button(text, () => send({ parts: [{ text }], skill: id }))));
}

/** The questions that are open, for the composer. */
function changed() {
  const open = [...talk.panels.values()].filter((it) => ASKS.includes(it.state)).sort((a, b) => a.at - b.at);
  talk.box?.ask(open.map(({ id, skill, state, question }) =>
    ({ task: id, skill: skill || "the task", state, text: question.split("\n")[0] })));
  showHead();
}

/** Continues with a reference to an artifact of a task, from any view. */
export async function refineIn(context, task, name) {
  location.hash = address(context);
  if (talk.context !== context) await load(context);
  setTimeout(() => talk.box?.refine(task, name), 50);
}

function reset(context) {
  talk.stop.abort();
  Object.assign(talk, { context, title: "", stop: new AbortController(), running: 0, followsEnd: true });
  talk.panels.clear();
  log.replaceChildren();
  if (context) sessionStorage.setItem(LAST, context);
  else sessionStorage.removeItem(LAST);
  talk.box?.use(context, false);
}

/** Begins a conversation with the next message. */
export function newTalk() {
  reset("");
  announce("A new conversation");
  if (location.hash === "#/chat") dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = "#/chat";
}

/** When each message of a task was sent: the changes of its state say so. */
function timesOf(row, task) {
  const changes = row?.transitions ?? [];
  const isRest = (it) => ASKS.includes(it.state);
  const answers = changes.filter((it, n) => n > 0 && isRest(changes[n - 1]) && !ENDED.includes(it.state));
  const began = row?.createdAt ?? Date.parse(task.status?.timestamp);
  const at = (list) => list.map((it) => it.at);
  return { own: [began, ...at(answers)], asked: at(changes.filter(isRest)), last: changes.at(-1)?.at ?? began };
}

/** What only the program knows of the tasks of a conversation; nothing without the token. */
const rowsOf = (context) => readRows({ context }).then((it) => it.rows, () => []);

/** Reads a conversation: its tasks with their messages, the oldest first. */
async function load(context, token = "") {
  if (!token) reset(context);
  if (!context) return;
  const query = new URLSearchParams({
    contextId: context, pageSize: TASKS, historyLength: 100, includeArtifacts: "true",
    ...(token && { pageToken: token }),
  });
  const [page, rows] = await Promise.all([call(`/tasks?${query}`), rowsOf(context)]);
  if (talk.context !== context) return;
  const known = new Map(rows.map((it) => [it.task, it]));
  const blocks = token ? [] : repliesOf(context);
  for (const listed of page.tasks) {
    const cut = listed.metadata?.["a2a-lambda/truncated"];
    const task = cut ? await call(taskPath(listed.id, "?historyLength=100")).catch(() => listed) : listed;
    blocks.push(...blocksOf(task, known.get(task.id)));
  }
  blocks.sort((a, b) => a.at - b.at);
  const earlier = page.nextPageToken && button("Show earlier tasks", () => {
    earlier.remove();
    load(context, page.nextPageToken);
  }, { class: "small" });
  const oldest = rows.at(-1);
  if (!token) talk.title = oldest?.title || words(page.tasks.at(-1)?.history?.[0]).slice(0, 200);
  log.prepend(...[earlier || [], blocks.map((it) => it.element)].flat());
  if (!token) changed();
}

/** The blocks of one task: what was said, then where it stands. */
function blocksOf(task, row) {
  const times = timesOf(row, task);
  const panel = panelOf(task.id);
  const last = task.status?.message?.messageId;
  const blocks = [];
  const add = (at, element) => blocks.push({ at: at ?? times.last, element });
  const said = (task.history ?? []).filter((it) => it.messageId !== last);
  said.forEach((it, n) => {
    if (it.role === "ROLE_USER") {
      add(times.own.shift(), ownTurn(it));
      return;
    }
    add(times.asked.shift(), turnOf(div("bubble", prose(words(it)))));
    // An answer that the agent does not keep had credentials.
    if (said[n + 1]?.role !== "ROLE_USER") add(times.own.shift(), ownTurn({}, true));
  });
  panel.use(row);
  panel.show({ task, whole: true }, "");
  const isOpen = !ENDED.includes(panel.state) && !ASKS.includes(panel.state);
  add(isOpen ? Infinity : times.last, panel.element);
  if (isOpen) run({ task: task.id });
  return blocks;
}

/** Somebody else went on with this conversation: it is read again. */
async function refresh() {
  if (!talk.context || talk.running) return;
  const { context } = talk;
  const rows = await rowsOf(context);
  // Older tasks are not on the page.
  const differs = rows.slice(0, TASKS).some((it) => talk.panels.get(it.task)?.at !== it.updatedAt);
  if (differs && !talk.running && talk.context === context) {
    const { followsEnd } = talk;
    const scroll = log.closest(".scroll");
    const top = scroll?.scrollTop;
    await load(context);
    talk.followsEnd = followsEnd;
    if (followsEnd) scrollToEnd();
    else if (scroll) scroll.scrollTop = top;
  }
}

function panelOf(id) {
  if (!talk.panels.has(id)) talk.panels.set(id, taskPanel(id, host));
  return talk.panels.get(id);
}

/** Sends a message of the user in a conversation of its own. */
export function sendNew(sent) {
  reset("");
  location.hash = "#/chat";
  // The view comes first, so that a question can take the focus.
  setTimeout(() => send(sent), 0);
}

/** Sends a message of the user and shows what happens. */
export async function send({ parts: sent, skill, task = "", references = [], secret, background }) {
  const more = { metadata: skill ? { "a2a-lambda/skillId": skill } : undefined };
  if (talk.context) more.contextId = talk.context;
  if (task) more.taskId = task;
  if (references.length) more.referenceTaskIds = references;
  const body = { message: message(sent, more) };
  if (background) body.configuration = { returnImmediately: true };
  if (task) talk.panels.get(task)?.answer();
  put(log, ownTurn(body.message, secret));
  if (task) put(log, panelOf(task).element);
  talk.title ||= secret ? "" : words(body.message).slice(0, 200);
  talk.followsEnd = true;
  showHead();
  toEnd();
  await run({ body, task });
}

async function run({ body, task }) {
  const { signal } = talk.stop;
  const waiting = div("turn", p("run", badge("working", "Sent")));
  if (!task) put(log, waiting);
  talk.running += 1;
  let panel = task ? panelOf(task) : null;
  const show = (event, id) => {
    if (signal.aborted) return;
    const named = event.task ?? event.statusUpdate ?? event.artifactUpdate ?? event.message;
    if (named?.contextId) entered(named.contextId);
    if (event.message) {
      waiting.replaceWith(turnOf(parts(event.message.parts)));
      keepReply(body?.message, event.message);
      announce(words(event.message));
      return;
    }
    panel = panelOf(event.task?.id ?? named.taskId);
    if (!panel.element.isConnected || panel.element.parentNode !== log) put(log, panel.element);
    waiting.remove();
    panel.show(event, id);
    toEnd();
  };
  const lost = (error) => error && panel?.connection("Reconnects");
  try {
    await follow({ body, task: body ? "" : task, show, lost, signal });
  } catch (error) {
    if (signal.aborted) return;
    waiting.remove();
    const text = error.reason ? `${error.message} (${error.reason})` : error.message;
    put(log, turnOf(el("p", { class: "bubble broke said", role: "alert" }, text)));
  } finally {
    if (!signal.aborted) talk.running -= 1;
    showHead();
    toEnd();
  }
}

/** The first answer names the conversation; from then on it is in the address. */
function entered(context) {
  if (talk.context === context) return;
  const isNew = !talk.context;
  talk.context = context;
  sessionStorage.setItem(LAST, context);
  talk.box?.use(context, isNew);
  if (/^#\/chat/.test(location.hash)) history.replaceState(null, "", address(context));
  showHead();
}

const keptReplies = (context) => JSON.parse(sessionStorage.getItem(REPLIES + context) ?? "[]");

/** Keeps a reply without a task for a reload: the agent does not keep it. */
function keepReply(own, reply) {
  const text = JSON.stringify([...keptReplies(talk.context), { at: Date.now(), own: own?.parts, reply: reply.parts }]);
  if (text.length < MOST_REPLIES) sessionStorage.setItem(REPLIES + talk.context, text);
}

function repliesOf(context) {
  return keptReplies(context).flatMap(({ at, own, reply }) =>
    [{ at: at - 1, element: ownTurn({ parts: own }) }, { at, element: turnOf(parts(reply)) }]);
}
