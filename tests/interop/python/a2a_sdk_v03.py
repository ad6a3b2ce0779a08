"""PyPI `a2a-sdk` 0.3.x: JSON-RPC and HTTP+JSON in the 0.3 dialect."""

import base64
import uuid
from collections.abc import AsyncIterator

from a2a import types as wire
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError

import recorded_httpx
from webhook import TOKEN
from walk import UNTYPED, Adapter, Artifact, Event, Exchanges, Task, main

#: Binding of the walk -> name of the transport on the card.
BINDINGS = {
    "jsonrpc": wire.TransportProtocol.jsonrpc,
    "rest": wire.TransportProtocol.http_json,
}

#: The SDK reads every JSON-RPC error into the first type that fits, so its users can
#: distinguish errors only by the code.
REFUSALS = {-32001: "not-found", -32002: "not-cancelable", -32004: "unsupported"}


class Sdk(Adapter):
    hooks = True

    def __init__(self, binding: str, exchanges: Exchanges) -> None:
        self.rest = binding == "rest"
        self.transport = BINDINGS[binding]
        self.http = recorded_httpx.client(exchanges)
        if self.rest:
            # The REST transport returns the decoded bytes as UTF-8 text where its
            # type has base64: it expects base64 twice, as its own server sends it.
            # Only ASCII bytes arrive, as text; the first 100 bytes are ASCII.
            self.file_size = 100

    async def open(self, base: str) -> list[str]:
        card = await A2ACardResolver(self.http, base).get_agent_card()
        faults = [] if card.name else ["no name"]
        if not card.capabilities.streaming:
            faults.append("no streaming")
        if not (card.protocol_version or "").startswith("0.3"):
            faults.append(f"protocolVersion {card.protocol_version}")
        self.card = card
        self.calls = self.client(card, streaming=False)
        self.streams = self.client(card, streaming=True)
        self.polls = self.client(card, streaming=False, polling=True)
        return faults

    def client(self, card: wire.AgentCard, **options):
        config = ClientConfig(
            httpx_client=self.http,
            supported_transports=[self.transport],
            use_client_preference=True,
            **options,
        )
        return ClientFactory(config).create(card)

    def message(self, text: str, continued: Task | None) -> wire.Message:
        return wire.Message(
            message_id=str(uuid.uuid4()),
            role=wire.Role.user,
            parts=[wire.Part(root=wire.TextPart(text=text))],
            task_id=continued.id if continued else None,
            context_id=continued.context_id if continued else None,
        )

    def file(self, file: wire.FileWithBytes) -> bytes:
        return file.bytes.encode() if self.rest else base64.b64decode(file.bytes, validate=True)

    def artifact(self, one: wire.Artifact) -> Artifact:
        parts = [part.root for part in one.parts]
        return Artifact(
            one.artifact_id,
            [part.text for part in parts if isinstance(part, wire.TextPart)],
            [self.file(part.file) for part in parts if isinstance(part, wire.FilePart)],
        )

    def task(self, one: wire.Task) -> Task:
        return Task(
            one.id,
            one.context_id,
            one.status.state.value,
            [self.artifact(artifact) for artifact in one.artifacts or []],
            [
                (
                    message.role.value,
                    "".join(
                        part.root.text
                        for part in message.parts
                        if isinstance(part.root, wire.TextPart)
                    ),
                )
                for message in one.history or []
            ],
        )

    def event(self, pair: object) -> Event:
        if isinstance(pair, wire.Message):
            return Event("message")
        whole, update = pair
        if update is None:
            return Event("task", task=self.task(whole), state=whole.status.state.value)
        if isinstance(update, wire.TaskStatusUpdateEvent):
            return Event("status", state=update.status.state.value)
        return Event(
            "artifact",
            artifact=self.artifact(update.artifact),
            append=bool(update.append),
            last_chunk=bool(update.last_chunk),
        )

    async def send(self, text: str, task: Task | None = None, wait: bool = True) -> Task:
        sender = self.calls if wait else self.polls
        answers = [one async for one in sender.send_message(self.message(text, task))]
        return self.task(answers[-1][0])

    async def send_data(self, text: str, data: dict) -> Task:
        message = self.message(text, None)
        message.parts.append(wire.Part(root=wire.DataPart(data=data)))
        answers = [one async for one in self.calls.send_message(message)]
        return self.task(answers[-1][0])

    async def hooked(self, text: str, url: str) -> Task:
        hook = wire.PushNotificationConfig(url=url, token=TOKEN)
        sender = self.client(self.card, streaming=False, push_notification_configs=[hook])
        answers = [one async for one in sender.send_message(self.message(text, None))]
        return self.task(answers[-1][0])

    async def stream(self, text: str, task: Task | None = None) -> AsyncIterator[Event]:
        async for one in self.streams.send_message(self.message(text, task)):
            yield self.event(one)

    async def subscribe(self, task_id: str) -> AsyncIterator[Event]:
        async for one in self.streams.resubscribe(wire.TaskIdParams(id=task_id)):
            yield self.event(one)

    async def get(self, task_id: str, history: int | None = None) -> Task:
        query = wire.TaskQueryParams(id=task_id, history_length=history)
        return self.task(await self.calls.get_task(query))

    async def cancel(self, task_id: str) -> Task:
        return self.task(await self.calls.cancel_task(wire.TaskIdParams(id=task_id)))

    def refusal(self, error: Exception) -> str | None:
        if isinstance(error, A2AClientJSONRPCError):
            return REFUSALS.get(error.error.code)
        if isinstance(error, A2AClientHTTPError):
            return {404: "not-found", 400: UNTYPED}.get(error.status_code)
        return None

    async def close(self) -> None:
        await self.http.aclose()


if __name__ == "__main__":
    main(Sdk, list(BINDINGS))
