// Builds the elements of the page. Texts become text nodes, so no text can be markup.

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

/** A text of somebody else, in a direction of its own. */
export function said(text) {
  return el("p", { class: "said", dir: "auto" }, text);
}

/** A value as JSON. */
export function json(value) {
  return el("pre", { tabindex: "0", dir: "ltr" }, JSON.stringify(value, null, 2) ?? "undefined");
}

/** A label, its control and its hint. */
export function field(text, control, hint) {
  const id = control.id || fresh("field");
  control.id = id;
  const note = hint ? el("p", { class: "hint", id: `${id}-hint` }, hint) : null;
  if (note) control.setAttribute("aria-describedby", note.id);
  return el("div", { class: "field" }, el("label", { for: id }, text), control, note);
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

export function badge(state) {
  return el("span", { class: `state ${/^[a-z-]+$/.test(state) ? state : ""}` }, state);
}

/** Says a text to screen readers. */
export function announce(text) {
  const place = document.getElementById("announcer");
  if (place) place.textContent = plain(text);
}

/** Shows an error above the view; no text removes it. */
export function notice(text) {
  const place = document.getElementById("notice");
  place.textContent = plain(text ?? "");
  place.hidden = !text;
}

/** A time of day with milliseconds, from a number or an ISO text. */
export function time(at) {
  const when = new Date(at);
  if (Number.isNaN(when.getTime())) return el("time", {}, at);
  const two = (number, digits = 2) => String(number).padStart(digits, "0");
  const day = `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())}`;
  const clock = `${two(when.getHours())}:${two(when.getMinutes())}:${two(when.getSeconds())}.${two(when.getMilliseconds(), 3)}`;
  const old = Date.now() - when.getTime() > 86400000;
  return el("time", { datetime: when.toISOString(), title: `${day} ${clock}` }, old ? `${day} ${clock}` : clock);
}

/** A button that runs slow work once at a time and shows its error beside it. */
export function action(text, work, properties = {}) {
  const said = el("span", { class: "error", role: "alert" });
  const press = button(text, async () => {
    press.disabled = true;
    said.textContent = "";
    try {
      await work();
    } catch (error) {
      said.textContent = plain(error.message);
    } finally {
      press.disabled = false;
    }
  }, properties);
  return el("span", {}, press, said);
}
