// Builds the elements of the page. Texts become text nodes, so no text can be markup.

import { icon } from "./icons.js";

/** The place of the view. */
export const main = document.getElementById("main");

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

/** The elements that are made most, by their classes. */
export const div = (classes, ...children) => el("div", { class: classes }, ...children);
export const span = (classes, ...children) => el("span", { class: classes }, ...children);
export const p = (classes, ...children) => el("p", { class: classes }, ...children);

/** Adds children; texts become text nodes. */
export function put(parent, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    parent.append(child instanceof Node ? child : document.createTextNode(plain(child)));
  }
}

export function replace(parent, ...children) {
  parent.replaceChildren();
  put(parent, ...children);
}

export const button = (text, click, properties = {}) =>
  el("button", { type: "button", on: { click }, ...properties }, text);

/** A select of pairs: a value and its text. */
export const choice = (pairs, properties) =>
  el("select", properties, pairs.map(([value, text]) => el("option", { value }, text)));

/** A field for a search. `changed` gets its text; Escape clears it. */
export function search(label, placeholder, value, changed) {
  const input = el("input", { type: "search", "aria-label": label, placeholder, autocomplete: "off", value });
  const clear = () => {
    input.value = "";
    changed("");
    input.focus();
  };
  input.addEventListener("input", () => changed(input.value));
  input.addEventListener("keydown", (event) => { if (event.key === "Escape") clear(); });
  return { element: span("search", icon("search"), input, el("kbd", {}, "/")), clear };
}

/** A dialog that is gone when it is closed. */
export function dialog(title, ...content) {
  const id = fresh("dialog");
  const box = el("dialog", { "aria-labelledby": id, on: { close: () => box.remove() } },
    el("h2", { id }, title), content);
  document.body.append(box);
  box.showModal();
  return box;
}

/** The address of a thing in a view. */
export const hashOf = (view, id) => `#/${view}/${encodeURIComponent(id)}`;

const OFF = "a2a-local-letters-off";
/** Whether single letters act. */
export const hasLetters = () => !localStorage.getItem(OFF);
export const useLetters = (is) => (is ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1"));

/** The key of an event; empty with a modifier, and for a letter while letters are off. */
export function keyOf(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return "";
  return event.key.length === 1 && !hasLetters() ? "" : event.key;
}

/** Moves the focus among `items` by the keys of a list, or folds one. Says whether the key is one of them. */
export function rove(event, items, [after, before] = ["ArrowDown", "ArrowUp"]) {
  const at = items.indexOf(event.target);
  const folds = { ArrowLeft: "true", ArrowRight: "false" }[keyOf(event)];
  if (at >= 0 && folds && event.target.matches(`button[aria-expanded="${folds}"]`)) {
    event.target.click();
    return true;
  }
  const last = items.length - 1;
  const to = { [after]: at + 1, j: at + 1, [before]: at - 1, k: at - 1, Home: 0, End: last }[keyOf(event)];
  if (at < 0 || to === undefined) return false;
  event.preventDefault();
  items[Math.max(0, Math.min(last, to))].focus();
  return true;
}

/** A link to a view that looks like a button. */
export const linkButton = (text, href, kind = "") => el("a", { class: `button ${kind}`, href }, text);

/** A button that shows an icon alone; its name is for screen readers and the pointer. */
export function iconButton(name, text, click, properties = {}) {
  const label = plain(text);
  return button(icon(name), click, { class: "icon plain", "aria-label": label, title: label, ...properties });
}

/** A text of somebody else, in a direction of its own. */
export const said = (text) => el("p", { class: "said", dir: "auto" }, text);

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
  const id = fresh("field");
  control.id = id;
  const note = hint ? el("span", { class: "hint", id: `${id}-hint` }, hint) : null;
  const described = [note?.id, error?.id].filter(Boolean).join(" ");
  if (described) control.setAttribute("aria-describedby", described);
  return div("field", el("span", {}, el("label", { for: id }, text), note && [" ", note]), control, error);
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
export const badge = (state, text = stateWord(state)) =>
  span(`state ${isState(state) ? state : ""}`, icon(state), el("span", {}, text));

/** The glyph alone, with the word for screen readers. */
export function glyph(state) {
  const title = stateWord(state);
  return el("span", { class: `glyph ${isState(state) ? state : ""}`, title }, icon(state), span("unseen", title));
}

/** Eight characters of an id, with a button that copies all of it. */
export function shortId(id) {
  const bare = String(id ?? "");
  const shown = /^(task|ctx|artifact)-/.test(bare) ? bare.replace(/^\w+-/, "").slice(0, 8) : bare;
  const copy = iconButton("copy", `Copy the id ${id}`, (event) => {
    event.stopPropagation();
    copied(copy, id, "The id");
  }, { class: "", title: "Copy the id" });
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
  const check = icon("check");
  // The check of an earlier press goes away by itself.
  if ("copied" in mark.dataset) return;
  check.dataset.copied = "";
  mark.replaceWith(check);
  setTimeout(() => check.replaceWith(mark), 1200);
}

export function announce(text) {
  document.getElementById("announcer").textContent = plain(text);
}

/** The bars that are open by what they are about, the worst first. */
const bars = { away: null, build: null, serves: null };

/**
 * Opens the bar about a thing over the header of the view: one sentence, then quieter words, then
 * buttons; without a `kind` it closes. One is shown at a time, the worst.
 */
export function bar(about, kind, text, more = "", ...buttons) {
  const mark = { wait: "working", good: "completed", bad: "warn" }[kind];
  const role = kind === "bad" ? "alert" : "status";
  const words = p("grow", el("strong", {}, text), " ", span("quiet", more));
  bars[about] = kind ? el("div", { id: "bar", class: `${about} ${kind}`, role }, icon(mark), words, buttons) : null;
  const [before, worst] = [document.getElementById("bar"), Object.values(bars).find(Boolean)];
  if (before === (worst ?? null)) return;
  const hadFocus = before?.contains(document.activeElement);
  before?.remove();
  // What comes back after a worse one was said once.
  before?.removeAttribute("role");
  if (worst) main.prepend(worst);
  if (hadFocus) main.querySelector("h1")?.focus();
}

/** The button that closes a bar, as Escape does. */
export const closeBar = (about) => button("Close", () => bar(about), { class: "close" });

/** `14:02:11`. */
export const timeOfDay = (when) => when.toTimeString().slice(0, 8);
const clock = (when) => timeOfDay(when).slice(0, 5);
const day = (when) => `${when.getDate()} ${when.toDateString().slice(4, 7)}`;

/** A time as a text, with all of it in its title. */
function timed(at, text) {
  const when = new Date(at);
  if (Number.isNaN(when.getTime())) return el("time", {}, at);
  // Swedish writes a date as ISO does, in local time.
  const title = `${when.toLocaleString("sv")}.${String(when.getMilliseconds()).padStart(3, "0")}`;
  return el("time", { datetime: when.toISOString(), title }, text(when));
}

/** A day and a time of day. */
export const dated = (at) => timed(at, (when) => `${day(when)} ${clock(when)}`);

/** How long ago: `now`, `12 s`, `4 min`, `3 h`, `yesterday`, then the date. It goes on by itself. */
export function age(at) {
  const element = timed(at, (when) => ago(when.getTime()));
  element.dataset.age = at;
  return element;
}

function ago(at) {
  const seconds = Math.max(0, (Date.now() - at) / 1000);
  if (seconds < 5) return "now";
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  if (seconds < 172800) return "yesterday";
  return day(new Date(at));
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
export const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");

/** `1 task`, `2 tasks`, `2 deliveries`. */
export const counted = (count, word) =>
  `${grouped(count)} ${count === 1 ? word : `${word}s`.replace(/ys$/, "ies")}`;

/** `bytes`, `12 KB`, `1.5 MB`. */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1000000 ? `${Math.round(bytes / 1000)} KB` : `${(bytes / 1000000).toFixed(1)} MB`;
}

/** The place of an error, which is read out when it comes. */
export const errorPlace = (properties, ...children) => el("p", { class: "error", role: "alert", ...properties }, children);

/** Shows an error in its place; without a text it takes the error away. */
export const showError = (place, text) => replace(place, text ? [icon("warn"), text] : null);

/** How long work takes before its button shows that it is busy, in milliseconds. */
const SHORT = 150;

/** A button that runs slow work once at a time and shows its error beside it. It keeps the focus. */
export function action(text, work, properties = {}) {
  const error = el("span", { class: "error", role: "alert" });
  const ring = icon("working");
  const press = button(text, async () => {
    if (press.ariaDisabled) return;
    press.ariaDisabled = "true";
    const slow = setTimeout(() => {
      press.ariaBusy = "true";
      press.append(ring);
    }, SHORT);
    showError(error);
    try {
      await work();
    } catch (why) {
      showError(error, why.message);
    } finally {
      clearTimeout(slow);
      ring.remove();
      press.ariaDisabled = press.ariaBusy = null;
    }
  }, properties);
  return span("row", press, error);
}

/** Asks once more before work that nothing takes back. `done` may move the focus. */
export function askAgain(title, text, [yes, no], work, done = () => {}) {
  const act = action(yes, () => work().then(() => box.close()).then(done), { class: "danger" });
  const box = dialog(title, p("quiet", text), div("row", act, button(no, () => box.close())));
}

/** What is shown where nothing is: what is missing, what to do, and at most two buttons. */
export const empty = (missing, todo, ...buttons) =>
  div("empty", el("strong", {}, missing), el("p", {}, todo), buttons.length > 0 && div("row", buttons));

/** Draws anew what somebody may press: at once, or when the pointer is released, which else loses its click. */
export function redraw(place, draw) {
  if (place.matches(":active")) addEventListener("pointerup", () => setTimeout(draw), { once: true });
  else draw();
}

/** A button that opens a menu: entries are a text and what it does. */
export function menu(face, entries, { label, ...properties } = {}) {
  const id = fresh("menu");
  const on = { keydown, focusout, toggle, beforetoggle: () => replace(list, entries().map(entry)) };
  const list = el("div", { class: "menu", role: "menu", id, popover: true, on });
  const open = el("button", { type: "button", popovertarget: id, "aria-haspopup": "menu", "aria-expanded": "false",
    "aria-label": label, title: label, ...properties }, face);
  // An entry that cannot be used says why.
  const entry = ([text, click, kind, why]) => button([text, why && span("hint", why)], () => {
    if (why) return;
    list.hidePopover();
    click();
  }, { role: "menuitem", class: kind, "aria-disabled": why && "true" });
  function toggle({ newState }) {
    open.ariaExpanded = newState === "open";
    if (newState === "open") list.firstElementChild?.focus();
  }
  function focusout({ relatedTarget: next }) {
    if (next && !list.contains(next)) list.hidePopover();
  }
  /** The browser closes it at Escape, which is for nothing else then. */
  function keydown(event) {
    if (!rove(event, [...list.children]) && event.key === "Escape") event.stopPropagation();
  }
  return span("menu-of", open, list);
}

/** The frame of a view: its header, and what it scrolls. */
export function view({ title, note, tools, actions, under, body, full }) {
  return [
    el("header", { class: "head" }, el("h1", { tabindex: "-1", class: "cut" }, title), note, span("grow"), actions),
    tools && div("tools", tools),
    div("scroll", full ? body : div("body", body)),
    under && div("under", under),
  ];
}
