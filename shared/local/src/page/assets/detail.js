// One row of a trace, opened beside the waterfall: what it was asked, what it gave, and copies.

import { copied, el, grouped, iconButton, json, menu, plain, put, replace, took } from "./dom.js";
import { icon } from "./icons.js";
import { hasLetters } from "./keys.js";
import { prose } from "./parts.js";
import { tokensOf } from "./waterfall.js";

/** Why a row has no content. */
function absence(row) {
  if (row.cut === "task") return "Not kept: the trace of this task has reached 1 MiB.";
  if (row.lost) return "Not kept: the process ended before.";
  if (row.running) return "Not kept yet: it runs.";
  return "It has no content, or its message is not kept.";
}

const section = (title, note, ...children) => el("section", {}, el("h3", {}, title, note && el("span", { class: "hint" }, note)), children);
const folded = (title, note, isOpen, ...children) => el("details", { open: isOpen }, el("summary", {}, title, note && el("span", { class: "hint" }, note)), children);
const text = (value) => (typeof value === "string" ? prose(value, false) : json(value));

/** A piece of a message: a text, or the call or the result of a tool. */
function piece(it) {
  if (it.text !== undefined) return folded("Text", `${grouped(it.text.length)} chars`, true, text(it.text));
  if (it.toolUse) return folded("Tool call", it.toolUse.name, true, json(it.toolUse.input));
  return folded("Provider", "", false, json(it.provider ?? it));
}

function message(it) {
  if (it.user !== undefined) return folded("User", "", true, text(it.user));
  if (it.toolResults) return folded("Tool results", "", false, json(it.toolResults.map((own) => own.result.Ok ?? own.result.Err ?? own.result)));
  return folded("Model", "", false, (it.model ?? []).map(piece));
}

function prompt(request) {
  const { system, messages = [], tools = [] } = request;
  return section("Prompt", `${messages.length} ${messages.length === 1 ? "message" : "messages"}, ${tools.length} tools`,
    system && folded("System", `${grouped(system.length)} chars`, false, text(system)), messages.map(message),
    tools.length > 0 && folded("Tools", tools.map((it) => it.name).join(", "), false, json(tools)));
}

function sections(row, content = {}) {
  const { request, reply, input, output, cause } = content;
  // A value that was cut is the beginning of its JSON, as text.
  const isWhole = (value) => value !== undefined && typeof value !== "string";
  return [
    request !== undefined && (isWhole(request) ? prompt(request) : section("Prompt", "cut at 128 KiB", text(request))),
    reply !== undefined && (isWhole(reply) ? section("Reply", row.stop === "toolUse" ? "stopped for a tool" : row.stop, reply.content.map(piece)) : section("Reply", "cut at 128 KiB", text(reply))),
    input !== undefined && section("Input", row.cut === "input" && "cut at 128 KiB", text(input)),
    output !== undefined && section("Output", row.cut === "output" && "cut at 128 KiB", text(output)),
    cause && section("Cause", "", text(cause)),
    row.list && section(plain(row.name), "", el("ol", { class: "hairs" }, row.list.map((it) => el("li", {}, it.version ? `Version ${it.version}, ${it.state}` : plain(it.name), " ", el("span", { class: "hint" }, [it.end > it.start && took(it.end - it.start), it.error].filter(Boolean).join(", ")))))),
    request && folded("Raw request and reply", "", false, json({ request, reply })),
    !row.list && !Object.keys(content).length && el("p", { class: "hint" }, ["turn", "attempt", "wait", "handover"].includes(row.kind) ? "" : absence(row)),
  ];
}

/** The entries of the copy menu: a name, the text, and what it is called. */
function copies(row, content) {
  const { request, reply, input, output } = content ?? {};
  const write = (value) => `${JSON.stringify(value, null, 2)}\n`;
  const { level, list, ...facts } = row;
  const isCall = typeof request === "object" && typeof reply === "object";
  return [
    ["As JSON", write({ ...facts, content }), "The row"],
    isCall && ["As a cassette", write([{ request, reply }]), "The cassette"],
    (input ?? request) !== undefined && ["Input only", write(input ?? request), "The input"],
    (output ?? reply) !== undefined && ["Output only", write(output ?? reply), "The output"],
    ["Address of this row", location.href, "The address"],
  ].filter(Boolean);
}

/** The panel of a row. `read` reads its content, `close` closes it. */
export function detail(row, read, close) {
  const body = el("div", { class: "sections" });
  let entries = copies(row);
  const face = el("span", { class: "row" }, icon("copy"), "Copy", icon("down"));
  const copy = (entry) => entry && copied(face, entry[1], entry[2]);
  const figure = (name, value) => value !== undefined && value !== "" && el("div", {}, el("dt", {}, name), el("dd", {}, value));
  const panel = el("section", { class: "detail", "aria-label": `Row ${row.name}`, on: { keydown: (event) => {
    if (event.key === "Escape") close();
    const isLetter = event.key.toLowerCase() === "c" && hasLetters() && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (isLetter) copy(entries.find(([name]) => name === (event.shiftKey ? "As a cassette" : "As JSON")));
  } } },
  el("header", {}, el("span", { class: `is-${row.kind}` }, icon(row.kind)), el("h2", { class: "cut grow", tabindex: "-1" }, row.name), menu(face, () => entries.map((it) => [it[0], () => copy(it)]), { label: "Copy" }), iconButton("close", "Close", close)),
  el("dl", { class: "figures" }, figure("Took", row.kept ? "kept" : took(row.end - row.start)), figure("First token", row.firstMs === undefined ? "" : took(row.firstMs)), figure("In", row.inputTokens), figure("Out", row.outputTokens), !row.inputTokens && figure("Tokens", tokensOf(row) || ""), figure("Error", row.error ? plain(row.error) : "")), body);
  const fill = (known) => {
    entries = copies(row, known?.content);
    replace(body, sections({ ...row, running: known && known.end === undefined }, known?.content));
  };
  if (row.list || !/^[0-9a-f]{8}(\.\d+)?$/.test(row.id)) fill({});
  else read(row.id).then(fill, (error) => put(body, el("p", { class: "error" }, error.message)));
  panel.copy = (isCassette) => copy(entries.find(([name]) => name === (isCassette ? "As a cassette" : "As JSON")));
  return panel;
}
