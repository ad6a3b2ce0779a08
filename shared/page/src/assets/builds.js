// The builds of `dev`: which one serves, what became of the newest, and what it changed.

import { bar, button, closeBar, el, replace, took } from "./dom.js";
import { live } from "./live.js";

/** How long the bar of a new build stays, unless somebody reads it. */
const STAYS = 6000;
const newest = { number: 0, began: 0 };

/** The sentence for the foot of the rail, and its colour. */
export function buildLine(build) {
  if (build.number !== newest.number) Object.assign(newest, { number: build.number, began: performance.now() });
  const serves = `Build ${build.serving} serves`;
  if (build.state === "building") return [`Building, ${took(performance.now() - newest.began)}`, "wait"];
  return isBad(build) ? [`${serves}, ${build.number} ${fateOf(build)}`, "bad"] : [serves, ""];
}

const fateOf = (build) => (build.state === "failed" ? "failed" : "did not start");

/** Whether the newest build failed, or did not start. */
export const isBad = (build) => ["failed", "not-started"].includes(build?.state);

/** Shows a build that failed as a bar, which stays until a later one serves. */
export function showBuild(build) {
  const output = el("pre", { class: "output", tabindex: "0", hidden: true, "aria-label": "What the build said" }, build.output);
  const show = button("Show the output", () => {
    output.hidden = !output.hidden;
    replace(show, output.hidden ? "Show the output" : "Hide the output");
  });
  const words = [`Build ${build.number} ${fateOf(build)}.`, `Build ${build.serving} serves.`];
  bar("build", "bad", ...words, show, closeBar("build"), output);
}

/** Says for some seconds what serves or is built, and which skills a new build changed. */
export function showServing(text, before, after) {
  const kind = live.build?.state === "building" ? "wait" : "good";
  bar("serves", kind, text, changes(before ?? [], after ?? []), closeBar("serves"));
  const close = () => {
    if (document.querySelector("#bar.serves:is(:hover, :focus-within)")) closing = setTimeout(close, 1000);
    else bar("serves");
  };
  clearTimeout(closing);
  closing = setTimeout(close, STAYS);
}
let closing;

/** The skills that differ, by their ids. */
function changes(before, after) {
  const of = (all) => new Map(all.map((it) => [it.id, JSON.stringify(it)]));
  const [old, now] = [of(before), of(after)];
  const ids = (all, test) => [...all.keys()].filter(test).join(", ");
  const parts = [
    ["New", ids(now, (id) => !old.has(id))],
    ["Changed", ids(now, (id) => old.has(id) && old.get(id) !== now.get(id))],
    ["Gone", ids(old, (id) => !now.has(id))],
  ];
  return parts.filter(([, names]) => names).map(([word, names]) => `${word}: ${names}.`).join(" ");
}
