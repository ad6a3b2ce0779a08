// An agent of the official JavaScript SDK 1.x for `a2a-local check`, as python/sdk_server.py is one: it
// asks once if a text begins with `book`, works for half a second, and streams two chunks. Its card
// offers both bindings.

import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { load } from './walk.mjs';

const { values } = parseArgs({ options: { sdk: { type: 'string' }, buffer: { type: 'boolean' } } });
const express = createRequire(join(values.sdk, 'package.json'))('express');
const sdk = await load(values.sdk, '.');
const server = await load(values.sdk, './server');
const { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } = await load(values.sdk, './server/express');
const { AgentEvent } = server;

class Worker {
  async execute({ taskId, contextId, task, userMessage }, bus) {
    const here = { taskId, contextId };
    const update = (state, message) =>
      bus.publish(AgentEvent.statusUpdate(sdk.TaskStatusUpdateEvent.fromJSON({ ...here, status: { state, message } })));
    // Each turn has to begin with its task.
    const status = { state: 'TASK_STATE_SUBMITTED' };
    const first = sdk.Task.fromJSON({ id: taskId, contextId, status });
    bus.publish(AgentEvent.task(task ?? { ...first, history: [userMessage] }));
    if (!task && userMessage.parts[0].content.value.toString().startsWith('book')) {
      const question = { ...here, messageId: 'question', role: 'ROLE_AGENT', parts: [{ text: 'When?' }] };
      update('TASK_STATE_INPUT_REQUIRED', question);
      return bus.finished();
    }
    update('TASK_STATE_WORKING');
    for (const text of ['one', 'two']) {
      await sleep(250);
      const artifact = { artifactId: 'a', parts: [{ text }] };
      const chunk = sdk.TaskArtifactUpdateEvent.fromJSON({ ...here, artifact, append: text === 'two' });
      bus.publish(AgentEvent.artifactUpdate(chunk));
    }
    update('TASK_STATE_COMPLETED');
    bus.finished();
  }

  async cancelTask() {}
}

const listener = createServer().listen(0, '127.0.0.1');
await once(listener, 'listening');
const base = `http://127.0.0.1:${listener.address().port}`;
const skill = { id: 'work', name: 'Work', description: 'Works.', tags: ['test'], examples: ['hello'] };
const bindings = { JSONRPC: `${base}/rpc`, 'HTTP+JSON': `${base}/rest` };
const card = sdk.AgentCard.fromJSON({
  name: 'SDK server',
  description: 'An agent of the official SDK.',
  version: '1',
  supportedInterfaces: Object.entries(bindings).map(([protocolBinding, url]) => ({ url, protocolBinding, protocolVersion: '1.0' })),
  capabilities: { streaming: true, pushNotifications: true },
  defaultInputModes: ['text/plain', 'application/octet-stream'],
  defaultOutputModes: ['text/plain'],
  skills: [skill, { ...skill, id: 'ask', examples: ['book a table'] }],
});
const hooks = new server.InMemoryPushNotificationStore();
const sender = new server.DefaultPushNotificationSender(hooks);
const requestHandler = new server.DefaultRequestHandler(
  card, new server.InMemoryTaskStore(), new Worker(), undefined, hooks, sender,
);
const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
const app = express();
// Express alone takes 100 KB; the file of `check` has 300.
app.use(express.json({ limit: '1mb', type: ['application/json', 'application/a2a+json'] }));
if (values.buffer) {
  app.use((_request, response, next) => {
    const parts = [];
    const end = response.end.bind(response);
    response.flushHeaders = () => {};
    response.write = (part) => parts.push(part);
    response.end = (part) => end(parts.concat(part ?? []).join(''));
    next();
  });
}
app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
app.use('/rpc', jsonRpcHandler(options));
app.use('/rest', restHandler(options));
listener.on('request', app);
console.log(`listening on ${base}`);
