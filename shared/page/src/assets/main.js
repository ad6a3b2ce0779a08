// The page: its frame, its views and their addresses, and the caller.

import { askForToken, auth, call, callAs, caller, hasToken, local, takeToken, useAuth } from "./api.js";
import { buildLine, isBad, showBuild, showServing } from "./builds.js";
import { cardView, isOtherCard } from "./card.js";
import { chatView, newTalk, offer } from "./chat.js";
import {
  bar, button, div, el, errorPlace, glyph, hashOf, iconButton, linkButton, main, p, plain, put, redraw, replace, span,
  stateWord, view,
} from "./dom.js";
import { icon } from "./icons.js";
import { bindKeys, keysButton } from "./keys.js";
import { contextsView, conversationsOf, readRows, tasksView, webhooksView } from "./lists.js";
import { isAway, live, watch } from "./live.js";
import { processView } from "./process.js";
import { skillsView } from "./skills.js";
import { taskView } from "./task.js";

const VIEWS = ["chat", "tasks", "skills", "webhooks", "agent", "process"];
/** Conversations that the rail shows. */
const TALKS = 12;

let skills = null;
let shown = new AbortController();
const counts = { tasks: 0, isMore: false };

const listed = async () => (skills ??= (await call("/a2a-lambda/skills")).skills);

async function made(name, rest, signal) {
  switch (name) {
    case "tasks": return tasksView(rest, await listed(), signal);
    case "task": return taskView(rest, signal);
    case "conversations": return contextsView(newTalk, signal);
    case "webhooks": return webhooksView(signal);
    case "agent": return cardView();
    case "process": return processView(await listed(), signal);
    case "skills": return skillsView(await listed(), rest, signal);
    case "more": return moreView();
    default: return chatView(await listed(), rest, signal);
  }
}

/** The view that the address names, and the rest of it. A broken escape is taken as it is. */
const address = () => {
  const [, name, ...words] = location.hash.split("/");
  const rest = words.join("/");
  // The filter of the tasks is a query, which is decoded as such.
  if (name === "tasks") return { name, rest };
  try {
    return { name: name || "chat", rest: decodeURIComponent(rest) };
  } catch {
    // Somebody typed it, or cut a link.
    return { name, rest };
  }
};

/** Shows the nodes of a view. A bar over the one before stays. */
function showView(nodes) {
  for (const it of [...main.children]) if (it.id !== "bar") it.remove();
  put(main, nodes);
}

async function route() {
  if (takeToken()) await known().then(rail);
  const { name, rest } = address();
  document.querySelector("dialog")?.close();
  shown.abort();
  shown = new AbortController();
  const { signal } = shown;
  navigation();
  // The composer stays while another conversation is read: what is typed there is its draft.
  const isTalk = name === "chat" && main.matches(".view-chat");
  const wait = () => {
    showView(view({ title: stateWord(name), body: p("quiet", "Loading…") }));
    main.className = `view-${name}`;
  };
  const slow = setTimeout(() => { if (!signal.aborted && !isTalk) wait(); }, 300);
  let nodes;
  try {
    nodes = await made(name, rest, signal);
  } catch (error) {
    nodes = refusal(error);
  }
  clearTimeout(slow);
  if (signal.aborted) return;
  showView(nodes);
  main.className = `view-${name}`;
  navigation();
  const heading = main.querySelector("h1");
  document.title = `${plain(heading?.textContent)} · a2a-lambda`;
  signal.dispatchEvent(new Event("shown"));
  if (!main.contains(document.activeElement)) heading?.focus({ preventScroll: true });
}

/** What is shown in place of a view that was refused. */
function refusal(error) {
  const why = errorPlace({}, icon("warn"), error.message);
  if (error.status !== 401 || auth === "dev") {
    const ways = div("row", linkButton("All tasks", "#/tasks", "ink"), linkButton("Open the chat", "#/chat"));
    return view({ title: error.status === 404 ? "Nothing is here" : "This view cannot be shown", body: [why, ways] });
  }
  const todo = "This agent answers callers with a key only. The page keeps it until this tab is closed.";
  return view({ title: "Who calls?", body: [why, el("p", {}, todo), callerForm()] });
}

/** The link to a view, whose word is its name as a sentence. */
const place = (id, properties, count) => el("a", { href: `#/${id}`, title: stateWord(id), ...properties },
  icon(id === "conversations" ? "chat" : id), span("word", stateWord(id)), count);

function navigation() {
  const { name, rest } = address();
  const current = { task: "tasks", conversations: "more" }[name] ?? name;
  const waits = el("span", { class: "count wait", title: "Tasks that wait for you" },
    counts.tasks, counts.isMore && "+", span("unseen", " wait for you"));
  const count = { tasks: counts.tasks > 0 && waits, skills: skills && span("count", skills.length) };
  const item = (id) => el("li", { class: id }, place(id, { "aria-current": id === current && "page" }, count[id]));
  const nav = document.getElementById("nav");
  const focused = [...nav.querySelectorAll("a")].indexOf(document.activeElement);
  replace(nav, [...VIEWS, "more"].map(item));
  if (focused >= 0) nav.querySelectorAll("a")[focused]?.focus();
  const isShown = ({ dataset: { context } }) => name === "chat" && context === rest;
  for (const it of document.querySelectorAll("#talks a")) it.ariaCurrent = isShown(it) ? "page" : null;
}

/** The conversations in the rail, and how many tasks wait for somebody. */
async function rail() {
  if (!hasToken()) return;
  const page = await readRows({ brief: "1" }).catch(() => null);
  if (!page) return;
  counts.tasks = page.groups.needs;
  counts.isMore = !page.isWhole;
  const list = document.getElementById("talks");
  const focused = list.contains(document.activeElement) ? document.activeElement.dataset.context : "";
  const talk = ({ context, title, state }) => {
    const link = { href: hashOf("chat", context), "data-context": context, title: plain(title) };
    const words = el("span", { class: "cut", dir: "auto" }, title || "A conversation");
    return el("li", {}, el("a", link, glyph(state), words));
  };
  redraw(document.querySelector(".rail"), () => {
    replace(list, conversationsOf(page.rows).slice(0, TALKS).map(talk));
    navigation();
  });
  if (focused) list.querySelector(`[data-context="${CSS.escape(focused)}"]`)?.focus();
}

/** What the phone has no room for below: the other views, the conversations, the caller and the keys. */
function moreView() {
  const links = ["conversations", ...VIEWS.slice(3)].map((id) => el("li", {}, place(id, { class: "row" })));
  return view({ title: "More", body: [el("ul", { class: "hairs" }, links), callerForm(), keysButton()] });
}

/** The form that says who calls. */
function callerForm() {
  const isDev = auth === "dev";
  const input = el("input", {
    id: "as", autocomplete: "off", spellcheck: "false", type: isDev ? "text" : "password",
    placeholder: isDev ? "tenant:subject" : "", value: caller(),
  });
  const submit = (event) => {
    event.preventDefault();
    callAs(input.value);
    skills = null;
    document.activeElement.blur();
    foot();
    rail();
    route();
  };
  return el("form", { class: "caller", "aria-label": "Caller", on: { submit } },
    div("field", el("label", { for: "as" }, isDev ? "Call as" : "API key"), input),
    el("button", { type: "submit" }, "Use"));
}

/** Says which build or process serves, and opens the bar about it. */
const serves = button([span("dot"), span("word")], () => {
  if (isBad(live.build)) showBuild(live.build);
  else if (!isAway()) showServing(`${serves.title}.`);
});

function showServes() {
  const own = live.build ? buildLine(live.build) : [`Process ${process} serves`, ""];
  const [text, colour] = isAway() ? ["No connection", "wait"] : own;
  serves.title = text;
  serves.firstChild.className = `dot ${colour}`;
  serves.lastChild.textContent = text;
}
let process = "";

/** The foot of the rail: which build or process serves, and who calls. */
function foot() {
  showServes();
  const box = document.getElementById("foot");
  if (box.contains(document.activeElement) && document.activeElement.id === "as") return;
  const name = auth === "dev" ? caller() || "local" : caller() ? "a key" : "nobody";
  const change = button(el("span", {}, "Calls as ", el("code", {}, name)), () => {
    replace(box, serves, callerForm());
    box.querySelector("input").focus();
  }, { class: "calls" });
  box.onkeydown = (event) => {
    if (event.key !== "Escape") return;
    foot();
    box.querySelector(".calls")?.focus();
  };
  replace(box, serves, change, keysButton());
}

/** Reads what the program says of itself, if the page may ask it. */
async function known() {
  const what = "Open the address that the program printed. Until then the page shows only what A2A shows.";
  bar("away", !hasToken() && "wait", "The token is missing.", what);
  // Whoever asks what changed says why the program does not answer.
  await readFacts().catch(() => {});
  foot();
}

async function readFacts() {
  const facts = await local("facts");
  useAuth(facts.auth);
  process = facts.process;
  const name = plain(facts.agent);
  document.getElementById("agent").textContent = name;
  document.getElementById("mark").textContent = [...name][0]?.toUpperCase() ?? "A";
}

/** The program was started again: its skills and facts may be others. */
async function restarted() {
  const before = skills;
  await readFacts().catch(() => {});
  foot();
  skills = null;
  await listed().catch(() => {});
  if (skills) {
    offer(skills);
    live.dispatchEvent(new CustomEvent("skills", { detail: skills }));
  }
  const { name } = address();
  const hasOthers = () => JSON.stringify(skills) !== JSON.stringify(before);
  const isOther = name === "agent" ? await isOtherCard() : name === "skills" && hasOthers();
  if (isOther && name === address().name) await route();
  if (isBad(live.build)) return;
  showServing(live.build ? `Build ${live.build.serving} serves.` : "The program serves again.", before, skills);
}

function refuseFiles(event) {
  if (event.defaultPrevented || !event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  event.dataTransfer.dropEffect = "none";
}

function start() {
  const skip = document.querySelector(".skip");
  // The fragment names a view, so the link must not change it.
  skip.addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  put(document.getElementById("talks-head"), iconButton("plus", "New conversation", newTalk, { class: "icon plain small" }));
  bindKeys(VIEWS, newTalk);
  addEventListener("hashchange", route);
  live.addEventListener("change", rail);
  live.addEventListener("restart", restarted);
  live.addEventListener("build", () => (isBad(live.build) ? showBuild(live.build) : bar("build")));
  for (const it of ["build", "away", "back"]) live.addEventListener(it, showServes);
  // A file that is dropped beside a place for files would take the place of the page.
  for (const it of ["dragover", "drop"]) addEventListener(it, refuseFiles);
  watch();
}

takeToken();
await askForToken();
await known();
start();
await route();
rail();
