// The A2A provider of the Vercel AI SDK, npm `a2a-ai-provider`: `generateText` and `streamText`.

import { generateText, streamText } from "ai";
import { a2a } from "a2a-ai-provider";
import { Client, play, Reply } from "./acts.mjs";

const EXPIRED = "ctx-00000000000000000000000000000000";

class Provider extends Client {
  async open(base) {
    // The provider's model is the address of the card.
    this.model = a2a(`${base}/.well-known/agent-card.json`);
  }
  options(content, contextId) {
    return {
      model: this.model,
      maxRetries: 0,
      messages: [{ role: "user", content }],
      ...(contextId && { providerOptions: { a2a: { contextId } } }),
    };
  }
  async generated(content, contextId) {
    const { text, files, response } = await generateText(this.options(content, contextId));
    return new Reply({ text, files: files.length, task: response.body?.id ?? "", handle: response.body?.contextId });
  }
  async streamed(content, contextId) {
    const reply = new Reply();
    let failure;
    const stream = streamText({
      ...this.options(content, contextId),
      onError: ({ error }) => {
        failure = error;
      },
    });
    for await (const part of stream.fullStream) {
      if (part.type === "text-delta") reply.text += part.text;
      if (part.type === "file") reply.files += 1;
      if (part.type === "error") failure = part.error;
    }
    if (failure !== undefined) throw failure;
    return reply;
  }
  async send(text, last) {
    return this.generated([{ type: "text", text }], last?.handle);
  }
  async stream(text, last) {
    return this.streamed([{ type: "text", text }], last?.handle);
  }
  async talk(text, last) {
    return this.send(text, last);
  }
  async file(text, filename, data) {
    return this.generated([
      { type: "text", text },
      { type: "file", data, filename, mediaType: "image/png" },
    ]);
  }
  async provoke() {
    return this.streamed([{ type: "text", text: "hello" }], EXPIRED);
  }
}

await play(() => new Provider());
