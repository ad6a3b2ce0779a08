// Shows messages, artifacts and their parts. A picture is shown from its own bytes; any other
// file is a download.

import { stored } from "./api.js";
import {
  button, copied, div, el, facts, iconButton, json, p, plain, put, replace, said, size, span,
} from "./dom.js";
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
  el("a", { href: address, download: fileName(name) }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

/** A name that names no folder. */
function fileName(name) {
  const last = String(name ?? "").split(/[\\/]/).pop() ?? "";
  return last.replace(/[^\w.-]+/g, "_").replace(/^\.+/, "") || "file";
}

const isBase64 = (text) => /^[\w+/-]*={0,2}$/.test(text);

const bytes = (base64) => Uint8Array.fromBase64(base64.replaceAll("-", "+").replaceAll("_", "/"));

/** A text as paragraphs of Markdown, or as it is. A long one is cut, with a button for all. */
export function prose(typed, isMarkdown = true, most = SHOWN) {
  const text = typed.replaceAll("\r\n", "\n");
  const place = div("prose");
  const fill = (shown) => {
    const nodes = isMarkdown && shown.length <= most ? markdown(shown) : said(shown);
    const all = () => fill(text);
    const isCut = shown.length < text.length;
    replace(place, nodes, isCut && button(`Show all ${size(text.length)}`, all, { class: "small" }));
  };
  fill(text.slice(0, most));
  return place;
}

/** The card of a file: its name, what it is, and what one can do with it. */
export function card(name, about, deed) {
  return div("file", span("thumb", icon("file")),
    span("grow", el("bdi", { class: "name cut" }, name), span("hint cut", about)), deed);
}

const download = (name, content) => iconButton("save", `Download ${plain(name)}`, () => save(name, content()));

/** A picture in a box that has its size before it is read, so that nothing moves. */
function picture(name, type, content, deed) {
  const image = document.createElement("img");
  const about = span("faint");
  image.alt = plain(name);
  const frame = div("frame", image);
  // A PNG says its height in its first bytes.
  const high = type === "image/png" && content.length > 24 ? new DataView(content.buffer).getUint32(20) + 48 : 220;
  frame.style.setProperty("--high", `${Math.min(300, Math.max(112, high))}px`);
  const caption = el("figcaption", {}, el("bdi", { class: "cut" }, name), about, span("grow"), deed);
  const figure = el("figure", { class: "shot" }, frame, caption);
  const fill = (all) => {
    const address = URL.createObjectURL(new Blob([all], { type }));
    image.addEventListener("load", () => URL.revokeObjectURL(address));
    image.addEventListener("error", () => image.replaceWith(span("faint", "This is no picture.")));
    image.src = address;
    about.textContent = size(all.length);
  };
  Promise.resolve(content)
    .then(fill, (why) => image.replaceWith(span("faint", `It is not shown: ${plain(why.message)}`)));
  return figure;
}

const isPlain = (type) => !type || /^text\/(plain|markdown)/.test(type);

/** One part of a message or an artifact. `isOwn` is a message of the user. */
function part(it, name = "file", isOwn = false) {
  const { text, raw, url, mediaType } = it;
  const file = it.filename || name;
  if (typeof text === "string") {
    const isFile = it.filename || !isPlain(mediaType);
    const bubble = div("bubble", prose(text, !isOwn && !isFile));
    const about = `${size(text.length)}, ${mediaType ?? "text"}`;
    return isFile ? [bubble, card(file, about, download(file, () => text))] : bubble;
  }
  if (typeof raw === "string") {
    if (!isBase64(raw)) return card(file, "Its bytes are no base64.");
    const deed = download(file, () => bytes(raw));
    if (PICTURES.includes(mediaType)) return picture(file, mediaType, bytes(raw), deed);
    const length = Math.floor((raw.length * 3) / 4) - (/=*$/.exec(raw)[0].length);
    return card(file, [size(length), mediaType].filter(Boolean).join(", "), deed);
  }
  if (typeof url === "string") {
    const isNear = /^http:\/\/(127\.0\.0\.1|localhost|\[::1\]):\d+\//.test(url);
    if (!isNear || !PICTURES.includes(mediaType)) return link(url, file);
    return picture(file, mediaType, stored(url), downloadOf(url, file));
  }
  return div("bubble", json("data" in it ? it.data : it));
}

/** A link to a file elsewhere. Only the web has links; anything else stays text. */
function link(url, name) {
  if (!/^https?:\/\//i.test(url)) return card(name, url.startsWith(UPLOADED) ? "uploaded" : url);
  return card(name, URL.parse(url)?.host ?? url, downloadOf(url, name));
}

const downloadOf = (url, name) => el("a", {
  class: "button icon plain", href: url.replace(/^https?/i, (it) => it.toLowerCase()), download: fileName(name),
  target: "_blank", rel: "noopener noreferrer", "aria-label": `Download ${plain(name)}`, title: "Download",
}, icon("save"));

/** The parts of a message. One that cannot be shown is its JSON, and does not hide the others. */
export function parts(list, name, isOwn) {
  return (list ?? []).map((it) => {
    try {
      return part(it, name, isOwn);
    } catch {
      return div("bubble", json(it));
    }
  });
}

/** The texts of a message in one string. */
export function words(message) {
  const word = ({ text, data, filename = "file" }) => text ?? (data === undefined ? filename : JSON.stringify(data));
  return (message?.parts ?? []).map(word).join("\n");
}

/** The text of an artifact that has nothing but text. */
export function textOf(it) {
  const isText = (own) => typeof own.text === "string" && !own.filename && isPlain(own.mediaType);
  const list = it.parts ?? [];
  return list.length && list.every(isText) ? list.map((own) => own.text).join("") : null;
}

/** An artifact with all its parts, and what one can do with it. */
export function artifact(it, refine) {
  const name = it.name || it.artifactId;
  const text = textOf(it);
  const shown = text === null ? parts(it.parts, name) : div("bubble", prose(text));
  const hint = it.description && p("hint", it.description);
  const element = el("div", { class: "result", role: "group", "aria-label": `Artifact ${plain(name)}` }, hint, shown);
  const deed = (mark, word, act, label) =>
    button([icon(mark), word], act, { class: "plain small", "aria-label": label && `${word} ${plain(name)}` });
  const refines = deed("refine", "Refine", refine, true);
  const caption = element.querySelector(".shot figcaption");
  if (caption) {
    caption.lastChild.before(refines);
    return element;
  }
  const saved = /\.\w+$/.test(name) ? name : `${name}.txt`;
  put(element, div("deeds", el("bdi", { class: "cut" }, name), text !== null && [
    deed("copy", "Copy", (event) => copied(event.currentTarget, text, "The text")),
    deed("save", "Download", () => save(saved, text), true),
  ], refines));
  return element;
}

/** The cause in a failed status. */
export function cause(message) {
  const { "a2a-lambda/errorCode": code, "a2a-lambda/errorDetails": details } = message?.metadata ?? {};
  const shown = details && Object.keys(details).length ? JSON.stringify(details) : "";
  return code ? facts([["Error", el("code", {}, code)], ["Details", shown]]) : null;
}
