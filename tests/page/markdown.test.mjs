// Makes nodes of Markdown with the page's own module, over a document of a few lines: no browser.

import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { looks, patterns, twins } from "./looks.mjs";

/** The longest line that is read as Markdown. */
const LENGTH = 2000;
/** The most looks at a character of a text. */
const MOST = 40;

class Node {
  childNodes = [];
  constructor(name, text) { Object.assign(this, { nodeName: name.toUpperCase(), text }); }
  setAttribute() {}
  addEventListener() {}
  append(child) { this.childNodes.push(child); }
  get textContent() { return this.text ?? this.childNodes.map((it) => it.textContent).join(""); }
}
globalThis.Node = Node;
globalThis.document = {
  getElementById: () => new Node("main"),
  createElement: (name) => new Node(name),
  createElementNS: (_, name) => new Node(name),
  createTextNode: (text) => new Node("#text", text),
};

// The clock of the page would keep this process.
globalThis.setInterval = () => {};
// The browser knows the files as modules by their tag; node asks the package.
const folder = mkdtempSync(join(tmpdir(), "a2a-page-"));
process.on("exit", () => rmSync(folder, { recursive: true }));
cpSync(new URL("../../shared/page/src/assets/", import.meta.url), folder, { recursive: true });
writeFileSync(join(folder, "package.json"), `{"type": "module"}`);
const { markdown } = await import(pathToFileURL(join(folder, "markdown.js")));

/** The text `unit` again and again, between a beginning and an end. */
function long(begin, units, end) {
  const each = Math.floor((LENGTH - begin.length - end.length) / units.length);
  return begin + units.map((unit) => unit.repeat(Math.ceil(each / unit.length))).join("") + end;
}

const BLOCKS = [" ", "\t", "a", "-", "- ", ":-", "|", "-|", ":-: |", "#", "# ", "`", "~", "*", "> ", "1. ", "\u2028"];
const SPANS = ["**a ", "__a ", "*a", "_a", "~~a", "[", "[a](", "![a](", "[a](b ", "[a](b(", "(", "\\|", "http://"];
const BEGINS = ["", "a|b\n", "a|b\n-", "# ", "# a", "###### #", "- ", "1. ", "```", "~~~", "---", "> "];

test("no line of others stops the page", () => {
  const blocks = BEGINS.flatMap((begin) => BLOCKS.flatMap((unit) => [[begin, [unit]], [begin, [" ", unit, " "]]]));
  const texts = [...blocks, ...SPANS.map((unit) => ["", [unit]])]
    .flatMap(([begin, units]) => [long(begin, units, "x`"), long(begin, units, "\u2028x")]);
  assert.ok(texts.length >= 200, texts.length);
  const slow = texts.map((text) => [looks(() => markdown(text)) / text.length, text]).filter(([each]) => each > MOST);
  assert.deepEqual(slow.map(([each, it]) => `${each.toFixed()} looks: ${it.slice(0, 12)} … ${it.slice(-12)}`), []);
  assert.ok(patterns().length > 20, patterns().length);
  assert.deepEqual(twins(), []);
});

test("two repetitions of one class are found", () => {
  const bad = ["a*a*b", "(a+)+b", "(?:b?a+){2,}", "[^b]*\\s*$", "(\\s|\\s+a?)*-"];
  looks(() => bad.forEach((it) => new RegExp(it).test("a")));
  assert.deepEqual(twins(), bad);
});

test("a line of more than 2,000 characters is one text", () => {
  const words = "**a** ".repeat(400);
  for (const before of ["", "> ", "- ", "a\n", "a|b\n-|-\n|"]) {
    const node = markdown(before + words).at(-1);
    const texts = node.childNodes.map((it) => [it.nodeName, it.text]);
    assert.deepEqual([node.nodeName, texts], ["P", [["#TEXT", (before + words).split("\n").at(-1)]]], before);
  }
});

test("headings, fences, items and tables are what they were", () => {
  const rows = [
    ["# One", "H3:One"], ["### Three ##", "H4:Three"], ["#  a # b  ", "H3:a # b"], ["# ", "H3:"], ["# ##", "H3:"],
    ["#none", "P:#none"], ["    # none", "P:# none"], ["``` rust x\n1\n```", "DIV:1"], ["~~~\n1\n~~~", "DIV:1"],
    ["- a\n- b", "UL:ab"], ["2) a", "OL:a"],
    ["a|b\n-|-\n1|2", "DIV:ab12"], ["|a|b|\n| :-- | --: |", "DIV:ab"], ["|a|\n- - -", "P:|a| HR:"],
    ["**a *b* c** d", "P:a b c d"], ["**a **b** c", "P:**a b c"], ["__a__b__ c__", "P:a__b c__"], ["**a\n*b***", "P:a*b*"],
    ["a|b\n---", "P:a|b HR:"], ["a|b\n-|", "P:a|b-|"], ["a|b\n-|x", "P:a|b-|x"], ["a\nb|c\n:-:|-", "P:a DIV:bc"],
  ];
  for (const [text, expected] of rows) {
    const nodes = markdown(text).map((it) => `${it.nodeName}:${it.textContent}`);
    assert.equal(nodes.join(" "), expected, text);
  }
});
