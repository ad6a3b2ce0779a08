// Calls the agent: its A2A paths as any client does, and the local paths with the token.

const TOKEN = "a2a-local-token";
const CALLER = "a2a-local-caller";

/** Takes the token out of the address, so that no copied link has it. */
export function takeToken() {
  const found = /^#token=([0-9a-f]{64})$/.exec(location.hash);
  if (!found) return false;
  sessionStorage.setItem(TOKEN, found[1]);
  history.replaceState(null, "", "#/chat");
  return true;
}

export const hasToken = () => Boolean(sessionStorage.getItem(TOKEN));

/** How long a page without the token waits for another page, in milliseconds. */
const PATIENCE = 1500;

/**
 * A new tab has no token, so it asks the other pages. The browser gives these messages to pages of
 * this origin only, and the program gives no page of it to another site. A program that takes the
 * port over gets the token with each call of an open page anyway.
 */
const pages = new BroadcastChannel(TOKEN);
pages.addEventListener("message", ({ data }) => {
  if (data === "ask" && hasToken()) pages.postMessage({ token: sessionStorage.getItem(TOKEN), caller: caller() });
});

/** Takes the token, and who calls, from another page that is open. */
export async function askForToken() {
  if (hasToken()) return;
  const answer = await new Promise((done) => {
    pages.addEventListener("message", ({ data }) => data.token && done(data));
    setTimeout(done, PATIENCE);
    pages.postMessage("ask");
  });
  if (!answer || hasToken()) return;
  sessionStorage.setItem(TOKEN, answer.token);
  callAs(answer.caller);
}

/** Who calls: `tenant:subject` in development, else a key. */
export const caller = () => sessionStorage.getItem(CALLER) ?? "";

export const callAs = (text) => sessionStorage.setItem(CALLER, text.trim());

export let auth = "dev";
export const useAuth = (found) => { auth = found; };

export function authorization() {
  const text = caller();
  if (!text) return {};
  return { Authorization: `Bearer ${auth === "dev" ? `dev:${text.includes(":") ? text : `${text}:${text}`}` : text}` };
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
  // A refusal may have no body, or one that is no JSON.
  const body = await Promise.try(exact, text).catch(() => null);
  if (response.ok) return body;
  throw failure(response.status, body, text);
}

/** The error in a body: of REST, of JSON-RPC or of the page. */
export function failure(status, body, text = "") {
  const error = body?.error ?? body;
  const message = typeof error === "string" ? error : error?.message;
  const reason = (error?.details ?? error?.data)?.find?.((it) => it?.reason)?.reason;
  return Object.assign(new Error(message || text || `HTTP ${status}`), { status, reason });
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

/** Asks a local path of the page. */
function ask(path, method, { body, more } = {}) {
  const token = sessionStorage.getItem(TOKEN) ?? "";
  const headers = { "X-A2A-Local-Token": token, ...authorization(), ...more };
  return fetch(`/a2a-local/page/${path}`, { method, headers, body, cache: "no-store" });
}

/** The same, and reads the JSON of the response. */
export const local = async (path, method = "GET", options) => read(await ask(path, method, options));

/** The bytes of a file in the store of the agent. The program sees that the URL is one of it. */
export async function stored(url) {
  const response = await ask("file", "GET", { more: { "X-A2A-Local-Upload": url } });
  if (!response.ok) await read(response);
  return new Uint8Array(await response.arrayBuffer());
}

/** What only the program knows of a task. */
export const inside = (id, verb = "") => local(taskPath(id, verb).slice(1));

export const taskPath = (id, verb = "") => `/tasks/${encodeURIComponent(id)}${verb}`;

/** `TASK_STATE_INPUT_REQUIRED` as `input-required`. */
export const stateOf = (status) =>
  String(status?.state ?? "").replace(/^TASK_STATE_/, "").toLowerCase().replaceAll("_", "-");

export const ENDED = ["completed", "failed", "canceled", "rejected"];
export const ASKS = ["input-required", "auth-required"];

/** A message of the user with an id of its own. */
export const message = (parts, more = {}) =>
  ({ messageId: crypto.randomUUID(), role: "ROLE_USER", parts, ...more });

/** A text in hexadecimal, so that any script can be in a query. */
export const hex = (text) => new TextEncoder().encode(text).toHex();
