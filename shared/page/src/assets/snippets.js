// The same send as `curl` and Python.

import { authorization } from "./api.js";
import { el, menu, p, put, replace } from "./dom.js";
import { icon } from "./icons.js";

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

const headers = () => ({ "A2A-Version": "1.0", "Content-Type": "application/json", ...authorization() });

function curl(body) {
  const shown = Object.entries(headers()).map(([name, value]) => ` \\\n  -H ${quoted(`${name}: ${value}`)}`);
  return `curl ${location.origin}/message:send${shown.join("")} \\\n  -d ${quoted(JSON.stringify(body))}`;
}

/** JSON as a Python literal: a string that Python reads as JSON. */
const python = (body) => `import json, urllib.request

body = json.loads(${JSON.stringify(JSON.stringify(body))})
request = urllib.request.Request(
    ${JSON.stringify(`${location.origin}/message:send`)},
    data=json.dumps(body).encode(),
    headers=${JSON.stringify(headers())},
)
with urllib.request.urlopen(request) as response:
    print(json.dumps(json.load(response), indent=2))
`;

/** A menu that copies a send as a command. `message` returns it, or nothing if it is not valid. */
export function copyMenu(message) {
  const shown = el("div", { class: "copied", "aria-live": "polite" });
  const copy = (name, make) => [`Copy as ${name}`, async () => {
    const own = await message();
    if (!own) return;
    // The server made these two.
    const { taskId, contextId, ...bare } = own;
    const text = make({ message: bare });
    replace(shown, el("pre", { tabindex: "0", "aria-label": name }, text));
    const note = (words) => put(shown, p("hint", words));
    await navigator.clipboard.writeText(text).then(() => note("Copied."), () => note("The browser did not copy it. Select the text above."));
  }];
  const entries = [copy("curl", curl), copy("Python", python)];
  return [menu([icon("copy"), "Copy", icon("down")], () => entries, { class: "plain", label: "Copy as a command" }), shown];
}
