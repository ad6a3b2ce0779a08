// Makes a form from the JSON schema of a skill's input. A schema that is too deep, too
// large or of an unknown kind gets no form; its input is typed as JSON.

import { button, choice, div, el, errorPlace, field, fresh, p, plain, put, replace } from "./dom.js";
import { icon } from "./icons.js";

const DEEPEST = 3;
const MOST = 40;

/** Why a schema gets no form, or a value cannot be read. */
export class SchemaError extends Error {}

/**
 * The form of a schema: its element, and `read`, which returns the value. `undefined` means
 * that the member is left out. Throws `SchemaError` when there is no form.
 */
export const form = (schema) =>
  build(schema, "", true, { root: schema, depth: 0, path: [], counted: { fields: 0 }, isEmpty: false });

/** The form of a part of the schema. `place` is where it is; `isEmpty` means that `null` is a value too. */
function build(schema, name, isRequired, place) {
  if (typeof schema !== "object" || schema === null) throw new SchemaError("any value is allowed");
  const { root, depth, path, counted } = place;
  if (typeof schema.$ref === "string") {
    if (path.includes(schema.$ref)) throw new SchemaError("the schema contains itself");
    const { $ref, ...own } = schema;
    return build({ ...resolve(root, $ref), ...own }, name, isRequired, { ...place, path: [...path, $ref] });
  }
  const choices = schema.anyOf ?? schema.oneOf ?? schema.allOf;
  if (Array.isArray(choices)) {
    const { anyOf, oneOf, allOf, ...own } = schema;
    const values = choices.filter((it) => it?.type !== "null");
    const words = values.map((it) => it?.const);
    const isWords = values.length > 1 && words.every((it) => typeof it === "string");
    if (values.length !== 1 && !isWords) throw new SchemaError("the schema combines others");
    const only = isWords ? { ...own, enum: words } : { ...values[0], ...own };
    return build(only, name, isRequired, { ...place, isEmpty: place.isEmpty || values.length < choices.length });
  }
  const types = [schema.type ?? []].flat();
  const [type, ...others] = types.filter((it) => it !== "null");
  const isChoice = Array.isArray(schema.enum) && schema.enum.every((it) => typeof it === "string" || it === null);
  const kind = isChoice ? "choice" : type;
  const title = name && (schema.title || name);
  if (["choice", "string", "integer", "number", "boolean"].includes(kind) && !others.length) {
    counted.fields += 1;
    if (counted.fields > MOST) throw new SchemaError(`the schema has more than ${MOST} fields`);
    const isEmpty = place.isEmpty || types.includes("null") || Boolean(schema.enum?.includes(null));
    return leafForm({ kind, schema, isEmpty, isRequired }, title);
  }
  if (!type || others.length) throw new SchemaError("the schema allows several types");
  if (depth >= DEEPEST) throw new SchemaError(`the schema is deeper than ${DEEPEST}`);
  const inner = { ...place, depth: depth + 1, isEmpty: false };
  if (type === "array") {
    const item = (number, count) => build(schema.items, `${title} ${number}`, true, { ...inner, counted: count });
    // The items are made later; whether there is a form of them is known now.
    item(1, counted);
    return arrayForm(schema, title, isRequired, (number) => item(number, { fields: 0 }));
  }
  if (type !== "object" || !schema.properties) throw new SchemaError("the schema allows any members");
  const needs = (member) => (schema.required ?? []).includes(member);
  const members = Object.entries(schema.properties)
    .map(([member, of]) => [member, build(of, member, needs(member), inner)]);
  return objectForm(schema, title, isRequired, members);
}

function resolve(root, reference) {
  if (!reference.startsWith("#/")) throw new SchemaError("the schema refers to another document");
  const words = reference.slice(2).split("/");
  const part = words.reduce((at, word) => {
    const name = word.replaceAll("~1", "/").replaceAll("~0", "~");
    return at && Object.hasOwn(at, name) ? at[name] : undefined;
  }, root);
  if (typeof part !== "object" || part === null) throw new SchemaError("the schema refers to nothing");
  return part;
}

/** The box of a member with members. The input itself needs none: its title is that of the skill. */
function group(schema, title, ...children) {
  if (!title) return el("div", {}, children);
  const hint = schema.description && p("hint", schema.description);
  return el("fieldset", { class: "group" }, el("legend", {}, title), hint, children);
}

function objectForm(schema, title, isRequired, members) {
  const read = () => {
    const pairs = members.map(([name, own]) => [name, own.read()]).filter(([, value]) => value !== undefined);
    return pairs.length || isRequired ? Object.fromEntries(pairs) : undefined;
  };
  const fields = div("pair", members.map(([, own]) => own.element));
  return { element: group(schema, title, fields), read };
}

function arrayForm(schema, title, isRequired, item) {
  const items = new Set();
  const list = div();
  const add = () => {
    const own = item(items.size + 1);
    const remove = button(`Remove ${plain(title)}`, () => {
      items.delete(own);
      entry.remove();
      more.focus();
    }, { class: "small" });
    const entry = el("div", {}, own.element, remove);
    items.add(own);
    put(list, entry);
    entry.querySelector("input, select, textarea, button").focus();
  };
  const more = button(`Add to ${plain(title)}`, add, { class: "small" });
  const read = () => (items.size || isRequired ? [...items].map((own) => own.read()) : undefined);
  return { element: group(schema, title, list, more), read };
}

/** The field of a word, a number or a text. */
function control({ kind, schema, isRequired }) {
  if (kind === "boolean" || kind === "choice") {
    const words = kind === "boolean" ? ["false", "true"] : schema.enum.filter((it) => it !== null);
    return choice((isRequired ? words : ["", ...words]).map((it) => [it, it]), {});
  }
  const types = { date: "date", email: "email", password: "password" };
  return el("input", {
    type: kind === "string" ? types[schema.format] : "text",
    inputmode: { integer: "numeric", number: "decimal" }[kind],
    autocomplete: "off",
    "aria-required": isRequired && "true",
    value: schema.default,
  });
}

function leafForm(leaf, title) {
  const own = control(leaf);
  const error = errorPlace({ id: fresh("error") });
  const about = leaf.schema.description?.replace(/\.$/, "");
  const hint = [about, leaf.isRequired ? "" : "optional"].filter(Boolean).join(", ");
  const read = (isLeft) => {
    replace(error);
    own.ariaInvalid = null;
    try {
      return value(leaf, own.value);
    } catch (why) {
      replace(error, icon("warn"), why.message);
      own.ariaInvalid = true;
      if (isLeft === true) return undefined;
      own.focus();
      throw why;
    }
  };
  // An error appears when the field is left, not while somebody types.
  own.addEventListener("blur", () => read(true));
  return { element: field(plain(title || leaf.schema.title || "Input"), own, hint, error), read };
}

function value({ kind, isEmpty, isRequired }, text) {
  if (text === "" && !isRequired) return undefined;
  if (text === "" && isEmpty) return null;
  if (kind === "boolean") return text === "true";
  if (kind !== "integer" && kind !== "number") return text;
  const digits = text.trim();
  if (kind === "integer" && !/^-?\d+$/.test(digits)) throw new SchemaError("This has to be a whole number.");
  if (!/^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(digits)) {
    throw new SchemaError("This has to be a number, as in 184.20.");
  }
  const number = Number(digits);
  if (kind === "integer" && !Number.isSafeInteger(number)) {
    throw new SchemaError("The browser cannot hold this number. Type the input as JSON.");
  }
  return number;
}
