// The composer: what the next message is (a new task, an answer, credentials), its text, its
// references and its files. Credentials are never kept: not in a draft, not in the address.

import { button, div, el, iconButton, menu, plain, replace, span } from "./dom.js";
import { fileBox } from "./files.js";
import { icon } from "./icons.js";

const DRAFT = "a2a-local-draft:";

/** `send` gets `{parts, task, skill, references, secret}`. */
export function composer(send) {
  const text = el("textarea", { id: "say", rows: 2, "aria-label": "Message", dir: "auto", on: { input: typed, keydown: enter } });
  const secret = el("input", { id: "secret", type: "password", autocomplete: "off", spellcheck: "false", "aria-label": "Credentials" });
  const eye = iconButton("eye", "Show what is typed", () => hide(secret.type === "text"));
  const hidden = el("div", { class: "secret", hidden: true }, secret, eye);
  const chips = div("chips");
  const skill = el("select", { class: "pick cut", id: "say-skill", "aria-label": "Skill" });
  const answers = el("span", { class: "tag cut", hidden: true });
  const files = fileBox();
  const press = el("button", { type: "submit", class: "ink send", "aria-label": "Send", title: "Send" }, icon("up"));
  const hint = el("p", { class: "hint", hidden: true }, "Sent once. Not kept in page, history or trace.");
  const deck = div("deck", files.button, skill, answers, span("grow"), span("hint keys-hint", "Enter sends"), press);
  const form = el("form", { class: "composer", "aria-label": "New message", on: { submit, keydown: leave } },
    chips, files.element, text, hidden, deck);
  const element = div("composer-place", form, hint);
  const state = { context: "", questions: [], target: "", closed: new Set(), references: [], keeps: 0 };
  addEventListener("pagehide", keep);

  const question = () => state.questions.find((it) => it.task === state.target);
  const isSecret = () => question()?.state === "auth-required";

  function hide(is) {
    secret.type = is ? "password" : "text";
    eye.ariaPressed = !is;
  }

  /** Empties the field of the credentials. */
  function forget() {
    secret.value = "";
    hide(true);
  }

  /** The skills that one can choose. */
  function offer(skills) {
    const { value } = skill;
    const entries = [{ id: "", name: "The agent chooses" }, ...skills];
    replace(skill, entries.map(({ id, name }) => el("option", { value: id }, name)));
    skill.value = entries.some(({ id }) => id === value) ? value : "";
  }

  function keep() {
    clearTimeout(state.keeps);
    state.keeps = 0;
    sessionStorage.setItem(DRAFT + state.context, text.value);
  }

  function typed() {
    clearTimeout(state.keeps);
    // A long text is not written at each key.
    state.keeps = setTimeout(keep, 300);
  }

  function enter(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  }

  function leave(event) {
    if (event.key !== "Escape" || !(state.target || state.references.length)) return;
    event.stopPropagation();
    if (state.references.length) state.references.pop();
    else close();
    show();
    focus();
  }

  function close() {
    state.closed.add(state.target);
    state.target = "";
    forget();
  }

  async function submit(event) {
    event.preventDefault();
    const task = state.target;
    const references = state.references.map((it) => it.task);
    const chosen = task ? "" : skill.value || (state.references.at(-1)?.skill ?? "");
    if (isSecret()) {
      const given = secret.value;
      forget();
      if (given) send({ parts: [{ text: given }], task, secret: true });
      return;
    }
    const attached = await files.parts();
    // The text is read last: it can be edited while files are uploaded.
    const sent = text.value.trim() ? [{ text: text.value }] : [];
    if (!attached || sent.length + attached.length === 0) return;
    text.value = "";
    typed();
    files.clear();
    state.references = [];
    send({ parts: [...sent, ...attached], skill: chosen, task, references });
    show();
    focus();
  }

  function chip(mark, verb, words, remove, name) {
    return span(mark === "refine" ? "chip" : "chip asks", icon(mark),
      span("cut", el("b", {}, verb), " ", el("bdi", {}, words)),
      iconButton("close", name, () => { remove(); show(); focus(); }, { class: "" }));
  }

  function show() {
    const asked = question();
    const isOpen = Boolean(asked);
    const others = state.questions.filter((it) => it.task !== state.target);
    const pick = (it) => {
      state.closed.delete(it.task);
      state.target = it.task;
      forget();
      show();
      focus();
    };
    const says = isSecret() ? ["", `Credentials for ${asked.skill}`] : ["Answers", asked?.text];
    const more = () => others.map((it) => [`Answer ${it.skill}`, () => pick(it)]);
    const leave = (it) => () => { state.references = state.references.filter((other) => other !== it); };
    replace(chips,
      isOpen && chip(asked.state, ...says, close, "Do not answer"),
      isOpen && others.length > 0 && menu([`${others.length} more`, icon("down")], more, { class: "small" }),
      !isOpen && others.map((it) => button(`Answer ${it.skill}`, () => pick(it), { class: "small plain" })),
      state.references.map((it) => chip("refine", "Refines", it.name, leave(it), `Do not refine ${plain(it.name)}`)));
    const hides = isSecret();
    form.classList.toggle("secretly", hides);
    text.hidden = hides;
    hidden.hidden = !hides;
    hint.hidden = !hides;
    files.button.hidden = hides;
    skill.hidden = isOpen;
    answers.hidden = !isOpen || hides;
    replace(answers, asked?.skill);
    text.placeholder = isOpen ? "Your answer" : "Message the agent, or drop files anywhere";
  }

  function focus() {
    (isSecret() ? secret : text).focus({ preventScroll: true });
  }

  /** The open questions, the newest last. The composer answers the newest one. */
  function ask(questions) {
    if (JSON.stringify(questions) === JSON.stringify(state.questions)) return;
    const before = state.questions.map((it) => it.task);
    const { target } = state;
    const hadFocus = element.contains(document.activeElement) || document.activeElement === document.body;
    state.questions = questions;
    // Credentials that are being typed are for one task only.
    const isNew = !secret.value && questions.some((it) => !before.includes(it.task));
    if (isNew || !question()) state.target = questions.filter((it) => !state.closed.has(it.task)).at(-1)?.task ?? "";
    if (state.target !== target) forget();
    show();
    if (hadFocus && state.target !== target && element.isConnected) focus();
  }

  /** The composer of another conversation: its draft, and nothing that belongs to this one. */
  function use(context) {
    if (state.keeps) keep();
    Object.assign(state, { context, questions: [], target: "", references: [] });
    state.closed.clear();
    forget();
    files.clear();
    text.value = sessionStorage.getItem(DRAFT + context) ?? "";
    show();
  }

  /** This conversation has its name now. */
  function move(context) {
    sessionStorage.removeItem(DRAFT + state.context);
    state.context = context;
    keep();
  }

  function refine(task, name, skill) {
    if (!state.references.some((it) => it.task === task)) state.references.push({ task, name, skill });
    if (state.target) close();
    show();
    focus();
  }

  use("");
  return { element, drop: files.drop, offer, ask, use, move, refine, focus, forget };
}
