// The agent: its card and the verdicts of the checks.

import { call, local } from "./api.js";
import { el, facts, json, p, span, view } from "./dom.js";
import { icon } from "./icons.js";

const read = () => Promise.all([
  call("/.well-known/agent-card.json"), local("checks").catch(({ message }) => ({ error: { message } })),
]);
let seen = "";

/** Whether the view would show another card or other checks. */
export const isOtherCard = () => read().then((now) => JSON.stringify(now) !== seen, () => true);

export async function cardView() {
  // A view that is refused shows nothing.
  seen = "";
  const [card, checks] = await read();
  seen = JSON.stringify([card, checks]);
  const has = card.capabilities ?? {};
  const can = ["streaming", "pushNotifications", "extendedAgentCard"].filter((it) => has[it]);
  const body = [
    el("p", { dir: "auto", class: "text-width" }, card.description),
    facts([
      ["Version", card.version],
      ["Can", can.join(", ")],
      ["Reads", (card.defaultInputModes ?? []).join(", ")],
      ["Writes", (card.defaultOutputModes ?? []).join(", ")],
      ["Signatures", (card.signatures ?? []).length],
    ]),
    el("h2", {}, "Checks"),
    verdicts(checks),
    el("h2", {}, "Interfaces"),
    facts((card.supportedInterfaces ?? []).map((it) => [`${it.protocolBinding} ${it.protocolVersion}`, el("code", {}, it.url)])),
    el("h2", {}, "Extensions"),
    facts((has.extensions ?? []).map((it) => [el("code", {}, it.uri), it.description ?? ""])),
    el("details", {}, el("summary", {}, "The card as JSON"), json(card)),
  ];
  return view({ title: card.name, note: span("note", "What clients read"), body });
}

function verdicts({ checks, error }) {
  if (error) return p("error", `The checks are not shown: ${error.message}`);
  return el("ul", {}, checks.map((it) => el("li", { class: `verdict ${it.passed ? "" : "bad"}` },
    icon(it.passed ? "completed" : "failed"),
    el("div", {}, el("strong", { class: it.passed && "passed" }, it.passed ? "Passed" : "Failed"), `: ${it.title}`,
      it.faults.length > 0 && el("ul", {}, it.faults.map((fault) => el("li", { class: "quiet" }, fault)))))));
}
