// The files of a message: chosen or dropped, then sent inside the message or uploaded first.

import { call, local } from "./api.js";
import { announce, counted, el, errorPlace, iconButton, plain, replace, showError, size } from "./dom.js";
import { card } from "./parts.js";

/** The sizes that this agent takes, in bytes. */
let sizes = null;
const limits = async () => (sizes ??= await local("facts"));

/** Whether media types and ranges of them take this one. */
export const isIn = (modes, type) => [type, "*/*", type.replace(/\/.*/, "/*")].some((it) => modes.includes(it));
const BYTES = "application/octet-stream";

/** The most that one file may have, in words; empty without the token. */
export const mostOfAFile = async () => limits().then(({ maxUpload }) => `to ${size(maxUpload)}`, () => "");

/**
 * A list of files with a button that adds to it. `takes` are media types, or empty for all.
 * `drop` has the listeners of the place on which files can be dropped. `parts` returns the
 * parts of a message, or `null` after it has shown why a file cannot be sent.
 */
export function fileBox(takes = []) {
  const chosen = [];
  const list = el("ul", { class: "files", "aria-label": "Attached files", hidden: true });
  const error = errorPlace();
  const input = el("input", {
    type: "file", multiple: true, accept: takes.join(","), hidden: true, "aria-label": "Files", on: { change: take },
  });
  const pick = iconButton("clip", "Attach files", () => input.click());
  const waiting = el("p", { class: "hint", role: "status" });
  let busy = false;

  function take() {
    const files = [...input.files];
    input.value = "";
    return add(files);
  }

  async function add(files) {
    showError(error);
    const refused = [];
    try {
      const { maxUpload } = await limits();
      for (const file of files) {
        const used = chosen.reduce((sum, it) => sum + it.size, 0);
        const kind = file.type || "of no known type";
        if (takes.length && !isIn(takes, file.type || BYTES)) {
          refused.push(`${plain(file.name)} is ${kind}, and this takes ${takes.join(", ")}.`);
        } else if (used + file.size > maxUpload) {
          refused.push(tooLarge(file, maxUpload, used));
        } else {
          chosen.push(file);
          show();
          announce(`${file.name} is attached`);
        }
      }
    } catch (failed) {
      refused.push(`No file is attached: ${failed.message}.`);
    }
    showError(error, refused.join(" "));
  }

  function show() {
    replace(list, chosen.map((file) => {
      const remove = iconButton("close", `Remove ${plain(file.name)}`, () => {
        chosen.splice(chosen.indexOf(file), 1);
        show();
        pick.focus();
      }, { class: "icon plain small" });
      return el("li", {}, card(file.name, `${counted(file.size, "byte")}, ${file.type || "no type"}`, remove));
    }));
    list.hidden = !chosen.length;
  }

  function clear() {
    chosen.length = 0;
    show();
  }

  async function parts() {
    if (busy) return null;
    showError(error);
    if (!chosen.length) return [];
    busy = true;
    waiting.textContent = "The files are sent…";
    try {
      return await partsOf(chosen);
    } catch (failed) {
      showError(error, failed.message);
      return null;
    } finally {
      busy = false;
      waiting.textContent = "";
    }
  }

  const dragover = (event) => {
    if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
  };
  const drop = (event) => {
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    event.stopPropagation();
    add([...event.dataTransfer.files]);
  };
  const element = el("div", {}, input, list, waiting, error);
  return { element, button: pick, choose: () => input.click(), drop: { dragover, drop }, parts, clear };
}

function tooLarge(file, most, used) {
  const others = used ? ` together with the other files (${counted(used, "byte")})` : "";
  const has = `${plain(file.name)} is too large: it has ${counted(file.size, "byte")}${others}`;
  return `${has}, and a message takes at most ${counted(most, "byte")}.`;
}

/** Small files go inside the message. The others are uploaded before it. */
async function partsOf(files) {
  const { maxBody } = await limits();
  // Base64 makes 4 bytes of 3, and the message needs room too.
  let room = Math.floor(maxBody / 2);
  const made = [];
  for (const file of files) {
    const about = { filename: file.name, mediaType: file.type || BYTES };
    const bytes = await file.arrayBuffer().catch(() => {
      throw new Error(`${file.name} cannot be read. A folder cannot be attached.`);
    });
    if (bytes.byteLength <= room) {
      room -= bytes.byteLength;
      made.push({ raw: new Uint8Array(bytes).toBase64(), ...about });
    } else {
      made.push(await upload(bytes, about));
    }
  }
  return made;
}

/** Uploads a file and returns the part that names it. */
async function upload(bytes, about) {
  const sha256 = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
  const order = await call("/a2a-lambda/uploads", { body: { size: bytes.byteLength, sha256, ...about } });
  // The browser sets these two itself.
  const { host, "content-length": length, ...signed } = order.headers;
  await local("upload", "PUT", { body: bytes, more: { ...signed, "X-A2A-Local-Upload": order.url } });
  return order.part;
}
