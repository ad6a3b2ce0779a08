"""tRPC-Agent, PyPI `trpc-agent-py[a2a]`: a runner of `TrpcRemoteA2aAgent` by URL."""

import uuid

from trpc_agent_sdk.runners import Runner
from trpc_agent_sdk.server.a2a import TrpcRemoteA2aAgent
from trpc_agent_sdk.sessions import InMemorySessionService
from trpc_agent_sdk.types import Content, Part

from acts import Client, Reply, main


class Framework(Client):
    package = "trpc-agent-py"

    async def open(self, base):
        self.agent = TrpcRemoteA2aAgent(name="ring", agent_base_url=base)
        await self.agent.initialize()
        self.runner = Runner(app_name="ring", agent=self.agent, session_service=InMemorySessionService())

    async def ask(self, parts, session) -> Reply:
        session = session or str(uuid.uuid4())
        reply = Reply(handle=session)
        message = Content(role="user", parts=parts)
        async for event in self.runner.run_async(user_id="user", session_id=session, new_message=message):
            reply.text += event.error_message or ""
            for part in event.content.parts or [] if event.content else []:
                reply.text += part.text or ""
                reply.files += bool(part.inline_data or part.file_data)
        return reply

    async def stream(self, text, last=None):
        return await self.ask([Part(text=text)], last and last.handle)

    async def file(self, text, name, content):
        return await self.ask([Part(text=text), Part.from_bytes(data=content, mime_type="image/png")], None)

    async def provoke(self):
        # Its session is the context.
        return await self.ask([Part(text="hello")], "ctx-" + 32 * "0")


if __name__ == "__main__":
    main(Framework())
