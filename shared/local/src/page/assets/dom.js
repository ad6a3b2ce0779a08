// Builds the elements of the page. Texts become text nodes, so no text can be markup.

import { icon } from "./icons.js";

// These change the direction or the order of what follows, or cannot be seen.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** The text with its invisible marks as `[U+202E]`. */
export function plain(text) {
  return String(text ?? "").replace(HIDDEN, (mark) => {
    const code = mark.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    return `[U+${code}]`;
  });
}

/** An element. `on` has its listeners, the other properties are attributes. */
export function el(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "on") {
      for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    } else if (/^on|^style$|^src|^action$|^formaction$/i.test(key)) {
      throw new Error(`attribute ${key} is not used here`);
    } else if (key === "href" && !/^#|^blob:|^https?:\/\//.test(value)) {
      throw new Error("this link is not used here");
    } else if (key === "value") {
      made.value = value;
    } else {
      made.setAttribute(key, value === true ? "" : value);
    }
  }
  put(made, ...children);
  return made;
}

/** Adds children; texts become text nodes. */
export function put(parent, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    parent.append(child instanceof Node ? child : document.createTextNode(plain(child)));
  }
}

/** Puts new children in place of the old ones. */
export function replace(parent, ...children) {
  parent.replaceChildren();
  put(parent, ...children);
}

export function button(text, click, properties = {}) {
  return el("button", { type: "button", on: { click }, ...properties }, text);
}

/** A button that shows an icon alone; its name is for screen readers and the pointer. */
export function iconButton(name, text, click, properties = {}) {
  return button(icon(name), click, { class: "icon plain", "aria-label": plain(text), title: plain(text), ...properties });
}

/** A text of somebody else, in a direction of its own. */
export function said(text) {
  return el("p", { class: "said", dir: "auto" }, text);
}

/** A value as JSON, its keys, strings and numbers in colours of their own. */
export function json(value) {
  const text = JSON.stringify(value, null, 2) ?? "undefined";
  const box = el("pre", { class: "json", tabindex: "0", dir: "ltr" });
  // A long text stays one node, so that a megabyte of it costs nothing.
  if (text.length > 100000) put(box, text);
  else {
    const tokens = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\d[\d.eE+-]*/g;
    let end = 0;
    for (const it of text.matchAll(tokens)) {
      put(box, text.slice(end, it.index));
      put(box, el("span", { class: it[2] ? "k" : it[1] ? "s" : "n" }, it[1] ?? it[0]), it[2]);
      end = it.index + it[0].length;
    }
    put(box, text.slice(end));
  }
  return box;
}

/** A label, its control, its hint in the label's line, and the place of its error. */
export function field(text, control, hint, error) {
  const id = control.id || fresh("field");
  control.id = id;
  const note = hint ? el("span", { class: "hint", id: `${id}-hint` }, hint) : null;
  const described = [note?.id, error?.id].filter(Boolean).join(" ");
  if (described) control.setAttribute("aria-describedby", described);
  return el("div", { class: "field" }, el("span", {}, el("label", { for: id }, text), note && [" ", note]), control, error);
}

let made = 0;
/** An id that no other element has. */
export function fresh(word) {
  made += 1;
  return `${word}-${made}`;
}

/** The members of an object as a list of terms. */
export function facts(entries) {
  const shown = entries.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return el("dl", { class: "facts" }, shown.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

/** A state as the protocol's word in a sentence. */
export function stateWord(state) {
  const words = String(state).replaceAll("-", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const isState = (state) => /^[a-z-]+$/.test(state);

/** The glyph of a state and its word, or another text. */
export function badge(state, text = stateWord(state)) {
  return el("span", { class: `state ${isState(state) ? state : ""}` }, icon(state), el("span", {}, text));
}

/** The glyph alone, with the word for screen readers. */
export function glyph(state) {
  return el("span", { class: `glyph ${isState(state) ? state : ""}`, title: stateWord(state) }, icon(state), el("span", { class: "unseen" }, stateWord(state)));
}

/** Eight characters of an id, with a button that copies all of it. */
export function shortId(id, properties = {}) {
  const bare = String(id ?? "");
  const shown = /^(task|ctx|artifact)-/.test(bare) ? bare.replace(/^\w+-/, "").slice(0, 8) : bare;
  const copy = iconButton("copy", `Copy the id ${id}`, (event) => {
    event.stopPropagation();
    copied(copy, id, "The id");
  }, { class: "", title: "Copy the id", ...properties });
  return el("span", { class: "id", title: id }, shown, copy);
}

/** Copies a text and says so, also to screen readers. */
export async function copied(place, text, what) {
  try {
    await navigator.clipboard.writeText(text);
    announce(`${what} is copied`);
  } catch {
    announce(`The browser did not copy it: ${text}`);
    return;
  }
  const mark = place.querySelector("svg");
  const before = mark?.cloneNode(true);
  const check = icon("check");
  mark?.replaceWith(check);
  setTimeout(() => before && check.replaceWith(before), 1200);
}

/** Says a text to screen readers. */
export function announce(text) {
  const place = document.getElementById("announcer");
  if (place) place.textContent = plain(text);
}

/** The bar over the header of the view: one sentence, then quieter words, then buttons. */
export function bar(kind, text, more = "", ...buttons) {
  document.getElementById("bar")?.remove();
  if (!text) return;
  const mark = { wait: "working", good: "completed", bad: "warn" }[kind];
  const role = kind === "bad" ? "alert" : "status";
  document.getElementById("main").append(el("div", { id: "bar", class: kind, role }, icon(mark), el("p", { class: "grow" }, el("strong", {}, text), " ", el("span", { class: "quiet" }, more)), buttons));
}

const two = (number) => String(number).padStart(2, "0");
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const clock = (when) => `${two(when.getHours())}:${two(when.getMinutes())}`;

/** All of a time, for titles. */
export function fullTime(at) {
  const when = new Date(at);
  const millis = String(when.getMilliseconds()).padStart(3, "0");
  return `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())} ${clock(when)}:${two(when.getSeconds())}.${millis}`;
}

function timed(at, text) {
  const when = new Date(at);
  if (Number.isNaN(when.getTime())) return el("time", {}, at);
  return el("time", { datetime: when.toISOString(), title: fullTime(at) }, text(when));
}

/** A time of day with milliseconds, from a number or an ISO text. */
export function time(at) {
  return timed(at, (when) => fullTime(when).slice(Date.now() - when.getTime() > 86400000 ? 0 : 11));
}

/** A day and a time of day. */
export function dated(at) {
  return timed(at, (when) => `${when.getDate()} ${MONTHS[when.getMonth()]} ${clock(when)}`);
}

/** How long ago: `now`, `12 s`, `4 min`, `3 h`, `yesterday`, then the date. It goes on by itself. */
export function age(at) {
  const element = timed(at, (when) => ago(when.getTime()));
  element.dataset.age = at;
  return element;
}

export function ago(at) {
  const seconds = Math.max(0, (Date.now() - at) / 1000);
  if (seconds < 5) return "now";
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  if (seconds < 172800) return "yesterday";
  const when = new Date(at);
  return `${when.getDate()} ${MONTHS[when.getMonth()]}`;
}

setInterval(() => {
  for (const it of document.querySelectorAll("[data-age]")) {
    const text = ago(Number(it.dataset.age));
    if (it.textContent !== text) it.textContent = text;
  }
}, 1000);

/** A duration in milliseconds: `980 ms`, `2.9 s`, `14.2 s`, `2 min 8 s`. */
export function took(ms) {
  if (ms === undefined || ms === null) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60000)} min ${Math.floor((ms % 60000) / 1000)} s`;
}

/** A number in groups of three, parted by a narrow space. */
export function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** `bytes`, `12 KB`, `1.5 MB`. */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1000000 ? `${Math.round(bytes / 1000)} KB` : `${(bytes / 1000000).toFixed(1)} MB`;
}

/** A button that runs slow work once at a time and shows its error beside it. */
export function action(text, work, properties = {}) {
  const error = el("span", { class: "error", role: "alert" });
  const press = button(text, async () => {
    press.disabled = true;
    error.textContent = "";
    try {
      await work();
    } catch (why) {
      error.textContent = plain(why.message);
    } finally {
      press.disabled = false;
    }
  }, properties);
  return el("span", { class: "row" }, press, error);
}

/** What is shown where nothing is: what is missing, what to do, and at most two buttons. */
export function empty(missing, todo, ...buttons) {
  return el("div", { class: "empty" }, el("strong", {}, missing), el("p", {}, todo), buttons.length > 0 && el("div", { class: "row" }, buttons));
}

/** A button that opens a menu: entries are a text and what it does. */
export function menu(face, entries, properties = {}) {
  const place = el("span", { class: "menu-of" });
  const list = el("div", { class: `menu ${properties.up ? "up" : ""}`, role: "menu", hidden: true, on: { keydown: move } });
  const open = el("button", { type: "button", "aria-haspopup": "menu", "aria-expanded": "false", class: properties.class, "aria-label": properties.label, title: properties.label, on: { click: () => show(list.hidden) } }, face);
  function show(shown) {
    if (shown) replace(list, entries().map(([text, click, kind]) => button(text, () => { show(false); open.focus(); click(); }, { role: "menuitem", class: kind })));
    list.hidden = !shown;
    open.setAttribute("aria-expanded", String(shown));
    if (shown) list.querySelector("button")?.focus();
  }
  function move(event) {
    const all = [...list.querySelectorAll("button")];
    const at = all.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      all.at(to % all.length)?.focus();
    } else if (event.key === "Escape") {
      event.stopPropagation();
      show(false);
      open.focus();
    }
  }
  place.addEventListener("focusout", (event) => { if (!place.contains(event.relatedTarget)) show(false); });
  put(place, open, list);
  return place;
}

/** The frame of a view: its header, and what it scrolls. */
export function view({ title, note, tools, actions, under, body, full }) {
  return [
    el("header", { class: "head" }, el("h1", { tabindex: "-1", class: "cut" }, title), note, el("span", { class: "grow" }), actions),
    tools && el("div", { class: "tools" }, tools),
    el("div", { class: "scroll" }, full ? body : el("div", { class: "body" }, body)),
    under && el("div", { class: "under" }, under),
  ];
}
