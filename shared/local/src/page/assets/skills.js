// The skills of the agent, each with a form made from its schema and with its examples.

import { exact, rounds } from "./api.js";
import { button, el, field, fresh, put, replace } from "./dom.js";
import { SchemaError, example, form, plan } from "./schema.js";
import { send } from "./chat.js";

const takes = (skill, type) => (skill.inputModes ?? []).some((it) => it === type || it === "*/*" || it === `${type.split("/")[0]}/*`);

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
  return found.length ? found : [{ name: "Text", make: textWay }];
}

function formWay(planned) {
  return () => {
    const made = form(planned);
    return { element: made.element, parts: () => [{ data: made.read(), mediaType: "application/json" }] };
  };
}

function textWay() {
  const control = el("textarea", { rows: 2 });
  return { element: field("Text", control), parts: () => [{ text: control.value }], fill: (text) => { control.value = text; } };
}

function jsonWay(schema, why) {
  const control = el("textarea", { class: "json", spellcheck: "false", value: JSON.stringify(example(schema), null, 2) });
  const error = el("p", { class: "error", role: "alert" });
  const element = el("div", {}, why && el("p", { class: "hint" }, why), field("Input as JSON", control), error);
  const parts = () => {
    error.textContent = "";
    try {
      if (rounds(control.value)) throw new SchemaError("this browser rounds numbers of 16 and more digits, so the page does not send them");
      return [{ data: exact(control.value), mediaType: "application/json" }];
    } catch (failed) {
      error.textContent = failed instanceof SchemaError ? `Not sent: ${failed.message}.` : `This is no JSON: ${failed.message}`;
      control.focus();
      throw new SchemaError("no JSON");
    }
  };
  return { element, parts };
}

/** The view of all skills. */
export function skillsView(skills) {
  return [
    el("h1", { tabindex: "-1" }, "Skills"),
    skills.length ? skills.map(skillPanel) : el("p", {}, "This agent lists no skill."),
  ];
}

function skillPanel(skill) {
  const found = ways(skill);
  const place = el("div", {});
  let current;
  const use = (index) => {
    current = found[index].make();
    replace(place, current.element);
  };
  const id = fresh("way");
  const choice = el("select", { id, on: { change: (event) => use(Number(event.target.value)) } }, found.map((it, n) => el("option", { value: String(n) }, it.name)));
  const submit = (event) => {
    event.preventDefault();
    let parts;
    try {
      parts = current.parts();
    } catch (error) {
      if (error instanceof SchemaError) return;
      throw error;
    }
    start(parts, skill.id);
  };
  use(0);
  const heading = fresh("skill");
  return el("section", { class: "panel", "aria-labelledby": heading, "data-skill": skill.id },
    el("h2", { id: heading }, skill.name),
    el("p", { dir: "auto" }, skill.description),
    el("p", { class: "row tags" }, skill.tags?.map((tag) => el("span", {}, tag))),
    el("p", { class: "quiet" }, traits(skill)),
    examples(skill),
    el("form", { "aria-labelledby": heading, on: { submit } },
      found.length > 1 && el("div", { class: "row" }, el("label", { for: id }, "Input as"), choice),
      place, el("button", { class: "main", type: "submit" }, "Send")));
}

function traits(skill) {
  return [
    skill.task === false ? "Replies without a task." : "Makes a task.",
    skill.asks && "May ask.",
    skill.background && "Runs in the background.",
  ].filter(Boolean).join(" ");
}

function examples(skill) {
  if (!skill.examples?.length) return null;
  const list = el("div", { class: "row", role: "group", "aria-label": "Examples" });
  put(list, skill.examples.map((text) => button(text, () => start([{ text }], skill.id))));
  return list;
}

function start(parts, skill) {
  location.hash = "#/chat";
  // The chat takes the focus first, so that a question can take it afterwards.
  setTimeout(() => send({ parts, skill }), 0);
}

