// The chat: a conversation in its order, which comes back by its address. Its log is a list of
// blocks with keys: a message by its id, the last turn of a task by the id of the task. What is
// read again changes blocks, adds and removes them, and leaves all others as they are.

import { ASKS, ENDED, call, caller, exact, message, taskPath } from "./api.js";
import { composer } from "./composer.js";
import {
  action, announce, badge, button, counted, div, el, empty, iconButton, json, main, p, plain, replace, shortId, span,
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
const earlier = action("Show earlier tasks", () => sync(talk.next), { class: "small" });
const box = composer(send);
const host = { changed, closed, refine: box.refine, say: (task, text) => send({ parts: [{ text }], task }), drawn: toEnd };
let skills = [];
let talk = begun("");
/** What waits until the view is shown. */
let wish = null;

/** A conversation whose log is empty. `pending` has the messages that nothing has answered yet. */
function begun(context) {
  earlier.hidden = true;
  return {
    context, caller: caller(), title: "", next: "", followsEnd: true, isBehind: false,
    blocks: [], panels: new Map(), pending: new Set(), stop: new AbortController(),
    reads: Promise.resolve(), door: Promise.resolve(),
  };
}

/** The view. Its messages stay and go on while other views are shown. */
export async function chatView(listed, named, signal) {
  offer(listed);
  const isOther = talk.caller !== caller();
  // What one caller has said is not shown to the next.
  const context = isOther && named === talk.context ? "" : named;
  if (isOther) reset("");
  const wanted = context || talk.context || (sessionStorage.getItem(LAST) ?? "");
  if (wanted !== named) history.replaceState(null, "", address(wanted));
  if (wanted === talk.context) sync().catch(() => {});
  else {
    reset(wanted);
    await sync();
  }
  // The conversation of the last visit may be gone.
  if (!context && !log.childElementCount && talk.context) newTalk();
  const end = iconButton("down", "To the end", scrollToEnd, { class: "icon to-end", hidden: true });
  const nodes = view({
    title: el("span", { id: "talk-title", dir: "auto" }),
    note: el("span", { id: "talk-note", class: "row" }),
    actions: button([icon("plus"), "New"], newTalk, { class: "plain", title: "New conversation (n)" }),
    body: div("talk", span("fill"), el("div", { id: "welcome" }), earlier, log),
    under: [end, box.element],
    full: true,
  });
  dropAnywhere(signal);
  signal.addEventListener("shown", () => {
    const scroll = log.closest(".scroll");
    let top = 0;
    scroll.addEventListener("scroll", () => {
      const below = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight;
      // Whoever scrolls up a little leaves the end.
      talk.followsEnd = below < (scroll.scrollTop < top ? 1 : 40);
      top = scroll.scrollTop;
      end.hidden = talk.followsEnd;
    }, { signal });
    const seen = new ResizeObserver(toEnd);
    seen.observe(log);
    const ticks = setInterval(() => { for (const it of talk.panels.values()) it.tick(); }, 1000);
    signal.addEventListener("abort", () => { seen.disconnect(); clearInterval(ticks); box.forget(); });
    changed();
    scrollToEnd();
    box.focus();
    wish?.();
    wish = null;
  });
  live.addEventListener("change", () => sync().catch(() => {}), { signal });
  return nodes;
}

/** The skills that the agent has now. */
export function offer(listed) {
  skills = listed;
  box.offer(listed);
  showHead();
}

const address = (context) => (context ? `#/chat/${encodeURIComponent(context)}` : "#/chat");

function dropAnywhere(signal) {
  const outlined = (is) => main.classList.toggle("dropping", is);
  main.addEventListener("dragover", (event) => {
    box.drop.dragover(event);
    outlined(event.defaultPrevented);
  }, { signal });
  main.addEventListener("dragleave", (it) => { if (!main.contains(it.relatedTarget)) outlined(false); }, { signal });
  main.addEventListener("drop", (event) => {
    outlined(false);
    box.drop.drop(event);
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
  const [count, isEmpty] = [talk.panels.size, !log.childElementCount];
  const shape = JSON.stringify([talk.title, talk.context, count, isEmpty && skills]);
  if (title.dataset.shape === shape) return;
  title.dataset.shape = shape;
  replace(title, talk.title || "New conversation");
  replace(document.getElementById("talk-note"), talk.context && shortId(talk.context),
    count > 0 && span("note", counted(count, "task")));
  document.title = `${plain(talk.title || "Chat")} · a2a-lambda`;
  replace(document.getElementById("welcome"), isEmpty && welcome());
}

/** What a new conversation shows: what one can say. */
function welcome() {
  const firsts = skills.flatMap((it) => (it.examples ?? []).slice(0, 1).map((text) => [it.id, text]));
  return empty("What should the agent do?", "Write a message, drop files, or begin with an example.",
    ...firsts.slice(0, 6).map(([skill, text]) => button(text, () => send({ parts: [{ text }], skill }))));
}

/** The questions that are open, for the composer. */
function changed() {
  const open = [...talk.panels.values()].filter((it) => ASKS.includes(it.state)).sort((a, b) => a.at - b.at);
  box.ask(open.map(({ id, skill, state, question }) =>
    ({ task: id, skill: skill || "the task", state, text: question.split("\n")[0] })));
  showHead();
}

/** Continues with a reference to an artifact of a task, from another view. */
export function refineIn(context, task, name, skill) {
  wish = () => box.refine(task, name, skill);
  location.hash = address(context);
}

/** Sends a message of the user in a conversation of its own, from another view. */
export function sendNew(sent) {
  reset("");
  wish = () => send(sent);
  location.hash = "#/chat";
}

function reset(context) {
  talk.stop.abort();
  talk = begun(context);
  log.replaceChildren();
  if (context) sessionStorage.setItem(LAST, context);
  else sessionStorage.removeItem(LAST);
  box.use(context);
}

export function newTalk() {
  reset("");
  announce("A new conversation");
  if (location.hash === "#/chat") dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = "#/chat";
}

const blockOf = (key) => talk.blocks.find((it) => it.key === key);

/** The block with this key; `make` makes its element if there is none, in its place by time. */
function place(key, at, make, task = "") {
  const before = blockOf(key);
  if (before) return before;
  const block = { key, at, task, element: make(), foot: null };
  const next = talk.blocks.findIndex((it) => it.at > at);
  log.insertBefore(block.element, talk.blocks[next]?.element ?? null);
  talk.blocks.splice(next < 0 ? talk.blocks.length : next, 0, block);
  return block;
}

function remove(isGone) {
  for (const it of talk.blocks) if (isGone(it)) it.element.remove();
  talk.blocks = talk.blocks.filter((it) => !isGone(it));
}

function panelOf(id) {
  if (!talk.panels.has(id)) talk.panels.set(id, taskPanel(id, host));
  return talk.panels.get(id);
}

/** The open question becomes a message, and the next turn of its task a block of its own. */
function answer(panel) {
  const block = blockOf(panel.id);
  if (block) block.key = panel.asked;
  panel.answer();
}

/** A question that nobody answers any more stays, with what its task says now below it. */
function closed(panel) {
  const at = blockOf(panel.id)?.at ?? Date.now();
  answer(panel);
  place(panel.id, at, () => panel.element, panel.id);
}

/** Nobody took the answer: the question is open again. */
function reopen(panel) {
  if (!panel.before) return;
  remove((it) => it.key === panel.id);
  panel.reopen();
  const block = blockOf(panel.asked);
  if (block) block.key = panel.id;
}

/**
 * Brings the log into line with what is stored: with the newest tasks, or with those after
 * `token`. One read at a time; what changes during a read leads to one more.
 */
function sync(token = "") {
  const own = talk;
  if (!token && own.isBehind) return own.reads;
  own.isBehind ||= !token;
  const mine = own.reads.then(() => {
    if (!token) own.isBehind = false;
    return own === talk && read(token);
  });
  own.reads = mine.catch(() => {});
  return mine;
}

async function read(token) {
  const { context, stop: { signal } } = talk;
  if (!context) return;
  const quiet = [...talk.panels.values()].filter((it) => !it.follows);
  const { rows, next } = await readRows({ context }).catch(() => ({}));
  if (signal.aborted) return;
  // Rows after the first hundred are not listed.
  const oldest = next ? rows.at(-1)?.updatedAt ?? Infinity : 0;
  const isGone = (it) => rows && it.at >= oldest && !rows.some((row) => row.task === it.id);
  for (const { id } of quiet.filter(isGone)) {
    remove((it) => it.task === id);
    talk.panels.delete(id);
    announce("A task of this conversation is deleted");
  }
  const isKnown = ({ task: id, updatedAt }) => talk.panels.get(id)?.follows || talk.panels.get(id)?.at === updatedAt;
  const isFirst = !talk.panels.size;
  talk.title ||= rows?.at(-1)?.title ?? "";
  // Older tasks are not on the page.
  if (token || isFirst || !rows?.slice(0, TASKS).every(isKnown)) {
    await readTasks({ context, signal, rows: new Map(rows?.map((it) => [it.task, it])), token, isFirst });
  }
  if (!signal.aborted) changed();
}

async function readTasks({ context, signal, rows, token, isFirst }) {
  const query = new URLSearchParams({
    contextId: context, pageSize: TASKS, historyLength: 100, includeArtifacts: "true",
    ...(token && { pageToken: token }),
  });
  const page = await call(`/tasks?${query}`);
  for (const listed of page.tasks.reverse()) {
    const isCut = listed.metadata?.["a2a-lambda/truncated"];
    const task = isCut ? await call(taskPath(listed.id, "?historyLength=100")).catch(() => listed) : listed;
    if (signal.aborted) return;
    showTask(task, rows.get(task.id));
  }
  for (const { id, at, own, reply } of isFirst ? repliesOf(context) : []) {
    place(id, at - 1, () => ownTurn({ parts: own }));
    place(`${id}/reply`, at, () => turnOf(parts(reply)));
  }
  if (!token && !isFirst) return;
  talk.next = page.nextPageToken ?? "";
  talk.title ||= words(page.tasks[0]?.history?.[0]).slice(0, 200);
  earlier.hidden = !talk.next;
}

/** When a task asked, and when it was answered, if it was: the changes of its state say so. */
function restsOf(changes) {
  const rests = changes.map(({ state, at }, n) => {
    const next = changes[n + 1];
    return { state, at, answeredAt: next && !ENDED.includes(next.state) ? next.at : 0 };
  });
  return rests.filter((it) => ASKS.includes(it.state));
}

/** Shows a stored task: what was said, then where it stands. */
function showTask(task, row) {
  const last = task.status?.message?.messageId;
  const said = (task.history ?? []).filter((it) => it.messageId !== last);
  // The answer to a message that is being sent says more.
  if (said.some((it) => talk.pending.has(it.messageId)) || talk.panels.get(task.id)?.follows) return;
  const panel = panelOf(task.id);
  const end = row?.transitions.at(-1).at ?? Date.parse(task.status?.timestamp);
  const rests = restsOf(row?.transitions ?? []);
  let at = row?.createdAt ?? end;
  said.forEach((it, n) => {
    if (it.role === "ROLE_USER") {
      taken(place(it.messageId, at, () => ownTurn(it)), task.id);
      return;
    }
    const isAnswered = said[n + 1]?.role === "ROLE_USER";
    const asksAuth = Boolean(it.metadata?.["a2a-lambda/auth"]);
    const isLeft = n === said.length - 1 && rests.at(-1)?.answeredAt === 0;
    // What it said while it worked is in its events.
    if (!isAnswered && !asksAuth && !isLeft) return;
    if (panel.asked === it.messageId) answer(panel);
    const rest = rests.shift() ?? { at: end, answeredAt: end };
    const question = () => turnOf(div("bubble", prose(words(it))));
    place(it.messageId, rest.at, question, task.id);
    at = rest.answeredAt || end;
    // The agent does not keep the credentials that it was given.
    if (asksAuth && !isAnswered && rest.answeredAt) {
      taken(place(`${it.messageId}/answer`, at, () => ownTurn({}, true)), task.id);
    }
  });
  if (panel.at !== Date.parse(task.status?.timestamp)) panel.show({ task, row });
  const isOpen = !ENDED.includes(panel.state) && !ASKS.includes(panel.state);
  place(panel.id, isOpen ? Date.now() : end, () => panel.element, panel.id);
  if (isOpen) run({ task: task.id });
}

/** The agent has this message of the user. */
function taken(block, task) {
  block.task = task;
  block.foot?.remove();
  block.foot = null;
}

/** Sends a message of the user and shows what happens. */
function send({ parts: sent, skill = "", task = "", references = [], secret = false, background = false }) {
  const panel = talk.panels.get(task);
  const named = { "a2a-lambda/skillId": skill, "a2a-lambda/confirm": panel?.confirm };
  const metadata = Object.fromEntries(Object.entries(named).filter(([, it]) => it));
  const more = { metadata: Object.keys(metadata).length ? metadata : undefined };
  if (task) more.taskId = task;
  if (references.length) more.referenceTaskIds = references;
  const body = { message: message(sent, more) };
  if (background) body.configuration = { returnImmediately: true };
  const key = secret ? `${panel?.asked}/answer` : body.message.messageId;
  const block = place(key, Date.now(), () => ownTurn(body.message, secret));
  talk.title ||= secret ? "" : words(body.message).slice(0, 200);
  return deliver({ body, block, panel, isSecret: secret });
}

/** Sends it, also once more: with the same id, since the agent may have taken it. */
async function deliver({ body, block, panel, isSecret }) {
  const { signal } = talk.stop;
  const { message: own } = body;
  const foot = div("run", badge("working", "Sent"));
  block.foot?.remove();
  block.foot = foot;
  block.element.append(foot);
  if (panel?.asked) answer(panel);
  if (panel) panel.follows = true;
  talk.pending.add(own.messageId);
  talk.followsEnd = true;
  showHead();
  toEnd();
  let open = () => {};
  if (!talk.context) {
    // The answer to the first message names the conversation of the next.
    const before = talk.door;
    talk.door = new Promise((done) => { open = done; });
    await before;
  }
  if (signal.aborted) return;
  if (talk.context) own.contextId ??= talk.context;
  const answered = (task) => {
    talk.pending.delete(own.messageId);
    taken(block, task);
    open();
  };
  try {
    await run({ body, panel, answered });
  } catch (error) {
    if (signal.aborted) return;
    talk.pending.delete(own.messageId);
    if (panel) reopen(panel);
    const retry = () => deliver({ body, block, panel, isSecret });
    const again = !isSecret && button("Send again", retry, { class: "small" });
    // No credentials are shown, and none are kept for a second try.
    block.foot = failure(error, isSecret ? { ...body, message: { ...own, parts: [] } } : body, again);
    foot.replaceWith(block.foot);
    toEnd();
    sync().catch(() => {});
  } finally {
    open();
  }
}

/** Why a message was not taken: what clients see, the cause, the call, and how to send it again. */
function failure(error, body, again) {
  const isLong = (value) => typeof value === "string" && value.length > 2000;
  const short = (_, value) => (isLong(value) ? `${value.slice(0, 200)}… ${value.length} characters` : value);
  const call = { "POST /message:stream": exact(JSON.stringify(body, short)) };
  const causes = error.status ? [error.status >= 400 && `HTTP ${error.status}`, error.reason] : [error.message];
  return el("div", { class: "unsent", role: "alert" },
    p("error", icon("failed"), error.status ? error.message : "The agent did not answer."),
    el("code", {}, causes.filter(Boolean).join(" ")),
    el("details", {}, el("summary", {}, "Show the call"), json(call)),
    again);
}

/**
 * Shows what becomes of a message, or of a task. `answered` is called with the task of an event.
 * A message that was not answered throws; a task that is lost says so.
 */
async function run({ body, task = "", panel = talk.panels.get(task), answered = () => {} }) {
  const { signal } = talk.stop;
  let isAnswered = !body;
  const show = (event, id) => {
    if (signal.aborted) return;
    const named = event.task ?? event.statusUpdate ?? event.artifactUpdate ?? event.message;
    if (named?.contextId) entered(named.contextId);
    isAnswered = true;
    if (event.message) {
      answered("");
      place(`${body.message.messageId}/reply`, Date.now(), () => turnOf(parts(event.message.parts)));
      keepReply(body.message, event.message);
      announce(words(event.message));
      return;
    }
    panel = panelOf(event.task?.id ?? named.taskId);
    panel.follows = true;
    answered(panel.id);
    place(panel.id, Date.now(), () => panel.element, panel.id);
    panel.show(event, id);
    toEnd();
  };
  if (panel) panel.follows = true;
  try {
    await follow({ body, task, show, lost: (error) => panel?.connection(error && "Reconnects"), signal });
  } catch (error) {
    if (!isAnswered) throw error;
    panel?.connection("No connection");
    // The task may be gone.
    sync().catch(() => {});
  } finally {
    if (panel && !signal.aborted) panel.follows = false;
    if (!signal.aborted) showHead();
    toEnd();
  }
}

/** The first answer names the conversation; from then on it is in the address. */
function entered(context) {
  if (talk.context) return;
  talk.context = context;
  sessionStorage.setItem(LAST, context);
  box.move(context);
  if (/^#\/chat/.test(location.hash)) history.replaceState(null, "", address(context));
  showHead();
}

/** Keeps a reply without a task for a reload: the agent does not keep it. */
function keepReply({ messageId: id, parts: own }, { parts: reply }) {
  const all = [...repliesOf(talk.context), { id, at: Date.now(), own, reply }];
  const text = JSON.stringify(all);
  if (text.length < MOST_REPLIES) sessionStorage.setItem(REPLIES + talk.context, text);
}

const repliesOf = (context) => JSON.parse(sessionStorage.getItem(REPLIES + context) ?? "[]");
