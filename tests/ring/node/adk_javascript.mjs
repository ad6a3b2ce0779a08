// Google's Agent Development Kit for JavaScript, npm `@google/adk`: a runner of `RemoteA2AAgent` by URL.

import { InMemoryRunner, RemoteA2AAgent } from "@google/adk";
import { Client, play, Reply } from "./acts.mjs";


class Adk extends Client {
  async open(base) {
    this.card = base;
  }
  async session(options) {
    const agent = new RemoteA2AAgent({ name: "ring", agentCard: this.card, ...options });
    const runner = new InMemoryRunner({ agent, appName: "ring" });
    const { id } = await runner.sessionService.createSession({ appName: "ring", userId: "user" });
    return { runner, id };
  }
  async ask(parts, session) {
    const reply = new Reply({ handle: session });
    const newMessage = { role: "user", parts };
    for await (const event of session.runner.runAsync({ userId: "user", sessionId: session.id, newMessage })) {
      reply.task = event.customMetadata?.["a2a:task_id"] ?? reply.task;
      reply.text += event.errorMessage ?? "";
      for (const part of event.content?.parts ?? []) {
        if (part.inlineData || part.fileData) reply.files += 1;
        else reply.text += part.text ?? "";
      }
    }
    return reply;
  }
  async stream(text, last) {
    return this.ask([{ text }], last?.handle ?? (await this.session()));
  }
  async file(text, displayName, content) {
    const inlineData = { data: content.toString("base64"), mimeType: "image/png", displayName };
    return this.ask([{ text }, { inlineData }], await this.session());
  }
  async streamTo(taskId, text) {
    const address = (_, params) => Object.assign(params.message, { taskId });
    return this.ask([{ text }], await this.session({ beforeRequestCallbacks: [address] }));
  }
}

await play(() => new Adk());
