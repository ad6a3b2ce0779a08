// Makes nodes of Markdown: paragraphs, headings, lists, quotes, tables, code, emphasis and links.
// A link leads to http and https only, an image of a text is a link, and HTML is text.

import { copied, div, el, iconButton } from "./dom.js";

/** How deep lists, quotes and emphasis may be in one another; deeper ones stay text. */
const DEEPEST = 6;
/** A longer line is one text. */
const LONGEST = 2000;

// A test counts the looks at each character: one line of too many would stop the page.
const FENCE = /^ {0,3}(`{3,}(?!`)|~{3,}(?!~))([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s/;
const RULE = /^ {0,3}((-\s*){3,}|(\*\s*){3,}|(_\s*){3,})$/;
const QUOTE = /^ {0,3}>\s?/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+/;

/** The nodes of a Markdown text. */
export function markdown(text) {
  const nodes = blocks(text.replaceAll("\r\n", "\n").split("\n"), 0);
  // A block has one direction, with all that is in it: that of its first letters.
  for (const it of nodes) it.setAttribute("dir", "auto");
  return nodes;
}

/** The text of Markdown in one line, without its marks. */
export function lineOf(text) {
  const box = div("", markdown(text));
  for (const it of box.querySelectorAll("br, p, li, th, td, h3, h4, pre")) it.after(" ");
  return box.textContent.trim().replace(/\s+/g, " ");
}

function blocks(lines, depth) {
  const nodes = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    const rest = { lines, at, depth };
    const found = !line.trim() ? { next: at + 1 } : line.length > LONGEST
      ? { node: el("p", {}, line), next: at + 1 } : fence(rest) ?? heading(line, at, depth) ?? rule(line, at)
      ?? quote(rest) ?? items(rest) ?? table(rest) ?? paragraph(rest);
    if (found.node) nodes.push(found.node);
    at = found.next;
  }
  return nodes;
}

function fence({ lines, at }) {
  const opens = FENCE.exec(lines[at]);
  if (!opens) return null;
  const [, mark, info] = opens;
  const [language] = /^[\w+#.-]*/.exec(info.trim());
  let end = at + 1;
  // A line that opens another fence does not close this one.
  const isClosed = (it) => it.startsWith(mark) && !it.replaceAll(mark[0], "");
  while (end < lines.length && !isClosed(lines[end].trim())) end += 1;
  return { node: code(lines.slice(at + 1, end).join("\n"), language), next: end + 1 };
}

/** A block of code with a button that copies it. */
function code(text, language) {
  const copy = iconButton("copy", "Copy the code", () => copied(copy, text, "The code"), { class: "small icon" });
  const label = language ? `Code, ${language}` : "Code";
  return div("coded", el("pre", { tabindex: "0", dir: "ltr", "aria-label": label }, el("code", {}, text)), copy);
}

function heading(line, at, depth) {
  const found = HEADING.exec(line);
  if (!found) return null;
  const text = line.slice(found[0].length).trim();
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  return { node: el(found[1].length < 3 ? "h3" : "h4", {}, inline(text.slice(0, end).trimEnd(), depth)), next: at + 1 };
}

const rule = (line, at) => RULE.test(line) ? { node: el("hr"), next: at + 1 } : null;

function quote({ lines, at, depth }) {
  if (!QUOTE.test(lines[at]) || depth >= DEEPEST) return null;
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const inner = lines.slice(at, end).map((it) => it.replace(QUOTE, ""));
  return { node: el("blockquote", {}, blocks(inner, depth + 1)), next: end };
}

/** A list: items of one indent; what is indented further belongs to the item before. */
function items({ lines, at, depth }) {
  const first = ITEM.exec(lines[at]);
  if (!first || depth >= DEEPEST) return null;
  const indent = first[1].length;
  const ordered = /\d/.test(first[2]);
  const found = [];
  let end = at;
  for (; end < lines.length; end += 1) {
    const item = ITEM.exec(lines[end]);
    if (item && item[1].length <= indent) {
      if (item[1].length < indent || /\d/.test(item[2]) !== ordered) break;
      found.push([lines[end].slice(item[0].length)]);
    } else if (/^\s/.test(lines[end]) && lines[end].trim()) {
      found.at(-1).push(lines[end].slice(Math.min(indent + 2, lines[end].search(/\S/))));
    } else if (!lines[end].trim() && /^\s+\S|^\s*([-*+]|\d{1,9}[.)])\s/.test(lines[end + 1] ?? "")) {
      found.at(-1).push("");
    } else {
      break;
    }
  }
  const start = ordered && Number.parseInt(first[2], 10) !== 1 ? Number.parseInt(first[2], 10) : undefined;
  const nodes = found.map((inner) => el("li", {}, tight(blocks(inner, depth + 1))));
  return { node: el(ordered ? "ol" : "ul", { start }, nodes), next: end };
}

/** An item of one paragraph is without the paragraph. */
function tight(nodes) {
  const [first, ...rest] = nodes;
  return first?.nodeName === "P" ? [[...first.childNodes], rest] : nodes;
}

/** The cells of a row. A bar in code or behind a backslash parts nothing. */
function cells(line) {
  const text = line.trim().replace(/^\||(?<!\\)\|$/g, "");
  const marks = [...text.matchAll(/\\.|`[^`]*`|\|/g)];
  const bars = marks.filter(([it]) => it === "|").map((it) => it.index);
  return [-1, ...bars].map((from, n) => text.slice(from + 1, bars[n]).trim().replaceAll("\\|", "|"));
}

/** Whether a line parts the head of a table from its rows. */
const isDivider = (line = "") => /^[\s|:-]+$/.test(line) && cells(line).every((it) => /^:?-+:?$/.test(it));

function table({ lines, at, depth }) {
  const divider = lines[at + 1];
  if (!lines[at].includes("|") || !isDivider(divider)) return null;
  const sides = cells(divider).map((it) => (/:$/.test(it) ? "right" : undefined));
  const heads = cells(lines[at]);
  if (heads.length !== sides.length) return null;
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|") && lines[end].length <= LONGEST) end += 1;
  const row = (own, name, scope) => el("tr", {}, own.slice(0, heads.length)
    .map((it, n) => el(name, { scope, class: sides[n] }, inline(it, depth))));
  const rows = lines.slice(at + 2, end).map((line) => row(cells(line), "td"));
  const head = row(heads, "th", "col");
  return { node: div("wide", el("table", {}, el("thead", {}, head), el("tbody", {}, rows))), next: end };
}

function paragraph({ lines, at, depth }) {
  let end = at + 1;
  const ends = (line) => !line.trim() || line.length > LONGEST
    || [FENCE, HEADING, RULE, QUOTE, ITEM].some((it) => it.test(line)) || line.includes("|") && isDivider(lines[end + 1]);
  while (end < lines.length && !ends(lines[end])) end += 1;
  const text = lines.slice(at, end).map((line) => line.trim()).join("\n");
  return { node: el("p", {}, inline(text, depth)), next: end };
}

// Each span is bounded, so that a text without its end is not read again and again. An address
// may have one pair of brackets.
const TARGET = String.raw`\]\(((?:[^()\s]|\([^()\s]{0,300}\)){1,2000})(?:\s+"[^"]{0,200}")?\)`;
const SPANS = {
  "`": [["code", /(`{1,3})([^`]{1,1000})\1/y]],
  "!": [["image", new RegExp(String.raw`!\[([^[\]]{0,300})${TARGET}`, "y")]],
  "[": [["link", new RegExp(String.raw`\[([^[\]]{1,300})${TARGET}`, "y")]],
  "*": [
    ["both", /\*\*\*(?=[^\s*])([^*]{0,2000}[^\s*])\*\*\*/y],
    ["strong", /\*\*(?=\S)((?:[^*]|\*(?!\*)){1,2000})(?<=\S)\*\*/y],
    ["em", /\*(?=[^\s*])([^*]{0,2000}[^\s*])\*/y],
  ],
  _: [
    ["strong", /(?<!\w)__(?=\S)((?:[^_]|_(?!_)|(?<=\w)__(?=\w)){1,2000})(?<=\S)__(?!\w)/y],
    ["em", /(?<!\w)_(?=[^\s_])([^_]{0,2000}[^\s_])_(?!\w)/y],
  ],
  "~": [["s", /~~(?=\S)([^~]{1,2000})~~/y]],
  h: [["bare", /https?:\/\/[^\s<>"'`)\]]{1,2000}/y]],
  "\\": [["escape", /\\([\\`*_{}[\]()#+.!|>~-])/y]],
  "\n": [["break", /\n/y]],
};
const BEGINS = /[`![*_~\\\n]|https?:/g;

/** The nodes of the emphasis, code and links in a text. */
function inline(text, depth) {
  if (depth > DEEPEST) return [text];
  const nodes = [];
  let end = 0;
  for (const { index } of text.matchAll(BEGINS)) {
    if (index < end) continue;
    const found = spanAt(text, index);
    if (!found) continue;
    nodes.push(text.slice(end, index), span(...found, depth + 1));
    end = index + found[1][0].length;
  }
  nodes.push(text.slice(end));
  return nodes;
}

/** The kind and the match of the span that begins there. */
function spanAt(text, index) {
  for (const [kind, pattern] of SPANS[text[index]]) {
    pattern.lastIndex = index;
    const found = pattern.exec(text);
    if (found) return [kind, found];
  }
  return null;
}

function span(kind, found, depth) {
  const [whole, first, second] = found;
  switch (kind) {
    case "code": return el("code", { dir: "ltr" }, second.trim() || second);
    case "image": return link(second, [first || second], whole);
    case "link": return link(second, inline(first, depth), whole);
    case "bare": return bare(whole);
    case "escape": return first;
    case "break": return el("br");
    case "both": return el("strong", {}, el("em", {}, inline(first, depth)));
    default: return el(kind, {}, inline(first, depth));
  }
}

/** A link of a text without the mark that ends its sentence. */
function bare(url) {
  const [address] = /^.*[^.,;:!?]/.exec(url) ?? [url];
  return [link(address, [address], address), url.slice(address.length)];
}

function link(url, children, whole) {
  if (!/^https?:\/\//i.test(url)) return whole;
  const href = url.replace(/^https?/i, (it) => it.toLowerCase());
  return el("a", { href, target: "_blank", rel: "noopener noreferrer" }, children);
}
