// What changes while the page is open: asks the program once a second whether something was
// stored, and notices when it is away or was started again.

import { hasToken, local } from "./api.js";
import { bar, button, replace, span, timeOfDay } from "./dom.js";

const EVERY = 1000;
/** For how long the program may be away before the bar says so. */
const PATIENCE = 2000;

/** Sends `change`, `restart`, `skills`, `build`, `away` and `back`; `build` is that of `dev`, if it runs. */
export const live = Object.assign(new EventTarget(), { build: null });
const known = { commits: -1, startedMs: 0, lostAt: 0 };
let wake = () => {};

/** Whether the program does not answer. */
export const isAway = () => known.lostAt > 0;

/** Says that a view follows what is stored, or since when it does not. */
export function liveNote(signal) {
  const note = span("note");
  const show = () => replace(note, known.lostAt
    ? [span("dot wait"), `Not live since ${timeOfDay(new Date(known.lostAt))}`]
    : [span("dot"), "Live"]);
  for (const it of ["away", "back"]) live.addEventListener(it, show, { signal });
  show();
  return note;
}

export async function watch() {
  for (;;) {
    if (hasToken() && !document.hidden) await ask();
    await new Promise((done) => {
      wake = done;
      setTimeout(done, EVERY);
    });
  }
}

async function ask() {
  try {
    const now = await local("changes");
    const restarted = known.startedMs && now.startedMs !== known.startedMs;
    const changed = known.commits >= 0 && now.commits !== known.commits;
    const back = known.lostAt;
    Object.assign(known, { commits: now.commits, startedMs: now.startedMs, lostAt: 0 });
    if (back) {
      bar("away");
      live.dispatchEvent(new Event("back"));
    }
    const isOther = now.build?.state === "building" || JSON.stringify(now.build) !== JSON.stringify(live.build);
    live.build = now.build;
    if (isOther) live.dispatchEvent(new Event("build"));
    if (restarted) live.dispatchEvent(new Event("restart"));
    if (changed || restarted) live.dispatchEvent(new Event("change"));
  } catch (error) {
    // An answer without the right to ask is that of another program, or of another run of this one.
    const isOther = error.status === 401;
    if (error.status && !isOther) return;
    const isNew = !known.lostAt;
    known.lostAt ||= Date.now();
    if (isNew) live.dispatchEvent(new Event("away"));
    const away = Date.now() - known.lostAt;
    if (isOther) shown("Another program answers here.", "Open the address that it printed. What you typed is kept.");
    else if (away >= PATIENCE) shown(`No connection for ${Math.round(away / 1000)} s.`, TRIES);
  }
}
const TRIES = "The page tries again by itself. What you typed is kept.";

function shown(text, more) {
  const [said, quiet] = document.querySelectorAll("#bar.away :is(strong, .quiet)");
  // A bar that is there changes in place, so that its button keeps the focus.
  if (said) [said.textContent, quiet.textContent] = [text, more];
  else bar("away", "wait", text, more, button("Try now", () => wake()));
}
