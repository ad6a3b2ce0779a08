// The walk of every Node client, written once against a small adapter; the same
// steps, in the same order, as ../python/walk.py.
//
// An adapter has: lists, fileSize, losesAppend, open(base), send(text, {task, wait}), sendData(text, data),
// hooked(text, {url, token}), stream(text, task), subscribe(taskId), get(taskId, history), cancel(taskId),
// list(contextId), refusal(error). Adapters translate tasks and events to the neutral
// shapes {id, contextId, state, artifacts: [{id, texts, files}], history:
// [{role, text}]} and {kind, task, state, artifact, append, lastChunk}, states
// in lower-case 0.3 words.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

/** The time limit of one call, in milliseconds. A blocking send responds within 28 s. */
export const CALL_TIMEOUT = 30_000;
/** The token of a push config, expected in each delivery. */
const TOKEN = 'interop-token';
const KEPT_EXCHANGES = 4;
const SHOWN_BODY = 2000;

/** Loads an entry of the SDK installed below `dir`, by the package's own export map. */
export async function load(dir, entry) {
  const root = join(dir, 'node_modules', '@a2a-js', 'sdk');
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  return import(pathToFileURL(join(root, exports[entry].import)).href);
}

/** The last exchanges of a walk, for the report of a failure. */
export class Exchanges {
  #kept = [];

  /** A `fetch` for the SDK: bounded in time, and copied while the SDK reads. */
  fetch = async (url, init = {}) => {
    const entry = { request: `${init.method ?? 'GET'} ${url}`, body: init.body ?? '', status: '-', answer: '' };
    this.#kept = [...this.#kept, entry].slice(-KEPT_EXCHANGES);
    const limit = AbortSignal.timeout(CALL_TIMEOUT);
    const signal = init.signal ? AbortSignal.any([init.signal, limit]) : limit;
    const response = await fetch(url, { ...init, signal });
    entry.status = `${response.status} ${response.headers.get('content-type') ?? ''}`;
    if (!response.body) return response;
    const decoder = new TextDecoder();
    const copy = new TransformStream({
      transform(block, controller) {
        entry.answer += decoder.decode(block, { stream: true });
        controller.enqueue(block);
      },
    });
    const { status, statusText, headers } = response;
    return new Response(response.body.pipeThrough(copy), { status, statusText, headers });
  };

  print() {
    for (const { request, body, status, answer } of this.#kept) {
      console.log(`  > ${request}`);
      if (body) console.log(`  > ${String(body).slice(0, SHOWN_BODY)}`);
      console.log(`  < ${status}`);
      for (const line of answer.slice(0, SHOWN_BODY).split('\n')) console.log(`  < ${line}`);
    }
  }
}

const artifactText = (task) => task.artifacts.flatMap((artifact) => artifact.texts).join('');
const userTexts = (task) => task.history.filter(({ role }) => role === 'user').map(({ text }) => text);
const pattern = (size) => Buffer.from(Array.from({ length: size }, (_, index) => index % 251));

async function refused(client, wanted, call) {
  let answer;
  try {
    answer = await call();
  } catch (error) {
    // The SDK puts the error of a stream inside one of its own.
    const got = client.refusal(error) ?? client.refusal(error.cause);
    if (got === wanted) return;
    throw new Error(`got error ${got}, expected ${wanted}`, { cause: error });
  }
  assert.fail(`got a response, expected error ${wanted}: ${JSON.stringify(answer)}`);
}

const steps = {
  async the_card_is_read({ client, base }) {
    assert.deepEqual(await client.open(base), [], 'faults in the card');
  },

  async a_send_completes(walk) {
    const task = await walk.client.send('echo hello');
    assert.equal(task.state, 'completed');
    assert.equal(artifactText(task), 'echo: hello');
    assert.deepEqual(userTexts(task), ['echo hello'], 'user messages in history');
    assert.ok(task.id && task.contextId, 'a task has an id and a context');
    walk.done = task;
  },

  async a_get_returns_the_requested_history({ client, done }) {
    const task = await client.get(done.id, 10);
    assert.equal(task.id, done.id);
    assert.equal(task.contextId, done.contextId);
    assert.equal(task.state, 'completed');
    assert.equal(artifactText(task), 'echo: hello');
    assert.deepEqual(userTexts(task), ['echo hello'], 'user messages in history');
  },

  async an_unknown_task_is_not_found({ client }) {
    await refused(client, 'not-found', () => client.get(randomUUID()));
  },

  async a_stream_shows_each_chunk_in_order({ client }) {
    const events = [];
    for await (const event of client.stream('chunks 5 20')) events.push(event);
    assert.equal(events[0]?.kind, 'task', 'first event');
    const chunks = events.filter(({ kind }) => kind === 'artifact');
    const texts = chunks.map(({ artifact }) => artifact.texts.join(''));
    assert.deepEqual(texts, [1, 2, 3, 4, 5].map((number) => `chunk-${number} `));
    assert.equal(new Set(chunks.map(({ artifact }) => artifact.id)).size, 1, 'artifacts');
    if (!client.losesAppend) {
      assert.deepEqual(chunks.map(({ append }) => append), [false, true, true, true, true], 'append');
    }
    assert.deepEqual(chunks.map(({ lastChunk }) => lastChunk), [false, false, false, false, true], 'last chunk');
    const { kind, state } = events.at(-1);
    assert.deepEqual({ kind, state }, { kind: 'status', state: 'completed' }, 'last event');
    const kept = await client.get(events[0].task.id);
    assert.equal(artifactText(kept), texts.join(''), 'kept text');
    assert.equal(kept.artifacts.length, 1, 'kept artifacts');
  },

  async an_error_on_a_stream_is_read({ client, done }) {
    const last = async (events) => {
      let newest;
      for await (const event of events) newest = event;
      return newest;
    };
    await refused(client, 'unsupported', () => last(client.stream('echo again', done)));
    await refused(client, 'not-found', () => last(client.subscribe(randomUUID())));
    const { kind, state } = await last(client.stream('fail'));
    assert.deepEqual({ kind, state }, { kind: 'status', state: 'failed' }, 'an error after the first event');
  },

  async a_second_turn_continues_the_task(walk) {
    const { client } = walk;
    const asked = await client.send('hello?');
    assert.equal(asked.state, 'input-required', 'state after the first turn');
    const task = await client.send('echo done', { task: asked });
    assert.equal(task.id, asked.id);
    assert.equal(task.contextId, asked.contextId);
    assert.equal(task.state, 'completed', 'state after the second turn');
    assert.equal(artifactText(task), 'echo: done');
    const kept = await client.get(task.id, 10);
    assert.deepEqual(userTexts(kept), ['hello?', 'echo done'], 'user messages in history');
    const newest = await client.get(task.id, 1);
    assert.deepEqual(newest.history, kept.history.slice(-1), 'the newest message');
    walk.twoTurns = task;
  },

  async whole_numbers_arrive_as_such({ client }) {
    const task = await client.sendData('sum', { a: 19, b: 23 });
    assert.equal(task.state, 'completed');
    assert.equal(artifactText(task), 'sum: 42');
  },

  async a_cancel_may_be_repeated({ client, done }) {
    const asked = await client.send('hello?');
    assert.equal(asked.state, 'input-required');
    const canceled = await client.cancel(asked.id);
    assert.equal(canceled.id, asked.id);
    assert.equal(canceled.state, 'canceled', 'state after the cancel');
    assert.equal((await client.cancel(asked.id)).state, 'canceled', 'after a second cancel');
    await refused(client, 'not-cancelable', () => client.cancel(done.id));
  },

  async a_subscriber_sees_the_cancel_of_a_running_task({ client }) {
    const started = await client.send('wait 20', { wait: false });
    assert.ok(['submitted', 'working'].includes(started.state), `running, not ${started.state}`);
    const events = [];
    for await (const event of client.subscribe(started.id)) {
      if (!events.length) {
        assert.equal(event.kind, 'task', 'first event');
        assert.equal(event.task.id, started.id, 'task subscribed to');
        assert.equal((await client.cancel(started.id)).state, 'canceled');
      }
      events.push(event);
    }
    const { kind, state } = events.at(-1);
    assert.deepEqual({ kind, state }, { kind: 'status', state: 'canceled' }, 'last event');
  },

  async a_list_holds_the_tasks_of_a_context({ client, done, twoTurns }) {
    if (!client.lists) return;
    const everything = (await client.list()).map(({ id }) => id);
    assert.ok(everything.includes(done.id), 'the list holds the first task');
    assert.ok(everything.includes(twoTurns.id), 'the list holds the task of two turns');
    const here = await client.list(done.contextId);
    assert.deepEqual(here.map(({ id, contextId }) => ({ id, contextId })), [{ id: done.id, contextId: done.contextId }]);
  },

  async a_file_arrives_byte_for_byte({ client }) {
    const task = await client.send(`file ${client.fileSize}`);
    assert.equal(task.state, 'completed');
    const files = task.artifacts.flatMap((artifact) => artifact.files);
    assert.equal(files.length, 1, 'files');
    assert.equal(files[0].length, client.fileSize, 'size');
    assert.ok(pattern(client.fileSize).equals(files[0]), 'the bytes are those the agent made');
  },

  async a_webhook_receives_the_end_of_the_task({ client }) {
    const received = [];
    let over;
    const ended = new Promise((resolve) => { over = resolve; });
    const server = createServer((request, response) => {
      const chunks = [];
      request.on('data', (chunk) => chunks.push(chunk));
      request.on('end', () => {
        const body = JSON.parse(Buffer.concat(chunks).toString());
        received.push({ token: request.headers['x-a2a-notification-token'], id: request.headers['x-a2a-delivery-id'] });
        response.writeHead(204).end();
        const { state } = (body.statusUpdate ?? body).status ?? {};
        if (['TASK_STATE_COMPLETED', 'completed'].includes(state)) over();
      });
    });
    await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
    const task = await client.hooked('echo pushed', { url: `http://127.0.0.1:${server.address().port}/hook`, token: TOKEN });
    assert.equal(task.state, 'completed');
    const limit = AbortSignal.timeout(CALL_TIMEOUT);
    await Promise.race([ended, once(limit, 'abort').then(() => assert.fail('no push delivery shows the end'))]);
    assert.ok(received.every(({ token, id }) => token === TOKEN && id), 'token and id of each delivery');
    server.closeAllConnections();
    server.close();
  },

  async a_finished_task_refuses_messages({ client, done }) {
    await refused(client, 'unsupported', () => client.send('echo again', { task: done }));
    assert.deepEqual(userTexts(await client.get(done.id, 10)), ['echo hello'], 'user messages in history');
  },
};

function report(step, error) {
  console.log(`  step: ${step.replaceAll('_', ' ')}`);
  for (let cause = error; cause; cause = cause.cause) console.log(`  ${cause.name}: ${cause.message}`);
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  for (const frame of frames.slice(0, 3)) console.log(`  ${frame.trim()}`);
}

/** The command line of a client module: `--base URL --binding NAME --sdk DIR`. */
export async function main(make, bindings) {
  const option = { type: 'string' };
  const { values } = parseArgs({ options: { base: option, binding: option, sdk: option } });
  assert.ok(values.base && values.sdk, '--base URL and --sdk DIR are required');
  assert.ok(bindings.includes(values.binding), `--binding is one of ${bindings.join(', ')}`);
  const exchanges = new Exchanges();
  const client = await make(values.binding, values.sdk, exchanges.fetch);
  const walk = { client, base: values.base.replace(/\/+$/, '') };
  for (const [name, step] of Object.entries(steps)) {
    try {
      await step(walk);
    } catch (error) {
      report(name, error);
      exchanges.print();
      process.exit(1);
    }
  }
  // Idle keep-alive connections of `fetch` would hold the process open.
  process.exit(0);
}
