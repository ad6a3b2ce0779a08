"""AG2, PyPI `ag2[a2a]`: an agent whose model is `A2AConfig`, and its calls on tasks."""

import asyncio
import contextlib

from a2a.types import TaskState
from ag2 import Agent
from ag2.a2a import A2AConfig
from ag2.a2a.errors import A2ATaskTerminalError
from ag2.a2a.tasks import cancel_task, get_task, list_tasks
from ag2.events import BinaryInput, HumanInputRequest, TextInput

from acts import Cannot, Client, Reply, asks, main


def texts(message) -> str:
    return "".join(part.text for part in message.parts)


class Dialogue:
    """The runs of an agent, each a reply to the one before. Its hook for a human puts a question and
    waits for the answer."""

    def __init__(self, config: A2AConfig) -> None:
        self.questions: asyncio.Queue = asyncio.Queue()
        self.answers: asyncio.Queue = asyncio.Queue()
        self.last = Agent("ring", config=config, hitl_hook=self.hook)

    async def ask(self, *inputs) -> Reply:
        self.run = asyncio.create_task(self.last.ask(*inputs))
        return await self.next()

    async def hook(self, request: HumanInputRequest) -> str:
        await self.questions.put(request.content)
        return await self.answers.get()

    async def next(self) -> Reply:
        question = asyncio.create_task(self.questions.get())
        await asyncio.wait({question, self.run}, return_when=asyncio.FIRST_COMPLETED)
        if question.done():
            return Reply(text=question.result(), state="input-required", handle=self)
        question.cancel()
        try:
            answer = self.last = self.run.result()
        except A2ATaskTerminalError as error:
            # The exception has the task; its text has the state only.
            status = error.task.status
            return Reply(text=texts(status.message), state=TaskState.Name(status.state), handle=self)
        state = answer.response.finish_reason
        return Reply(text=answer.body or "", files=len(answer.files), state=state, handle=self)


class Framework(Client):
    package = "ag2"
    shows_files = shows_data = False

    async def open(self, base):
        self.config = A2AConfig(card_url=base)

    async def stream(self, text, last=None):
        if last and not last.handle.run.done():
            if not asks(last):
                raise Cannot("a question blocks its run until it is answered")
            await last.handle.answers.put(text)
            return await last.handle.next()
        reply = await (last.handle if last else Dialogue(self.config)).ask(text)
        with contextlib.suppress(IndexError):
            reply.task = (await list_tasks(self.config)).tasks[0].id
        return reply

    async def file(self, text, name, content):
        picture = BinaryInput(content, media_type="image/png", vendor_metadata={"filename": name})
        return await Dialogue(self.config).ask(TextInput(text), picture)

    async def provoke(self):
        # The context is a variable of the agent; the framework sends no task of the caller's.
        agent = Agent("ring", config=self.config)
        expired = {f"a2a:context_id:{self.config.card_url}": "ctx-" + 32 * "0"}
        return Reply(text=(await agent.ask("hello", variables=expired)).body or "")

    async def cancel(self, task):
        return TaskState.Name((await cancel_task(self.config, task)).status.state)

    async def get(self, task):
        return Reply(text=texts((await get_task(self.config, task)).status.message))

    async def list(self):
        return [task.id for task in (await list_tasks(self.config)).tasks]


if __name__ == "__main__":
    main(Framework())
