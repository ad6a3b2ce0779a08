// The keys that act everywhere. Letters act outside of fields and without modifiers only, and
// can be switched off.

import { el } from "./dom.js";

const OFF = "a2a-local-letters-off";
const VIEWS = { c: "chat", t: "tasks", s: "skills", w: "webhooks", a: "agent", p: "process" };

export const hasLetters = () => !localStorage.getItem(OFF);

const LIST = [
  ["g then c t s w a p", "chat, tasks, skills, webhooks, agent, process"],
  ["/", "search in the view"],
  ["n", "new conversation"],
  ["e", "events of the last answer"],
  ["j k or arrows", "rows of a list; Home and End too"],
  ["Enter", "opens a row; sends in the chat"],
  ["c", "copies the id of a row, or a row of a trace; Shift c as a cassette"],
  ["Shift Enter", "a new line"],
  ["Ctrl or ⌘ Enter", "sends a form"],
  ["Escape", "closes a menu, a bar, a chip or a search"],
  ["?", "this list"],
];

/** Shows the list of keys. It goes when it is closed. */
function help() {
  const letters = el("input", { type: "checkbox", id: "letters", on: { change: () => (letters.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1")) } });
  letters.checked = hasLetters();
  const box = el("dialog", { "aria-labelledby": "keys-title", on: { close: () => box.remove() } },
    el("h2", { id: "keys-title" }, "Keys"),
    el("dl", { class: "keys" }, LIST.map(([key, does]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, does)])),
    el("p", { class: "check" }, letters, el("label", { for: "letters" }, "Single letters act")),
    el("form", { method: "dialog" }, el("button", { class: "ink" }, "Close")));
  document.body.append(box);
  box.showModal();
}

let prefix = -Infinity;

/** What a key does: a view to go to, or a thing of the view with this mark. */
export function bindKeys(newTalk) {
  addEventListener("keydown", (event) => {
    const field = event.target.closest?.("input, textarea, select, dialog");
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.target.closest("form")?.requestSubmit();
      return;
    }
    if (field || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || !hasLetters()) return;
    const goes = performance.now() - prefix < 1500;
    prefix = event.key === "g" ? performance.now() : -Infinity;
    if (goes && Object.hasOwn(VIEWS, event.key)) {
      location.hash = `#/${VIEWS[event.key]}`;
    } else if (event.key === "/") {
      document.querySelector("#main [type=search]")?.focus();
    } else if (event.key === "n") {
      newTalk();
    } else if (event.key === "?") {
      help();
    } else if (event.key === "e") {
      [...document.querySelectorAll("#log .run [aria-expanded]")].at(-1)?.click();
    } else {
      return;
    }
    event.preventDefault();
  });
}
