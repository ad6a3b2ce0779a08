// One task in a conversation: what it says, what it made, its question and its run line.

import { ASKS, ENDED, call, local, stateOf, taskPath } from "./api.js";
import { action, announce, badge, button, el, grouped, plain, put, replace, stateWord, took } from "./dom.js";
import { icon } from "./icons.js";
import { artifact, cause, parts, prose, textOf, words } from "./parts.js";
import { linkTo, waterfall } from "./waterfall.js";

/** Events that a task shows; older ones are on the page of the task. */
const SHOWN = 200;

/** Tokens in the metadata of a task or of its status, if an agent writes some. */
function tokensOf(metadata) {
  for (const [name, value] of Object.entries(metadata ?? {})) {
    if (!/usage|tokens/i.test(name)) continue;
    if (typeof value === "number") return value;
    const { totalTokens, totalTokenCount, total_tokens: total, inputTokens = 0, outputTokens = 0 } = value ?? {};
    const sum = totalTokens ?? totalTokenCount ?? total ?? inputTokens + outputTokens;
    if (typeof sum === "number" && sum > 0) return sum;
  }
  return undefined;
}

/** The messages of one side in the log. */
export function turnOf(nodes, isOwn) {
  return el("article", { class: isOwn ? "turn you" : "turn", "aria-label": isOwn ? "Your message" : "Message of the agent" }, nodes);
}

/** What the user sent: files first, then the text. */
export function ownTurn(message, isSecret) {
  if (isSecret) return turnOf(el("div", { class: "bubble quiet" }, "Credentials given, not kept"), true);
  const list = message.parts ?? [];
  const isText = (it) => typeof it.text === "string" && !it.filename;
  return turnOf([parts(list.filter((it) => !isText(it)), "file", true), parts(list.filter(isText), "", true)], true);
}

/**
 * The panel of a task. `host` is told when a question opens or closes (`changed`), and what is
 * to be refined (`refine`).
 */
export function taskPanel(id, host) {
  const panel = { id, state: "", skill: "", question: "", at: 0, seen: new Set() };
  const artifacts = new Map();
  const dirty = new Set();
  let task = {};
  let row = null;
  let parted;
  fresh();

  /** The place where the turn that runs now is shown. */
  function fresh() {
    parted?.line.remove();
    parted?.events.remove();
    parted?.fall.remove();
    parted = { says: el("div", { class: "result" }), made: el("div", { class: "result" }), after: el("div", { class: "result" }), line: el("div", { class: "run" }), events: parted?.events ?? el("ol", { class: "events", hidden: true, tabindex: "0", "aria-label": "Events" }), fall: parted?.fall ?? el("div", { class: "fall-box", hidden: true }) };
    panel.element = el("article", { class: "turn", "aria-label": `Task ${plain(id)}` }, parted.says, parted.made, parted.after, parted.line, parted.fall, parted.events);
  }

  const event = (...children) => {
    put(parted.events, el("li", {}, children));
    if (parted.events.childElementCount > SHOWN) parted.events.firstElementChild.remove();
    line();
  };

  const cancel = action("Cancel", async () => {
    panel.show({ task: await call(taskPath(id, ":cancel"), { method: "POST", body: {} }), whole: true }, "");
  });

  /** State, skill, time and tokens, below the last bubble. */
  function line() {
    const isOver = ENDED.includes(panel.state);
    const running = row && !isOver && !ASKS.includes(panel.state) ? Date.now() - row.readAt : 0;
    const tokens = tokensOf(task.metadata) ?? tokensOf(task.status?.metadata) ?? tokensOf(task.status?.message?.metadata);
    const count = parted.events.childElementCount;
    const state = badge(panel.state, panel.skill || stateWord(panel.state));
    if (panel.skill) put(state, el("span", { class: "unseen" }, stateWord(panel.state)));
    const focused = parted.line.contains(document.activeElement) ? document.activeElement.dataset.deed : "";
    replace(parted.line, state,
      row?.turn > 1 && el("span", {}, `turn ${row.turn}`),
      row && el("span", {}, took(row.tookMs + running)),
      tokens && el("span", {}, `${grouped(tokens)} tokens`),
      count > 0 && button([icon("right"), `${count} ${count === 1 ? "event" : "events"}`], fold, { "aria-expanded": String(!parted.events.hidden), "data-deed": "events" }),
      el("a", { href: `#/task/${encodeURIComponent(id)}`, "data-deed": "open", "data-task": id }, "Open task"),
      !isOver && panel.state && cancel);
    if (focused) parted.line.querySelector(`[data-deed="${focused}"]`)?.focus();
  }

  function fold() {
    parted.events.hidden = !parted.events.hidden;
    trace();
    line();
  }

  /** The waterfall above the events, as it is now. */
  async function trace() {
    const { trace: rows = [] } = parted.events.hidden ? {} : await local(`tasks/${encodeURIComponent(id)}`).catch(() => ({}));
    const falls = waterfall(linkTo(id));
    parted.fall.hidden = !rows.length;
    if (rows.length) falls.show(rows);
    replace(parted.fall, falls.element);
  }

  /** What only the program knows: the skill and the time. */
  async function readRow() {
    const { rows } = await local(`rows?brief=1&context=${encodeURIComponent(task.contextId)}`).catch(() => ({ rows: [] }));
    panel.use(rows.find((it) => it.task === id));
  }
  panel.use = (known) => {
    if (!known) return;
    row = { ...known, readAt: Date.now() };
    panel.skill = row.skill ?? panel.skill;
    line();
    if (ASKS.includes(panel.state)) host.changed();
  };

  const draw = () => {
    for (const it of dirty) {
      const isData = (it.value.parts ?? []).every((part) => "data" in part);
      const element = artifact(it.value, () => host.refine(id, it.value.name || it.value.artifactId));
      if (it.streams) element.querySelector(".bubble")?.classList.add("streams");
      element.classList.toggle("folded", isData);
      if (it.element) it.element.replaceWith(element);
      else put(parted.made, element);
      it.element = element;
    }
    dirty.clear();
    host.drawn();
  };
  const drawSoon = (it) => {
    if (!dirty.size) requestAnimationFrame(draw);
    dirty.add(it);
  };

  function setStatus(status) {
    if (!status) return;
    task.status = status;
    panel.state = stateOf(status);
    panel.at = Date.parse(status.timestamp) || Date.now();
    replace(parted.says);
    replace(parted.after);
    const isOver = ENDED.includes(panel.state);
    const asks = ASKS.includes(panel.state);
    panel.question = asks ? words(status.message) || "The agent asks." : "";
    if (asks) put(parted.after, question(panel.state, status.message));
    if (isOver) {
      for (const it of artifacts.values()) if (it.streams) { it.streams = false; drawSoon(it); }
      ended(status.message);
    }
    line();
    const text = isOver || asks ? words(status.message) : "";
    announce(`${stateWord(panel.state)}${text ? `: ${text}` : ""}`);
    if (isOver || asks || !row) readRow();
    if (!parted.events.hidden) trace();
    host.changed();
  }

  /** The last message; a text that an artifact has too is shown once. */
  function ended(message) {
    const texts = [...artifacts.values()].map((it) => textOf(it.value)).filter((it) => it !== null);
    const text = words(message);
    if (!message || texts.some((it) => it.trim() === text.trim())) return;
    const broke = ["failed", "rejected"].includes(panel.state);
    const nodes = parts(message.parts);
    put(texts.length ? parted.after : parted.says, nodes, broke && cause(message));
    if (broke) for (const it of nodes.flat()) if (it.classList.contains("bubble")) it.classList.add("broke");
  }

  panel.show = (update, eventId) => {
    if (eventId && panel.seen.has(eventId)) return;
    if (eventId) panel.seen.add(eventId);
    if (update.task) {
      task = { ...task, ...update.task };
      for (const value of update.task.artifacts ?? []) {
        const it = { ...artifacts.get(value.artifactId), value, streams: false };
        artifacts.set(value.artifactId, it);
        drawSoon(it);
      }
      setStatus(update.task.status);
    } else if (update.statusUpdate) {
      const { status, metadata, contextId } = update.statusUpdate;
      task.contextId ??= contextId;
      const text = words(status.message);
      event(stateWord(stateOf(status)), metadata?.["a2a-lambda/restarted"] ? " (the turn runs again)" : "", text ? `: ${text}` : "");
      task.metadata = { ...task.metadata, ...metadata };
      setStatus(status);
    } else if (update.artifactUpdate) {
      const { artifact: chunk, append, lastChunk } = update.artifactUpdate;
      const name = chunk.name || artifacts.get(chunk.artifactId)?.value.name || chunk.artifactId;
      event(append ? "More of " : "Artifact ", name);
      if (!append) announce(`Artifact ${name}`);
      const it = joined(artifacts, chunk, append);
      it.streams = !lastChunk && textOf(it.value) !== null;
      drawSoon(it);
    }
  };

  /** The question is answered: it stays where it is, and the next turn goes on below. */
  panel.answer = () => {
    if (dirty.size) draw();
    for (const it of panel.element.querySelectorAll(".asks")) {
      it.classList.remove("asks");
      it.querySelector(":scope > .state")?.remove();
    }
    panel.element.setAttribute("aria-label", "Message of the agent");
    panel.question = "";
    panel.state = "working";
    fresh();
    line();
    host.changed();
  };
  panel.connection = (text) => replace(parted.line, badge("working", text));
  panel.tick = () => { if (!ENDED.includes(panel.state) && !ASKS.includes(panel.state) && !parted.line.contains(document.activeElement)) line(); };
  return panel;
}

/** The bubble of an open question. Its colour is that of the chip in the composer. */
function question(state, message) {
  const hint = message?.metadata?.["a2a-lambda/auth"];
  const needs = hint && [hint.authType, hint.service].filter(Boolean).join(" for ");
  const others = (message?.parts ?? []).filter((it) => typeof it.text !== "string");
  const text = (message?.parts ?? []).filter((it) => typeof it.text === "string").map((it) => it.text).join("\n");
  return [el("div", { class: "bubble asks" }, badge(state, state === "auth-required" ? "Auth required" : "Open question"), prose(text || "The agent asks."), needs && el("p", { class: "hint" }, `Needed: ${needs}`)), parts(others)];
}

/** Joins a chunk with its artifact. Text chunks become one text. */
function joined(artifacts, chunk, append) {
  const before = artifacts.get(chunk.artifactId);
  const it = before ?? {};
  if (append && before) {
    const all = [...before.value.parts];
    for (const next of chunk.parts ?? []) {
      const last = all.at(-1);
      const joins = typeof last?.text === "string" && typeof next.text === "string" && !next.filename;
      if (joins) all[all.length - 1] = { ...last, text: last.text + next.text };
      else all.push(next);
    }
    it.value = { ...before.value, parts: all };
  } else {
    it.value = { ...chunk, parts: [...(chunk.parts ?? [])] };
  }
  artifacts.set(chunk.artifactId, it);
  return it;
}
