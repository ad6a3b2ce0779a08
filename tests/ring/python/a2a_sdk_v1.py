"""PyPI `a2a-sdk` 1.x with its own defaults: the card decides binding and version."""

import json
import uuid

import httpx
from a2a.client import ClientConfig, create_client
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    TaskState,
)
from google.protobuf.json_format import MessageToDict

from acts import CALL_LIMIT, Client, Reply, ids, main


def see(reply: Reply, parts) -> None:
    for part in parts:
        kind = part.WhichOneof("content")
        if kind == "text":
            reply.text += part.text
        elif kind == "data":
            reply.text += json.dumps(MessageToDict(part.data))
        elif kind:
            reply.files += 1


def status(reply: Reply, wire) -> None:
    reply.state = TaskState.Name(wire.state)
    see(reply, wire.message.parts)


def whole(task) -> Reply:
    reply = Reply(task=task.id, handle=(task.id, task.context_id))
    for artifact in task.artifacts:
        see(reply, artifact.parts)
    status(reply, task.status)
    return reply


class Sdk(Client):
    package = "a2a-sdk"

    async def open(self, base):
        # The limit of its default HTTP client is 5 s without a byte: a slow machine exceeds it.
        http = httpx.AsyncClient(timeout=CALL_LIMIT)
        self.streams = await create_client(base, client_config=ClientConfig(httpx_client=http))
        self.calls = await create_client(base, client_config=ClientConfig(httpx_client=http, streaming=False))

    async def ask(self, client, parts, task="", context="", about=()) -> Reply:
        message = Message(
            message_id=str(uuid.uuid4()),
            role=Role.ROLE_USER,
            parts=parts,
            task_id=task,
            context_id=context,
            reference_task_ids=about,
        )
        reply = Reply()
        async for event in client.send_message(SendMessageRequest(message=message)):
            kind = event.WhichOneof("payload")
            if kind == "message":
                see(reply, event.message.parts)
            elif kind == "task":
                reply = whole(event.task)
            elif kind == "status_update":
                status(reply, event.status_update.status)
            else:
                see(reply, event.artifact_update.artifact.parts)
        return reply

    async def send(self, text, last=None):
        return await self.ask(self.calls, [Part(text=text)], *ids(last))

    async def stream(self, text, last=None):
        return await self.ask(self.streams, [Part(text=text)], *ids(last))

    async def refer(self, text, last, about):
        return await self.ask(self.streams, [Part(text=text)], *ids(last), about=[about.task])

    async def file(self, text, name, content):
        # Without a media type, as the official sample command line attaches one.
        return await self.ask(self.streams, [Part(text=text), Part(raw=content, filename=name)])

    async def stream_to(self, task, text):
        return await self.ask(self.streams, [Part(text=text)], task)

    async def cancel(self, task):
        return TaskState.Name((await self.streams.cancel_task(CancelTaskRequest(id=task))).status.state)

    async def get(self, task):
        return whole(await self.streams.get_task(GetTaskRequest(id=task)))

    async def list(self):
        return [task.id for task in (await self.streams.list_tasks(ListTasksRequest())).tasks]


if __name__ == "__main__":
    main(Sdk())
