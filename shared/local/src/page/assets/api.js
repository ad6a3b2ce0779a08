// Calls the agent: its A2A paths as any client does, and the local paths with the token.

const TOKEN = "a2a-local-token";
const CALLER = "a2a-local-caller";

/** A refused call: the text of the agent, the HTTP status and its reason. */
class CallError extends Error {
  constructor(message, status, reason) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

/** Takes the token out of the address, so that no copied link has it. */
export function takeToken() {
  const found = /^#token=([0-9a-f]{64})$/.exec(location.hash);
  if (!found) return false;
  sessionStorage.setItem(TOKEN, found[1]);
  history.replaceState(null, "", "#/chat");
  return true;
}

export function hasToken() {
  return Boolean(sessionStorage.getItem(TOKEN));
}

/** Who calls: `tenant:subject` in development, else a key. */
export function caller() {
  return sessionStorage.getItem(CALLER) ?? "";
}

export function callAs(text) {
  sessionStorage.setItem(CALLER, text.trim());
}

let mode = "dev";
export function useMode(auth) {
  mode = auth;
}

/** The `Authorization` header of the caller. */
export function authorization() {
  const text = caller();
  if (!text) return {};
  return { Authorization: `Bearer ${mode === "dev" ? `dev:${text.includes(":") ? text : `${text}:${text}`}` : text}` };
}

/**
 * Reads JSON. A number that the browser would round keeps its digits: `JSON.stringify`
 * writes it as it was. Other code of the page does not compute with such a number.
 */
export function exact(text) {
  return JSON.parse(text, (_, value, read) => {
    const source = read?.source;
    const asRead = typeof value !== "number" || source === undefined || Number.isSafeInteger(value) || String(value) === source;
    return asRead || !JSON.rawJSON ? value : JSON.rawJSON(source);
  });
}

/** Whether `exact` would round a number of this JSON, because the browser is too old. */
export function rounds(text) {
  const bare = text.replace(/"(?:[^"\\]|\\.)*"/g, "");
  return !JSON.rawJSON && /\d[\d.]{15}/.test(bare);
}

async function read(response) {
  const text = await response.text();
  let body = null;
  try {
    body = text ? exact(text) : null;
  } catch {
    body = null;
  }
  if (response.ok) return body;
  throw failure(response.status, body, text);
}

/** The error in a body: of REST, of JSON-RPC or of the page. */
export function failure(status, body, text = "") {
  const error = body?.error ?? body;
  const message = typeof error === "string" ? error : error?.message;
  const details = error?.details ?? error?.data;
  const reason = Array.isArray(details) ? details.find((it) => it?.reason)?.reason : undefined;
  return new CallError(message || text || `HTTP ${status}`, status, reason);
}

/** Calls a path of A2A as JSON; a refusal throws. The older generations have no `version`. */
export async function open(path, { body, method = body ? "POST" : "GET", version = "1.0", more, signal } = {}) {
  const sends = body && { "Content-Type": "application/json" };
  const response = await fetch(path, {
    method,
    headers: { ...(version && { "A2A-Version": version }), ...authorization(), ...sends, ...more },
    body: JSON.stringify(body),
    cache: "no-store",
    signal,
  });
  if (!response.ok) await read(response);
  return response;
}

/** The same, and reads the JSON of the response. */
export const call = async (path, options) => read(await open(path, options));

/** Calls a local path of the page. */
export async function local(path, method = "GET", { body, more } = {}) {
  const token = sessionStorage.getItem(TOKEN) ?? "";
  return read(await fetch(`/a2a-local/page/${path}`, {
    method,
    headers: { "X-A2A-Local-Token": token, ...authorization(), ...more },
    body,
    cache: "no-store",
  }));
}

export function taskPath(id, verb = "") {
  return `/tasks/${encodeURIComponent(id)}${verb}`;
}

/** `TASK_STATE_INPUT_REQUIRED` as `input-required`. */
export function stateOf(status) {
  return String(status?.state ?? "").replace(/^TASK_STATE_/, "").toLowerCase().replaceAll("_", "-");
}

export const ENDED = ["completed", "failed", "canceled", "rejected"];
export const ASKS = ["input-required", "auth-required"];

/** A message of the user with an id of its own. */
export function message(parts, more = {}) {
  return { messageId: crypto.randomUUID(), role: "ROLE_USER", parts, ...more };
}

/** A text in hexadecimal, so that any script can be in a query. */
export function hex(text) {
  return [...new TextEncoder().encode(text)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
