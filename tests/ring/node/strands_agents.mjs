// Strands Agents for TypeScript, npm `@strands-agents/sdk`: `A2AAgent.invoke` by URL.

import { A2AAgent } from "@strands-agents/sdk/a2a";
import { Cannot, Client, play, Reply } from "./acts.mjs";

function see(result) {
  const reply = new Reply();
  for (const block of result.lastMessage.content) {
    if (block.type === "textBlock") reply.text += block.text;
    else reply.files += 1;
  }
  return reply;
}

class Framework extends Client {
  async open(base) {
    this.agent = new A2AAgent({ url: base });
  }
  async stream(text, last) {
    if (last) return this.say();
    return see(await this.agent.invoke(text));
  }
  async say() {
    throw new Cannot("a call takes words only, and no task or context");
  }
  async provoke() {
    throw new Cannot("it sends a text part always, and no ids");
  }
}

await play(() => new Framework());
