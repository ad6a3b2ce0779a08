// The skills of the agent: a folded list that is its own index. Each has a form with the fields
// that its input needs, files too, and its examples.

import { exact, message, rounds } from "./api.js";
import { sendNew } from "./chat.js";
import { age, button, el, empty, facts, field, fresh, glyph, plain, put, replace, shortId, took, view } from "./dom.js";
import { fileBox, mostOfAFile } from "./files.js";
import { icon } from "./icons.js";
import { readRows } from "./lists.js";
import { SchemaError, example, form, plan } from "./schema.js";
import { copyMenu } from "./snippets.js";

const takes = (skill, type) => (skill.inputModes ?? []).some((it) => it === type || it === "*/*" || it === `${type.split("/")[0]}/*`);
const WORDS = { "text/plain": "text", "application/json": "JSON", "*/*": "anything", "application/octet-stream": "file" };
const short = (modes) => [...new Set((modes ?? []).map((it) => WORDS[it] ?? it.replace("/*", "").split("/").pop()))].join(", ");

/** The media types of the files that a skill takes; `null` if it takes none. */
function fileModes(skill) {
  const modes = (skill.inputModes ?? []).filter((it) => !["text/plain", "application/json"].includes(it));
  if (!modes.length) return null;
  return modes.some((it) => it === "*/*" || it === "application/octet-stream") ? [] : modes;
}

/** The ways to type the input of a skill, best first. */
function ways(skill) {
  const found = [];
  let why = "";
  const schema = skill.inputSchema;
  const known = schema && typeof schema === "object" && Object.keys(schema).length > 0;
  if (known && takes(skill, "application/json")) {
    try {
      found.push({ name: "Form", make: formWay(plan(schema)) });
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error;
      why = `No form: ${error.message}.`;
    }
  }
  if (takes(skill, "text/plain")) found.push({ name: "Text", make: textWay });
  if (takes(skill, "application/json")) {
    const box = { name: "JSON", make: () => jsonWay(schema, why) };
    if (why) found.unshift(box);
    else found.push(box);
  }
  if (found.length) return found;
  return [fileModes(skill) ? { name: "File", make: () => ({ element: el("div", {}), parts: () => [] }) } : { name: "Text", make: textWay }];
}

function formWay(planned) {
  return () => {
    const made = form(planned, "");
    return { element: made.element, parts: () => [{ data: made.read(), mediaType: "application/json" }] };
  };
}

function textWay() {
  const control = el("textarea", { rows: 2, dir: "auto" });
  return { element: field("Text", control), parts: () => (control.value ? [{ text: control.value }] : []) };
}

function jsonWay(schema, why) {
  const error = el("p", { class: "error", role: "alert", id: fresh("error") });
  const control = el("textarea", { class: "json", spellcheck: "false", value: JSON.stringify(example(schema), null, 2) });
  const element = field("Input as JSON", control, why, error);
  const parts = () => {
    error.textContent = "";
    try {
      if (rounds(control.value)) throw new SchemaError("this browser rounds numbers of 16 and more digits, so the page does not send them");
      return [{ data: exact(control.value), mediaType: "application/json" }];
    } catch (failed) {
      error.textContent = plain(failed instanceof SchemaError ? `Not sent: ${failed.message}.` : `This is no JSON: ${failed.message}`);
      control.focus();
      throw new SchemaError("no JSON");
    }
  };
  return { element, parts };
}

/** The view of all skills. `opened` names the one that is open. */
export function skillsView(skills, opened) {
  const rows = skills.map((it) => skillRow(it, it.id === opened));
  const none = el("div", {});
  const search = el("input", { type: "search", "aria-label": "Find a skill", placeholder: "Find a skill", autocomplete: "off" });
  const find = () => {
    const words = search.value.toLowerCase().split(/\s+/);
    for (const it of rows) it.element.hidden = !words.every((word) => it.text.includes(word));
    const isNone = skills.length && rows.every((it) => it.element.hidden);
    replace(none, isNone && empty(`No skill says “${plain(search.value)}”`, `Searched ${skills.length} skills.`));
  };
  search.addEventListener("input", find);
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    search.value = "";
    find();
  });
  const list = el("div", { on: { keydown: (event) => move(event, rows) } }, rows.map((it) => it.element));
  return view({
    title: "Skills",
    note: el("span", { class: "note" }, skills.length),
    actions: el("span", { class: "search" }, icon("search"), search, el("kbd", {}, "/")),
    body: [skills.length ? list : empty("This agent lists no skill", "A skill is a function with #[skill].", el("a", { class: "button", href: "#/chat" }, "Open the chat")), none],
    full: true,
  });
}

/** Arrows go from head to head. */
function move(event, rows) {
  const heads = rows.filter((it) => !it.element.hidden).map((it) => it.head);
  const at = heads.indexOf(event.target);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: heads.length - 1 }[event.key];
  if (at < 0 || to === undefined) return;
  event.preventDefault();
  heads[to]?.focus();
}

function traits(skill) {
  return [skill.asks && "asks", skill.background && "background", skill.task === false && "replies"].filter(Boolean).join(", ");
}

function skillRow(skill, isOpen) {
  const id = fresh("skill");
  const head = el("button", { type: "button", id, "aria-expanded": "false", on: { click: () => open(!element.hasAttribute("data-open")) } },
    icon("right"), el("span", { class: "name cut" }, skill.name), el("span", { class: "cut quiet", dir: "auto" }, skill.description),
    el("span", { class: "trait" }, traits(skill)), el("span", { class: "modes" }, short(skill.inputModes)));
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
  if (isOpen) open(true);
  return { element, head, text: [skill.id, skill.name, skill.description, ...(skill.tags ?? [])].join(" ").toLowerCase() };
}

function skillBody(skill, heading) {
  const found = ways(skill);
  const place = el("div", {});
  let current;
  const tabs = found.map((it, n) => button(it.name, () => use(n), { class: "tab small" }));
  function use(index) {
    current = found[index].make();
    tabs.forEach((it, n) => it.setAttribute("aria-pressed", String(n === index)));
    replace(place, current.element);
  }
  use(0);
  const modes = fileModes(skill);
  const files = modes && fileBox(modes);
  const parts = async () => {
    try {
      const own = current.parts();
      const attached = files ? await files.parts() : [];
      return attached && [...own, ...attached];
    } catch (error) {
      if (error instanceof SchemaError) return null;
      throw error;
    }
  };
  const submit = async (background) => {
    const all = await parts();
    if (all?.length) sendNew({ parts: all, skill: skill.id, background });
  };
  const body = async () => {
    const all = await parts();
    return all && message(all, { metadata: { "a2a-lambda/skillId": skill.id } });
  };
  const made = el("form", { "aria-labelledby": heading, on: { submit: (event) => { event.preventDefault(); submit(false); } } },
    el("div", { class: "form-head" }, examples(skill), el("span", { class: "grow" }), found.length > 1 && el("span", { class: "row", role: "group", "aria-label": "Input as" }, tabs)),
    place, files && fileField(files, modes),
    el("div", { class: "row" }, el("button", { class: "ink", type: "submit" }, "Send", el("kbd", { class: "keys-hint", "aria-hidden": "true" }, "Ctrl ↵")),
      skill.task !== false && button("Send in the background", () => submit(true)), el("span", { class: "grow" }), copyMenu(body)));
  if (files) for (const [name, does] of Object.entries(files.drop)) made.addEventListener(name, does);
  return el("div", { class: "skill-body" }, made, about(skill));
}

/** The files of a form: those that are chosen, then the row that takes another. */
function fileField(files, modes) {
  const hint = el("span", { class: "hint" });
  const kinds = short(modes) || "any kind";
  mostOfAFile().then((most) => replace(hint, [kinds, most].filter(Boolean).join(", ")));
  return el("div", { class: "field", role: "group", "aria-label": "Files" }, el("span", {}, el("b", { class: "label" }, "Files"), " ", hint), files.element,
    el("div", { class: "drops" }, icon("clip"), el("span", {}, "Drop a file, or ", button("choose", files.choose, { class: "link", "aria-label": "Choose a file" }))));
}

function examples(skill) {
  if (!skill.examples?.length) return null;
  return el("span", { class: "row", role: "group", "aria-label": "Examples" }, el("span", { class: "hint" }, "Examples"),
    skill.examples.map((text) => button(text, () => sendNew({ parts: [{ text }], skill: skill.id }), { class: "small" })));
}

function about(skill) {
  const last = el("span", { class: "row" });
  readRows({ skill: skill.id, brief: "1" }).then(({ rows: [row] }) => {
    replace(last, row ? [glyph(row.state), el("a", { href: `#/task/${encodeURIComponent(row.task)}` }, age(row.updatedAt)), took(row.tookMs)] : "not yet");
  }, () => {});
  return facts([
    ["Id", shortId(skill.id)],
    ["Takes", (skill.inputModes ?? []).join(", ")],
    ["Gives", (skill.outputModes ?? []).join(", ")],
    ["Runs", [skill.task === false ? "replies without a task" : "as a task", skill.asks && "may ask", skill.background && "in the background"].filter(Boolean).join(", ")],
    ["Tags", (skill.tags ?? []).join(", ")],
    ["Last", last],
  ]);
}
