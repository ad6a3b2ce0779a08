// npm `@a2a-js/sdk` 1.x: JSON-RPC and HTTP+JSON, 1.0 and its `legacyCompat` mode.

import { randomUUID } from 'node:crypto';
import { load, main } from './walk.mjs';

/** Binding of the walk -> [name of the binding on the card, protocol version]. */
const BINDINGS = {
  jsonrpc: ['JSONRPC', '1.0'],
  rest: ['HTTP+JSON', '1.0'],
  'jsonrpc-0.3': ['JSONRPC', '0.3'],
  'rest-0.3': ['HTTP+JSON', '0.3'],
};

const contents = (parts, kind) =>
  parts.filter((part) => part.content?.$case === kind).map((part) => part.content.value);

class Sdk {
  fileSize = 1000;

  constructor(binding, fetchImpl, { types, client, errors }) {
    [this.binding, this.version] = BINDINGS[binding];
    this.lists = this.version === '1.0';
    // In 0.3 REST the SDK reads the event but drops its `append`.
    this.losesAppend = binding === 'rest-0.3';
    this.fetchImpl = fetchImpl;
    this.types = types;
    this.sdk = client;
    this.errors = errors;
  }

  async open(base) {
    const options = {
      fetchImpl: this.fetchImpl,
      ...(this.version === '1.0' ? {} : { legacyCompat: { enabled: true } }),
    };
    const card = await new this.sdk.DefaultAgentCardResolver(options).resolve(base);
    const faults = card.name ? [] : ['no name'];
    if (!card.capabilities?.streaming) faults.push('no streaming');
    // By default the SDK chooses the 1.0 interface of a binding. For its 0.3 mode
    // the walk removes all but the 0.3 interfaces from the card.
    const wanted = (card.supportedInterfaces ?? []).filter(
      ({ protocolBinding, protocolVersion }) =>
        protocolBinding === this.binding && protocolVersion === this.version,
    );
    if (!wanted.length) return [...faults, `no interface ${this.binding} ${this.version}`];
    const connect = (clientConfig) =>
      new this.sdk.ClientFactory({
        transports: [new this.sdk.JsonRpcTransportFactory(options), new this.sdk.RestTransportFactory(options)],
        preferredTransports: [this.binding],
        cardResolver: new this.sdk.DefaultAgentCardResolver(options),
        clientConfig,
      }).createFromAgentCard(this.version === '1.0' ? card : { ...card, supportedInterfaces: wanted });
    this.calls = await connect({});
    this.polls = await connect({ polling: true });
    if (!this.calls.protocolVersion.startsWith(this.version)) {
      faults.push(`the SDK speaks ${this.calls.protocolVersion}`);
    }
    return faults;
  }

  request(text, task) {
    return {
      tenant: '',
      metadata: undefined,
      configuration: undefined,
      message: {
        messageId: randomUUID(),
        role: this.types.Role.ROLE_USER,
        parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }],
        taskId: task?.id ?? '',
        contextId: task?.contextId ?? '',
        metadata: undefined,
        extensions: [],
        referenceTaskIds: [],
      },
    };
  }

  state(status) {
    const name = this.types.TaskState[status.state] ?? `unrecognised ${status.state}`;
    return name.replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-');
  }

  artifact(one) {
    return { id: one.artifactId, texts: contents(one.parts, 'text'), files: contents(one.parts, 'raw') };
  }

  task(one) {
    return {
      id: one.id,
      contextId: one.contextId,
      state: this.state(one.status),
      artifacts: (one.artifacts ?? []).map((artifact) => this.artifact(artifact)),
      history: (one.history ?? []).map(({ role, parts }) => ({
        role: role === this.types.Role.ROLE_USER ? 'user' : 'agent',
        text: contents(parts, 'text').join(''),
      })),
    };
  }

  event({ payload }) {
    const { $case, value } = payload;
    if ($case === 'task') return { kind: 'task', task: this.task(value), state: this.state(value.status) };
    if ($case === 'statusUpdate') return { kind: 'status', state: this.state(value.status) };
    if ($case === 'artifactUpdate') {
      const { append, lastChunk } = value;
      return { kind: 'artifact', artifact: this.artifact(value.artifact), append, lastChunk };
    }
    return { kind: $case };
  }

  async send(text, { task, wait = true } = {}) {
    return this.task(await (wait ? this.calls : this.polls).sendMessage(this.request(text, task)));
  }

  async sendData(text, data) {
    const request = this.request(text);
    const content = { $case: 'data', value: data };
    request.message.parts.push({ content, metadata: undefined, filename: '', mediaType: '' });
    return this.task(await this.calls.sendMessage(request));
  }

  async hooked(text, { url, token }) {
    const hook = { tenant: '', id: '', taskId: '', url, token, authentication: undefined };
    const configuration = {
      acceptedOutputModes: [],
      taskPushNotificationConfig: hook,
      historyLength: undefined,
      returnImmediately: false,
    };
    return this.task(await this.calls.sendMessage({ ...this.request(text), configuration }));
  }

  async *stream(text, continued) {
    for await (const one of this.calls.sendMessageStream(this.request(text, continued))) yield this.event(one);
  }

  async *subscribe(id) {
    for await (const one of this.calls.resubscribeTask({ tenant: '', id })) yield this.event(one);
  }

  async get(id, historyLength) {
    return this.task(await this.calls.getTask({ tenant: '', id, historyLength }));
  }

  async cancel(id) {
    return this.task(await this.calls.cancelTask({ tenant: '', id, metadata: undefined }));
  }

  async list(contextId = '') {
    const tasks = [];
    let pageToken = '';
    do {
      const page = await this.calls.listTasks({
        tenant: '',
        contextId,
        status: this.types.TaskState.TASK_STATE_UNSPECIFIED,
        pageToken,
        statusTimestampAfter: undefined,
      });
      tasks.push(...page.tasks.map((one) => this.task(one)));
      pageToken = page.nextPageToken;
    } while (pageToken);
    return tasks;
  }

  refusal(error) {
    if (error instanceof this.errors.TaskNotFoundError) return 'not-found';
    if (error instanceof this.errors.TaskNotCancelableError) return 'not-cancelable';
    if (error instanceof this.errors.UnsupportedOperationError) return 'unsupported';
    return undefined;
  }
}

async function make(binding, dir, fetchImpl) {
  const [types, client, errors] = await Promise.all(['.', './client', './errors'].map((entry) => load(dir, entry)));
  return new Sdk(binding, fetchImpl, { types, client, errors });
}

await main(make, Object.keys(BINDINGS));
