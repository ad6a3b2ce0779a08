// assistant-ui, npm `@assistant-ui/react-a2a`: its `A2AClient`, REST of 1.0.

import { randomUUID } from "node:crypto";
import { A2AClient } from "@assistant-ui/react-a2a";
import { Client, ids, play, Reply, see } from "./acts.mjs";

function whole(task) {
  const reply = new Reply({ task: task.id, handle: { taskId: task.id, contextId: task.contextId } });
  for (const artifact of task.artifacts ?? []) see(reply, artifact.parts);
  reply.state = task.status.state;
  see(reply, task.status.message?.parts);
  return reply;
}

class AssistantUi extends Client {
  async open(base) {
    this.client = new A2AClient({ baseUrl: base });
    return (await this.client.getAgentCard()).name;
  }
  message(parts, options) {
    return { messageId: randomUUID(), role: "user", parts, ...options };
  }
  async streamed(message) {
    let reply = new Reply();
    for await (const one of this.client.streamMessage(message)) {
      if (one.type === "task") reply = whole(one.task);
      else if (one.type === "message") see(reply, one.message.parts);
      else if (one.type === "artifactUpdate") see(reply, one.event.artifact.parts);
      else {
        reply.state = one.event.status.state;
        see(reply, one.event.status.message?.parts);
      }
    }
    return reply;
  }
  async send(text, last) {
    const answer = await this.client.sendMessage(this.message([{ text }], ids(last)));
    if (answer.status) return whole(answer);
    const reply = new Reply();
    see(reply, answer.parts);
    return reply;
  }
  async stream(text, last) {
    return this.streamed(this.message([{ text }], ids(last)));
  }
  async refer(text, last, about) {
    return this.streamed(this.message([{ text }], { ...ids(last), referenceTaskIds: [about.task] }));
  }
  async file(text, filename, content) {
    // As its runtime converts an attachment of a chat: with its media type.
    const raw = content.toString("base64");
    return this.streamed(this.message([{ text }, { raw, filename, mediaType: "image/png" }]));
  }
  async streamTo(taskId, text) {
    return this.streamed(this.message([{ text }], { taskId }));
  }
  async cancel(id) {
    return (await this.client.cancelTask(id)).status.state;
  }
  async get(id) {
    return whole(await this.client.getTask(id));
  }
  async list() {
    return (await this.client.listTasks()).tasks;
  }
}

await play(() => new AssistantUi());
