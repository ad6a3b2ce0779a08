// Shows messages, artifacts and their parts. A file is always a download.

import { el, facts, json, said } from "./dom.js";

/** How the URL of a file begins that was sent before its message. */
const UPLOADED = "urn:a2a-lambda:upload:";

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

function download(name, size, content) {
  return el("p", {}, el("button", { type: "button", on: { click: () => save(name, content()) } }, `Download ${name}`), el("span", { class: "quiet" }, size ? ` ${size} bytes` : ""));
}

/** One part of a message or an artifact. */
export function part(it, name = "file") {
  const file = it.filename || name;
  if (typeof it.text === "string") {
    const isFile = it.filename || (it.mediaType && it.mediaType !== "text/plain");
    return el("div", {}, said(it.text), isFile && download(file, it.text.length, () => it.text));
  }
  if (typeof it.raw === "string") {
    const size = Math.floor((it.raw.length * 3) / 4);
    return download(file, size, () => bytes(it.raw));
  }
  if (typeof it.url === "string") return link(it.url, file);
  if ("data" in it) return el("details", { open: true }, el("summary", {}, "Data"), json(it.data));
  return json(it);
}

/** A link to a file elsewhere. Only the web has links; anything else stays text. */
function link(url, name) {
  if (url.startsWith(UPLOADED)) return el("p", {}, `Uploaded ${name}`);
  if (!/^https?:\/\//i.test(url)) return el("p", {}, `${name}: `, el("code", { dir: "ltr" }, url));
  const properties = { href: url.replace(/^https?/i, (it) => it.toLowerCase()), download: fileName(name), target: "_blank", rel: "noopener noreferrer" };
  return el("p", {}, el("a", properties, `Download ${name}`), " ", el("span", { class: "quiet", dir: "ltr" }, new URL(url, location.href).host));
}

export function parts(list, name) {
  return (list ?? []).map((it) => part(it, name));
}

/** The texts of a message in one string. */
export function words(message) {
  return (message?.parts ?? []).map((it) => it.text ?? (it.data === undefined ? it.filename ?? "file" : JSON.stringify(it.data))).join("\n");
}

/** An artifact with all its parts. */
export function artifact(it) {
  const name = it.name || it.artifactId;
  return el("section", { "aria-label": `Artifact ${name}` }, el("h3", {}, name), it.description && said(it.description), parts(it.parts, name));
}

/** The cause in a failed status. */
export function cause(message) {
  const { "a2a-lambda/errorCode": code, "a2a-lambda/errorDetails": details } = message?.metadata ?? {};
  const shown = details && Object.keys(details).length ? JSON.stringify(details) : "";
  return code ? facts([["Error", code], ["Details", shown]]) : null;
}
