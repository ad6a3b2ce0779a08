// Makes a form from the JSON schema of a skill's input. A schema that is too deep, too
// large or of an unknown kind gets no form; its input is typed as JSON.

import { button, el, field, fresh, plain, put, replace } from "./dom.js";
import { icon } from "./icons.js";

const DEEPEST = 3;
const MOST = 40;

/** Why a schema gets no form, or a value cannot be read. */
export class SchemaError extends Error {}

/** The plan of a form; throws `SchemaError` when there is none. */
export function plan(schema) {
  const counted = { fields: 0 };
  return node(schema, schema, 0, [], counted);
}

function node(schema, root, depth, path, counted) {
  if (typeof schema !== "object" || schema === null) throw new SchemaError("any value is allowed");
  if (typeof schema.$ref === "string") {
    if (path.includes(schema.$ref)) throw new SchemaError("the schema contains itself");
    const { $ref, ...own } = schema;
    return node({ ...resolve(root, $ref), ...own }, root, depth, [...path, $ref], counted);
  }
  const choices = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(choices)) {
    const values = choices.filter((it) => it?.type !== "null");
    const constants = values.map((it) => it?.const);
    if (values.length > 1 && constants.every((it) => typeof it === "string")) {
      return leaf({ ...schema, enum: constants }, counted, "choice");
    }
    if (values.length !== 1) throw new SchemaError("the schema has alternatives");
    const { anyOf, oneOf, ...own } = schema;
    const made = node({ ...values[0], ...own }, root, depth, path, counted);
    return { ...made, empty: made.empty || values.length < choices.length };
  }
  if (Array.isArray(schema.allOf)) {
    if (schema.allOf.length !== 1) throw new SchemaError("the schema joins others");
    const { allOf, ...own } = schema;
    return node({ ...allOf[0], ...own }, root, depth, path, counted);
  }
  return typed(schema, root, depth, path, counted);
}

function typed(schema, root, depth, path, counted) {
  const types = [schema.type ?? []].flat();
  const values = types.filter((it) => it !== "null");
  const empty = values.length < types.length;
  if (Array.isArray(schema.enum) && schema.enum.every((it) => typeof it === "string" || it === null)) {
    return { ...leaf(schema, counted, "choice"), empty: empty || schema.enum.includes(null) };
  }
  if (values.length !== 1) throw new SchemaError("the schema allows several types");
  const [type] = values;
  if (["string", "integer", "number", "boolean"].includes(type)) {
    return { ...leaf(schema, counted, type), empty };
  }
  if (depth >= DEEPEST) throw new SchemaError(`the schema is deeper than ${DEEPEST}`);
  if (type === "array") {
    const item = node(schema.items, root, depth + 1, path, counted);
    return { kind: "array", schema, item, empty };
  }
  if (type !== "object" || !schema.properties) throw new SchemaError("the schema allows any members");
  const required = new Set(schema.required ?? []);
  const members = Object.entries(schema.properties).map(([name, of]) => ({
    name,
    required: required.has(name),
    of: node(of, root, depth + 1, path, counted),
  }));
  return { kind: "object", schema, members, empty };
}

function leaf(schema, counted, kind) {
  counted.fields += 1;
  if (counted.fields > MOST) throw new SchemaError(`the schema has more than ${MOST} fields`);
  return { kind, schema };
}

function resolve(root, reference) {
  if (!reference.startsWith("#/")) throw new SchemaError("the schema refers to another document");
  const words = reference.slice(2).split("/");
  const found = words.reduce((at, word) => {
    const name = word.replaceAll("~1", "/").replaceAll("~0", "~");
    return at && Object.hasOwn(at, name) ? at[name] : undefined;
  }, root);
  if (typeof found !== "object" || found === null) throw new SchemaError("the schema refers to nothing");
  return found;
}

/**
 * The form of a plan: its element, and `read`, which returns the value. `undefined` means
 * that the member is left out.
 */
export function form(of, name = "Input", required = true) {
  const title = name && (of.schema.title || name);
  if (of.kind === "object") return objectForm(of, title, required);
  if (of.kind === "array") return arrayForm(of, title, required);
  return leafForm(of, title, required);
}

function objectForm(of, title, required) {
  const members = of.members.map((member) => ({ ...member, form: form(member.of, member.name, member.required) }));
  // The input itself needs no box: its title is that of the skill.
  const group = title ? el("fieldset", { class: "group" }, el("legend", {}, title)) : el("div", {});
  if (of.schema.description && title) put(group, el("p", { class: "hint" }, of.schema.description));
  put(group, el("div", { class: "pair" }, members.map((member) => member.form.element)));
  const read = () => {
    const pairs = members.map((member) => [member.name, member.form.read()]).filter(([, value]) => value !== undefined);
    if (!pairs.length && !required) return undefined;
    return Object.fromEntries(pairs);
  };
  return { element: group, read };
}

function arrayForm(of, title, required) {
  const items = [];
  const list = el("div", {});
  const add = () => {
    const item = form(of.item, `${title} ${items.length + 1}`, true);
    const entry = { item };
    entry.element = el("div", { class: "entry" }, item.element, button(`Remove ${plain(title)}`, () => {
      items.splice(items.indexOf(entry), 1);
      entry.element.remove();
      more.focus();
    }, { class: "small" }));
    items.push(entry);
    put(list, entry.element);
    entry.element.querySelector("input, select, textarea, button")?.focus();
  };
  const more = button(`Add to ${plain(title)}`, add, { class: "small" });
  const group = el("fieldset", { class: "group" }, el("legend", {}, title));
  if (of.schema.description) put(group, el("p", { class: "hint" }, of.schema.description));
  put(group, list, more);
  const read = () => {
    const values = items.map(({ item }) => item.read());
    return values.length || required ? values : undefined;
  };
  return { element: group, read };
}

function control(of, required) {
  const { schema } = of;
  const id = fresh("field");
  if (of.kind === "boolean") {
    const states = required ? ["false", "true"] : ["", "false", "true"];
    return el("select", { id }, states.map((it) => el("option", { value: it }, it)));
  }
  if (of.kind === "choice") {
    const words = schema.enum.filter((it) => it !== null);
    return el("select", { id }, (required ? words : ["", ...words]).map((it) => el("option", { value: it }, it)));
  }
  const number = of.kind !== "string";
  const types = { date: "date", email: "email", password: "password" };
  return el("input", {
    id,
    type: number ? "text" : types[schema.format] ?? "text",
    inputmode: number ? (of.kind === "integer" ? "numeric" : "decimal") : undefined,
    autocomplete: "off",
    "aria-required": required ? "true" : undefined,
    value: schema.default === undefined || schema.default === null ? "" : String(schema.default),
  });
}

function leafForm(of, title, required) {
  const made = control(of, required);
  const error = el("p", { class: "error", id: `${made.id}-error`, role: "alert" });
  const element = field(plain(title), made, [of.schema.description, required ? "" : "optional"].filter(Boolean).join(", "), error);
  const read = (isLeft) => {
    replace(error);
    made.removeAttribute("aria-invalid");
    try {
      return value(of, made.value, required);
    } catch (why) {
      replace(error, icon("warn"), why.message);
      made.setAttribute("aria-invalid", "true");
      if (isLeft === true) return undefined;
      made.focus();
      throw why;
    }
  };
  // An error appears when the field is left, not while somebody types.
  made.addEventListener("change", () => read(true));
  return { element, read };
}

function value(of, text, required) {
  if (text === "" && !required) return undefined;
  if (text === "" && of.empty) return null;
  if (of.kind === "boolean") return text === "true";
  if (of.kind === "integer" || of.kind === "number") {
    const digits = text.trim();
    const shape = of.kind === "integer" ? /^-?\d+$/ : /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/;
    if (!shape.test(digits)) throw new SchemaError(of.kind === "integer" ? "This has to be a whole number." : "This has to be a number, as in 184.20.");
    const number = Number(digits);
    if (of.kind === "integer" && !Number.isSafeInteger(number)) throw new SchemaError("The browser cannot hold this number. Type the input as JSON.");
    return number;
  }
  return text;
}

/** An example value for the JSON box. */
export function example(schema) {
  const type = [schema?.type ?? []].flat().find((it) => it !== "null");
  if (schema?.default !== undefined) return schema.default;
  if (type === "string") return "";
  if (type === "integer" || type === "number") return 0;
  if (type === "boolean") return false;
  if (type === "array") return [];
  const members = (schema?.required ?? []).filter((name) => Object.hasOwn(schema.properties ?? {}, name));
  return Object.fromEntries(members.slice(0, MOST).map((name) => [name, schema.properties[name]?.$ref ? {} : example({ ...schema.properties[name], required: [] })]));
}
