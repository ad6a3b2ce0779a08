"""PyPI `a2a-sdk` 0.3 with its own defaults: `ClientFactory.connect`, JSON-RPC, streams."""

import base64
import json
import uuid

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.types import FilePart, FileWithBytes, Message, Part, Role, Task, TaskIdParams, TaskQueryParams, TextPart

from acts import CALL_LIMIT, Client, Reply, ids, main


def see(reply: Reply, parts) -> None:
    for part in parts:
        one = part.root
        if one.kind == "text":
            reply.text += one.text
        elif one.kind == "data":
            reply.text += json.dumps(one.data)
        else:
            reply.files += 1


def whole(task: Task) -> Reply:
    reply = Reply(task=task.id, handle=(task.id, task.context_id), state=task.status.state.value)
    for artifact in task.artifacts or []:
        see(reply, artifact.parts)
    if task.status.message:
        see(reply, task.status.message.parts)
    return reply


def text_part(text: str) -> Part:
    return Part(root=TextPart(text=text))


class Sdk(Client):
    package = "a2a-sdk"

    async def open(self, base):
        # The limit of its default HTTP client is 5 s without a byte: a slow machine exceeds it.
        http = httpx.AsyncClient(timeout=CALL_LIMIT)
        self.streams = await ClientFactory.connect(base, client_config=ClientConfig(httpx_client=http))
        self.calls = await ClientFactory.connect(base, client_config=ClientConfig(httpx_client=http, streaming=False))

    async def ask(self, client, parts, task=None, context=None, about=None) -> Reply:
        message = Message(
            role=Role.user,
            message_id=str(uuid.uuid4()),
            parts=parts,
            task_id=task,
            context_id=context,
            reference_task_ids=about,
        )
        reply = Reply()
        async for event in client.send_message(message):
            if isinstance(event, Message):
                see(reply, event.parts)
            else:
                # The SDK hands out the task as its own manager joined it.
                reply = whole(event[0])
        return reply

    async def send(self, text, last=None):
        return await self.ask(self.calls, [text_part(text)], *ids(last))

    async def stream(self, text, last=None):
        return await self.ask(self.streams, [text_part(text)], *ids(last))

    async def refer(self, text, last, about):
        return await self.ask(self.streams, [text_part(text)], *ids(last), about=[about.task])

    async def file(self, text, name, content):
        # Without a media type, as the official sample command line attaches one.
        file = FileWithBytes(bytes=base64.b64encode(content).decode(), name=name)
        return await self.ask(self.streams, [text_part(text), Part(root=FilePart(file=file))])

    async def stream_to(self, task, text):
        return await self.ask(self.streams, [text_part(text)], task)

    async def cancel(self, task):
        return (await self.streams.cancel_task(TaskIdParams(id=task))).status.state.value

    async def get(self, task):
        return whole(await self.streams.get_task(TaskQueryParams(id=task)))


if __name__ == "__main__":
    main(Sdk())
