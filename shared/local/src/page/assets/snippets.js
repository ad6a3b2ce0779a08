// The same send as `curl`, Python and `a2acli`.

import { authorization } from "./api.js";
import { announce, el, put, replace, button, plain } from "./dom.js";

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** The message of a send, without what the server made. */
export function bare(message) {
  const { taskId, contextId, ...rest } = message;
  const metadata = rest.metadata && Object.keys(rest.metadata).length ? rest.metadata : undefined;
  return { ...rest, metadata, role: "ROLE_USER" };
}

function curl(body) {
  const headers = { "A2A-Version": "1.0", "Content-Type": "application/json", ...authorization() };
  const shown = Object.entries(headers).map(([name, value]) => ` \\\n  -H ${quoted(`${name}: ${value}`)}`);
  return `curl ${location.origin}/message:send${shown.join("")} \\\n  -d ${quoted(JSON.stringify(body))}`;
}

/** JSON as a Python literal: a string that Python reads as JSON. */
function python(body) {
  const headers = { "A2A-Version": "1.0", "Content-Type": "application/json", ...authorization() };
  return [
    "import json, urllib.request",
    "",
    `body = json.loads(${JSON.stringify(JSON.stringify(body))})`,
    "request = urllib.request.Request(",
    `    ${JSON.stringify(`${location.origin}/message:send`)},`,
    "    data=json.dumps(body).encode(),",
    `    headers=${JSON.stringify(headers)},`,
    ")",
    "with urllib.request.urlopen(request) as response:",
    "    print(json.dumps(json.load(response), indent=2))",
    "",
  ].join("\n");
}

/** `a2acli` has no option for metadata, so the agent chooses the skill. */
function a2acli(body) {
  const { parts } = body.message;
  const given = parts.map((it) => {
    if (typeof it.text === "string") return ` --text-part=${quoted(it.text)}`;
    if ("data" in it) return ` --data-part=${quoted(JSON.stringify(it.data))}`;
    return ` --file-part=${quoted(it.url ?? it.filename ?? "FILE")}`;
  });
  const bearer = authorization().Authorization?.replace(/^Bearer /, "");
  return `a2acli --agent-card ${location.origin}${bearer ? ` --bearer ${quoted(bearer)}` : ""} send${given.join("")} --stream`;
}

/** Buttons that copy a send, and the text of the last one. */
export function snippets(message) {
  const body = { message: bare(message) };
  const shown = el("div", {});
  const copy = (name, text) => button(`Copy as ${name}`, async () => {
    replace(shown, el("pre", { tabindex: "0", "aria-label": name }, text));
    try {
      await navigator.clipboard.writeText(text);
      announce(`${name} is copied`);
      put(shown, el("p", { class: "quiet" }, "Copied."));
    } catch {
      put(shown, el("p", { class: "quiet" }, "The browser did not copy it. Select the text above."));
    }
  });
  const all = [["curl", curl(body)], ["Python", python(body)], ["a2acli", a2acli(body)]];
  return el("div", {}, el("div", { class: "row" }, all.map(([name, text]) => copy(plain(name), text))), shown);
}
