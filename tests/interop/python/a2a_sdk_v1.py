"""PyPI `a2a-sdk` 1.x: JSON-RPC and HTTP+JSON, 1.0 and its own 0.3 mode."""

import uuid
from collections.abc import AsyncIterator

from a2a.client import A2ACardResolver, A2AClientError, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.types.a2a_pb2 import Artifact as WireArtifact
from a2a.types.a2a_pb2 import Task as WireTask
from a2a.utils.errors import (
    MethodNotFoundError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value

import recorded_httpx
from webhook import TOKEN
from walk import UNTYPED, Adapter, Artifact, Event, Exchanges, Task, main

#: Binding of the walk -> (name of the binding on the card, protocol version).
BINDINGS = {
    "jsonrpc": ("JSONRPC", "1.0"),
    "rest": ("HTTP+JSON", "1.0"),
    "jsonrpc-0.3": ("JSONRPC", "0.3"),
    "rest-0.3": ("HTTP+JSON", "0.3"),
}

#: Bytes of the upload step: in one binding the promised maximum, else a few.
UPLOADS = {
    "jsonrpc": 50_000_000,
    "rest": 6_000_000,
    "jsonrpc-0.3": 6_000_000,
    "rest-0.3": 6_000_000,
}

REFUSALS = {
    TaskNotFoundError: "not-found",
    TaskNotCancelableError: "not-cancelable",
    UnsupportedOperationError: "unsupported",
}


def state(value: int) -> str:
    return TaskState.Name(value).removeprefix("TASK_STATE_").lower().replace("_", "-")


def artifact(wire: WireArtifact) -> Artifact:
    return Artifact(
        wire.artifact_id,
        [part.text for part in wire.parts if part.WhichOneof("content") == "text"],
        [part.raw for part in wire.parts if part.WhichOneof("content") == "raw"],
        [part.url for part in wire.parts if part.WhichOneof("content") == "url"],
    )


def task(wire: WireTask) -> Task:
    return Task(
        wire.id,
        wire.context_id,
        state(wire.status.state),
        [artifact(one) for one in wire.artifacts],
        [
            (
                "user" if message.role == Role.ROLE_USER else "agent",
                "".join(part.text for part in message.parts),
            )
            for message in wire.history
        ],
    )


def event(wire: StreamResponse) -> Event:
    kind = wire.WhichOneof("payload")
    if kind == "task":
        return Event("task", task=task(wire.task), state=state(wire.task.status.state))
    if kind == "status_update":
        return Event("status", state=state(wire.status_update.status.state))
    if kind == "artifact_update":
        update = wire.artifact_update
        return Event(
            "artifact",
            artifact=artifact(update.artifact),
            append=update.append,
            last_chunk=update.last_chunk,
        )
    return Event(str(kind))


class Sdk(Adapter):
    hooks = True

    def __init__(self, binding: str, exchanges: Exchanges) -> None:
        self.binding, self.version = BINDINGS[binding]
        self.lists = self.version == "1.0"
        self.http = recorded_httpx.client(exchanges)
        self.untyped = binding == "rest-0.3"
        # In 0.3 REST the SDK expects a file encoded as base64 twice, as its own
        # server sends it; ProtoJSON, which we send, encodes it once. No size of
        # file arrives, so the step is left out.
        self.file_size = 0 if self.untyped else 1000
        self.upload_size = UPLOADS[binding]

    async def open(self, base: str) -> list[str]:
        card = await A2ACardResolver(self.http, base).get_agent_card()
        wanted = [
            one
            for one in card.supported_interfaces
            if one.protocol_binding == self.binding and one.protocol_version == self.version
        ]
        faults = [] if card.name else ["no name"]
        if not card.capabilities.streaming:
            faults.append("no streaming")
        if not wanted:
            return [*faults, f"no interface {self.binding} {self.version}"]
        if self.version != "1.0":
            # By default the SDK chooses the 1.0 interface of a binding.
            keep = wanted[0].url
            del card.supported_interfaces[:]
            card.supported_interfaces.add(
                url=keep, protocol_binding=self.binding, protocol_version=self.version
            )
        self.calls = self.client(card, streaming=False)
        self.streams = self.client(card, streaming=True)
        self.polls = self.client(card, streaming=False, polling=True)
        return faults

    def client(self, card, **options):
        config = ClientConfig(
            httpx_client=self.http,
            supported_protocol_bindings=[self.binding],
            **options,
        )
        return ClientFactory(config).create(card)

    def request(self, text: str, continued: Task | None) -> SendMessageRequest:
        message = Message(
            message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)]
        )
        if continued:
            message.task_id = continued.id
            message.context_id = continued.context_id
        return SendMessageRequest(message=message)

    async def send(self, text: str, task: Task | None = None, wait: bool = True) -> Task:
        sender = self.calls if wait else self.polls
        return await self.answer(sender, self.request(text, task))

    async def send_data(self, text: str, data: dict) -> Task:
        request = self.request(text, None)
        request.message.parts.append(Part(data=ParseDict(data, Value())))
        return await self.answer(self.calls, request)

    async def send_upload(self, text: str, reference: str) -> Task:
        request = self.request(text, None)
        request.message.parts.append(Part(url=reference, filename="a.bin"))
        return await self.answer(self.calls, request)

    async def answer(self, sender, request: SendMessageRequest) -> Task:
        answers = [one async for one in sender.send_message(request)]
        return event(answers[-1]).task

    async def hooked(self, text: str, url: str) -> Task:
        request = self.request(text, None)
        request.configuration.task_push_notification_config.url = url
        request.configuration.task_push_notification_config.token = TOKEN
        answers = [one async for one in self.calls.send_message(request)]
        return event(answers[-1]).task

    async def stream(self, text: str, task: Task | None = None) -> AsyncIterator[Event]:
        async for one in self.streams.send_message(self.request(text, task)):
            yield event(one)

    async def subscribe(self, task_id: str) -> AsyncIterator[Event]:
        async for one in self.streams.subscribe(SubscribeToTaskRequest(id=task_id)):
            yield event(one)

    async def get(self, task_id: str, history: int | None = None) -> Task:
        return task(await self.calls.get_task(GetTaskRequest(id=task_id, history_length=history)))

    async def cancel(self, task_id: str) -> Task:
        return task(await self.calls.cancel_task(CancelTaskRequest(id=task_id)))

    async def list(self, context_id: str | None = None) -> list[Task]:
        tasks, token = [], ""
        while True:
            request = ListTasksRequest(context_id=context_id or "", page_token=token)
            page = await self.calls.list_tasks(request)
            tasks += [task(one) for one in page.tasks]
            token = page.next_page_token
            if not token:
                return tasks

    def refusal(self, error: Exception) -> str | None:
        if self.untyped:
            return self.untyped_refusal(error)
        return REFUSALS.get(type(error))

    def untyped_refusal(self, error: Exception) -> str | None:
        """The SDK types a 0.3 REST error by a member that 0.3 does not define, so only
        the HTTP status distinguishes errors."""
        if isinstance(error, (MethodNotFoundError, TaskNotFoundError)):
            return "not-found"
        if isinstance(error, TaskNotCancelableError):
            return "not-cancelable"
        if isinstance(error, A2AClientError) and "HTTP Error 400" in str(error):
            return UNTYPED
        return REFUSALS.get(type(error))

    async def close(self) -> None:
        await self.http.aclose()


if __name__ == "__main__":
    main(Sdk, list(BINDINGS))
