"""Google's Agent Development Kit, PyPI `google-adk[a2a]`: a runner of `RemoteA2aAgent` by URL."""

import json
import uuid

from google.adk.a2a.agent.config import A2aRemoteAgentConfig, RequestInterceptor
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.runners import InMemoryRunner
from google.genai import types

from acts import Client, Reply, asks, main


class Session:
    """One conversation with the agent. `task` is put on each message, if it is given."""

    def __init__(self, base: str, task: str = "") -> None:
        self.task = task
        config = A2aRemoteAgentConfig(request_interceptors=[RequestInterceptor(before_request=self.address)] if task else [])
        agent = RemoteA2aAgent(name="ring", agent_card=f"{base}/.well-known/agent-card.json", config=config)
        self.runner = InMemoryRunner(agent=agent, app_name="ring")
        self.user = uuid.uuid4().hex
        self.id = ""
        self.call = None

    async def address(self, context, message, parameters):
        message.task_id = self.task
        message.context_id = ""
        return message, parameters

    async def ask(self, *parts: types.Part) -> Reply:
        if not self.id:
            self.id = (await self.runner.session_service.create_session(app_name="ring", user_id=self.user)).id
        message = types.Content(role="user", parts=list(parts))
        reply = Reply(handle=self)
        self.call = None
        async for event in self.runner.run_async(user_id=self.user, session_id=self.id, new_message=message):
            reply.task = (event.custom_metadata or {}).get("a2a:task_id") or reply.task
            reply.text += event.error_message or ""
            for part in event.content.parts or [] if event.content else []:
                if part.text:
                    reply.text += part.text
                elif part.function_call:
                    # A question is a long-running call of a function of its own.
                    self.call, reply.state = part.function_call, "input-required"
                    reply.text += json.dumps(part.function_call.args)
                elif part.inline_data and part.inline_data.data.startswith(b"<a2a_datapart_json>"):
                    reply.text += part.inline_data.data.decode()
                elif part.inline_data or part.file_data:
                    reply.files += 1
        return reply

    async def answer(self, text: str) -> Reply:
        response = types.FunctionResponse(id=self.call.id, name=self.call.name, response={"result": text})
        return await self.ask(types.Part(function_response=response))


class Framework(Client):
    package = "google-adk"

    async def open(self, base):
        self.base = base

    async def stream(self, text, last=None):
        if asks(last):
            return await last.handle.answer(text)
        return await (last.handle if last else Session(self.base)).ask(types.Part(text=text))

    async def file(self, text, name, content):
        picture = types.Part.from_bytes(data=content, mime_type="image/png")
        return await Session(self.base).ask(types.Part(text=text), picture)

    async def stream_to(self, task, text):
        return await Session(self.base, task).ask(types.Part(text=text))


if __name__ == "__main__":
    main(Framework())
