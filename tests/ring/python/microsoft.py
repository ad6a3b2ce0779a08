"""Microsoft Agent Framework, PyPI `agent-framework-a2a`: `A2AAgent.run` by URL."""

from a2a.types import TaskState
from agent_framework import AgentSession, Content, Message
from agent_framework.a2a import A2AAgent

from acts import Client, Reply, main


def see(response, session) -> Reply:
    state = session.service_session_id or {}
    reply = Reply(handle=session, task=state.get("task_id") or "")
    if state.get("task_state"):
        reply.state = TaskState.Name(state["task_state"])
    for message in response.messages:
        # A chat shows the agent's words as such; the user's own are no answer.
        if str(message.role) == "user":
            continue
        for content in message.contents:
            if content.text:
                reply.text += content.text
            elif content.type in ("data", "uri", "hosted_file"):
                reply.files += 1
    return reply


class Framework(Client):
    package = "agent-framework-a2a"
    refers = True

    async def open(self, base):
        self.agent = A2AAgent(name="ring", url=base)

    async def ask(self, message, session, stream: bool) -> Reply:
        session = session or AgentSession()
        if not stream:
            return see(await self.agent.run(message, session=session), session)
        updates = self.agent.run(message, session=session, stream=True)
        async for _ in updates:
            pass
        return see(await updates.get_final_response(), session)

    async def send(self, text, last=None):
        return await self.ask(text, last and last.handle, False)

    async def stream(self, text, last=None):
        return await self.ask(text, last and last.handle, True)

    async def talk(self, text, last=None):
        return await self.send(text, last)

    async def file(self, text, name, content):
        picture = Content.from_data(data=content, media_type="image/png")
        return await self.ask(Message(role="user", contents=[Content.from_text(text), picture]), None, False)

    async def stream_to(self, task, text):
        session = AgentSession()
        session.service_session_id = {
            "context_id": None,
            "task_id": task,
            "task_state": TaskState.TASK_STATE_INPUT_REQUIRED,
        }
        return await self.ask(text, session, True)

    async def get(self, task):
        return see(await self.agent.poll_task({"task_id": task, "context_id": ""}), AgentSession())


if __name__ == "__main__":
    main(Framework())
