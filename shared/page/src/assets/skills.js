// The skills of the agent: a folded list that is its own index. Each has a form with the fields
// that its input needs, files too, and its examples.

import { exact, message, rounds } from "./api.js";
import { sendNew } from "./chat.js";
import {
  age, button, div, el, empty, errorPlace, facts, field, fresh, glyph, hashOf, linkButton, plain, put, replace, rove,
  search, shortId, showError, span, took, view,
} from "./dom.js";
import { fileBox, isIn, mostOfAFile } from "./files.js";
import { icon } from "./icons.js";
import { readRows } from "./lists.js";
import { SchemaError, form } from "./schema.js";
import { copyMenu } from "./snippets.js";

const WORDS = {
  "text/plain": "text", "application/json": "JSON", "*/*": "anything", "application/octet-stream": "file",
};
const word = (mode) => WORDS[mode] ?? mode.replace("/*", "").split("/").pop();
const short = (modes) => [...new Set((modes ?? []).map(word))].join(", ");

/** The media types of the files that a skill takes; `null` if it takes none. */
function fileModes(skill) {
  const modes = (skill.inputModes ?? []).filter((it) => !["text/plain", "application/json"].includes(it));
  if (!modes.length) return null;
  return modes.some((it) => it === "*/*" || it === "application/octet-stream") ? [] : modes;
}

/** The ways to type the input of a skill, best first: a name, the element, and its `parts`. */
function ways(skill) {
  const list = [];
  let why = "";
  const schema = skill.inputSchema ?? {};
  const modes = skill.inputModes ?? [];
  const takesJson = isIn(modes, "application/json");
  if (takesJson && Object.keys(schema).length) {
    try {
      const { element, read } = form(schema);
      list.push({ name: "Form", element, parts: () => [{ data: read(), mediaType: "application/json" }] });
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error;
      why = `No form: ${error.message}.`;
      list.push(jsonWay(why));
    }
  }
  if (isIn(modes, "text/plain")) list.push(textWay());
  if (takesJson && !why) list.push(jsonWay());
  if (list.length) return list;
  return [fileModes(skill) ? { element: "", parts: () => [] } : textWay()];
}

function textWay() {
  const control = el("textarea", { rows: 2, dir: "auto" });
  const parts = () => (control.value ? [{ text: control.value }] : []);
  return { name: "Text", element: field("Text", control), parts };
}

function jsonWay(why) {
  const error = errorPlace({ id: fresh("error") });
  const control = el("textarea", { class: "json", spellcheck: "false", value: "{}" });
  const parts = () => {
    showError(error);
    try {
      if (rounds(control.value)) {
        throw new Error("this browser rounds numbers of 16 and more digits, so the page does not send them");
      }
      return [{ data: exact(control.value), mediaType: "application/json" }];
    } catch (failure) {
      showError(error, `Not sent: ${failure.message}.`);
      control.focus();
      throw new SchemaError("no JSON");
    }
  };
  return { name: "JSON", element: field("Input as JSON", control, why, error), parts };
}

/** The rows of the view, the skill that its address opened, and the words of its search. */
const shown = { rows: [], opened: "", words: "" };
const list = el("div", { on: {
  keydown: (event) => rove(event, seen().map((it) => it.head)),
  focusin: ({ target }) => stop(shown.rows.find((it) => it.element.contains(target))),
} });
/** Gives the one Tab stop of the list to this row. */
const stop = (row) => { if (row) for (const it of shown.rows) it.head.tabIndex = it === row ? 0 : -1; };
const seen = () => shown.rows.filter((it) => !it.element.hidden);

/**
 * The view of all skills. `opened` names the one that is open. A build may change the skills while
 * somebody types, so a row that is shown stays as long as its input is the same.
 */
export function skillsView(skills, opened, signal) {
  const isAgain = list.isConnected;
  const before = isAgain ? shown.rows : [];
  const { activeElement: focused } = document;
  const top = list.closest(".scroll")?.scrollTop;
  if (!isAgain) shown.words = "";
  const none = div();
  const filter = (text) => {
    shown.words = text;
    const words = text.toLowerCase().split(/\s+/);
    for (const it of shown.rows) it.element.hidden = !words.every((word) => it.text.includes(word));
    if (!seen().some((it) => it.head.tabIndex === 0)) stop(seen()[0]);
    const isNone = skills.length && !seen().length;
    replace(none, isNone && empty(`No skill says “${text}”`, `Searched ${skills.length} skills.`));
  };
  const box = search("Find a skill", "Find a skill", shown.words, filter);
  const isOther = !isAgain || opened !== shown.opened;
  shown.opened = opened;
  shown.rows = skills.map((skill) => {
    const [row, old] = [skillRow(skill), before.find((it) => it.id === skill.id)];
    const it = old?.input === row.input ? old : row;
    it.show(skill);
    it.head.tabIndex = old?.head.tabIndex ?? -1;
    if (old?.isOpen() || (isOther && skill.id === opened)) it.open(true);
    return it;
  });
  const nothing = ["This agent lists no skill", "A skill is a function with #[skill]."];
  replace(list, shown.rows.length ? shown.rows.map((it) => it.element)
    : empty(...nothing, linkButton("Open the chat", "#/chat")));
  filter(shown.words);
  signal.addEventListener("shown", () => {
    if (isAgain) list.closest(".scroll").scrollTop = top;
    const row = isOther && shown.rows.find((it) => it.id === opened);
    (row ? row.head : focused).focus({ preventScroll: true });
    if (row) list.closest(".scroll").scrollTop = row.element.offsetTop;
  });
  return view({
    title: "Skills",
    note: span("note", skills.length),
    actions: box.element,
    body: [list, none],
    full: true,
  });
}

/** A row of the list. `input` is what its form is made of. */
function skillRow({ id, inputSchema, inputModes }) {
  const heading = fresh("skill");
  const head = button([], () => row.open(!row.isOpen()), { id: heading, "aria-expanded": "false", tabindex: -1 });
  const names = { class: "skill", "aria-labelledby": heading, "data-skill": id };
  const element = el("section", names, el("h2", {}, head));
  const row = {
    id, head, element, text: "", input: JSON.stringify([inputSchema, inputModes]),
    isOpen: () => element.hasAttribute("data-open"),
    open(is) {
      element.toggleAttribute("data-open", is);
      head.ariaExpanded = is;
      if (is && !row.body) {
        row.body = skillBody(row.skill, heading);
        put(element, row.body.element);
      }
      if (row.body) row.body.element.hidden = !is;
    },
    show(skill) {
      const { name, description, tags = [], asks, background, task } = skill;
      const traits = [asks && "asks", background && "background", task === false && "replies"];
      row.skill = skill;
      row.text = [id, name, description, ...tags].join(" ").toLowerCase();
      replace(head, icon("right"), span("name cut", name),
        el("span", { class: "cut quiet", dir: "auto" }, description),
        span("trait hint", traits.filter(Boolean).join(", ")), span("modes hint", short(inputModes)));
      row.body?.show(skill);
    },
  };
  return row;
}

/** The form of a skill and what is known of it. `show` takes the skill of another build. */
function skillBody(skill, heading) {
  const { id, task } = skill;
  const all = ways(skill);
  const [place, examples, facts] = [div(), span("row grow"), div()];
  let current;
  const tabs = all.map((it) => button(it.name, () => use(it), { class: "tab small" }));
  function use(way) {
    current = way;
    tabs.forEach((it, n) => { it.ariaPressed = all[n] === way; });
    replace(place, way.element);
  }
  use(all[0]);
  const modes = fileModes(skill);
  const files = modes && fileBox(modes);
  const chosen = files && fileField(files, modes);
  const missing = errorPlace();
  /** What is typed and attached; `null` if it cannot be sent, and the form says why. */
  async function parts() {
    missing.remove();
    try {
      const own = current.parts();
      const attached = files ? await files.parts() : [];
      if (!attached || own.length + attached.length) return attached && [...own, ...attached];
      const ask = [current.element && "Type a text", files && "choose a file"].filter(Boolean).join(" or ");
      const empty = current.element || chosen;
      replace(missing, icon("warn"), `${ask.charAt(0).toUpperCase()}${ask.slice(1)}.`);
      put(empty, missing);
      empty.querySelector("textarea, .link").focus();
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error;
    }
    return null;
  }
  let isSent = false;
  /** The view is left then, so what is pressed twice is sent once. */
  function sendOnce(sent) {
    if (isSent) return;
    isSent = true;
    sendNew({ ...sent, skill: id });
  }
  async function submit(background) {
    const sent = await parts();
    if (sent) sendOnce({ parts: sent, background });
  }
  const body = async () => {
    const sent = await parts();
    return sent && message(sent, { metadata: { "a2a-lambda/skillId": id } });
  };
  const on = { ...files?.drop, submit: (event) => { event.preventDefault(); submit(false); } };
  const key = el("kbd", { class: "keys-hint", "aria-hidden": "true" }, "Ctrl ↵");
  const form = el("form", { "aria-labelledby": heading, on },
    div("row form-head", examples,
      all.length > 1 && el("span", { class: "row", role: "group", "aria-label": "Input as" }, tabs)),
    place, chosen,
    div("row",
      el("button", { class: "ink", type: "submit" }, "Send", key),
      task !== false && button("Send in the background", () => submit(true)),
      span("grow"), copyMenu(body)));
  function show(now) {
    const example = (text) => button(text, () => sendOnce({ parts: [{ text }] }), { class: "small" });
    const own = (now.examples ?? []).map(example);
    replace(examples, own.length > 0 && el("span", { class: "row", role: "group", "aria-label": "Examples" },
      span("hint", "Examples"), own));
    replace(facts, about(now));
  }
  show(skill);
  return { element: div("skill-body", form, facts), show };
}

/** The files of a form: those that are chosen, then the row that takes another. */
function fileField(files, modes) {
  const hint = span("hint");
  const kinds = short(modes) || "any kind";
  mostOfAFile().then((most) => replace(hint, [kinds, most].filter(Boolean).join(", ")));
  const choose = button("choose", files.choose, { class: "link", "aria-label": "Choose a file" });
  return el("div", { class: "field", role: "group", "aria-label": "Files" },
    el("span", {}, el("b", { class: "label" }, "Files"), " ", hint), files.element,
    div("drops", icon("clip"), el("span", {}, "Drop a file, or ", choose)));
}

function about(skill) {
  const last = span("row");
  readRows({ skill: skill.id, brief: "1" }).then(({ rows: [row] }) => replace(last, row
    ? [glyph(row.state), el("a", { href: hashOf("task", row.task) }, age(row.updatedAt)), took(row.tookMs)]
    : "not yet"), () => {});
  const kind = skill.task === false ? "replies without a task" : "as a task";
  return facts([
    ["Id", shortId(skill.id)],
    ["Takes", (skill.inputModes ?? []).join(", ")],
    ["Gives", (skill.outputModes ?? []).join(", ")],
    ["Runs", [kind, skill.asks && "may ask", skill.background && "in the background"].filter(Boolean).join(", ")],
    ["Last", last],
  ]);
}
