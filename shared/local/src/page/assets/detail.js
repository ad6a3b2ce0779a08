// One row of a trace, opened beside the waterfall: what it was asked, what it gave, and copies.

import {
  copied, counted, div, el, grouped, iconButton, json, menu, p, plain, put, replace, span, took,
} from "./dom.js";
import { icon } from "./icons.js";
import { prose } from "./parts.js";
import { tokensOf } from "./waterfall.js";

/** Why a row has no content. */
function absence(row) {
  if (row.cut === "task") return "Not kept: the trace of this task has reached 1 MiB.";
  if (row.lost) return "Not kept: the process ended before.";
  if (row.isRunning) return "Not kept yet: it runs.";
  return "It has no content, or its message is not kept.";
}

const hint = (note) => note && span("hint", note);
const section = (title, note, ...children) => el("section", {}, el("h3", {}, title, hint(note)), children);
const folded = (title, note, open, ...children) =>
  el("details", { open }, el("summary", {}, title, hint(note)), children);
const text = (value) => (typeof value === "string" ? prose(value, false) : json(value));
const chars = (value) => `${grouped(value.length)} chars`;

/** A piece of a message: a text, or the call or the result of a tool. */
function piece(it) {
  if (it.text !== undefined) return folded("Text", chars(it.text), true, text(it.text));
  if (it.toolUse) return folded("Tool call", it.toolUse.name, true, json(it.toolUse.input));
  return folded("Provider", "", false, json(it.provider ?? it));
}

function message(it) {
  if (it.user !== undefined) return folded("User", "", true, text(it.user));
  if (!it.toolResults) return folded("Model", "", false, (it.model ?? []).map(piece));
  const results = it.toolResults.map((own) => own.result.Ok ?? own.result.Err ?? own.result);
  return folded("Tool results", "", false, json(results));
}

function prompt({ system, messages = [], tools = [] }) {
  return section("Prompt", `${counted(messages.length, "message")}, ${counted(tools.length, "tool")}`,
    system && folded("System", chars(system), false, text(system)), messages.map(message),
    tools.length > 0 && folded("Tools", tools.map((it) => it.name).join(", "), false, json(tools)));
}

/** One of the writes or deliveries of a row. */
function entry({ version, state, name, start, end, error }) {
  const note = [end > start && took(end - start), error].filter(Boolean).join(", ");
  return el("li", {}, version ? `Version ${version}, ${state}` : name, " ", hint(note));
}

function sections(row, content = {}) {
  const { request, reply, input, output, cause } = content;
  const stop = row.stop === "toolUse" ? "stopped for a tool" : row.stop;
  // A request or a reply that was cut is the beginning of its JSON, as text.
  const part = (title, value, whole) => {
    if (value === undefined) return null;
    if (whole && typeof value !== "string") return whole(value);
    return section(title, (whole || row.cut === title.toLowerCase()) && "cut at 128 KiB", text(value));
  };
  const hasNone = ["turn", "attempt", "wait", "handover"].includes(row.kind);
  return [
    part("Prompt", request, prompt),
    part("Reply", reply, (value) => section("Reply", stop, value.content.map(piece))),
    part("Input", input),
    part("Output", output),
    cause && section("Cause", "", text(cause)),
    row.list && section(plain(row.name), "", el("ol", { class: "hairs" }, row.list.map(entry))),
    request && folded("Raw request and reply", "", false, json({ request, reply })),
    !row.list && !Object.keys(content).length && p("hint", hasNone ? "" : absence(row)),
  ];
}

/** The entries of the copy menu: a name, the text, and what it is called. */
function copies(row, content) {
  const { request, reply, input = request, output = reply } = content ?? {};
  const write = (value) => `${JSON.stringify(value, null, 2)}\n`;
  const { level, list, ...own } = row;
  const isCall = typeof request === "object" && typeof reply === "object";
  return [
    ["As JSON", write({ ...own, content }), "The row"],
    isCall && ["As a cassette", write([{ request, reply }]), "The cassette"],
    input !== undefined && ["Input only", write(input), "The input"],
    output !== undefined && ["Output only", write(output), "The output"],
    ["Address of this row", location.href, "The address"],
  ].filter(Boolean);
}

/** The panel of a row, and what copies it. `read` reads its content, `close` closes it. */
export function detail(row, read, close) {
  const body = div("sections");
  let entries = copies(row);
  const face = span("row", icon("copy"), "Copy", icon("down"));
  const copy = (entry) => entry && copied(face, entry[1], entry[2]);
  const figures = [
    ["Took", row.kept ? "kept" : took(row.end - row.start)],
    ["First token", took(row.firstMs)],
    ["In", row.inputTokens],
    ["Out", row.outputTokens],
    ["Tokens", !row.inputTokens && tokensOf(row)],
    ["Error", row.error],
  ].filter(([, value]) => value);
  const element = el("section", { class: "detail", "aria-label": `Row ${row.name}` },
    el("header", {}, el("span", { class: `is-${row.kind}` }, icon(row.kind)),
      el("h2", { class: "cut grow", tabindex: "-1" }, row.name),
      menu(face, () => entries.map((it) => [it[0], () => copy(it)]), { label: "Copy" }),
      iconButton("close", "Close", close)),
    el("dl", { class: "figures" },
      figures.map(([name, value]) => el("div", {}, el("dt", { class: "hint" }, name), el("dd", {}, value)))),
    body);
  const fill = (known) => {
    entries = copies(row, known.content);
    replace(body, sections({ ...row, isRunning: known.end === undefined }, known.content));
  };
  if (row.list || !/^[0-9a-f]{8}(\.\d+)?$/.test(row.id)) fill(row);
  else read(row.id).then(fill, (error) => put(body, p("error", error.message)));
  const named = (isCassette) => (isCassette ? "As a cassette" : "As JSON");
  return { element, copy: (isCassette) => copy(entries.find(([name]) => name === named(isCassette))) };
}
