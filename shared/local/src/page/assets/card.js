// The agent: its card and the verdicts of the checks.

import { call, local } from "./api.js";
import { el, facts, json } from "./dom.js";

export async function cardView() {
  const [card, checks] = await Promise.all([call("/.well-known/agent-card.json"), local("checks").catch((error) => ({ error }))]);
  const has = card.capabilities ?? {};
  const can = ["streaming", "pushNotifications", "extendedAgentCard"].filter((it) => has[it]);
  return [
    el("h1", { tabindex: "-1" }, card.name),
    el("p", { dir: "auto" }, card.description),
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
    el("ul", {}, (card.supportedInterfaces ?? []).map((it) => el("li", {}, `${it.protocolBinding} ${it.protocolVersion}: ${it.url}`))),
    el("h2", {}, "Extensions"),
    el("ul", {}, (has.extensions ?? []).map((it) => el("li", {}, el("code", {}, it.uri), ` ${it.description ?? ""}`))),
    el("details", {}, el("summary", {}, "The card as JSON"), json(card)),
  ];
}

function verdicts({ checks, error }) {
  if (error) return el("p", { class: "error" }, `The checks are not shown: ${error.message}`);
  return el("ul", {}, checks.map((it) => el("li", {},
    el("strong", { class: it.passed ? "passed" : "failed-check" }, it.passed ? "Passed" : "Failed"), `: ${it.title}`,
    it.faults.length > 0 && el("ul", {}, it.faults.map((fault) => el("li", {}, fault))))));
}
