// The lists: tasks, conversations and webhooks. A page of a list is read at a time, and
// only that page is in the document.

import { call, local, stateOf } from "./api.js";
import { continueContext } from "./chat.js";
import { action, announce, badge, button, el, field, put, replace, time } from "./dom.js";
import { words } from "./parts.js";

const PAGE = 50;
const STATES = ["SUBMITTED", "WORKING", "INPUT_REQUIRED", "AUTH_REQUIRED", "COMPLETED", "FAILED", "CANCELED", "REJECTED"];

/** A list with pages: `read(token)` gives `{rows, next, note}`. */
function paged({ caption, columns, read }) {
  const body = el("tbody", {});
  const note = el("p", { class: "quiet", role: "status" });
  const error = el("p", { class: "error", role: "alert" });
  const tokens = [""];
  const back = button("Newer", () => show(tokens.length - 2));
  const on = button("Older", () => show(tokens.length));
  let next = "";
  async function show(index) {
    error.textContent = "";
    back.disabled = on.disabled = true;
    tokens.length = Math.min(index + 1, tokens.length);
    if (index === tokens.length) tokens.push(next);
    try {
      const page = await read(tokens[index]);
      next = page.next ?? "";
      replace(body, page.rows);
      replace(note, `Page ${index + 1}. ${page.note ?? ""}`);
      announce(`Page ${index + 1}, ${page.rows.length} entries`);
    } catch (why) {
      error.textContent = why.message;
    }
    back.disabled = index < 1;
    on.disabled = !next;
  }
  const element = el("div", {},
    el("div", { class: "scroll" }, el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, columns.map((it) => el("th", { scope: "col" }, it)))), body)),
    note, error,
    el("div", { class: "row" }, back, on, button("Reload", () => show(tokens.length - 1))));
  return { element, first: () => show(0) };
}

function taskRow(task) {
  return el("tr", {},
    el("td", { class: "id" }, el("a", { href: `#/task/${encodeURIComponent(task.id)}` }, task.id)),
    el("td", {}, badge(stateOf(task.status))),
    el("td", {}, time(task.status?.timestamp)),
    el("td", { dir: "auto" }, words(task.status?.message).slice(0, 200)),
    el("td", { class: "id" }, task.contextId));
}

/** The tasks of the caller, also those of one conversation only. */
export function tasksView(context = "") {
  const state = el("select", { id: "task-state" }, el("option", { value: "" }, "any"), STATES.map((it) => el("option", { value: `TASK_STATE_${it}` }, it.toLowerCase().replaceAll("_", "-"))));
  const within = el("input", { id: "task-context", value: context, autocomplete: "off", spellcheck: "false" });
  const list = paged({
    caption: "Newest status first",
    columns: ["Task", "State", "Since", "Says", "Conversation"],
    read: async (token) => {
      const query = new URLSearchParams({ pageSize: PAGE, historyLength: 0, includeArtifacts: "false" });
      if (token) query.set("pageToken", token);
      if (state.value) query.set("status", state.value);
      if (within.value.trim()) query.set("contextId", within.value.trim());
      const page = await call(`/tasks?${query}`);
      return { rows: page.tasks.map(taskRow), next: page.nextPageToken, note: `${page.totalSize} tasks or more.` };
    },
  });
  const filter = el("form", { class: "row", "aria-label": "Filter", on: { submit: (event) => { event.preventDefault(); list.first(); } } },
    field("State", state), field("Conversation", within), el("button", { type: "submit" }, "Filter"));
  list.first();
  return [el("h1", { tabindex: "-1" }, "Tasks"), filter, list.element];
}

/** The conversations of the caller. */
export function contextsView() {
  const row = (it) => {
    const made = el("tr", {},
      el("td", { class: "id" }, el("a", { href: `#/tasks/${encodeURIComponent(it.contextId)}` }, it.contextId)),
      el("td", {}, it.status),
      el("td", {}, time(it.updatedAt)),
      el("td", {}, time(it.expiresAt)),
      el("td", {}, button("Continue", () => {
        continueContext(it.contextId);
        location.hash = "#/chat";
      }), action("Delete", async () => {
        await call(`/a2a-lambda/contexts/${encodeURIComponent(it.contextId)}`, { method: "DELETE" });
        made.remove();
        announce("The conversation is deleted");
      }, { class: "danger" })));
    return made;
  };
  const list = paged({
    caption: "Newest activity first",
    columns: ["Conversation", "Status", "Updated", "Expires", "Do"],
    read: async (token) => {
      const query = new URLSearchParams({ pageSize: PAGE });
      if (token) query.set("pageToken", token);
      const page = await call(`/a2a-lambda/contexts?${query}`);
      return { rows: page.contexts.map(row), next: page.nextPageToken };
    },
  });
  list.first();
  return [el("h1", { tabindex: "-1" }, "Conversations"), list.element];
}

const WEBHOOK = ["URL", "Task", "Events sent", "Failed attempts", "Next try", "Last call", "Form"];

function webhookRow(it) {
  return el("tr", {},
    el("td", { dir: "ltr" }, it.url, el("br"), el("span", { class: "quiet" }, it.id)),
    el("td", { class: "id" }, el("a", { href: `#/task/${encodeURIComponent(it.task)}` }, it.task)),
    el("td", {}, `${it.delivered} of ${it.events}`),
    el("td", {}, it.failedAttempts),
    el("td", {}, it.retryAt ? time(it.retryAt) : "–"),
    el("td", {}, it.lastCallMs ? `${it.lastCallMs} ms` : "–"),
    el("td", {}, `A2A ${it.generation}${it.signs ? ", signed" : ""}`));
}

/** The webhooks of one task. */
export function webhookTable(webhooks) {
  return el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, WEBHOOK.map((it) => el("th", { scope: "col" }, it)))), el("tbody", {}, webhooks.map(webhookRow))));
}

/** The webhooks of all tasks. */
export function webhooksView() {
  const list = paged({
    caption: "The webhooks of the newest tasks first",
    columns: WEBHOOK,
    read: async (after) => {
      const page = await local(`webhooks${after ? `?after=${after}` : ""}`);
      return { rows: page.webhooks.map(webhookRow), next: page.next, note: `Read ${page.tasksRead} tasks.` };
    },
  });
  list.first();
  const view = [el("h1", { tabindex: "-1" }, "Webhooks"), list.element];
  const none = el("p", { class: "quiet" }, "A client registers a webhook with a push config of a task.");
  put(list.element, none);
  return view;
}
