// What a task and its caller have stored: the tab *State* of a task. It shows no more than a trace.

import { inside } from "./api.js";
import { age, el, hashOf, json, p, replace, span } from "./dom.js";

/** A value, or why it is not shown. */
function shown({ value, isHidden, isCut }) {
  if (isHidden) return p("hint", "Not shown, as in a trace: credentials, or a message that is not kept.");
  const whole = value !== null && typeof value === "object" ? json(value) : el("code", {}, JSON.stringify(value));
  return [whole, isCut && p("hint", "the first 8 KiB")];
}

/** The turn that wrote a session value. */
function writerOf(id, writer) {
  if (!writer) return "written by a turn without a trace";
  const { task, turn, at } = writer;
  const of = task === id ? "this task" : el("a", { href: hashOf("task", task) }, "another task");
  return ["written by turn ", turn, " of ", of, ", ", age(at)];
}

/** Values with their names below a heading, or a sentence that there are none. */
function group(title, none, values, note) {
  const line = (it) => el("li", {}, p("row", el("code", {}, it.name), span("hint", note?.(it))), shown(it));
  return [el("h2", {}, title), values.length ? el("ul", { class: "hairs" }, values.map(line)) : p("quiet", none)];
}

/** Returns what reads the state of a task into its place. */
export function stateIn(place, id) {
  let before = "";
  return async () => {
    const state = await inside(id, "/state").catch(({ message }) => ({ message }));
    // What somebody reads, or has selected, stays while it is the same.
    if (before === JSON.stringify(state)) return;
    before = JSON.stringify(state);
    const { message, slot, values = [], session = [], documents = [], isCut } = state;
    const isMemory = (it) => it.collection.startsWith("memory/");
    const of = ({ collection, isShared }) => `in ${collection}${isShared ? ", shared by the tenant" : ""}`;
    replace(place, message ? p("error", `The state is not shown: ${message}`) : [
      el("h2", {}, "Open slot"), slot ? shown(slot) : p("quiet", "No question is open."),
      group("Values of this task", "The skill has saved none.", values),
      group("Session values", "The conversation has none.", session, (it) => writerOf(id, it.writer)),
      group("Memories", "The caller has none.", documents.filter(isMemory), of),
      group("Documents", "The caller has none.", documents.filter((it) => !isMemory(it)), of),
      isCut && p("hint", "There are more documents."),
    ]);
  };
}
