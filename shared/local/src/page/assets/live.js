// What changes while the page is open: asks the program once a second whether something was
// stored, and notices when it is away or was started again.

import { hasToken, local } from "./api.js";
import { bar, button } from "./dom.js";

const EVERY = 1000;
/** For how long the program may be away before the bar says so. */
const PATIENCE = 2000;

/** Sends `change`, `restart`, `build`, `away` and `back`; `build` is that of `dev`, if it runs. */
export const live = Object.assign(new EventTarget(), { build: null });
const known = { commits: -1, startedMs: 0, lostAt: 0 };
let wake = () => {};

export async function watch() {
  for (;;) {
    if (hasToken() && !document.hidden) await ask();
    await new Promise((done) => {
      wake = done;
      setTimeout(done, EVERY);
    });
  }
}

/** Asks at once. */
const askNow = () => wake();

async function ask() {
  try {
    const now = await local("changes");
    const restarted = known.startedMs && now.startedMs !== known.startedMs;
    const changed = known.commits >= 0 && now.commits !== known.commits;
    const back = known.lostAt;
    Object.assign(known, { commits: now.commits, startedMs: now.startedMs, lostAt: 0 });
    if (back) {
      bar();
      live.dispatchEvent(new Event("back"));
    }
    const isOther = now.build?.state === "building" || JSON.stringify(now.build) !== JSON.stringify(live.build);
    live.build = now.build;
    if (isOther) live.dispatchEvent(new Event("build"));
    if (restarted) live.dispatchEvent(new Event("restart"));
    if (changed || restarted) live.dispatchEvent(new Event("change"));
  } catch (error) {
    if (error.status) return;
    known.lostAt ||= Date.now();
    live.dispatchEvent(new Event("away"));
    const away = Date.now() - known.lostAt;
    if (away >= PATIENCE) shown(`No connection for ${Math.round(away / 1000)} s.`);
  }
}

function shown(text) {
  const said = document.querySelector("#bar.wait strong");
  // A bar that is there changes in place, so that its button keeps the focus.
  if (said) said.textContent = text;
  else bar("wait", text, "The page tries again by itself. What you typed is kept.", button("Try now", askNow));
}
