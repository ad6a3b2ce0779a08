// npm `@a2a-js/sdk` 0.3.x: JSON-RPC and HTTP+JSON in the 0.3 dialect.

import { randomUUID } from 'node:crypto';
import { load, main } from './walk.mjs';

/** Binding of the walk -> name of the transport on the card. */
const BINDINGS = { jsonrpc: 'JSONRPC', rest: 'HTTP+JSON' };

const texts = (parts) => parts.filter(({ kind }) => kind === 'text').map(({ text }) => text);

function artifact(one) {
  const files = one.parts.filter(({ kind }) => kind === 'file').map(({ file }) => Buffer.from(file.bytes, 'base64'));
  return { id: one.artifactId, texts: texts(one.parts), files };
}

function task(one) {
  return {
    id: one.id,
    contextId: one.contextId,
    state: one.status.state,
    artifacts: (one.artifacts ?? []).map(artifact),
    history: (one.history ?? []).map(({ role, parts }) => ({ role, text: texts(parts).join('') })),
  };
}

function event(one) {
  if (one.kind === 'task') return { kind: 'task', task: task(one), state: one.status.state };
  if (one.kind === 'status-update') return { kind: 'status', state: one.status.state };
  if (one.kind !== 'artifact-update') return { kind: one.kind };
  const { append = false, lastChunk = false } = one;
  return { kind: 'artifact', artifact: artifact(one.artifact), append, lastChunk };
}

class Sdk {
  lists = false;
  fileSize = 1000;

  constructor(binding, fetchImpl, sdk) {
    this.transport = BINDINGS[binding];
    // The REST transport reads the event but drops its `append`.
    this.losesAppend = binding === 'rest';
    this.fetchImpl = fetchImpl;
    this.sdk = sdk;
  }

  async open(base) {
    const options = { fetchImpl: this.fetchImpl };
    const card = await new this.sdk.DefaultAgentCardResolver(options).resolve(base);
    const connect = (clientConfig) =>
      new this.sdk.ClientFactory({
        transports: [new this.sdk.JsonRpcTransportFactory(options), new this.sdk.RestTransportFactory(options)],
        preferredTransports: [this.transport],
        clientConfig,
      }).createFromAgentCard(card);
    this.calls = await connect({});
    this.polls = await connect({ polling: true });
    const faults = card.name ? [] : ['no name'];
    if (!card.capabilities.streaming) faults.push('no streaming');
    if (!String(card.protocolVersion).startsWith('0.3')) faults.push(`protocolVersion ${card.protocolVersion}`);
    const offered = [card.preferredTransport, ...(card.additionalInterfaces ?? []).map(({ transport }) => transport)];
    if (!offered.includes(this.transport)) faults.push(`no transport ${this.transport}`);
    return faults;
  }

  request(text, continued) {
    const ids = continued ? { taskId: continued.id, contextId: continued.contextId } : {};
    return {
      message: { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text }], ...ids },
    };
  }

  async send(text, { task: continued, wait = true } = {}) {
    return task(await (wait ? this.calls : this.polls).sendMessage(this.request(text, continued)));
  }

  async sendData(text, data) {
    const request = this.request(text);
    request.message.parts.push({ kind: 'data', data });
    return task(await this.calls.sendMessage(request));
  }

  async hooked(text, pushNotificationConfig) {
    return task(await this.calls.sendMessage({ ...this.request(text), configuration: { blocking: true, pushNotificationConfig } }));
  }

  async *stream(text, continued) {
    for await (const one of this.calls.sendMessageStream(this.request(text, continued))) yield event(one);
  }

  async *subscribe(id) {
    for await (const one of this.calls.resubscribeTask({ id })) yield event(one);
  }

  async get(id, historyLength) {
    return task(await this.calls.getTask({ id, historyLength }));
  }

  async cancel(id) {
    return task(await this.calls.cancelTask({ id }));
  }

  refusal(error) {
    if (error instanceof this.sdk.TaskNotFoundError) return 'not-found';
    if (error instanceof this.sdk.TaskNotCancelableError) return 'not-cancelable';
    if (error instanceof this.sdk.UnsupportedOperationError) return 'unsupported';
    return undefined;
  }
}

const make = async (binding, dir, fetchImpl) => new Sdk(binding, fetchImpl, await load(dir, './client'));

await main(make, Object.keys(BINDINGS));
