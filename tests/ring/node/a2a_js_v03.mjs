// npm `@a2a-js/sdk` 0.3 with its own defaults: `ClientFactory.createFromUrl`.

import { randomUUID } from "node:crypto";
import { ClientFactory } from "@a2a-js/sdk/client";
import { add, Client, ids, play, Reply } from "./acts.mjs";

class Sdk extends Client {
  async open(base) {
    this.client = await new ClientFactory().createFromUrl(base);
  }
  params(parts, options) {
    return { message: { kind: "message", messageId: randomUUID(), role: "user", parts, ...options } };
  }
  async streamed(params) {
    let reply = new Reply();
    for await (const event of this.client.sendMessageStream(params)) reply = add(reply, event);
    return reply;
  }
  async send(text, last) {
    return add(new Reply(), await this.client.sendMessage(this.params([{ kind: "text", text }], ids(last))));
  }
  async stream(text, last) {
    return this.streamed(this.params([{ kind: "text", text }], ids(last)));
  }
  async refer(text, last, about) {
    return this.streamed(this.params([{ kind: "text", text }], { ...ids(last), referenceTaskIds: [about.task] }));
  }
  async file(text, name, content) {
    // Without a media type, as the official sample command line attaches one.
    const file = { name, bytes: content.toString("base64") };
    return this.streamed(this.params([{ kind: "text", text }, { kind: "file", file }]));
  }
  async streamTo(taskId, text) {
    return this.streamed(this.params([{ kind: "text", text }], { taskId }));
  }
  async cancel(id) {
    return (await this.client.cancelTask({ id })).status.state;
  }
  async get(id) {
    return add(new Reply(), await this.client.getTask({ id }));
  }
}

await play(() => new Sdk());
