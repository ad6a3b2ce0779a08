"""BeeAI, PyPI `beeai-framework[a2a]`: `A2AAgent.run` by URL."""

import base64

import a2a.types as a2a_types
from beeai_framework.adapters.a2a.agents import A2AAgent
from beeai_framework.memory import UnconstrainedMemory

from acts import Client, Reply, main


class Framework(Client):
    package = "beeai-framework"
    refers = True

    def agent(self) -> A2AAgent:
        return A2AAgent(url=self.base, memory=UnconstrainedMemory())

    async def open(self, base):
        self.base = base
        await self.agent().check_agent_exists()

    async def ask(self, agent, content, **options) -> Reply:
        output = await agent.run(content, **options)
        reply = Reply(handle=agent, text=output.last_message.text)
        reply.files = sum(part.type == "file" for part in output.last_message.content)
        if isinstance(output.event, tuple):
            reply.task, reply.state = output.event[0].id, output.event[0].status.state.value
        return reply

    async def send(self, text, last=None):
        return await self.ask(last.handle if last else self.agent(), text, streaming=False)

    async def stream(self, text, last=None):
        return await self.ask(last.handle if last else self.agent(), text)

    async def file(self, text, name, content):
        # Its own messages send their text only, so a file is a message of the SDK's types.
        file = a2a_types.FileWithBytes(bytes=base64.b64encode(content).decode(), name=name)
        parts = [a2a_types.TextPart(text=text), a2a_types.FilePart(file=file)]
        message = a2a_types.Message(
            role=a2a_types.Role.user, message_id="m", parts=[a2a_types.Part(root=part) for part in parts]
        )
        return await self.ask(self.agent(), message)

    async def stream_to(self, task, text):
        return await self.ask(self.agent(), text, task_id=task)


if __name__ == "__main__":
    main(Framework())
