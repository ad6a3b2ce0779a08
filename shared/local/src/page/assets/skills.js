// The skills of the agent: a folded list that is its own index. Each has a form with the fields
// that its input needs, files too, and its examples.

import { exact, message, rounds } from "./api.js";
import { sendNew } from "./chat.js";
import {
  age, button, div, el, empty, facts, field, fresh, glyph, hashOf, linkButton, plain, put, replace, rove,
  search, shortId, span, took, view,
} from "./dom.js";
import { fileBox, mostOfAFile } from "./files.js";
import { icon } from "./icons.js";
import { readRows } from "./lists.js";
import { SchemaError, form } from "./schema.js";
import { copyMenu } from "./snippets.js";

const WORDS = {
  "text/plain": "text", "application/json": "JSON", "*/*": "anything", "application/octet-stream": "file",
};
const word = (mode) => WORDS[mode] ?? mode.replace("/*", "").split("/").pop();
const short = (modes) => [...new Set((modes ?? []).map(word))].join(", ");

function takes(skill, type) {
  const kinds = [type, "*/*", `${type.split("/")[0]}/*`];
  return (skill.inputModes ?? []).some((it) => kinds.includes(it));
}

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
  const takesJson = takes(skill, "application/json");
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
  if (takes(skill, "text/plain")) list.push(textWay());
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
  const error = el("p", { class: "error", role: "alert", id: fresh("error") });
  const control = el("textarea", { class: "json", spellcheck: "false", value: "{}" });
  const parts = () => {
    error.textContent = "";
    try {
      if (rounds(control.value)) {
        throw new Error("this browser rounds numbers of 16 and more digits, so the page does not send them");
      }
      return [{ data: exact(control.value), mediaType: "application/json" }];
    } catch (failure) {
      error.textContent = plain(`Not sent: ${failure.message}.`);
      control.focus();
      throw new SchemaError("no JSON");
    }
  };
  return { name: "JSON", element: field("Input as JSON", control, why, error), parts };
}

/** The view of all skills. `opened` names the one that is open. */
export function skillsView(skills, opened) {
  const rows = skills.map((it) => skillRow(it, it.id === opened));
  const none = el("div", {});
  const box = search("Find a skill", "Find a skill", "", (text) => {
    const words = text.toLowerCase().split(/\s+/);
    for (const it of rows) it.element.hidden = !words.every((word) => it.text.includes(word));
    const isNone = skills.length && rows.every((it) => it.element.hidden);
    replace(none, isNone && empty(`No skill says “${text}”`, `Searched ${skills.length} skills.`));
  });
  const heads = () => rows.filter((it) => !it.element.hidden).map((it) => it.head);
  const list = el("div", { on: { keydown: (event) => rove(event, heads()) } }, rows.map((it) => it.element));
  const nothing = ["This agent lists no skill", "A skill is a function with #[skill]."];
  return view({
    title: "Skills",
    note: span("note", skills.length),
    actions: box.element,
    body: [rows.length ? list : empty(...nothing, linkButton("Open the chat", "#/chat")), none],
    full: true,
  });
}

function skillRow(skill, isOpen) {
  const id = fresh("skill");
  const traits = [skill.asks && "asks", skill.background && "background", skill.task === false && "replies"];
  const head = button([
    icon("right"), span("name cut", skill.name),
    el("span", { class: "cut quiet", dir: "auto" }, skill.description),
    span("trait hint", traits.filter(Boolean).join(", ")),
    span("modes hint", short(skill.inputModes)),
  ], () => open(!element.hasAttribute("data-open")), { id });
  const element = el("section", { class: "skill", "aria-labelledby": id, "data-skill": skill.id }, el("h2", {}, head));
  let body;
  function open(is) {
    element.toggleAttribute("data-open", is);
    head.setAttribute("aria-expanded", String(is));
    if (is && !body) {
      body = skillBody(skill, id);
      put(element, body);
    }
    if (body) body.hidden = !is;
  }
  open(isOpen);
  const text = [skill.id, skill.name, skill.description, ...(skill.tags ?? [])].join(" ").toLowerCase();
  return { element, head, text };
}

function skillBody(skill, heading) {
  const list = ways(skill);
  const place = el("div", {});
  let current;
  const tabs = list.map((it) => button(it.name, () => use(it), { class: "tab small" }));
  function use(way) {
    current = way;
    tabs.forEach((it, n) => it.setAttribute("aria-pressed", String(list[n] === way)));
    replace(place, way.element);
  }
  use(list[0]);
  const modes = fileModes(skill);
  const files = modes && fileBox(modes);
  /** What is typed and attached; `null` if it cannot be sent, and the form says why. */
  async function parts() {
    try {
      const own = current.parts();
      const attached = files ? await files.parts() : [];
      return attached && [...own, ...attached];
    } catch (error) {
      if (error instanceof SchemaError) return null;
      throw error;
    }
  }
  async function submit(background) {
    const all = await parts();
    if (all?.length) sendNew({ parts: all, skill: skill.id, background });
  }
  const body = async () => {
    const all = await parts();
    return all && message(all, { metadata: { "a2a-lambda/skillId": skill.id } });
  };
  const on = { ...files?.drop, submit: (event) => { event.preventDefault(); submit(false); } };
  const key = el("kbd", { class: "keys-hint", "aria-hidden": "true" }, "Ctrl ↵");
  const made = el("form", { "aria-labelledby": heading, on },
    div("row form-head", examples(skill), span("grow"),
      list.length > 1 && el("span", { class: "row", role: "group", "aria-label": "Input as" }, tabs)),
    place, files && fileField(files, modes),
    div("row",
      el("button", { class: "ink", type: "submit" }, "Send", key),
      skill.task !== false && button("Send in the background", () => submit(true)),
      span("grow"), copyMenu(body)));
  return div("skill-body", made, about(skill));
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

function examples(skill) {
  if (!skill.examples?.length) return null;
  const example = (text) => button(text, () => sendNew({ parts: [{ text }], skill: skill.id }), { class: "small" });
  return el("span", { class: "row", role: "group", "aria-label": "Examples" },
    span("hint", "Examples"), skill.examples.map(example));
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
