// The icons: line drawings of 16 by 16, made as nodes.

/** The circle around a state. */
const CIRCLE = "M8 1.8a6.2 6.2 0 1 1 0 12.4A6.2 6.2 0 0 1 8 1.8z";

const PATHS = {
  chat: "M3 3.5h10v7H8l-2.5 2.5v-2.5H3z",
  tasks: "M6 4h7.5M6 8h7.5M6 12h7.5M2.5 4h.01M2.5 8h.01M2.5 12h.01",
  skills: "M9 1.8 3.5 9H8l-1 5.2L12.5 7H8z",
  webhooks: "M6.2 6.8a2.6 2.6 0 1 1 3.5-1.6L11 8.4M9.3 11.3a2.6 2.6 0 1 0 2-3M7.5 4.8 5.6 9a2.4 2.4 0 1 0 1.6 2.3h2",
  agent: "M2.5 3.5h11v9h-11zM5 6.5h3M5 9.5h6",
  process: "M4.5 4.5h7v7h-7zM6.5 2v2.5M9.5 2v2.5M6.5 11.5V14M9.5 11.5V14M2 6.5h2.5M2 9.5h2.5M11.5 6.5H14M11.5 9.5H14",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  plus: "M8 3v10M3 8h10",
  copy: "M5.5 5.5h7v7h-7zM3.5 10.5v-7h7",
  check: "m3.5 8.5 3 3 6-7",
  close: "m4 4 8 8M12 4l-8 8",
  right: "m6 3.5 4.5 4.5L6 12.5",
  down: "m3.5 6 4.5 4.5L12.5 6",
  up: "M8 13V3.5M4 7.5l4-4 4 4",
  clip: "m12.5 7-4.8 4.8a2.6 2.6 0 0 1-3.7-3.7l5-5a1.7 1.7 0 0 1 2.5 2.4L6.7 10.3a.8.8 0 0 1-1.2-1.2L9.8 5",
  file: "M4 2.5h5l3 3v8H4zM9 2.5v3h3",
  save: "M8 2.5v7.5M4.7 7 8 10.3 11.3 7M3 13.5h10",
  refine: "m3 13 .7-3L11 2.8l2.2 2.2L6 12.3zM9.5 4.3l2.2 2.2",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.5 10.5 14 14",
  eye: "M1.5 8S4 3.8 8 3.8 14.5 8 14.5 8 12 12.2 8 12.2 1.5 8 1.5 8zM8 6.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6z",
  again: "M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3",
  warn: "M8 2.5 14 13H2zM8 6.5v3M8 11.3h.01",
  dot: "M8 6.5a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3z",
  worker: "M3 6h9M9.5 3.5 12 6 9.5 8.5M13 10.5H4M6.5 8 4 10.5 6.5 13",
  step: "M3 3h10v10H3zM5.5 8l2 2 3.5-4",
  model: "M8 1.8 13.5 5v6L8 14.2 2.5 11V5zM2.5 5 8 8l5.5-3M8 8v6",
  tool: "M10 2.5a3.5 3.5 0 0 0-3 5L2.5 12a1.1 1.1 0 0 0 1.5 1.5L8.5 9a3.5 3.5 0 0 0 5-3.8l-2 2-2-.7-.7-2 2-2z",
  send: "M2 8 14 2.5 11 13.5 7.5 9.5zM7.5 9.5 14 2.5",
  store: "M3 4.5C3 2.5 13 2.5 13 4.5v7c0 2-10 2-10 0zM3 4.5c0 2 10 2 10 0M3 8c0 2 10 2 10 0",
  completed: `${CIRCLE}M5.2 8.3l2 2 3.7-4.3`,
  working: "M8 1.8A6.2 6.2 0 1 1 2.6 5",
  submitted: CIRCLE,
  "input-required": `${CIRCLE}M6.2 6.4a1.8 1.8 0 1 1 2.6 1.7c-.5.3-.8.6-.8 1.2M8 11.3h.01`,
  "auth-required": "M10.3 2.5a3.2 3.2 0 1 1-1.9 5.8L3.5 13.3H2.5v-2l5-4.7a3.2 3.2 0 0 1 2.8-4.1zM11 5h.01",
  failed: `${CIRCLE}M6 6l4 4M10 6l-4 4`,
  rejected: `${CIRCLE}M6 6l4 4M10 6l-4 4`,
  canceled: `${CIRCLE}M5.2 8h5.6`,
};

const SPACE = "http://www.w3.org/2000/svg";

/** An icon, hidden from screen readers: a word beside it says the same. */
export function icon(name) {
  const svg = document.createElementNS(SPACE, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SPACE, "path");
  path.setAttribute("d", Object.hasOwn(PATHS, name) ? PATHS[name] : PATHS.dot);
  if (name === "working") svg.setAttribute("class", "ring");
  svg.append(path);
  return svg;
}
