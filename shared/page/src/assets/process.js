// The process: what it is, how to kill it, and what its brake stops.

import { auth, caller, hex, local } from "./api.js";
import { action, age, announce, askAgain, button, choice, dated, div, el, facts, p, replace, span, view } from "./dom.js";
import { live } from "./live.js";

/** How long the page waits for the next process. */
const PATIENCE = 60000;
const WHAT = "The process ends without a word to its tasks, as in a crash. The same program starts at once on the same "
  + "port, and takes over the tasks that were not finished.";

const CUT_OFF = "Running tasks are cut off and go on in the next process.";
const IN_MEMORY = "The data is in memory, so nothing would be left. Start without --memory.";
const STOPS = "What is stopped gets no new call, starts no step and asks no model. Its tasks wait, and go on when you let them.";

export async function processView(skills, signal) {
  const [now, brake] = await Promise.all([local("facts"), brakeBox(skills)]);
  const about = el("div", {}, shown(now));
  const redrawn = (next) => replace(about, shown(Object.assign(now, next)));
  live.addEventListener("restart", () => local("facts").then(redrawn, () => {}), { signal });
  const done = el("p", { role: "status", id: "restarted", hidden: true });
  const ask = () => askAgain("Kill the process?", CUT_OFF, ["Yes, kill it", "No"], kill);
  const press = button("Kill the process now", ask, { class: "danger", disabled: !now.keepsData });
  const place = div("stack", done, p("text-width", WHAT), press, !now.keepsData && p("quiet", IN_MEMORY));
  async function kill() {
    const [before, began] = [now.startedMs, performance.now()];
    // The connection may break before the answer.
    await local("kill", "POST").catch(() => {});
    const next = await nextProcess(before, began);
    if (!next) throw new Error("There is no next process. Start the program again.");
    redrawn(next);
    const text = `The next process answers after ${Math.round(performance.now() - began)} ms`;
    announce(text);
    replace(done, text, ". ", el("a", { href: "#/tasks" }, "See the tasks"));
    done.hidden = false;
  }
  const note = span("note", "Which process serves, on which data");
  return view({ title: "Process", note, body: [
    about, el("h2", {}, "What may run?"), brake, el("h2", {}, "What if it dies here?"), place,
  ] });
}

/** The brake: what it stops, and what it could stop. */
async function brakeBox(skills) {
  const box = div("stack");
  const named = (target) => (target === "everything" ? "Everything" : Object.entries(target).flat().join(" "));
  const tenants = auth === "dev" ? [{ tenant: caller().split(":")[0] || "local" }] : [];
  const all = ["everything", ...tenants, ...skills.map(({ id }) => ({ skill: id }))].map((it) => [JSON.stringify(it), named(it)]);
  const change = async (verb, target) => {
    await local(`brake/${verb}/${hex(target)}`, "POST");
    await show();
    announce(`${named(JSON.parse(target))}: ${verb === "set" ? "stopped" : "goes on"}`);
  };
  const line = ({ target, since }) => el("li", { class: "row" }, span("grow cut", named(target)), age(since),
    action("Let it go on", () => change("lift", JSON.stringify(target))));
  async function show() {
    const entries = await local("brake");
    const target = choice(all, { "aria-label": "What to stop" });
    replace(box, p("text-width", STOPS), el("ul", { class: "hairs", id: "braked" }, entries.map(line)),
      div("row", target, action("Stop", () => change("set", target.value), { class: "danger" })));
  }
  await show();
  return box;
}

function shown(it) {
  return facts([
    ["Agent", it.agent], ["Process", it.process], ["Started", dated(it.startedMs)], ["Callers", it.auth],
    ["Data", it.keepsData ? "kept over restarts" : "in memory"],
  ]);
}

async function nextProcess(before, began) {
  while (performance.now() - began < PATIENCE) {
    await new Promise((done) => setTimeout(done, 200));
    // Nothing listens between the two processes.
    const facts = await local("facts").catch(() => null);
    if (facts && facts.startedMs !== before) return facts;
  }
  return null;
}
