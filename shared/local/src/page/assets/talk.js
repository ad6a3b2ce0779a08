// One task in a conversation: what it says, what it made, its question and its run line.

import { ASKS, ENDED, call, local, stateOf, taskPath } from "./api.js";
import {
  action, announce, badge, button, counted, div, el, hashOf, p, plain, put, replace, span, stateWord, took,
} from "./dom.js";
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
  const label = isOwn ? "Your message" : "Message of the agent";
  return el("article", { class: isOwn ? "turn you" : "turn", "aria-label": label }, nodes);
}

/** What the user sent: files first, then the text. */
export function ownTurn(message, isSecret) {
  if (isSecret) return turnOf(div("bubble quiet", "Credentials given, not kept"), true);
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
  const line = div("run");
  const fall = el("div", { class: "fall-box", hidden: true });
  const events = el("ol", { class: "events", hidden: true, tabindex: "0", "aria-label": "Events" });
  let [says, made, after] = [];
  let task = {};
  let row = null;
  fresh();

  /** The place where the turn that runs now is shown. What belongs to the whole task moves there. */
  function fresh() {
    [says, made, after] = Array.from({ length: 3 }, () => div("result"));
    const properties = { class: "turn", "aria-label": `Task ${plain(id)}` };
    panel.element = el("article", properties, says, made, after, line, fall, events);
  }

  function event(...children) {
    put(events, el("li", {}, children));
    if (events.childElementCount > SHOWN) events.firstElementChild.remove();
    drawLine();
  }

  const cancel = action("Cancel", async () => {
    panel.show({ task: await call(taskPath(id, ":cancel"), { body: {} }), whole: true }, "");
  });
  const isOver = () => ENDED.includes(panel.state);
  const asks = () => ASKS.includes(panel.state);

  /** State, skill, time and tokens, below the last bubble. */
  function drawLine() {
    const running = row && !isOver() && !asks() ? Date.now() - row.readAt : 0;
    const places = [task.metadata, task.status?.metadata, task.status?.message?.metadata];
    const tokens = places.map(tokensOf).find((it) => it !== undefined);
    const count = events.childElementCount;
    const state = badge(panel.state, panel.skill || stateWord(panel.state));
    if (panel.skill) put(state, span("unseen", stateWord(panel.state)));
    const focused = line.contains(document.activeElement) ? document.activeElement.dataset.deed : "";
    const opens = { "aria-expanded": String(!events.hidden), "data-deed": "events" };
    replace(line, state,
      row?.turn > 1 && el("span", {}, `turn ${row.turn}`),
      row && el("span", {}, took(row.tookMs + running)),
      tokens && el("span", {}, counted(tokens, "token")),
      count > 0 && button([icon("right"), counted(count, "event")], fold, opens),
      el("a", { href: hashOf("task", id), "data-deed": "open", "data-task": id }, "Open task"),
      !isOver() && panel.state && cancel);
    if (focused) line.querySelector(`[data-deed="${focused}"]`)?.focus();
  }

  function fold() {
    events.hidden = !events.hidden;
    trace();
    drawLine();
  }

  /** The waterfall above the events, as it is now. */
  async function trace() {
    const { trace: rows = [] } = events.hidden ? {} : await local(`tasks/${encodeURIComponent(id)}`).catch(() => ({}));
    const falls = waterfall(linkTo(id));
    fall.hidden = !rows.length;
    if (rows.length) falls.show(rows);
    replace(fall, falls.element);
  }

  /** What only the program knows: the skill and the time. */
  async function readRow() {
    const page = await local(`rows?brief=1&context=${encodeURIComponent(task.contextId)}`).catch(() => null);
    panel.use(page?.rows.find((it) => it.task === id));
  }
  panel.use = (known) => {
    if (!known) return;
    row = { ...known, readAt: Date.now() };
    panel.skill = row.skill ?? panel.skill;
    drawLine();
    if (asks()) host.changed();
  };

  const draw = () => {
    for (const it of dirty) {
      const element = artifact(it.value, () => host.refine(id, it.value.name || it.value.artifactId));
      if (it.streams) element.querySelector(".bubble")?.classList.add("streams");
      if (it.element) it.element.replaceWith(element);
      else put(made, element);
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
    replace(says);
    replace(after);
    const rests = isOver() || asks();
    panel.question = asks() ? words(status.message) || "The agent asks." : "";
    if (asks()) put(after, question(panel.state, status.message));
    if (isOver()) {
      for (const it of artifacts.values()) if (it.streams) drawSoon(Object.assign(it, { streams: false }));
      ended(status.message);
    }
    drawLine();
    announce([stateWord(panel.state), rests && words(status.message)].filter(Boolean).join(": "));
    if (rests || !row) readRow();
    if (!events.hidden) trace();
    host.changed();
  }

  /** The last message; a text that an artifact has too is shown once. */
  function ended(message) {
    const texts = [...artifacts.values()].map((it) => textOf(it.value)).filter((it) => it !== null);
    const text = words(message);
    if (!message || texts.some((it) => it.trim() === text.trim())) return;
    const broke = ["failed", "rejected"].includes(panel.state);
    const nodes = parts(message.parts);
    put(texts.length ? after : says, nodes, broke && cause(message));
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
      const again = metadata?.["a2a-lambda/restarted"] && " (the turn runs again)";
      event(stateWord(stateOf(status)), again, text && `: ${text}`);
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
    drawLine();
    host.changed();
  };
  panel.connection = (text) => replace(line, badge("working", text));
  panel.tick = () => { if (!isOver() && !asks() && !line.contains(document.activeElement)) drawLine(); };
  return panel;
}

/** The bubble of an open question. Its colour is that of the chip in the composer. */
function question(state, message) {
  const hint = message?.metadata?.["a2a-lambda/auth"];
  const needs = hint && [hint.authType, hint.service].filter(Boolean).join(" for ");
  const { texts = [], others = [] } = Object.groupBy(message?.parts ?? [],
    (it) => (typeof it.text === "string" ? "texts" : "others"));
  const text = texts.map((it) => it.text).join("\n") || "The agent asks.";
  const title = state === "auth-required" ? stateWord(state) : "Open question";
  return [
    div("bubble asks", badge(state, title), prose(text),
      needs && p("hint", `Needed: ${needs}`)),
    parts(others),
  ];
}

/** Joins a chunk with its artifact. Text chunks become one text. */
function joined(artifacts, chunk, append) {
  const before = artifacts.get(chunk.artifactId);
  const it = before ?? {};
  const isMore = append && before;
  const all = isMore ? [...before.value.parts] : [];
  for (const next of chunk.parts ?? []) {
    const last = all.at(-1);
    const joins = isMore && typeof last?.text === "string" && typeof next.text === "string" && !next.filename;
    if (joins) all[all.length - 1] = { ...last, text: last.text + next.text };
    else all.push(next);
  }
  it.value = { ...(isMore ? before.value : chunk), parts: all };
  artifacts.set(chunk.artifactId, it);
  return it;
}
