// The page: its views, their addresses and the caller.

import { call, callAs, caller, hasToken, local, takeToken, useMode } from "./api.js";
import { cardView } from "./card.js";
import { chatView } from "./chat.js";
import { el, notice, plain, replace } from "./dom.js";
import { contextsView, tasksView, webhooksView } from "./lists.js";
import { processView } from "./process.js";
import { skillsView } from "./skills.js";
import { taskView } from "./task.js";

const VIEWS = [["skills", "Skills"], ["chat", "Chat"], ["tasks", "Tasks"], ["conversations", "Conversations"], ["webhooks", "Webhooks"], ["agent", "Agent"], ["process", "Process"]];

let skills = null;
let shown = 0;

async function listed() {
  skills ??= (await call("/a2a-lambda/skills")).skills;
  return skills;
}

async function view(name, rest, alive) {
  switch (name) {
    case "chat": return chatView(await listed());
    case "tasks": return tasksView(rest);
    case "task": return taskView(rest, alive);
    case "conversations": return contextsView();
    case "webhooks": return webhooksView();
    case "agent": return cardView();
    case "process": return processView();
    default: return skillsView(await listed());
  }
}

async function route() {
  if (takeToken()) notice("");
  const [, name = "skills", rest = ""] = location.hash.split("/");
  const main = document.getElementById("main");
  shown += 1;
  const turn = shown;
  navigation(name);
  let made;
  try {
    made = await view(name, decodeURIComponent(rest), () => turn === shown);
  } catch (error) {
    made = [el("h1", { tabindex: "-1" }, "This view cannot be shown"), el("p", { class: "error", role: "alert" }, error.message)];
  }
  if (turn !== shown) return;
  replace(main, made);
  const heading = main.querySelector("h1");
  document.title = `${plain(heading?.textContent)} · a2a-lambda`;
  (document.getElementById("say") ?? heading)?.focus();
}

function navigation(current) {
  const name = current === "task" ? "tasks" : current;
  replace(document.getElementById("nav"), VIEWS.map(([id, text]) => el("li", {}, el("a", { href: `#/${id}`, "aria-current": id === name ? "page" : undefined }, text))));
}

/** The form in the header: who calls. */
function callerForm(auth) {
  useMode(auth);
  const input = document.getElementById("as");
  const dev = auth === "dev";
  document.getElementById("as-label").textContent = dev ? "Call as" : "API key";
  input.type = dev ? "text" : "password";
  input.placeholder = dev ? "tenant:subject" : "";
  input.value = caller();
  document.getElementById("caller").addEventListener("submit", (event) => {
    event.preventDefault();
    callAs(input.value);
    skills = null;
    route();
  });
}

async function start() {
  takeToken();
  if (!hasToken()) notice("Open the address with the token that the program printed. Without it the page shows only what A2A shows.");
  let auth = "dev";
  try {
    const facts = await local("facts");
    auth = facts.auth;
    document.getElementById("agent").textContent = plain(facts.agent);
  } catch (error) {
    if (hasToken()) notice(error.message);
  }
  callerForm(auth);
  document.querySelector(".skip").addEventListener("click", (event) => {
    // The fragment names a view, so the link must not change it.
    event.preventDefault();
    document.getElementById("main").focus();
  });
  addEventListener("hashchange", route);
  await route();
}

start();
