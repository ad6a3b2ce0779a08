// npm `@a2a-js/sdk` 1.x with its own defaults: `ClientFactory.createFromUrl`.

import { randomUUID } from "node:crypto";
import { ClientFactory } from "@a2a-js/sdk/client";
import { Role, TaskState } from "@a2a-js/sdk";
import { Client, ids, play, Reply, see } from "./acts.mjs";

const part = (kind, value, filename = "") => ({
  content: { $case: kind, value },
  metadata: undefined,
  filename,
  mediaType: "",
});

/** The parts as the shared `see` reads them. */
const plain = (parts) =>
  (parts ?? []).map(({ content }) => ({ [content.$case]: content.value }));

function whole(task) {
  const reply = new Reply({ task: task.id, handle: { taskId: task.id, contextId: task.contextId } });
  for (const artifact of task.artifacts ?? []) see(reply, plain(artifact.parts));
  reply.state = TaskState[task.status.state];
  see(reply, plain(task.status.message?.parts));
  return reply;
}

class Sdk extends Client {
  async open(base) {
    this.client = await new ClientFactory().createFromUrl(base);
    return this.client.protocolVersion;
  }
  request(parts, options) {
    const message = {
      messageId: randomUUID(),
      role: Role.ROLE_USER,
      parts,
      taskId: "",
      contextId: "",
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
      ...options,
    };
    return { tenant: "", metadata: undefined, configuration: undefined, message };
  }
  async streamed(request) {
    let reply = new Reply();
    for await (const { payload } of this.client.sendMessageStream(request)) {
      const { $case, value } = payload;
      if ($case === "task") reply = whole(value);
      else if ($case === "message") see(reply, plain(value.parts));
      else if ($case === "artifactUpdate") see(reply, plain(value.artifact.parts));
      else {
        reply.state = TaskState[value.status.state];
        see(reply, plain(value.status.message?.parts));
      }
    }
    return reply;
  }
  async send(text, last) {
    const answer = await this.client.sendMessage(this.request([part("text", text)], ids(last)));
    if (answer.status) return whole(answer);
    const reply = new Reply();
    see(reply, plain(answer.parts));
    return reply;
  }
  async stream(text, last) {
    return this.streamed(this.request([part("text", text)], ids(last)));
  }
  async refer(text, last, about) {
    return this.streamed(this.request([part("text", text)], { ...ids(last), referenceTaskIds: [about.task] }));
  }
  async file(text, name, content) {
    // Without a media type, as the official sample command line attaches one.
    return this.streamed(this.request([part("text", text), part("raw", content, name)]));
  }
  async streamTo(taskId, text) {
    return this.streamed(this.request([part("text", text)], { taskId }));
  }
  async cancel(id) {
    return TaskState[(await this.client.cancelTask({ tenant: "", id, metadata: undefined })).status.state];
  }
  async get(id) {
    return whole(await this.client.getTask({ tenant: "", id }));
  }
  async list() {
    return (await this.client.listTasks({ tenant: "", contextId: "", status: 0, pageToken: "" })).tasks;
  }
}

await play(() => new Sdk());
