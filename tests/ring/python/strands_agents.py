"""Strands Agents for Python, PyPI `strands-agents[a2a]`: `A2AAgent.invoke_async` by URL."""

from strands.agent.a2a_agent import A2AAgent

from acts import Cannot, Client, Reply, main


def see(result) -> Reply:
    reply = Reply(state=result.state.get("a2a_task_state", ""))
    for block in result.message["content"]:
        if "text" in block:
            reply.text += block["text"]
        else:
            reply.files += 1
    return reply


class Framework(Client):
    package = "strands-agents"

    async def open(self, base):
        self.agent = A2AAgent(endpoint=base)
        await self.agent.get_agent_card()

    async def stream(self, text, last=None):
        if last:
            return await self.say(text)
        return see(await self.agent.invoke_async(text))

    async def say(self, text, last=None):
        raise Cannot("a call takes words only, and no task or context")

    async def provoke(self):
        # A picture alone: the framework drops it, so the message has no parts.
        picture = {"image": {"format": "png", "source": {"bytes": b"1"}}}
        return see(await self.agent.invoke_async([picture]))


if __name__ == "__main__":
    main(Framework())
