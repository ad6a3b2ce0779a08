// The keys that act everywhere. Letters act outside of fields and without modifiers only, and
// can be switched off.

import { button, dialog, el, hasLetters, keyOf, p, useLetters } from "./dom.js";

const LIST = [
  ["g then c t s w a p", "chat, tasks, skills, webhooks, agent, process"],
  ["/", "search in the view"],
  ["n", "new conversation"],
  ["e", "events of the last answer"],
  ["j k or arrows", "rows of a list; Home and End too; left and right fold"],
  ["Enter", "opens a row; sends in the chat"],
  ["c", "copies the id of a row, or a row of a trace; Shift c as a cassette"],
  ["Shift Enter", "a new line"],
  ["Ctrl or ⌘ Enter", "sends a form"],
  ["Escape", "closes a menu, a bar, a chip or a search"],
  ["?", "this list"],
];

function help() {
  const change = ({ target }) => useLetters(target.checked);
  const letters = el("input", { type: "checkbox", id: "letters", checked: hasLetters(), on: { change } });
  dialog("Keys",
    el("dl", { class: "keys" }, LIST.map(([key, does]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, does)])),
    p("row", letters, el("label", { for: "letters" }, "Single letters act")),
    el("form", { method: "dialog" }, el("button", { class: "ink" }, "Close")));
}

/** Shows the keys also when letters are off. */
export const keysButton = () => button("Keys", help, { class: "calls" });

let prefix = -Infinity;

/** What a key does: it leads to a view, by its first letter, or to a thing of the view. */
export function bindKeys(views, newTalk) {
  const acts = {
    "/": () => document.querySelector("#main [type=search]")?.focus(),
    "?": help,
    n: newTalk,
    e: () => [...document.querySelectorAll("#log .run [aria-expanded]")].at(-1)?.click(),
  };
  addEventListener("keydown", (event) => {
    const field = event.target.closest?.("input, textarea, select, dialog");
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.target.closest("form")?.requestSubmit();
      return;
    }
    const key = keyOf(event);
    if (field || event.isComposing || key.length !== 1) return;
    const view = performance.now() - prefix < 1500 && views.find((it) => it[0] === key);
    prefix = key === "g" ? performance.now() : -Infinity;
    if (view) location.hash = `#/${view}`;
    else if (Object.hasOwn(acts, key)) acts[key]();
    else return;
    event.preventDefault();
  });
  addEventListener("keydown", closesBar, { capture: true });
}

/** Escape closes one thing: a menu or a dialog, then the bar, then what the view has. */
function closesBar(event) {
  const close = document.querySelector("#bar .close");
  if (event.key !== "Escape" || !close || event.target.closest?.("dialog, .menu, .foot")) return;
  close.click();
  event.stopPropagation();
}
