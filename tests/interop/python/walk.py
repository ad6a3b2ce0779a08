"""The walk of every Python client, written once against a small adapter.

A client module supplies an `Adapter`: its SDK's calls, with the responses translated
to the neutral shapes below. The walk contains every check and the adapter only
translates, so a walk that passes tests the SDK and the server.
"""

import argparse
import asyncio
import hashlib
import json
import os
import sys
import traceback
import urllib.request
import uuid
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass, field
from typing import AsyncIterator, Callable

from webhook import Webhook

#: The time limit of one call, in seconds. A blocking send responds within 28.
CALL_TIMEOUT = 30

#: An error in a binding where the SDK reads only the HTTP status 400.
UNTYPED = "refused, reason not read by the SDK"

#: Exchanges kept for the report of a failure.
KEPT_EXCHANGES = 4
#: Characters of a body shown in that report.
SHOWN_BODY = 2000


@dataclass
class Artifact:
    """One artifact: its id, the texts of its parts, the bytes of its files, and
    the URLs of files that were too large to send inline."""

    id: str
    texts: list[str] = field(default_factory=list)
    files: list[bytes] = field(default_factory=list)
    urls: list[str] = field(default_factory=list)


@dataclass
class Task:
    """A task in lower-case 0.3 words (`input-required`, `canceled`)."""

    id: str
    context_id: str
    state: str
    artifacts: list[Artifact] = field(default_factory=list)
    #: (role, text) in the order of the history; role is `user` or `agent`.
    history: list[tuple[str, str]] = field(default_factory=list)

    def user_texts(self) -> list[str]:
        """The texts the user sent, oldest first."""
        return [text for role, text in self.history if role == "user"]

    def artifact_text(self) -> str:
        """All text of all artifacts, in order."""
        return "".join(text for artifact in self.artifacts for text in artifact.texts)


@dataclass
class Event:
    """One stream event; `kind` is `task`, `status` or `artifact`."""

    kind: str
    task: Task | None = None
    state: str | None = None
    artifact: Artifact | None = None
    append: bool = False
    last_chunk: bool = False


class Adapter(ABC):
    """The interface of a client module."""

    #: Whether the protocol version of this client has `ListTasks`.
    lists = False
    #: Bytes asked for in the file step; 0 leaves the step out.
    file_size = 1000
    #: Bytes uploaded separately in the upload step; 0 leaves the steps with large
    #: files out.
    upload_size = 0
    #: Whether the adapter can register a webhook with a message.
    hooks = False

    @abstractmethod
    async def open(self, base: str) -> list[str]:
        """Fetches the card, connects; returns the faults seen in the card."""

    @abstractmethod
    async def send(self, text: str, task: Task | None = None, wait: bool = True) -> Task:
        """Sends one text message, continuing `task` if one is given."""

    @abstractmethod
    async def send_data(self, text: str, data: dict) -> Task:
        """Sends a text and a data part."""

    async def send_upload(self, text: str, reference: str) -> Task:
        """Sends a text and a part that names an upload."""
        raise NotImplementedError

    async def hooked(self, text: str, url: str) -> Task:
        """Sends one text message with a push config for `url`, with the token
        `webhook.TOKEN`."""
        raise NotImplementedError

    @abstractmethod
    def stream(self, text: str, task: Task | None = None) -> AsyncIterator[Event]:
        """Sends one text message, continuing `task` if one is given, and yields the events."""

    @abstractmethod
    def subscribe(self, task_id: str) -> AsyncIterator[Event]:
        """Yields the events of a task that exists."""

    @abstractmethod
    async def get(self, task_id: str, history: int | None = None) -> Task:
        """Gets a task with at most `history` messages."""

    @abstractmethod
    async def cancel(self, task_id: str) -> Task:
        """Cancels a task."""

    async def list(self, context_id: str | None = None) -> list[Task]:
        """Lists tasks, of one context if it is given."""
        raise NotImplementedError

    @abstractmethod
    def refusal(self, error: Exception) -> str | None:
        """Names the A2A error behind an SDK error: `not-found`,
        `not-cancelable`, `unsupported`, `UNTYPED`, or None for any other error."""

    async def close(self) -> None:
        """Releases connections."""


class Exchanges:
    """The last HTTP exchanges of a walk, for the report of a failure."""

    def __init__(self) -> None:
        self._kept: deque[dict] = deque(maxlen=KEPT_EXCHANGES)

    def begin(self, method: str, url: str, body: bytes | str | None) -> dict:
        """Notes a request; the caller fills in `status` and `answer`."""
        if isinstance(body, bytes):
            body = body.decode("utf-8", "replace")
        entry = {"request": f"{method} {url}", "body": body or "", "status": "-", "answer": b""}
        self._kept.append(entry)
        return entry

    def print(self) -> None:
        """Prints the kept exchanges, oldest first."""
        for entry in self._kept:
            print(f"  > {entry['request']}")
            if entry["body"]:
                print(f"  > {entry['body'][:SHOWN_BODY]}")
            print(f"  < {entry['status']}")
            answer = bytes(entry["answer"]).decode("utf-8", "replace")
            for line in answer[:SHOWN_BODY].splitlines():
                print(f"  < {line}")


def expect(condition: bool, says: str) -> None:
    """Fails the walk with `says` unless the condition holds."""
    if not condition:
        raise AssertionError(says)


def equal(what: str, got: object, wanted: object) -> None:
    """Fails the walk unless both values are the same."""
    expect(got == wanted, f"{what}: got {got!r}, expected {wanted!r}")


def pattern(size: int) -> bytes:
    """The bytes that the conformance agent returns for `file <size>`."""
    return bytes(index % 251 for index in range(size))


async def last_of(events: AsyncIterator[Event]) -> Event:
    """Reads a stream to its end."""
    return [event async for event in events][-1]


async def fetch(request: urllib.request.Request | str) -> bytes:
    """Requests a URL outside of the protocol: of the object store, or of our extension."""

    def ask() -> bytes:
        with urllib.request.urlopen(request, timeout=CALL_TIMEOUT) as answer:
            return answer.read()

    return await asyncio.to_thread(ask)


class Walk:
    """The steps, in order; each is one promise to a user of the client."""

    def __init__(self, adapter: Adapter, base: str) -> None:
        self.adapter = adapter
        self.base = base
        self.done: Task | None = None
        self.two_turns: Task | None = None

    def steps(self) -> list[Callable]:
        """The steps this client can take."""
        steps = [
            self.the_card_is_read,
            self.a_send_completes,
            self.a_get_returns_the_requested_history,
            self.an_unknown_task_is_not_found,
            self.a_stream_shows_each_chunk_in_order,
            self.an_error_on_a_stream_is_read,
            self.a_second_turn_continues_the_task,
            self.whole_numbers_arrive_as_such,
            self.a_cancel_may_be_repeated,
            self.a_subscriber_sees_the_cancel_of_a_running_task,
        ]
        if self.adapter.lists:
            steps.append(self.a_list_holds_the_tasks_of_a_context)
        if self.adapter.file_size:
            steps.append(self.a_file_arrives_byte_for_byte)
        if self.adapter.upload_size:
            steps.append(self.a_file_too_large_for_a_response_arrives_by_its_url)
            steps.append(self.an_uploaded_file_comes_back)
        if self.adapter.hooks:
            steps.append(self.a_webhook_receives_the_end_of_the_task)
        steps.append(self.a_finished_task_refuses_messages)
        return steps

    async def the_card_is_read(self) -> None:
        faults = await self.adapter.open(self.base)
        equal("faults in the card", faults, [])

    async def a_send_completes(self) -> None:
        task = await self.adapter.send("echo hello")
        equal("state", task.state, "completed")
        equal("artifact text", task.artifact_text(), "echo: hello")
        equal("user messages in history", task.user_texts(), ["echo hello"])
        expect(bool(task.id and task.context_id), "a task has an id and a context")
        self.done = task

    async def a_get_returns_the_requested_history(self) -> None:
        task = await self.adapter.get(self.done.id, history=10)
        equal("id", task.id, self.done.id)
        equal("context", task.context_id, self.done.context_id)
        equal("state", task.state, "completed")
        equal("artifact text", task.artifact_text(), "echo: hello")
        equal("user messages in history", task.user_texts(), ["echo hello"])

    async def an_unknown_task_is_not_found(self) -> None:
        await self.refused("not-found", self.adapter.get(str(uuid.uuid4())))

    async def a_stream_shows_each_chunk_in_order(self) -> None:
        events = [event async for event in self.adapter.stream("chunks 5 20")]
        expect(bool(events), "the stream has events")
        equal("first event", events[0].kind, "task")
        chunks = [event for event in events if event.kind == "artifact"]
        texts = ["".join(event.artifact.texts) for event in chunks]
        equal("chunks", texts, [f"chunk-{number} " for number in range(1, 6)])
        equal("artifacts", len({event.artifact.id for event in chunks}), 1)
        equal("append", [event.append for event in chunks], [False] + [True] * 4)
        equal("last chunk", [event.last_chunk for event in chunks], [False] * 4 + [True])
        equal("last event", (events[-1].kind, events[-1].state), ("status", "completed"))
        kept = await self.adapter.get(events[0].task.id)
        equal("kept text", kept.artifact_text(), "".join(texts))
        equal("kept artifacts", len(kept.artifacts), 1)

    async def an_error_on_a_stream_is_read(self) -> None:
        await self.refused("unsupported", last_of(self.adapter.stream("echo again", task=self.done)))
        await self.refused("not-found", last_of(self.adapter.subscribe(str(uuid.uuid4()))))
        last = await last_of(self.adapter.stream("fail"))
        equal("an error after the first event", (last.kind, last.state), ("status", "failed"))

    async def a_second_turn_continues_the_task(self) -> None:
        asked = await self.adapter.send("hello?")
        equal("state after the first turn", asked.state, "input-required")
        task = await self.adapter.send("echo done", task=asked)
        equal("id", task.id, asked.id)
        equal("context", task.context_id, asked.context_id)
        equal("state after the second turn", task.state, "completed")
        equal("artifact text", task.artifact_text(), "echo: done")
        kept = await self.adapter.get(task.id, history=10)
        equal("user messages in history", kept.user_texts(), ["hello?", "echo done"])
        newest = await self.adapter.get(task.id, history=1)
        equal("messages asked for", len(newest.history), 1)
        equal("the newest message", newest.history, kept.history[-1:])
        self.two_turns = task

    async def whole_numbers_arrive_as_such(self) -> None:
        # Some clients have only doubles, and write 19 as 19.0.
        task = await self.adapter.send_data("sum", {"a": 19, "b": 23})
        equal("state", task.state, "completed")
        equal("artifact text", task.artifact_text(), "sum: 42")

    async def a_cancel_may_be_repeated(self) -> None:
        asked = await self.adapter.send("hello?")
        equal("state", asked.state, "input-required")
        canceled = await self.adapter.cancel(asked.id)
        equal("id", canceled.id, asked.id)
        equal("state after the cancel", canceled.state, "canceled")
        equal("state after a second cancel", (await self.adapter.cancel(asked.id)).state, "canceled")
        await self.refused("not-cancelable", self.adapter.cancel(self.done.id))

    async def a_subscriber_sees_the_cancel_of_a_running_task(self) -> None:
        started = await self.adapter.send("wait 20", wait=False)
        expect(started.state in ("submitted", "working"), f"running, not {started.state}")
        events = []
        async for event in self.adapter.subscribe(started.id):
            if not events:
                equal("first event", event.kind, "task")
                equal("task subscribed to", event.task.id, started.id)
                equal("state", (await self.adapter.cancel(started.id)).state, "canceled")
            events.append(event)
        equal("last event", (events[-1].kind, events[-1].state), ("status", "canceled"))

    async def a_webhook_receives_the_end_of_the_task(self) -> None:
        with Webhook() as hook:
            task = await self.adapter.hooked("echo pushed", hook.url)
            equal("state", task.state, "completed")
            received = await asyncio.to_thread(hook.until_completed)
        expect(len(received) >= 2, f"more events than the end are received: {received}")

    async def a_list_holds_the_tasks_of_a_context(self) -> None:
        everything = {task.id for task in await self.adapter.list()}
        expect(self.done.id in everything, "the list holds the first task")
        expect(self.two_turns.id in everything, "the list holds the task of two turns")
        here = await self.adapter.list(self.done.context_id)
        equal("tasks of the context", [task.id for task in here], [self.done.id])
        equal("context listed", here[0].context_id, self.done.context_id)

    async def a_file_arrives_byte_for_byte(self) -> None:
        size = self.adapter.file_size
        task = await self.adapter.send(f"file {size}")
        equal("state", task.state, "completed")
        files = [content for artifact in task.artifacts for content in artifact.files]
        equal("files", len(files), 1)
        equal("size", len(files[0]), size)
        expect(files[0] == pattern(size), "the bytes are those the agent made")

    async def a_file_too_large_for_a_response_arrives_by_its_url(self) -> None:
        size = 5_000_000
        task = await self.adapter.send(f"file {size}")
        equal("state", task.state, "completed")
        urls = [url for artifact in task.artifacts for url in artifact.urls]
        equal("URLs", len(urls), 1)
        expect(await fetch(urls[0]) == pattern(size), "the bytes are those the agent made")

    async def an_uploaded_file_comes_back(self) -> None:
        content = os.urandom(self.adapter.upload_size)
        sent = hashlib.sha256(content).hexdigest()
        order = json.dumps({"size": len(content), "sha256": sent, "filename": "a.bin"})
        headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
        url = f"{self.base}/a2a-lambda/uploads"
        grant = json.loads(await fetch(urllib.request.Request(url, order.encode(), headers)))
        put = urllib.request.Request(
            grant["url"], content, grant["headers"], method=grant["method"]
        )
        await fetch(put)
        task = await self.adapter.send_upload("back", grant["reference"])
        equal("state", task.state, "completed")
        urls = [url for artifact in task.artifacts for url in artifact.urls]
        equal("URLs", len(urls), 1)
        received = hashlib.sha256(await fetch(urls[0])).hexdigest()
        equal("SHA-256", received, sent)

    async def a_finished_task_refuses_messages(self) -> None:
        await self.refused("unsupported", self.adapter.send("echo again", task=self.done))
        kept = await self.adapter.get(self.done.id, history=10)
        equal("user messages in history", kept.user_texts(), ["echo hello"])

    async def refused(self, wanted: str, call) -> None:
        """Awaits a call that must fail with the SDK's error for `wanted`."""
        try:
            answer = await call
        except Exception as error:
            got = self.adapter.refusal(error)
            if got not in (wanted, UNTYPED):
                raise AssertionError(f"got error {got}, expected {wanted}: {error!r}") from error
        else:
            raise AssertionError(f"got a response, expected error {wanted}: {answer!r}")


async def take(adapter: Adapter, base: str) -> str | None:
    """Takes the walk; returns None, or the name of the step that failed."""
    walk = Walk(adapter, base)
    try:
        for step in walk.steps():
            try:
                # At most two calls of a step wait for the server.
                await asyncio.wait_for(step(), 2 * CALL_TIMEOUT)
            except Exception as error:
                report(step.__name__, error)
                return step.__name__
    finally:
        await adapter.close()
    return None


def report(step: str, error: Exception) -> None:
    """Prints why a step failed."""
    print(f"  step: {step.replace('_', ' ')}")
    if isinstance(error, AssertionError):
        print(f"  {error}")
        return
    cause: BaseException | None = error
    while cause:
        print("  " + "".join(traceback.format_exception_only(cause)).strip())
        cause = cause.__cause__
    for frame in traceback.extract_tb(error.__traceback__)[-3:]:
        print(f"  at {frame.filename}:{frame.lineno} in {frame.name}: {frame.line}")


def main(make: Callable[[str, Exchanges], Adapter], bindings: list[str]) -> None:
    """The command line of a client module: `--base URL --binding NAME`."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--base", required=True, help="base URL of the agent")
    arguments.add_argument("--binding", required=True, choices=bindings)
    chosen = arguments.parse_args()
    exchanges = Exchanges()
    adapter = make(chosen.binding, exchanges)
    if asyncio.run(take(adapter, chosen.base.rstrip("/"))):
        exchanges.print()
        sys.exit(1)
