// One row of a trace, opened beside the waterfall: what it was asked, what it gave, and copies.

import {
  announce, button, copied, counted, div, el, grouped, iconButton, json, menu, p, plain, put, replace, size, span, took,
} from "./dom.js";
import { icon } from "./icons.js";
import { prose } from "./parts.js";
import { ICONS, tokensOf } from "./waterfall.js";

/** Characters of a text or of JSON that are shown at once. */
const MOST = 8192;

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
  el("details", { open }, el("summary", {}, hint(note), title), children);
const whole = (value) => JSON.stringify(value, null, 2) ?? "";
const chars = (value) => `${grouped(value.length)} chars`;

/** A text or JSON. What is long is cut, with a button for all. */
function text(value) {
  if (typeof value === "string") return prose(value, false, MOST);
  const long = whole(value);
  if (long.length <= MOST) return json(value);
  const all = button(`Show all ${size(long.length)}`, () => replace(place, json(value)), { class: "small" });
  const place = div("", el("pre", { class: "json", tabindex: "0", dir: "ltr" }, long.slice(0, MOST)), all);
  return place;
}

/** The call of a model that asked for this call of a tool: the last one of its conversation before. */
function askedBy(tool, lines) {
  const path = /^(.*)\/call\/\d+\.(\d+)/.exec(tool.path ?? "");
  const isIts = (it) => it.kind === "model" && it.path?.startsWith(`${path[1]}/model`) && it.start <= tool.start;
  return path && { call: lines.findLast(isIts), number: Number(path[2]) };
}

/** A link to another row of the trace. */
const rowLink = (line, falls) => button(plain(line.name), () => {
  falls.choose(line.id);
  document.querySelector(".detail h2")?.focus();
}, { class: "link" });

/** A piece of a message: a text, or the call or the result of a tool. `linkOf` finds its row. */
function piece(it, linkOf) {
  if (it.text !== undefined) return folded("Text", chars(it.text), true, text(it.text));
  if (it.toolUse) {
    const link = linkOf?.(it);
    const fold = folded("Tool call", link ? "" : it.toolUse.name, true, text(it.toolUse.input));
    // A control inside of a summary is not found by screen readers, so it is beside it.
    return div("with-link", link, fold);
  }
  return folded("Provider", "", false, text(it.provider ?? it));
}

function message(it) {
  if (it.user !== undefined) return folded("User", "", true, text(it.user));
  if (!it.toolResults) return folded("Model", "", false, (it.model ?? []).map((own) => piece(own)));
  const results = it.toolResults.map((own) => own.result.Ok ?? own.result.Err ?? own.result);
  return folded("Tool results", "", false, text(results));
}

function prompt({ system, messages = [], tools = [] }) {
  const start = system && span("start said", system.slice(0, 300));
  return section("Prompt", `${counted(messages.length, "message")}, ${counted(tools.length, "tool")}`,
    system && folded(["System", start], chars(system), false, text(system)), messages.map(message),
    tools.length > 0 && folded("Tools", tools.map((it) => it.name).join(", "), false, text(tools)));
}

/** One of the writes or deliveries of a row. */
function entry({ version, state, name, start, end, error, session }) {
  const writes = session && `session ${session.join(", ")}`;
  const note = [end > start && took(end - start), error, writes].filter(Boolean).join(", ");
  return el("li", {}, version ? `Version ${version}, ${state}` : name, " ", hint(note));
}

function sections(row, content = {}, falls) {
  const { request, reply, input, output, cause } = content;
  const stop = row.stop === "toolUse" ? "stopped for a tool" : row.stop;
  // A request or a reply that was cut is the beginning of its JSON, as text.
  const part = (title, value, shown) => {
    if (value === undefined) return null;
    if (shown && typeof value !== "string") return shown(value);
    return section(title, (shown || row.cut === title.toLowerCase()) && "the first 8 KiB", text(value));
  };
  const lines = falls.lines();
  const tools = lines.filter((it) => it.kind === "tool" && askedBy(it, lines)?.call?.id === row.id);
  const uses = (reply?.content ?? []).filter?.((it) => it.toolUse);
  const linkOf = (it) => {
    const tool = tools.find((own) => askedBy(own, lines).number === uses.indexOf(it) + 1);
    return tool && rowLink(tool, falls);
  };
  const raw = { request, reply };
  const hasNone = ["turn", "attempt", "wait", "handover"].includes(row.kind);
  return [
    part("Prompt", request, prompt),
    part("Reply", reply, (value) => section("Reply", stop, value.content.map((it) => piece(it, linkOf)))),
    part("Input", input),
    part("Output", output),
    cause && section("Cause", "", text(cause)),
    row.list && section(plain(row.name), "", el("ol", { class: "hairs" }, row.list.map(entry))),
    request && folded("Raw request and reply", size(whole(raw).length), false, text(raw)),
    !row.list && !Object.keys(content).length && p("hint", hasNone ? "" : absence(row)),
  ];
}

/**
 * The entries of the copy menu: a name, what it is called, the value, and why there is none.
 * `call` has the content of the call of a model: of this row, or of the one that asked for this tool.
 */
function copies(row, content, call) {
  const { request, reply, input = request, output = reply } = content ?? {};
  const { level, list, path, tries, isTry, ...own } = row;
  const isOf = ["model", "tool"].includes(row.kind);
  const isCall = isOf && typeof call?.request === "object" && typeof call.reply === "object";
  return [
    ["As JSON", "The row", { ...own, content }],
    ["As a cassette", "The cassette", isCall ? [{ request: call.request, reply: call.reply }] : undefined,
      isOf ? "not kept whole" : "of model calls and tools"],
    ["Input only", "The input", input, "not kept"],
    ["Output only", "The output", output, "not kept"],
    ["Address of this row", "The address", location.href],
  ];
}

/**
 * The panel of a row of `falls`, and what copies it. `read` reads the content of a row, `close`
 * closes the panel.
 */
export function detail(row, read, close, falls) {
  const body = div("sections");
  let entries = copies(row);
  const face = span("row", icon("copy"), "Copy", icon("down"));
  const copy = ([name, what, value, why]) => {
    if (value === undefined) announce(`${name}: ${why}`);
    else copied(face, typeof value === "string" ? value : `${JSON.stringify(value, null, 2)}\n`, what);
  };
  const entry = (it) => [it[0], () => copy(it), "", it[2] === undefined && it[3]];
  const asker = row.kind === "tool" && askedBy(row, falls.lines())?.call;
  const about = span("about quiet cut", asker ? ["asked by ", rowLink(asker, falls)] : row.model);
  const figures = [
    ["Took", row.kept ? "kept" : took(row.end - row.start)],
    ["First token", took(row.firstMs)],
    ["In", row.inputTokens && grouped(row.inputTokens)],
    ["Out", row.outputTokens && grouped(row.outputTokens)],
    ["Tokens", !row.inputTokens && tokensOf(row) && grouped(tokensOf(row))],
    ["Error", row.error],
  ].filter(([, value]) => value);
  const element = el("section", { class: "detail", "aria-label": `Row ${row.name}` },
    el("header", {}, span(`is-${row.kind}`, icon(ICONS[row.kind] ?? row.kind)),
      el("h2", { class: "cut", tabindex: "-1" }, row.name), about, span("grow"),
      menu(face, () => entries.map(entry), { label: "Copy" }),
      iconButton("close", "Close", close)),
    el("dl", { class: "figures" },
      figures.map(([name, value]) => el("div", {}, el("dt", { class: "hint" }, name), el("dd", {}, value)))),
    body);
  const fill = async (known) => {
    const { content, end } = known;
    entries = copies(row, content, content);
    replace(body, sections({ ...row, isRunning: end === undefined }, content, falls));
    if (asker) entries = copies(row, content, (await read(asker.id)).content);
  };
  const known = row.list || !/^[0-9a-f]{8}(\.\d+)?$/.test(row.id) ? Promise.resolve(row) : read(row.id);
  const filled = known.then(fill).catch((error) => put(body, p("error", error.message)));
  return { element, copy: (isCassette) => filled.then(() => copy(entries[isCassette ? 1 : 0])) };
}
