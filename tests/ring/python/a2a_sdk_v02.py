"""PyPI `a2a-sdk` 0.2: its `A2AClient` of JSON-RPC, as its samples use it."""

import base64
import json
import uuid

import httpx
from a2a.client import A2AClient
from a2a.types import (
    CancelTaskRequest,
    FilePart,
    FileWithBytes,
    GetTaskRequest,
    JSONRPCErrorResponse,
    Message,
    MessageSendParams,
    Part,
    Role,
    SendMessageRequest,
    SendStreamingMessageRequest,
    TaskIdParams,
    TaskQueryParams,
    TextPart,
)

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


def answer(response):
    """The result of a response; the error of one as an exception, since the SDK raises none."""
    if isinstance(response.root, JSONRPCErrorResponse):
        raise RuntimeError(response.root.error.message)
    return response.root.result


def add(reply: Reply, event) -> Reply:
    """The reply with one event or one whole result."""
    if event.kind == "message":
        see(reply, event.parts)
    elif event.kind == "artifact-update":
        see(reply, event.artifact.parts)
    else:
        if event.kind == "task":
            reply = Reply(task=event.id, handle=(event.id, event.context_id))
            for artifact in event.artifacts or []:
                see(reply, artifact.parts)
        reply.state = event.status.state.value
        if event.status.message:
            see(reply, event.status.message.parts)
    return reply


def text_part(text: str) -> Part:
    return Part(root=TextPart(text=text))


class Sdk(Client):
    package = "a2a-sdk"

    async def open(self, base):
        http = httpx.AsyncClient(timeout=CALL_LIMIT)
        self.client = await A2AClient.get_client_from_agent_card_url(http, base)

    def params(self, parts, task=None, context=None, about=None) -> MessageSendParams:
        return MessageSendParams(
            message=Message(
                role=Role.user,
                message_id=uuid.uuid4().hex,
                parts=parts,
                task_id=task,
                context_id=context,
                reference_task_ids=about,
            )
        )

    async def streamed(self, params: MessageSendParams) -> Reply:
        reply = Reply()
        request = SendStreamingMessageRequest(id=uuid.uuid4().hex, params=params)
        async for response in self.client.send_message_streaming(request):
            reply = add(reply, answer(response))
        return reply

    async def send(self, text, last=None):
        params = self.params([text_part(text)], *ids(last))
        response = await self.client.send_message(SendMessageRequest(id=uuid.uuid4().hex, params=params))
        return add(Reply(), answer(response))

    async def stream(self, text, last=None):
        return await self.streamed(self.params([text_part(text)], *ids(last)))

    async def refer(self, text, last, about):
        return await self.streamed(self.params([text_part(text)], *ids(last), about=[about.task]))

    async def file(self, text, name, content):
        # Without a media type, as the official sample command line attaches one.
        file = FileWithBytes(bytes=base64.b64encode(content).decode(), name=name)
        return await self.streamed(self.params([text_part(text), Part(root=FilePart(file=file))]))

    async def stream_to(self, task, text):
        return await self.streamed(self.params([text_part(text)], task))

    async def cancel(self, task):
        request = CancelTaskRequest(id=uuid.uuid4().hex, params=TaskIdParams(id=task))
        return answer(await self.client.cancel_task(request)).status.state.value

    async def get(self, task):
        request = GetTaskRequest(id=uuid.uuid4().hex, params=TaskQueryParams(id=task))
        return add(Reply(), answer(await self.client.get_task(request)))


if __name__ == "__main__":
    main(Sdk())
