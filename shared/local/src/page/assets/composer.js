// The composer: what the next message is (a new task, an answer, credentials), its text, its
// references and its files. Credentials are never kept: not in a draft, not in the address.

import { button, choice, div, el, iconButton, menu, plain, replace, span } from "./dom.js";
import { fileBox } from "./files.js";
import { icon } from "./icons.js";

const DRAFT = "a2a-local-draft:";

/** `send` gets `{parts, task, skill, references, secret}`. */
export function composer({ skills, send }) {
  const on = { input: typed, keydown: enter };
  const text = el("textarea", { id: "say", rows: 1, "aria-label": "Message", dir: "auto", on });
  const secret = el("input", {
    id: "secret", type: "password", autocomplete: "off", spellcheck: "false", "aria-label": "Credentials",
  });
  const eye = iconButton("eye", "Show what is typed", () => {
    secret.type = secret.type === "password" ? "text" : "password";
    eye.setAttribute("aria-pressed", String(secret.type === "text"));
  });
  const hidden = el("div", { class: "secret", hidden: true }, secret, eye);
  const chips = div("chips");
  const names = [["", "The agent chooses"], ...skills.map((it) => [it.id, it.name])];
  const skill = choice(names, { class: "pick cut", "aria-label": "Skill" });
  const answers = el("span", { class: "tag cut", hidden: true });
  const files = fileBox();
  const press = el("button", { type: "submit", class: "ink send", "aria-label": "Send", title: "Send" }, icon("up"));
  const hint = el("p", { class: "hint", hidden: true }, "Sent once. Not kept in page, history or trace.");
  const form = el("form", { class: "composer", "aria-label": "New message", on: { submit, keydown: leave } },
    chips, files.element, text, hidden,
    div("deck", files.button, skill, answers, span("grow"),
      span("hint keys-hint", "Enter sends"), press));
  const element = div("composer-place", form, hint);
  const state = { context: "", questions: [], target: "", closed: new Set(), references: [] };

  const question = () => state.questions.find((it) => it.task === state.target);
  const isSecret = () => question()?.state === "auth-required";

  function typed() {
    text.rows = 1;
    const lines = Math.round((text.scrollHeight - 14) / 20);
    text.rows = Math.max(1, Math.min(10, lines));
    sessionStorage.setItem(DRAFT + state.context, text.value);
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
    secret.value = "";
  }

  async function submit(event) {
    event.preventDefault();
    const task = state.target;
    const references = state.references.map((it) => it.task);
    if (isSecret()) {
      const given = secret.value;
      secret.value = "";
      secret.type = "password";
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
    const chosen = task ? "" : skill.value;
    send({ parts: [...sent, ...attached], skill: chosen, task, references });
    show();
    focus();
  }

  function chip(mark, verb, words, remove, name) {
    const press = iconButton("close", name, () => {
      remove();
      show();
      focus();
    }, { class: "" });
    return el("span", { class: mark === "refine" ? "chip" : "chip asks" }, icon(mark),
      span("cut", el("b", {}, verb), " ", el("bdi", {}, words)), press);
  }

  function refines(it) {
    const remove = () => { state.references = state.references.filter((other) => other !== it); };
    return chip("refine", "Refines", it.name, remove, `Do not refine ${plain(it.name)}`);
  }

  function show() {
    const asked = question();
    const hides = isSecret();
    const others = state.questions.filter((it) => it !== asked);
    const pick = (it) => [`Answer ${it.skill}`, () => {
      state.closed.delete(it.task);
      state.target = it.task;
      show();
      focus();
    }];
    const says = hides ? ["", `Credentials for ${asked.skill}`] : ["Answers", asked?.text];
    const more = asked && others.length > 0 && [`${others.length} more`, icon("down")];
    replace(chips,
      asked && chip(asked.state, ...says, close, "Do not answer"),
      more && menu(more, () => others.map(pick), { class: "small", up: true }),
      !asked && others.map((it) => button(...pick(it), { class: "small plain" })),
      state.references.map(refines));
    form.classList.toggle("secretly", hides);
    for (const it of [text, files.button]) it.hidden = hides;
    for (const it of [hidden, hint]) it.hidden = !hides;
    skill.hidden = Boolean(asked);
    answers.hidden = !asked || hides;
    replace(answers, asked?.skill);
    text.placeholder = asked ? "Your answer" : "Message the agent, or drop files anywhere";
  }

  function focus() {
    (isSecret() ? secret : text).focus({ preventScroll: true });
  }

  /** The open questions, the newest last. The composer answers the newest one. */
  function ask(questions) {
    const before = state.questions.map((it) => it.task);
    const hadFocus = element.contains(document.activeElement) || document.activeElement === document.body;
    state.questions = questions;
    const fresh = questions.filter((it) => !before.includes(it.task));
    if (fresh.length || !question()) state.target = questions.findLast((it) => !state.closed.has(it.task))?.task ?? "";
    show();
    if (hadFocus && element.isConnected) focus();
  }

  /** The composer of another conversation: its draft, and nothing that belongs to this one. */
  function use(context, isSame) {
    state.context = context;
    if (isSame) {
      sessionStorage.removeItem(DRAFT);
      return;
    }
    Object.assign(state, { questions: [], target: "", references: [] });
    state.closed.clear();
    secret.value = "";
    text.value = sessionStorage.getItem(DRAFT + context) ?? "";
    show();
    setTimeout(typed);
  }

  function refine(task, name) {
    if (!state.references.some((it) => it.task === task)) state.references.push({ task, name });
    if (state.target) close();
    show();
    focus();
  }

  show();
  return { element, drop: files.drop, ask, use, refine, focus, forget: () => { secret.value = ""; } };
}
