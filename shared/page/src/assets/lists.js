// The lists: tasks, conversations and webhooks.

import { ASKS, call, hex, local } from "./api.js";
import {
  age, announce, askAgain, badge, button, choice, dated, div, el, grouped, hashOf, linkButton, plain, replace, search,
  shortId, span, took,
} from "./dom.js";
import { icon } from "./icons.js";
import { list, listView, PAGE } from "./list.js";
import { live, liveNote } from "./live.js";
import { lineOf } from "./markdown.js";

const GROUPS = [["", "All"], ["working", "Working"], ["needs", "Needs you"], ["failed", "Failed"], ["ended", "Ended"]];
/** How often all tasks are counted, in milliseconds: that takes longer than the first rows. */
const COUNTED = 10000;

/** Reads rows of tasks, with the texts to search for and the position where they begin. */
export function readRows({ words = "", after = "", ...more }) {
  const query = Object.entries({ ...more, words: hex(words.trim()), after }).filter(([, value]) => value);
  return local(`rows?${query.map((pair) => pair.join("=")).join("&")}`);
}

/** Asks once more before a task or a conversation is deleted, since nothing brings it back. */
export function askToDelete(word, path, done) {
  const loses = word === "task" ? "Its messages and artifacts" : "Its tasks, their messages and artifacts";
  const remove = async () => {
    await call(`/a2a-lambda/${path}`, { method: "DELETE" });
    announce(`The ${word} is deleted`);
  };
  askAgain(`Delete this ${word}?`, `${loses} are gone. Nothing brings them back.`, ["Delete", "Keep it"], remove, done);
}

const openTask = (it) => { location.hash = hashOf("task", it.task); };
const openChat = (it) => { location.hash = hashOf("chat", it.context); };
const saying = (view, id, text, properties) =>
  el("a", { href: hashOf(view, id), title: plain(text), dir: "auto", ...properties }, text);

const STATE = { name: "state", title: "State", cell: (it) => badge(it.state) };
const AGE = { name: "age", title: "Age", side: "right quiet", cell: (it) => age(it.updatedAt) };
const TASK_ID = { name: "id", title: "Id", cell: (it) => shortId(it.task) };

const TASK_COLUMNS = [
  STATE,
  { name: "skill", title: "Skill", cell: (it) => el("span", { title: it.skill }, it.skill ?? "–") },
  { name: "asked", title: "Asked", cell: (it) => saying("task", it.task, it.title || "–") },
  { name: "says", title: "Says", side: "quiet", cell: (it) => el("span", { dir: "auto" }, lineOf(it.says ?? "")) },
  { name: "took", title: "Took", side: "right quiet", cell: (it) => took(it.tookMs) },
  AGE,
  TASK_ID,
];

/** The tasks of the caller. `rest` is the filter: `group=failed&skill=echo&words=…`. */
export async function tasksView(rest, skills, signal) {
  const filter = { group: "", skill: "", words: "", ...Object.fromEntries(new URLSearchParams(rest)) };
  const tabs = GROUPS.map(([id, text]) =>
    button([text, " ", span("count")], () => change({ group: id }), { class: "tab" }));
  const pairs = (all) => [["", "Any skill"], ...all.map((it) => [it.id, it.id])];
  const on = { change: () => change({ skill: skill.value }) };
  const skill = choice(pairs(skills), { class: "pick", "aria-label": "Skill", on });
  live.addEventListener("skills", ({ detail }) => {
    replace(skill, ...choice(pairs(detail)).children);
    skill.value = filter.skill;
  }, { signal });
  let typed;
  const box = search("Search in tasks", "Words, skill or id", filter.words, (words) => {
    clearTimeout(typed);
    typed = setTimeout(() => change({ words }), 200);
  });
  signal.addEventListener("abort", () => clearTimeout(typed));
  let countedAt = 0;
  let again = null;

  function change(changes) {
    // The address is that of another view before this one is told.
    if (!location.hash.startsWith("#/tasks")) return undefined;
    Object.assign(filter, changes);
    const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value));
    history.replaceState(history.state, "", `#/tasks${query.size ? `/${query}` : ""}`);
    mark();
    return again();
  }

  function mark() {
    countedAt = 0;
    skill.value = filter.skill;
    GROUPS.forEach(([id], n) => { tabs[n].ariaPressed = id === filter.group; });
  }

  function count(page) {
    const all = Object.values(page.groups).reduce((sum, own) => sum + own, 0);
    GROUPS.forEach(([id], n) => replace(tabs[n].querySelector(".count"),
      grouped(id ? page.groups[id] : all), !page.isWhole && "+"));
  }

  async function* read(after, isNew) {
    const began = performance.now();
    const isPlain = !Object.values(filter).some(Boolean);
    // What has just changed is among the newest tasks, also if it is not of the filter any more.
    const newest = isNew || isPlain ? { rows: [] } : readRows({ brief: "1" });
    let page = await readRows({ ...filter, after, brief: isPlain ? "1" : "" });
    if (!after && (isNew || !isPlain || page.isWhole)) count(page);
    let [searched, shown] = [page.searched, page.rows.length];
    // A search that finds less than a page goes on through the store.
    while (isNew && page.next && shown < PAGE) {
      yield { ...page, note: `Searched ${grouped(searched)} tasks…` };
      page = await readRows({ ...filter, after: page.next });
      searched += page.searched;
      shown += page.rows.length;
    }
    const note = filter.words && `Searched ${grouped(searched)} tasks in ${took(performance.now() - began)}`;
    const { rows: others } = await newest;
    // The position of the next page begins with the time of its newest task.
    const until = page.next ? Number.parseInt(page.next, 10) : undefined;
    yield { ...page, others, until, note: isNew ? note : undefined };
    if (after || !isPlain || page.isWhole || Date.now() - countedAt < COUNTED) return;
    countedAt = Date.now();
    count(await readRows({}));
  }

  function none() {
    const { words, group, skill: chosen } = filter;
    if (words) {
      const clear = button(["Clear the search ", el("kbd", {}, "Esc")], box.clear);
      return [`Nothing says “${words}”`, "Search for other words, or clear the search.", clear];
    }
    if (group || chosen) {
      return ["No such task", "No task of these filters.", button("Show all", () => change({ group: "", skill: "" }))];
    }
    return ["No task yet", "Send a message, or start from a skill.",
      linkButton("Open the chat", "#/chat", "ink"), linkButton("Skills", "#/skills")];
  }

  mark();
  const made = await listView({
    title: "Tasks",
    columns: TASK_COLUMNS,
    key: (it) => it.task,
    order: (it) => it.updatedAt,
    open: openTask,
    read,
    none,
    signal,
    note: liveNote(signal),
    actions: box.element,
    tools: [el("div", { class: "tabs", role: "group", "aria-label": "State" }, tabs), skill],
  });
  again = made.again;
  return made.frame;
}

/** The newest tasks by conversation: an open question before its newest state, and its first words. */
export function conversationsOf(rows) {
  const asks = (it) => ASKS.includes(it.state);
  return [...Map.groupBy(rows, (it) => it.context).values()].map((own) =>
    ({ ...own[0], state: (own.find(asks) ?? own[0]).state, title: own.findLast((it) => it.title)?.title }));
}

/** The conversations of the caller, also those whose tasks are gone. */
export async function contextsView(newTalk, signal) {
  async function* read(after) {
    const query = new URLSearchParams({ pageSize: PAGE, ...(after && { pageToken: after }) });
    const [page, newest] = await Promise.all([
      call(`/a2a-lambda/contexts?${query}`),
      readRows({}).catch(() => ({ rows: [] })),
    ]);
    const known = new Map(conversationsOf(newest.rows).map((it) => [it.context, it]));
    const rows = page.contexts.map(({ contextId: context, status, updatedAt }) => ({
      state: status, ...known.get(context), context,
      updatedAt: Date.parse(updatedAt),
    }));
    const next = page.nextPageToken;
    yield { rows, next, until: next ? rows.at(-1)?.updatedAt : undefined };
  }
  const deeds = (it, gone) => span("row",
    button("Continue", () => openChat(it), { class: "small deed" }),
    button("Delete", () => askToDelete("conversation", `contexts/${encodeURIComponent(it.context)}`, gone),
      { class: "small deed" }));
  const { frame } = await listView({
    title: "Conversations",
    columns: [
      STATE,
      { name: "says", title: "Began with", cell: (it) => saying("chat", it.context, it.title || "–") },
      AGE,
      { name: "id", title: "Id", cell: (it) => shortId(it.context) },
      { name: "do", title: span("unseen", "Do"), side: "right", cell: deeds },
    ],
    key: (it) => it.context,
    order: (it) => it.updatedAt,
    open: openChat,
    read,
    signal,
    actions: button([icon("plus"), "New"], newTalk),
    none: () => ["No conversation yet", "The first message begins one.", linkButton("Open the chat", "#/chat", "ink")],
  });
  return frame;
}

const WEBHOOKS = {
  columns: [
    { name: "says", title: "URL", cell: (it) =>
      el("span", { dir: "ltr", title: `${plain(it.url)} (${plain(it.id)})` }, it.url) },
    { ...TASK_ID, title: "Task" },
    { name: "count", title: "Events sent", side: "right", cell: (it) => `${it.delivered} of ${it.events}` },
    { name: "count", title: "Failed", side: "right", cell: (it) =>
      el("span", { class: it.failedAttempts ? "failed" : "" }, it.failedAttempts) },
    { name: "count", title: "Next try", side: "right when", cell: (it) => (it.retryAt ? dated(it.retryAt) : "–") },
    { name: "took", title: "Last call", side: "right quiet", cell: (it) => took(it.lastCallMs) || "–" },
    { name: "age", title: "Form", side: "right quiet", cell: (it) => `A2A ${it.generation}${it.signs ? ", signed" : ""}` },
  ],
  key: (it) => `${it.task} ${it.id}`,
  open: openTask,
  order: (it) => it.createdAt,
};

/** The webhooks of one task. */
export const webhookList = () => list({ label: "Webhooks", ...WEBHOOKS });

export async function webhooksView(signal) {
  let count = 0;
  async function* read(after) {
    const page = await local(`webhooks${after ? `?after=${after}` : ""}`);
    count = (after ? count : 0) + page.tasksRead;
    // A webhook can be of an older task than the last one that was read.
    const until = page.next ? Infinity : undefined;
    yield { rows: page.webhooks, next: page.next, until, note: `Read ${grouped(count)} tasks.` };
  }
  const none = () => ["No webhook yet", "A client registers one with a push config of a task."];
  const { frame } = await listView({ title: "Webhooks", ...WEBHOOKS, read, none, signal });
  return frame;
}
