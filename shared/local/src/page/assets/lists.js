// The lists: tasks, conversations and webhooks.

import { call, hex, local } from "./api.js";
import { action, age, announce, badge, button, copied, dated, el, empty, grouped, plain, replace, shortId, took, view } from "./dom.js";
import { icon } from "./icons.js";
import { list, PAGE } from "./list.js";
import { live } from "./live.js";

const GROUPS = [["", "All"], ["working", "Working"], ["needs", "Needs you"], ["failed", "Failed"], ["ended", "Ended"]];

/** Reads rows of tasks, with the texts to search for and the position where they begin. */
export function readRows({ words = "", after = "", ...more }) {
  const query = Object.entries({ ...more, words: hex(words.trim()), after }).filter(([, value]) => value);
  return local(`rows?${query.map((pair) => pair.join("=")).join("&")}`);
}

const open = (id) => { location.hash = `#/task/${encodeURIComponent(id)}`; };
const says = (it) => it.says || it.title || "–";

const TASK_COLUMNS = [
  { name: "state", title: "State", cell: (it) => badge(it.state) },
  { name: "skill", title: "Skill", cell: (it) => el("span", { title: it.skill }, it.skill ?? "–") },
  { name: "says", title: "Says", cell: (it) => el("a", { href: `#/task/${encodeURIComponent(it.task)}`, title: plain(says(it)), dir: "auto", class: it.state === "canceled" ? "dim" : "" }, says(it)) },
  { name: "took", title: "Took", side: "right dim", cell: (it) => took(it.tookMs) },
  { name: "age", title: "Age", side: "right dim", cell: (it) => age(it.updatedAt) },
  { name: "id", title: "Id", cell: (it) => shortId(it.task) },
  { name: "expires", title: "Expires", side: "right when", cell: (it) => dated(it.expiresAt) },
];

/** The filter in the address: `group=failed&skill=echo&words=…`. */
function filterOf(text) {
  const query = new URLSearchParams(text);
  const of = (name) => query.get(name) ?? "";
  return { group: of("group"), skill: of("skill"), words: of("words"), context: of("context") };
}

/** The tasks of the caller. It follows what is stored, and moves no row that somebody uses. */
export async function tasksView(rest, skills, signal) {
  const filter = filterOf(rest);
  const rows = list({
    label: "Tasks, the newest status first",
    columns: TASK_COLUMNS,
    key: (it) => it.task,
    order: (it) => it.updatedAt,
    open: (it) => open(it.task),
    copy: (it, row) => copied(row.querySelector(".id"), it.task, "The id"),
  });
  const note = el("span", { class: "note", role: "status" });
  const error = el("p", { class: "error", role: "alert" });
  const none = el("div", {});
  const older = action("Older", () => more(), {});
  const tabs = GROUPS.map(([id, text]) => button([text, " ", el("span", { class: "count" })], () => change({ group: id }), { class: "tab", "data-group": id }));
  const skill = el("select", { class: "pick", "aria-label": "Skill", on: { change: () => change({ skill: skill.value }) } },
    el("option", { value: "" }, "Any skill"), skills.map((it) => el("option", { value: it.id }, it.id)));
  const words = el("input", { type: "search", "aria-label": "Search in tasks", placeholder: "Words, skill or id", autocomplete: "off", value: filter.words });
  let typed;
  words.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(() => change({ words: words.value }), 200);
  });
  let [turn, next, countedAt, reads, again] = [0, "", 0, 0, false];

  function change(changes) {
    Object.assign(filter, changes);
    const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value));
    history.replaceState(null, "", `#/tasks${query.size ? `/${query}` : ""}`);
    return read(true);
  }

  /** Reads the first page. A search that finds less goes on through the store. */
  async function read(isNew) {
    turn += 1;
    const mine = turn;
    const began = performance.now();
    for (const tab of tabs) tab.setAttribute("aria-pressed", String(tab.dataset.group === filter.group));
    skill.value = filter.skill;
    reads += 1;
    try {
      // The first rows are read at once and at each change, the counts of all less often.
      const isPlain = !Object.values(filter).some(Boolean);
      if (isNew) countedAt = 0;
      const brief = isPlain && (isNew || Date.now() - countedAt < 10000) ? "1" : "";
      let page = await readRows({ ...filter, brief });
      let searched = page.searched;
      if (mine !== turn || signal.aborted) return;
      if (!brief) countedAt = Date.now();
      if (!brief || isNew || page.isWhole) counts(page);
      if (brief && isNew && !page.isWhole) again = true;
      if (page.isWhole || isNew || page.rows.length) rows.show(page.rows, isNew);
      while (rows.count() < PAGE && page.next && isNew) {
        replace(note, `Searched ${grouped(searched)} tasks…`);
        page = await readRows({ ...filter, after: page.next });
        if (mine !== turn || signal.aborted) return;
        searched += page.searched;
        rows.add(page.rows);
      }
      if (isNew) next = page.next ?? "";
      older.hidden = !next;
      error.textContent = "";
      const ms = Math.round(performance.now() - began);
      const isFiltered = filter.words || filter.skill || filter.group;
      if (isNew) {
        replace(note, filter.words ? `Searched ${grouped(searched)} tasks in ${took(ms)}` : "");
        if (filter.words) announce(`${rows.count()} tasks found`);
      }
      if (rows.count()) replace(none);
      else if (filter.words) replace(none, empty(`Nothing says “${plain(filter.words)}”`, `Searched ${grouped(searched)} tasks.`, button(["Clear the search ", el("kbd", {}, "Esc")], clear)));
      else if (isFiltered) replace(none, empty("No such task", "No task of these filters.", button("Show all", () => change({ group: "", skill: "" }))));
      else replace(none, empty("No task yet", "Send a message, or start from a skill.", el("a", { class: "button ink", href: "#/chat" }, "Open the chat"), el("a", { class: "button", href: "#/skills" }, "Skills")));
    } catch (why) {
      if (mine === turn && why.status) error.textContent = plain(why.message);
    } finally {
      reads -= 1;
      if (again && !reads) follow();
    }
  }

  /** Reads once more after the read that runs now, so that slow reads do not pile up. */
  function follow() {
    again = reads > 0;
    if (!again && !signal.aborted) read(false);
  }

  function counts(page) {
    const all = Object.values(page.groups).reduce((sum, count) => sum + count, 0);
    for (const tab of tabs) {
      const id = tab.dataset.group;
      replace(tab.querySelector(".count"), `${grouped(id ? page.groups[id] : all)}${page.isWhole ? "" : "+"}`);
    }
  }

  async function more() {
    const page = await readRows({ ...filter, after: next });
    rows.add(page.rows);
    next = page.next ?? "";
    older.hidden = !next;
    announce(`${rows.count()} rows`);
  }

  function clear() {
    words.value = "";
    change({ words: "" });
    words.focus();
  }
  words.addEventListener("keydown", (event) => { if (event.key === "Escape") clear(); });
  live.addEventListener("change", follow, { signal });
  await read(true);
  const within = filter.context && el("span", { class: "row" }, el("span", { class: "faint" }, "in"), shortId(filter.context), button("All conversations", () => { location.hash = "#/tasks"; }, { class: "small" }));
  return view({
    title: "Tasks",
    note: [el("span", { class: "note" }, el("span", { class: "dot" }), "Live"), within],
    actions: el("span", { class: "search" }, icon("search"), words, el("kbd", {}, "/")),
    tools: el("div", { class: "filters" }, el("div", { class: "tabs", role: "group", "aria-label": "State" }, tabs), note, el("span", { class: "grow" }), skill),
    body: [rows.element, none, el("div", { class: "older" }, older, error)],
    full: true,
  });
}

/** The newest tasks by conversation: the first words of each, and its newest state. */
export function conversationsOf(rows) {
  const found = new Map();
  for (const it of rows) {
    const known = found.get(it.context);
    if (known) Object.assign(known, { title: it.title || known.title, tasks: known.tasks + 1 });
    else found.set(it.context, { context: it.context, title: it.title, state: it.state, updatedAt: it.updatedAt, expiresAt: it.expiresAt, tasks: 1 });
  }
  return [...found.values()];
}

/**
 * A view of a list that is read in pages. `read(token)` gives `{rows, next, note}`, and `none`
 * is what is shown without rows.
 */
async function paged({ title, actions, none, read, signal, ...of }) {
  const rows = list({ label: title, ...of });
  const [note, nothing] = [el("span", { class: "note", role: "status" }), el("div", {})];
  let next = "";
  async function page(token, isFirst) {
    const found = await read(token, rows);
    if (token) rows.add(found.rows);
    else rows.show(found.rows, isFirst);
    next = found.next ?? "";
    older.hidden = !next;
    replace(note, found.note);
    replace(nothing, !rows.count() && empty(...none));
  }
  const older = action("Older", () => page(next));
  await page("", true);
  live.addEventListener("change", () => page("", false).catch(() => {}), { signal });
  return view({ title, note, actions, body: [rows.element, nothing, el("div", { class: "older" }, older)], full: true });
}

/** The conversations of the caller, also those whose tasks are gone. */
export function contextsView(signal) {
  const open = (it) => { location.hash = `#/chat/${encodeURIComponent(it.context)}`; };
  const read = async (token, rows) => {
    const query = new URLSearchParams({ pageSize: PAGE, ...(token && { pageToken: token }) });
    const [page, newest] = await Promise.all([call(`/a2a-lambda/contexts?${query}`), readRows({}).catch(() => ({ rows: [] }))]);
    const known = new Map(conversationsOf(newest.rows).map((it) => [it.context, it]));
    const row = ({ contextId: context, status, updatedAt, expiresAt }) => ({ state: status, ...known.get(context), context, updatedAt: Date.parse(updatedAt), expiresAt: Date.parse(expiresAt), gone: () => rows.remove(context) });
    return { rows: page.contexts.map(row), next: page.nextPageToken };
  };
  const deeds = (it) => el("span", { class: "row" }, button("Continue", () => open(it), { class: "small" }), action("Delete", async () => {
    await call(`/a2a-lambda/contexts/${encodeURIComponent(it.context)}`, { method: "DELETE" });
    it.gone();
    announce("The conversation is deleted");
  }, { class: "small danger" }));
  return paged({
    title: "Conversations",
    columns: [
      { name: "state", title: "State", cell: (it) => badge(it.state) },
      { name: "says", title: "Began with", cell: (it) => el("a", { href: `#/chat/${encodeURIComponent(it.context)}`, dir: "auto" }, it.title || "–") },
      { name: "age", title: "Age", side: "right dim", cell: (it) => age(it.updatedAt) },
      { name: "id", title: "Id", cell: (it) => shortId(it.context) },
      { name: "expires", title: "Expires", side: "right when", cell: (it) => dated(it.expiresAt) },
      { name: "do", title: el("span", { class: "unseen" }, "Do"), side: "right", cell: deeds },
    ],
    key: (it) => it.context,
    order: (it) => it.updatedAt,
    open,
    copy: (it, row) => copied(row.querySelector(".id"), it.context, "The id"),
    read,
    signal,
    actions: button([icon("plus"), "New"], () => { location.hash = "#/chat"; }),
    none: ["No conversation yet", "The first message begins one.", el("a", { class: "button ink", href: "#/chat" }, "Open the chat")],
  });
}

const WEBHOOKS = [
  { name: "says", title: "URL", cell: (it) => el("span", { dir: "ltr", title: `${plain(it.url)} (${plain(it.id)})` }, it.url) },
  { name: "id", title: "Task", cell: (it) => shortId(it.task) },
  { name: "count", title: "Events sent", side: "right", cell: (it) => `${it.delivered} of ${it.events}` },
  { name: "count", title: "Failed", side: "right", cell: (it) => el("span", { class: it.failedAttempts ? "failed" : "" }, it.failedAttempts) },
  { name: "count", title: "Next try", side: "right when", cell: (it) => (it.retryAt ? dated(it.retryAt) : "–") },
  { name: "took", title: "Last call", side: "right dim", cell: (it) => (it.lastCallMs ? took(it.lastCallMs) : "–") },
  { name: "age", title: "Form", side: "right dim", cell: (it) => `A2A ${it.generation}${it.signs ? ", signed" : ""}` },
];
const HOOKS = { columns: WEBHOOKS, key: (it) => `${it.task} ${it.id}`, open: (it) => open(it.task), order: (it) => it.createdAt };

/** The webhooks of one task. */
export const webhookList = () => list({ label: "Webhooks", ...HOOKS });

/** The webhooks of all tasks. */
export function webhooksView(signal) {
  let count = 0;
  const read = async (after) => {
    const page = await local(`webhooks${after ? `?after=${after}` : ""}`);
    count = (after ? count : 0) + page.tasksRead;
    return { rows: page.webhooks, next: page.next, note: `Read ${grouped(count)} tasks.` };
  };
  return paged({ title: "Webhooks", ...HOOKS, read, signal, none: ["No webhook yet", "A client registers one with a push config of a task."] });
}
