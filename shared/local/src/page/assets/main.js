// The page: its frame, its views and their addresses, and the caller.

import { call, callAs, caller, hasToken, local, takeToken, useMode } from "./api.js";
import { buildLine, isBad, showBuild, showServing } from "./builds.js";
import { cardView } from "./card.js";
import { chatView, newTalk } from "./chat.js";
import { bar, button, el, glyph, iconButton, plain, put, replace, view } from "./dom.js";
import { icon } from "./icons.js";
import { bindKeys } from "./keys.js";
import { contextsView, conversationsOf, readRows, tasksView, webhooksView } from "./lists.js";
import { live, watch } from "./live.js";
import { processView } from "./process.js";
import { skillsView } from "./skills.js";
import { taskView } from "./task.js";

const VIEWS = [["chat", "Chat"], ["tasks", "Tasks"], ["skills", "Skills"], ["webhooks", "Webhooks"], ["agent", "Agent"], ["process", "Process"]];
/** Conversations that the rail shows. */
const TALKS = 12;

let skills = null;
let shown = new AbortController();
let auth = "dev";
const counts = { tasks: 0, isMore: false };

async function listed() {
  skills ??= (await call("/a2a-lambda/skills")).skills;
  return skills;
}

async function made(name, rest, signal) {
  switch (name) {
    case "tasks": return tasksView(rest, await listed(), signal);
    case "task": return taskView(rest, signal);
    case "conversations": return contextsView(signal);
    case "webhooks": return webhooksView(signal);
    case "agent": return cardView();
    case "process": return processView();
    case "skills": return skillsView(await listed(), rest);
    case "more": return moreView();
    default: return chatView(await listed(), rest, signal);
  }
}

const address = () => {
  const [, name = "chat", ...rest] = location.hash.split("/");
  return { name: name || "chat", rest: decodeURIComponent(rest.join("/")) };
};

async function route() {
  takeToken();
  const { name, rest } = address();
  const main = document.getElementById("main");
  shown.abort();
  shown = new AbortController();
  const { signal } = shown;
  navigation();
  const slow = setTimeout(() => { if (!signal.aborted) replace(main, view({ title: "Loading…" })); }, 300);
  let nodes;
  try {
    nodes = await made(name, rest, signal);
  } catch (error) {
    nodes = view({ title: "This view cannot be shown", body: el("p", { class: "error", role: "alert" }, icon("warn"), error.message) });
  }
  clearTimeout(slow);
  if (signal.aborted) return;
  replace(main, nodes);
  missingToken();
  showBuild(live.build);
  main.className = `view-${name}`;
  navigation();
  const heading = main.querySelector("h1");
  document.title = `${plain(heading?.textContent)} · a2a-lambda`;
  signal.dispatchEvent(new Event("shown"));
  if (!main.contains(document.activeElement)) heading?.focus({ preventScroll: true });
}

function navigation() {
  const { name, rest } = address();
  const current = { task: "tasks", conversations: "more" }[name] ?? name;
  const link = (id, text, count) => el("a", { href: `#/${id}`, "aria-current": id === current ? "page" : undefined, title: text },
    icon(id), el("span", { class: "word" }, text), count);
  const count = { tasks: counts.tasks > 0 && el("span", { class: "count wait", title: "Tasks that wait for you" }, counts.tasks, counts.isMore && "+", el("span", { class: "unseen" }, " wait for you")), skills: skills && el("span", { class: "count" }, skills.length) };
  const places = [...VIEWS.map(([id, text]) => el("li", {}, link(id, text, count[id]))), el("li", { class: "more" }, link("more", "More"))];
  const nav = document.getElementById("nav");
  const focused = [...nav.querySelectorAll("a")].indexOf(document.activeElement);
  replace(nav, places);
  if (focused >= 0) nav.querySelectorAll("a")[focused]?.focus();
  for (const it of document.querySelectorAll("#talks a")) {
    if (name === "chat" && it.dataset.context === rest) it.setAttribute("aria-current", "page");
    else it.removeAttribute("aria-current");
  }
}

/** The conversations in the rail, and how many tasks wait for somebody. */
async function rail() {
  if (!hasToken()) return;
  const page = await readRows({ brief: "1" }).catch(() => null);
  if (!page) return;
  counts.tasks = page.groups.needs;
  counts.isMore = !page.isWhole;
  const place = document.getElementById("talks");
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.context : "";
  replace(place, conversationsOf(page.rows).slice(0, TALKS).map((it) => el("li", {},
    el("a", { href: `#/chat/${encodeURIComponent(it.context)}`, "data-context": it.context, title: plain(it.title) }, glyph(it.state), el("span", { class: "cut", dir: "auto" }, it.title || "A conversation")))));
  navigation();
  if (focused) place.querySelector(`[data-context="${CSS.escape(focused)}"]`)?.focus();
}

/** What the phone has no room for below: the other views, the conversations and the caller. */
function moreView() {
  const link = ([id, text]) => el("li", {}, el("a", { class: "row", href: `#/${id}` }, icon(id === "conversations" ? "chat" : id), text));
  const links = [["conversations", "Conversations"], ...VIEWS.slice(3)].map(link);
  return view({ title: "More", body: [el("ul", { class: "hairs" }, links), callerForm()] });
}

/** The form that says who calls. */
function callerForm(done) {
  const dev = auth === "dev";
  const input = el("input", { id: "as", autocomplete: "off", spellcheck: "false", type: dev ? "text" : "password", placeholder: dev ? "tenant:subject" : "", value: caller() });
  const submit = (event) => {
    event.preventDefault();
    callAs(input.value);
    skills = null;
    done?.();
    foot();
    rail();
    route();
  };
  return el("form", { class: "caller", "aria-label": "Caller", on: { submit } },
    el("div", { class: "field" }, el("label", { for: "as" }, dev ? "Call as" : "API key"), input), el("button", { type: "submit" }, "Use"));
}

/** The foot of the rail: which build or process serves, and who calls. */
function foot(state = "") {
  const place = document.getElementById("foot");
  if (place.contains(document.activeElement) && document.activeElement.id === "as") return;
  const name = auth === "dev" ? caller() || "local" : caller() ? "a key" : "nobody";
  const change = el("button", { type: "button", class: "calls", on: { click: () => {
    replace(place, servesLine(state), callerForm());
    place.querySelector("input").focus();
  } } }, el("span", {}, "Calls as ", el("code", {}, name)));
  place.onkeydown = (event) => { if (event.key === "Escape") { foot(); place.querySelector("button")?.focus(); } };
  replace(place, servesLine(state), change);
}

function servesLine(state = "") {
  const [text, colour] = state ? [state, "wait"] : live.build ? buildLine(live.build) : [`Process ${process} serves`, ""];
  const words = [el("span", { class: `dot ${colour}` }), el("span", { class: "word" }, text)];
  if (colour !== "bad") return el("p", { title: text }, words);
  return el("button", { type: "button", title: text, on: { click: () => showBuild(live.build) } }, words);
}
let process = "";

function missingToken() {
  if (!hasToken()) bar("wait", "The token is missing.", "Open the address that the program printed. Until then the page shows only what A2A shows.");
}

async function readFacts() {
  const facts = await local("facts");
  auth = facts.auth;
  process = facts.process;
  useMode(auth);
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
  const { name } = address();
  if (["skills", "agent"].includes(name) && JSON.stringify(skills) !== JSON.stringify(before)) await route();
  if (!isBad(live.build)) showServing(live.build, before, skills);
}

function start() {
  const skip = document.querySelector(".skip");
  // The fragment names a view, so the link must not change it.
  skip.addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
  put(document.getElementById("talks-head"), iconButton("plus", "New conversation", newTalk, { class: "icon plain small" }));
  bindKeys(newTalk);
  addEventListener("hashchange", route);
  live.addEventListener("change", rail);
  live.addEventListener("restart", restarted);
  live.addEventListener("build", () => {
    document.getElementById("foot").firstElementChild?.replaceWith(servesLine());
    showBuild(live.build);
  });
  live.addEventListener("away", () => foot("No connection"));
  live.addEventListener("back", () => foot());
  watch();
}

takeToken();
try {
  await readFacts();
} catch (error) {
  if (hasToken()) bar("bad", "The page is not served.", error.message);
}
foot();
start();
await route();
rail();
