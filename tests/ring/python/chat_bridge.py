"""The bridge of chat programs such as LibreChat, PyPI `a2a-bridge`: its server, asked as they ask it."""

import json
import uuid

import httpx
from a2a_bridge import AgentConfig, BridgeConfig
from a2a_bridge.server import STATE, app

from acts import CALL_LIMIT, Client, Reply, main


class Bridge(Client):
    package = "a2a-bridge"
    shows_files = shows_data = False

    async def open(self, base):
        STATE["config"] = BridgeConfig(agents={"ring": AgentConfig(id="ring", card_url=base)})
        self.lifespan = app.router.lifespan_context(app)
        await self.lifespan.__aenter__()
        transport = httpx.ASGITransport(app)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://bridge", timeout=CALL_LIMIT)

    async def ask(self, text, session, stream: bool) -> Reply:
        session = session or uuid.uuid4().hex
        body = {"model": "ring", "messages": [{"role": "user", "content": text}], "stream": stream, "user": session}
        answer = (await self.http.post("/v1/chat/completions", json=body)).raise_for_status().text
        lines = [line.removeprefix("data: ") for line in answer.splitlines() if line]
        choices = [json.loads(line)["choices"][0] for line in lines if line != "[DONE]"]
        texts = [choice.get("delta" if stream else "message", {}).get("content", "") for choice in choices]
        return Reply(text="".join(texts), handle=session)

    async def send(self, text, last=None):
        return await self.ask(text, last and last.handle, False)

    async def stream(self, text, last=None):
        return await self.ask(text, last and last.handle, True)

    async def provoke(self):
        # Its conversation is the context.
        STATE["store"].put("ring", "expired", "ctx-" + 32 * "0")
        return await self.stream("hello", Reply(handle="expired"))


if __name__ == "__main__":
    main(Bridge())
