// Makes nodes of Markdown with the page's own module, over a document of a few lines: no browser.

import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { runInThisContext } from "node:vm";

/** Far above the time of a linear expression, and far below that of a square one. */
const PATIENCE_MS = 1000;
const LENGTH = 20_000;

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

/** Whether the text is read in time. */
function isRead(text) {
  globalThis.render = () => markdown(text);
  try {
    runInThisContext("render()", { timeout: PATIENCE_MS });
    return true;
  } catch (error) {
    if (error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return false;
    throw error;
  }
}

test("no line of others stops the page", () => {
  const blocks = BEGINS.flatMap((begin) => BLOCKS.flatMap((unit) => [[begin, [unit]], [begin, [" ", unit, " "]]]));
  const texts = [...blocks, ...SPANS.map((unit) => ["", [unit]])]
    .flatMap(([begin, units]) => [long(begin, units, "x`"), long(begin, units, "\u2028x")]);
  const slow = texts.filter((text) => !isRead(text));
  assert.deepEqual(slow.map((it) => `${it.slice(0, 12)} … ${it.slice(-12)}`), []);
});

test("headings, fences, items and tables are what they were", () => {
  const rows = [
    ["# One", "H3:One"], ["### Three ##", "H4:Three"], ["#  a # b  ", "H3:a # b"], ["# ", "H3:"], ["# ##", "H3:"],
    ["#none", "P:#none"], ["    # none", "P:# none"], ["``` rust x\n1\n```", "DIV:1"], ["~~~\n1\n~~~", "DIV:1"],
    ["- a\n- b", "UL:ab"], ["2) a", "OL:a"],
    ["a|b\n-|-\n1|2", "DIV:ab12"], ["|a|b|\n| :-- | --: |", "DIV:ab"], ["|a|\n- - -", "P:|a| HR:"],
    ["a|b\n---", "P:a|b HR:"], ["a|b\n-|", "P:a|b-|"], ["a|b\n-|x", "P:a|b-|x"], ["a\nb|c\n:-:|-", "P:a DIV:bc"],
  ];
  for (const [text, expected] of rows) {
    const nodes = markdown(text).map((it) => `${it.nodeName}:${it.textContent}`);
    assert.equal(nodes.join(" "), expected, text);
  }
});
