// The acts of every Node client, written once against a small adapter: the same as
// ../python/acts.py, which says what each act is. `play` prints one line for each act:
// `client | act | ok, FAIL or cannot | detail`.

import { readFileSync } from "node:fs";
import { deflateSync } from "node:zlib";
import { parseArgs } from "node:util";

const [ACT_LIMIT_MS, CONVERSATION_LIMIT_MS] = [60_000, 120_000];
const DETAIL_MAX = 240;
const UNKNOWN = "task-that-does-not-exist";
const REFUSALS = ["task not found", "the context has expired", "must have 1 to 64"];
const WORDS = "fingerprint";
const CONVERSATIONS = JSON.parse(readFileSync(new URL("conversations.json", import.meta.url)));

/** The client has no such call; the text says what is missing. */
export class Cannot extends Error {}

/** What a user of the client sees of one answer. */
export class Reply {
  text = "";
  files = 0;
  state = "";
  task = "";
  handle = undefined;
  constructor(values = {}) {
    Object.assign(this, values);
  }
}

/** The adapter of one client. A method that is not overridden is a call that it lacks. */
export class Client {
  showsData = true;
  refers = false;
  async open() {}
  async send() {
    throw new Cannot("every call streams");
  }
  async stream() {
    throw new Cannot("no call streams");
  }
  async talk(text, last) {
    return this.stream(text, last);
  }
  async say(text, last) {
    return this.talk(text, last);
  }
  async refer() {
    throw new Cannot("its user attaches no references");
  }
  async file() {
    throw new Cannot("it sends text only");
  }
  async streamTo() {
    throw new Cannot("its calls take no task id");
  }
  async provoke() {
    return this.streamTo(UNKNOWN, "hello");
  }
  async cancel() {
    throw new Cannot("no such call");
  }
  async get() {
    throw new Cannot("no such call");
  }
  async list() {
    throw new Cannot("no such call");
  }
}

const lacks = (client, method) => client[method] === Client.prototype[method];

/** The parts of 0.3 (with a kind) and of 1.0 (a content), as a user sees them. */
export function see(reply, parts) {
  for (const part of parts ?? []) {
    if (part.kind === "text" || typeof part.text === "string") reply.text += part.text;
    else if (part.kind === "data" || part.data !== undefined) reply.text += JSON.stringify(part.data);
    else reply.files += 1;
  }
}

/** The reply with one event, or one whole result, of the types of 0.3. */
export function add(reply, event) {
  if (event.kind === "message") see(reply, event.parts);
  else if (event.kind === "artifact-update") see(reply, event.artifact.parts);
  else {
    if (event.kind === "task") {
      reply = new Reply({ task: event.id, handle: { taskId: event.id, contextId: event.contextId } });
      for (const artifact of event.artifacts ?? []) see(reply, artifact.parts);
    }
    reply.state = event.status.state;
    see(reply, event.status.message?.parts);
  }
  return reply;
}

/** A picture of one grey pixel. */
function png() {
  const chunk = (kind, body) => {
    const named = Buffer.concat([Buffer.from(kind), body]);
    const [size, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    size.writeUInt32BE(body.length);
    sum.writeUInt32BE(crc32(named));
    return Buffer.concat([size, named, sum]);
  };
  const head = Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]);
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk("IHDR", head),
    chunk("IDAT", deflateSync(Buffer.from([0, 0x80]))),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

// Node 20 has no crc32 of its own.
function crc32(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  }
  return (sum ^ 0xffffffff) >>> 0;
}

export const asks = (reply) => /input.required/i.test(reply?.state ?? "");

/** The ids of the next message, of a reply with both: the task if that asks. */
export const ids = (last) => (asks(last) || !last?.handle ? last?.handle : { contextId: last.handle.contextId });

function shows(reply, ...words) {
  const seen = words.find((word) => reply.text.includes(word));
  if (seen === undefined) {
    throw new Error(`'${words[0]}' is not shown: ${reply.text || "no text"}, state ${reply.state || "not shown"}`);
  }
  return seen;
}

/** The code that a question of consent asks for. */
function code(reply) {
  const line = /Answer `yes (\w+)`/.exec(reply.text);
  if (line === null) throw new Error(`no code is shown: ${reply.text}`);
  return line[1];
}

function hasFile(reply) {
  if (reply.files === 0) {
    throw new Error(`no file is shown: text '${reply.text}', state ${reply.state || "not shown"}`);
  }
  return `${reply.files} file`;
}

/** The texts of an error and of its causes. */
function chain(error) {
  const texts = [];
  for (let one = error; one !== undefined && one !== null && texts.length < 6; one = one.cause) {
    texts.push(`${one.name ?? "thrown"}: ${one.message ?? JSON.stringify(one)}`);
  }
  return texts.join(" < ");
}

async function attempt(call) {
  try {
    return await call();
  } catch (error) {
    if (error instanceof Cannot) throw error;
    return new Reply({ text: chain(error) });
  }
}

/** One sentence of a conversation, and whether its user sees the right answer. */
async function say(client, turn, replies) {
  const { plain } = turn;
  const text = turn.say.includes("{code}") ? turn.say.replace("{code}", code(replies.at(-1))) : turn.say;
  let last = replies.at(turn.to ?? -1);
  if (turn.aside) last = new Reply({ ...last, state: "" });
  let reply;
  if ("about" in turn && !lacks(client, "refer")) reply = await client.refer(text, last, replies[turn.about]);
  else if ("about" in turn && !plain) throw new Cannot("its user attaches no references");
  else reply = await client.say(client.refers ? text : (plain ?? text), last);
  if (turn.choose && reply.text.includes("Which of these do you mean")) reply = await client.say(turn.choose, reply);
  const isHidden = turn.data && !client.showsData;
  if (!isHidden && !(turn.file && reply.files) && !turn.see.some((word) => reply.text.includes(word))) {
    throw new Error(`after '${text}': ${reply.text || "no text"}, state ${reply.state || "not shown"}`);
  }
  return reply;
}

async function converse(client, { turns }) {
  const replies = [];
  for (const turn of turns) {
    for (let time = 0; time < (turn.times ?? 1); time += 1) replies.push(await say(client, turn, replies));
  }
  return `${replies.length} turns`;
}

/** The acts in their order, with what they leave for later ones. */
function acts(client) {
  let question;
  let ended;
  return {
    send: async () => shows(await client.send("echo hello"), "hello"),
    stream: async () => shows(await client.stream("echo hello"), "hello"),
    data: async () => {
      ended = await client.talk("What's 2+2?");
      if (!/\b4\b/.test(ended.text)) {
        throw new Error(`4 is not shown: ${ended.text || "no text"}, state ${ended.state || "not shown"}`);
      }
      return "4";
    },
    chunks: async () => shows(await client.talk("Generate Q4 financial report"), "## Analysis"),
    "text artifact": async () => shows(await client.talk("Format my report as Markdown"), "# Report"),
    picture: async () => hasFile(await client.talk("Generate logo")),
    question: async () => {
      question = await client.talk("Book a flight");
      return shows(question, "Where to?");
    },
    "streamed question": async () => shows(await client.stream("Book a flight"), "Where to?"),
    answer: async () => {
      if (question === undefined) throw new Error("the question did not arrive");
      const first = await client.talk("Lisbon", question);
      shows(first, "When?");
      return shows(await client.talk("tomorrow", first), "Lisbon");
    },
    failure: async () => shows(await attempt(() => client.talk("/add 2+2+2")), "two whole numbers are needed"),
    "file with words": async () => hasFile(await client.file(WORDS, "pixel.png", png())),
    "stream error": async () => shows(await attempt(() => client.provoke()), ...REFUSALS),
    "ended task": async () => {
      if (lacks(client, "streamTo")) throw new Cannot("its calls take no task id");
      // Some clients show the id of a task in one mode only.
      if (!ended?.task) ended = await client.stream("What's 2+2?");
      return shows(await attempt(() => client.streamTo(ended.task, "hello")), "accepts no message");
    },
    "cancel twice": async () => {
      if (lacks(client, "cancel")) throw new Cannot("no such call");
      const { task } = await client.talk("Book a flight");
      const states = [await client.cancel(task), await client.cancel(task)];
      if (!states.every((state) => /cancel/i.test(state))) throw new Error(`states ${states}`);
      return "twice";
    },
    get: async () => {
      if (lacks(client, "get")) throw new Cannot("no such call");
      const { task } = await client.talk("Book a flight");
      return shows(await client.get(task), "Where to?");
    },
    list: async () => {
      if ((await client.list()).length === 0) throw new Error("the list is empty");
      return "tasks";
    },
  };
}

/** Plays every act of the client that `make` makes, and prints its lines. */
export async function play(make) {
  const text = { type: "string" };
  const { values } = parseArgs({ options: { base: text, client: text, conversations: { type: "boolean" } } });
  const print = console.log;
  // Some frameworks print what they do.
  for (const level of ["log", "info", "warn", "debug", "error"]) console[level] = () => {};
  const line = (act, result, detail) => {
    const plain = String(detail).replace(/\s+/g, " ").replaceAll("|", "/").slice(0, DETAIL_MAX);
    print(`${values.client} | ${act} | ${result} | ${plain}`);
  };
  const limited = (work, limit) => {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error("the act takes too long")), limit);
    });
    return Promise.race([work, late]).finally(() => clearTimeout(timer));
  };
  const client = make();
  const card = async () => (await client.open(values.base)) ?? "";
  if (values.conversations) await card();
  const played = Object.entries(CONVERSATIONS).filter(([, talk]) => values.conversations || !talk.only);
  const talks = played.map(([name, talk]) => [name, () => converse(client, talk)]);
  const all = values.conversations ? talks : [...Object.entries({ card, ...acts(client) }), ...talks];
  for (const [act, plays] of all) {
    try {
      line(act, "ok", await limited(plays(), act in CONVERSATIONS ? CONVERSATION_LIMIT_MS : ACT_LIMIT_MS));
    } catch (error) {
      line(act, error instanceof Cannot ? "cannot" : "FAIL", error instanceof Cannot ? error.message : chain(error));
    }
  }
  process.exit(0);
}
