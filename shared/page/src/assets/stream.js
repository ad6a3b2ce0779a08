// Follows a task: reads its events, and connects again after the last one it has.

import { ASKS, ENDED, call, exact, failure, open, stateOf, taskPath } from "./api.js";

/** The frames of an event stream. */
async function* frames(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest = (rest + value).replaceAll("\r\n", "\n");
      for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
        const frame = parse(rest.slice(0, end));
        rest = rest.slice(end + 2);
        if (frame) yield frame;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parse(text) {
  const frame = { id: "", event: "", data: [] };
  for (const line of text.split("\n")) {
    const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line);
    if (name === "data") frame.data.push(value);
    else if (name === "id" || name === "event") frame[name] = value;
  }
  return frame.data.length ? { ...frame, data: frame.data.join("\n") } : null;
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const EVENTS = { Accept: "text/event-stream" };
/** How often a lost connection is tried again before the page gives up. */
const TRIES = 60;

/**
 * Sends `body` and follows its task until it has ended, or follows `task`.
 * `show` gets each event; `lost` is called when the connection breaks and with `null`
 * when it is back.
 */
export async function follow({ body, task, show, lost, signal }) {
  const seen = { task, last: "", state: "" };
  if (body) await read(await open("/message:stream", { body, more: EVENTS, signal }), seen, show);
  for (let failed = 0; seen.task && !signal.aborted;) {
    if (ENDED.includes(seen.state) || ASKS.includes(seen.state)) return;
    try {
      const more = { ...EVENTS, ...(seen.last && { "Last-Event-ID": seen.last }) };
      const response = await open(taskPath(seen.task, ":subscribe"), { more, signal });
      if (failed) lost(null);
      failed = 0;
      await read(response, seen, show);
    } catch (error) {
      if (signal.aborted) return;
      // The task has ended without events to repeat: its stored form has everything.
      if (error.status >= 400 && error.status < 500 && error.status !== 429) {
        show({ task: await call(taskPath(seen.task)) }, "");
        return;
      }
      failed += 1;
      lost(error);
      if (failed > TRIES) throw error;
      await pause(Math.min(300 * failed, 3000));
    }
  }
}

/** Shows the frames of one connection. */
async function read(response, seen, show) {
  try {
    for await (const frame of frames(response)) {
      const event = exact(frame.data);
      if (frame.event === "error" || event.error) throw failure(200, event);
      const status = event.task?.status ?? event.statusUpdate?.status;
      // The first frame of a continued stream repeats a known status.
      const repeats = event.task && seen.last && !frame.id;
      seen.task = event.task?.id ?? event.statusUpdate?.taskId ?? event.artifactUpdate?.taskId ?? seen.task;
      if (frame.id) seen.last = frame.id;
      if (status) seen.state = stateOf(status);
      if (!repeats) show(event, frame.id);
    }
  } catch (error) {
    // Before the first frame nothing is known that could be followed.
    if (!seen.task || error.status) throw error;
  }
}
