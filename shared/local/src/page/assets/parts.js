// Shows messages, artifacts and their parts. A picture is shown from its own bytes; any other
// file is a download.

import { button, copied, el, facts, iconButton, json, plain, put, replace, said, size } from "./dom.js";
import { icon } from "./icons.js";
import { markdown } from "./markdown.js";

/** How the URL of a file begins that was sent before its message. */
const UPLOADED = "urn:a2a-lambda:upload:";
/** Characters of a text that are shown at once. */
const SHOWN = 20000;
/** The pictures that a browser draws without running anything. */
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"];

/** Saves text or bytes as a file. No browser runs it: its type is that of plain bytes. */
function save(name, content) {
  const blob = new Blob([content], { type: "application/octet-stream" });
  const address = URL.createObjectURL(blob);
  const link = el("a", { href: address, download: fileName(name) });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

/** A name that names no folder. */
export function fileName(name) {
  const last = String(name ?? "").split(/[\\/]/).pop() ?? "";
  return last.replace(/[^\w.-]+/g, "_").replace(/^\.+/, "") || "file";
}

function bytes(base64) {
  const text = atob(base64);
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}

/** A text as paragraphs of Markdown, or as it is. A long one is cut, with a button for all. */
export function prose(text, isMarkdown = true) {
  const place = el("div", { class: "prose" });
  const fill = (shown) => {
    const nodes = isMarkdown && shown.length <= SHOWN ? markdown(shown) : said(shown);
    const all = () => fill(text);
    replace(place, nodes, shown.length < text.length && button(`Show all ${size(text.length)}`, all, { class: "small" }));
  };
  fill(text.length > SHOWN ? text.slice(0, SHOWN) : text);
  return place;
}

/** The card of a file: its kind, its name and how to get it. */
function card(name, about, get) {
  return el("div", { class: "file" }, el("span", { class: "thumb" }, icon("file")),
    el("span", { class: "grow" }, el("bdi", { class: "name cut" }, name), el("span", { class: "about cut" }, about)), get);
}

function download(name, content, text = `Download ${plain(name)}`) {
  return iconButton("save", text, () => save(name, content()));
}

/** A picture in a box that has its size before it is read, so that nothing moves. */
function picture(name, type, raw) {
  const content = bytes(raw);
  const address = URL.createObjectURL(new Blob([content], { type }));
  const image = document.createElement("img");
  image.alt = plain(name);
  image.addEventListener("load", () => URL.revokeObjectURL(address));
  image.addEventListener("error", () => image.replaceWith(el("span", { class: "faint" }, "This is no picture.")));
  image.src = address;
  const frame = el("div", { class: "frame" }, image);
  // A PNG says its height in its first bytes.
  const high = type === "image/png" && content.length > 24 ? new DataView(content.buffer).getUint32(20) + 48 : 220;
  frame.style.setProperty("--high", `${Math.min(300, Math.max(112, high))}px`);
  const caption = el("figcaption", {}, el("bdi", { class: "cut" }, name), el("span", { class: "faint" }, size(content.length)), el("span", { class: "grow" }), download(name, () => content));
  return el("figure", { class: "shot" }, frame, caption);
}

/** One part of a message or an artifact. `isOwn` is a message of the user. */
export function part(it, name = "file", isOwn = false) {
  const file = it.filename || name;
  if (typeof it.text === "string") {
    const isFile = it.filename || (it.mediaType && !/^text\/(plain|markdown)/.test(it.mediaType));
    const text = el("div", { class: "bubble" }, prose(it.text, !isOwn && !isFile));
    return isFile ? [text, card(file, `${size(it.text.length)}, ${it.mediaType ?? "text"}`, download(file, () => it.text))] : text;
  }
  if (typeof it.raw === "string") {
    const length = Math.floor((it.raw.length * 3) / 4) - (/=*$/.exec(it.raw)[0].length);
    if (PICTURES.includes(it.mediaType)) return picture(file, it.mediaType, it.raw);
    return card(file, [size(length), it.mediaType].filter(Boolean).join(", "), download(file, () => bytes(it.raw)));
  }
  if (typeof it.url === "string") return link(it.url, file);
  if ("data" in it) return el("div", { class: "bubble data" }, json(it.data));
  return el("div", { class: "bubble data" }, json(it));
}

/** A link to a file elsewhere. Only the web has links; anything else stays text. */
function link(url, name) {
  if (url.startsWith(UPLOADED)) return card(name, "uploaded", null);
  if (!/^https?:\/\//i.test(url)) return card(name, url, null);
  const properties = { class: "button icon plain", href: url.replace(/^https?/i, (it) => it.toLowerCase()), download: fileName(name), target: "_blank", rel: "noopener noreferrer", "aria-label": `Download ${plain(name)}`, title: "Download" };
  return card(name, new URL(url, location.href).host, el("a", properties, icon("save")));
}

export function parts(list, name, isOwn) {
  return (list ?? []).map((it) => part(it, name, isOwn));
}

/** The texts of a message in one string. */
export function words(message) {
  return (message?.parts ?? []).map((it) => it.text ?? (it.data === undefined ? it.filename ?? "file" : JSON.stringify(it.data))).join("\n");
}

/** The text of an artifact that has nothing but text. */
export function textOf(it) {
  const isText = (part) => typeof part.text === "string" && !part.filename && (!part.mediaType || /^text\/(plain|markdown)/.test(part.mediaType));
  const list = it.parts ?? [];
  return list.length && list.every(isText) ? list.map((part) => part.text).join("") : null;
}

/** An artifact with all its parts, and what one can do with it. */
export function artifact(it, refine) {
  const name = it.name || it.artifactId;
  const text = textOf(it);
  const shown = text === null ? parts(it.parts, name) : el("div", { class: "bubble" }, prose(text));
  const element = el("section", { class: "result", "aria-label": `Artifact ${plain(name)}` }, it.description && el("p", { class: "hint" }, it.description), shown);
  const refines = refine && button([icon("refine"), "Refine"], refine, { class: "plain small", "aria-label": `Refine ${plain(name)}` });
  const caption = element.querySelector(".shot figcaption");
  if (caption && refines) caption.lastChild.before(refines);
  const copies = text !== null && button([icon("copy"), "Copy"], (event) => copied(event.currentTarget, text, "The text"), { class: "plain small" });
  const saves = text !== null && button([icon("save"), "Download"], () => save(/\.\w+$/.test(name) ? name : `${name}.txt`, text), { class: "plain small", "aria-label": `Download ${plain(name)}` });
  if (!caption) put(element, el("div", { class: "deeds" }, el("bdi", { class: "cut" }, name), copies, saves, refines));
  return element;
}

/** The cause in a failed status. */
export function cause(message) {
  const { "a2a-lambda/errorCode": code, "a2a-lambda/errorDetails": details } = message?.metadata ?? {};
  const shown = details && Object.keys(details).length ? JSON.stringify(details) : "";
  return code ? facts([["Error", el("code", {}, code)], ["Details", shown]]) : null;
}
