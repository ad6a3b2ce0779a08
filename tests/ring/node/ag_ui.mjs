// AG-UI, npm `@ag-ui/a2a`: an `A2AAgent` over an `A2AClient` of the official SDK, as its page shows.

import { randomUUID } from "node:crypto";
import { A2AClient } from "@a2a-js/sdk/client";
import { A2AAgent } from "@ag-ui/a2a";
import { Client, play, Reply } from "./acts.mjs";

class AgUi extends Client {
  showsData = false;
  async open(base) {
    this.client = new A2AClient(base);
    return (await this.client.getAgentCard()).name;
  }
  async ask(content, agent) {
    agent.addMessage({ id: randomUUID(), role: "user", content });
    const { newMessages } = await agent.runAgent();
    const text = newMessages.filter(({ role }) => role === "assistant").map((one) => one.content).join("\n");
    return new Reply({ text, handle: agent });
  }
  agent(options) {
    return new A2AAgent({ a2aClient: this.client, ...options });
  }
  async stream(text, last) {
    return this.ask(text, last?.handle ?? this.agent());
  }
  async file(text, filename, content) {
    const source = { type: "data", mimeType: "image/png", value: content.toString("base64") };
    return this.ask([{ type: "text", text }, { type: "image", source, metadata: { filename } }], this.agent());
  }
  async provoke() {
    // Its thread is the context.
    return this.ask("hello", this.agent({ threadId: "ctx-00000000000000000000000000000000" }));
  }
}

await play(() => new AgUi());
