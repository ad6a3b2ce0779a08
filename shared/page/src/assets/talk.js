// One task in a conversation: what it says, what it made, its question and its run line.

import { ASKS, ENDED, call, inside, local, stateOf, taskPath } from "./api.js";
import {
  action, announce, badge, button, counted, div, el, hashOf, p, plain, put, replace, span, stateWord, took,
} from "./dom.js";
import { icon } from "./icons.js";
import { lineOf, markdown } from "./markdown.js";
import { artifact, cause, parts, prose, textOf, words } from "./parts.js";
import { linkTo, tokenSum, waterfall } from "./waterfall.js";

/** Events that a task shows; older ones are on the page of the task. */
const SHOWN = 200;

let reads = Promise.resolve();
/** The trace of a task. One is read at a time: the program also writes, and a conversation has many tasks. */
function traceOf(id) {
  reads = reads.then(() => inside(id)).then((it) => it.trace ?? [], () => []);
  return reads;
}

/** The messages of one side in the log. */
export const turnOf = (nodes, isOwn) =>
  el("article", { class: isOwn ? "turn you" : "turn", "aria-label": isOwn ? "Your message" : "Message of the agent" }, nodes);

/** What the user sent: files first, then the text. */
export function ownTurn(message, isSecret) {
  if (isSecret) return turnOf(div("bubble quiet", "Credentials given, not kept"), true);
  const list = message.parts ?? [];
  const isText = (it) => typeof it.text === "string" && !it.filename;
  return turnOf([parts(list.filter((it) => !isText(it)), "file", true), parts(list.filter(isText), "", true)], true);
}

/**
 * The panel of a task. `host` is told when a question opens or closes (`changed`), when it closes
 * unanswered (`closed`), what is to be refined (`refine`), what a button answers (`say`), and when more
 * is shown (`drawn`). `asked` is the id of its open question; `at` is when its state was stored.
 */
export function taskPanel(id, host) {
  const panel = { id, state: "", skill: "", question: "", asked: "", at: 0, follows: false, before: null };
  const seen = new Set();
  const artifacts = new Map();
  const dirty = new Set();
  const events = el("ol", { class: "events", hidden: true, tabindex: "0", "aria-label": "Events" });
  const fall = el("div", { class: "fall-box", hidden: true });
  const falls = waterfall(linkTo(id));
  const cancel = action("Cancel", async () => {
    panel.show({ task: await call(taskPath(id, ":cancel"), { body: {} }) });
  });
  const line = runLine(id, fold, cancel);
  let [task, row, trouble, news, count, frame, cost, isOpen, tokens] = [{}, null, "", "", 0, 0, 0, false, 0];
  let turn = newTurn();
  put(fall, falls.element);

  /** The place where the turn that runs now is shown. The line below goes on with it. */
  function newTurn() {
    const [says, made, after] = Array.from({ length: 3 }, () => div("result"));
    const about = { class: "turn", "aria-label": `Task ${plain(id)}` };
    panel.element = el("article", about, says, made, after, line.element, fall, events);
    return { says, made, after, element: panel.element };
  }

  function event(...children) {
    count += 1;
    put(events, el("li", {}, children));
    if (events.childElementCount > SHOWN) events.firstElementChild.remove();
    drawSoon();
  }

  /** State, skill, time and tokens, below the last bubble. */
  function drawLine() {
    const isOver = ENDED.includes(panel.state);
    const runs = !isOver && !ASKS.includes(panel.state);
    const running = row && runs ? Date.now() - row.readAt : 0;
    line.show({
      state: panel.state,
      skill: panel.skill,
      news: runs && news,
      trouble,
      turn: row?.turn > 1 && `turn ${row.turn}`,
      time: row && took(row.tookMs + running),
      tokens: tokens > 0 && counted(tokens, "token"),
      events: panel.state && (count ? counted(count, "event") : "Events"),
      isOpen,
      cancels: !isOver && panel.state,
    });
  }

  function fold() {
    isOpen = !isOpen;
    trace();
    drawLine();
  }

  /** The tokens, and the waterfall above the events, as they are now. */
  async function trace() {
    events.hidden = !isOpen || !count;
    const rows = await traceOf(id);
    if (rows.length) tokens = tokenSum(rows);
    if (isOpen && rows.length) falls.show(rows);
    fall.hidden = !isOpen || !falls.lines().length;
    drawLine();
  }

  /** What only the program knows: the skill and the time. */
  async function readRow() {
    const { rows } = await local(`rows?brief=1&context=${encodeURIComponent(task.contextId)}`).catch(() => ({ rows: [] }));
    use(rows.find((it) => it.task === id));
    if (ASKS.includes(panel.state)) host.changed();
  }

  function use(known) {
    if (!known) return;
    row = { ...known, readAt: Date.now() };
    panel.skill = row.skill ?? panel.skill;
    drawLine();
  }

  function draw() {
    const began = performance.now();
    frame = 0;
    for (const it of dirty) {
      if (it.streams && it.grow) it.grow(textOf(it.value));
      else drawWhole(it);
    }
    dirty.clear();
    drawLine();
    host.drawn();
    cost = performance.now() - began;
  }

  function drawWhole(it) {
    const isData = (it.value.parts ?? []).every((part) => "data" in part);
    const element = artifact(it.value, () => host.refine(id, it.value.name || it.value.artifactId, panel.skill));
    const bubble = element.querySelector(".bubble");
    if (it.streams) it.grow = growing(bubble, textOf(it.value));
    // What was read while it came is not folded again.
    else if (it.grow && bubble.querySelector(".prose > button")) {
      bubble.replaceWith(it.element.querySelector(".bubble"));
    }
    element.querySelector(".bubble")?.classList.toggle("streams", it.streams);
    element.classList.toggle("folded", isData);
    if (it.element) it.element.replaceWith(element);
    else put(turn.made, element);
    it.element = element;
  }

  /** At most once a frame, and for a fourth of the time. */
  function drawSoon(it) {
    if (it) dirty.add(it);
    frame ||= setTimeout(() => requestAnimationFrame(draw), 3 * cost);
  }

  function setStatus(status, isStored) {
    if (!status) return;
    const isKnown = panel.state;
    if (panel.asked && panel.asked !== status.message?.messageId) host.closed(panel);
    task.status = status;
    panel.state = stateOf(status);
    panel.at = Date.parse(status.timestamp) || Date.now();
    panel.before = null;
    replace(turn.says);
    replace(turn.after);
    const isOver = ENDED.includes(panel.state);
    const asks = ASKS.includes(panel.state);
    news = lineOf(words(status.message)) || news;
    panel.question = asks ? words(status.message) || "The agent asks." : "";
    panel.asked = asks ? status.message?.messageId ?? `${id} ${panel.at}` : "";
    panel.confirm = asks ? confirmOf(status.message) : "";
    if (asks) put(turn.after, question(panel.state, status.message, (text) => host.say(id, text)));
    if (isOver) {
      for (const it of artifacts.values()) if (it.streams) { it.streams = false; drawSoon(it); }
      ended(status.message);
    }
    drawLine();
    const rests = isOver || asks;
    const made = [...artifacts.values()].filter((it) => rests && it.heard !== it.value);
    for (const it of made) it.heard = it.value;
    const texts = rests ? [words(status.message), ...made.map((it) => textOf(it.value))] : [news];
    // Nobody listens to a megabyte.
    const text = [...new Set(texts.map((it) => it?.trim()))].filter(Boolean).join("\n").slice(0, 20000);
    // What was there before the view was opened is not news.
    if (isKnown || !isStored) announce(`${stateWord(panel.state)}${text ? `: ${text}` : ""}`);
    if (!isStored && (rests || !row)) readRow();
    if (isOpen || rests) trace();
    if (!isStored) host.changed();
  }

  /** The last message; a text that an artifact has too is shown once. */
  function ended(message) {
    const texts = [...artifacts.values()].map((it) => textOf(it.value)).filter((it) => it !== null);
    const text = words(message);
    if (!message || texts.some((it) => it.trim() === text.trim())) return;
    const broke = ["failed", "rejected"].includes(panel.state);
    const nodes = parts(message.parts);
    put(texts.length ? turn.after : turn.says, nodes, broke && cause(message));
    if (broke) for (const it of nodes.flat()) if (it.classList.contains("bubble")) it.classList.add("broke");
  }

  /** Shows an event of a stream, or a task as it is stored, with its row if it is known. */
  panel.show = (update, eventId) => {
    if (eventId && seen.has(eventId)) return;
    if (eventId) seen.add(eventId);
    trouble = "";
    if (update.task) {
      task = { ...task, ...update.task };
      for (const value of update.task.artifacts ?? []) {
        const it = artifacts.get(value.artifactId) ?? {};
        if (!it.streams && JSON.stringify(it.value) === JSON.stringify(value)) continue;
        artifacts.set(value.artifactId, Object.assign(it, { value, streams: false }));
        drawSoon(it);
      }
      use(update.row);
      setStatus(update.task.status, Boolean(update.row));
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
    const { state, question: text, asked } = panel;
    panel.before = { state, question: text, asked, turn };
    asks(turn, false);
    Object.assign(panel, { state: "working", question: "", asked: "" });
    news = "";
    turn = newTurn();
    drawLine();
    host.changed();
  };

  /** Nobody took the answer. */
  panel.reopen = () => {
    const { turn: open, ...known } = panel.before;
    turn = open;
    Object.assign(panel, known, { before: null, element: turn.element });
    put(turn.element, line.element, fall, events);
    asks(turn, true);
    drawLine();
    host.changed();
  };

  function asks({ element, after }, is) {
    const bubble = after.querySelector(".bubble");
    bubble?.classList.toggle("asks", is);
    bubble?.querySelector(":scope > .state")?.toggleAttribute("hidden", !is);
    bubble?.querySelector(":scope > .choices")?.toggleAttribute("hidden", !is);
    element.ariaLabel = is ? `Task ${plain(id)}` : "Message of the agent";
  }

  /** What is wrong with the connection; empty when it is back. */
  panel.connection = (text) => {
    trouble = text ?? "";
    drawLine();
  };
  panel.tick = drawLine;
  return panel;
}

/** The line below a turn. Its nodes stay, so that a click, the focus and a menu do too. */
function runLine(id, fold, cancel) {
  const places = { news: span("news cut"), turn: span(), time: span(), tokens: span(), events: span() };
  const [state, events] = [span(), button([icon("right"), places.events], fold)];
  const link = el("a", { href: hashOf("task", id), "data-task": id }, "Open task");
  let face = "";
  function show(shown) {
    const now = `${shown.state} ${shown.skill} ${shown.trouble}`;
    if (now !== face) {
      const { trouble, skill, state: is } = shown;
      replace(state, trouble ? badge("working", trouble) : badge(is, skill || stateWord(is)),
        !trouble && skill && span("unseen", stateWord(is)));
    }
    face = now;
    for (const [name, place] of Object.entries(places)) {
      const text = shown[name] || "";
      place.hidden = !text;
      if (place.textContent !== text) place.textContent = text;
    }
    events.hidden = !shown.events;
    events.ariaExpanded = shown.isOpen;
    cancel.hidden = !shown.cancels;
  }
  const { news, turn, time, tokens } = places;
  return { element: div("run", state, news, turn, time, tokens, events, link, cancel), show };
}

/** The digest of a question whether the agent may do something. The answer repeats it. */
const confirmOf = (message) => (message?.parts ?? []).map((it) => it.metadata?.["a2a-lambda/confirm"]).find(Boolean) ?? "";
const YES_NO = ["Yes", "No"].map((name) => ({ id: name.toLowerCase(), name }));

/** The bubble of an open question. Its colour is that of the chip in the composer. What it offers is a button each. */
function question(state, message, say) {
  const hint = message?.metadata?.["a2a-lambda/auth"];
  const needs = hint && [hint.authType, hint.service].filter(Boolean).join(" for ");
  const others = (message?.parts ?? []).filter((it) => typeof it.text !== "string");
  const texts = (message?.parts ?? []).filter((it) => typeof it.text === "string");
  const choices = texts.flatMap((it) => it.metadata?.["a2a-lambda/choices"] ?? []);
  const lines = texts.map((it) => it.text).join("\n").split("\n");
  const text = lines.filter((it) => !choices.length || !/^\d+\. /.test(it)).join("\n");
  const offer = [...choices, ...confirmOf(message) ? YES_NO : []].map(({ id, name, description }) =>
    button([el("b", {}, name || id), description && span("note cut", description)], () => say(id), { title: plain(description ?? "") }));
  const asks = badge(state, state === "auth-required" ? "Auth required" : "Open question");
  const bubble = div("bubble asks", asks, prose(text || "The agent asks."), offer.length > 0 && div("choices", offer), needs && p("hint", `Needed: ${needs}`));
  return [bubble, parts(others)];
}

/** Shows a text that grows. Its paragraphs before the last stay as they are. */
function growing(bubble, text) {
  const last = div("prose");
  let done = 0;
  const grow = (now) => {
    const rest = now.slice(done);
    // A paragraph ends at an empty line outside of code, before what belongs to no list.
    const isEnd = ({ index }) => rest.slice(0, index).split(/^ {0,3}(?:```|~~~)/m).length % 2 === 1;
    const end = [...rest.matchAll(/\n\n(?=[^\s\d*+>|-])/g)].findLast(isEnd)?.index ?? 0;
    last.before(...markdown(rest.slice(0, end)));
    replace(last, markdown(rest.slice(end)));
    done += end;
  };
  replace(bubble, last);
  grow(text);
  return grow;
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
