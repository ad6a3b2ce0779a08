"""PyPI `python-a2a`: the first generation, one path per method.

The SDK never raises for a refused call: it returns a task of its own, with a new id. So
the walk recognises an error by the id. The SDK also lacks the state `working`, so the
walk reads only responses at rest as SDK objects.
"""

import argparse
import asyncio
import base64
import sys
import uuid
from collections.abc import Callable

import requests
from python_a2a import A2AClient, Message, MessageRole, Task, TaskState, TextContent

from walk import CALL_TIMEOUT, Exchanges, equal, expect, pattern, report


def record(exchanges: Exchanges) -> None:
    """Keeps the exchanges of the SDK's `requests` calls."""
    send = requests.Session.send

    def recorded(session, request, **options):
        entry = exchanges.begin(request.method, request.url, request.body)
        response = send(session, request, **options)
        entry["status"] = f"{response.status_code} {response.headers.get('content-type', '')}"
        entry["answer"] = response.content
        return response

    requests.Session.send = recorded


def new_task(text: str, task_id: str | None = None, session: str | None = None) -> Task:
    """A task to send, as the SDK's own `send_message` builds it."""
    message = Message(content=TextContent(text=text), role=MessageRole.USER)
    return Task(
        id=task_id or str(uuid.uuid4()), session_id=session, message=message.to_google_a2a()
    )


def parts(task: Task) -> list[dict]:
    return [part for artifact in task.artifacts for part in artifact["parts"]]


def texts(some: list[dict]) -> str:
    return "".join(part["text"] for part in some if part.get("type") == "text")


def user_texts(task: Task) -> list[str]:
    return [texts(one["parts"]) for one in task.history if one["role"] == "user"]


class Walk:
    """The steps, in order."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.client: A2AClient | None = None
        self.done: Task | None = None

    def steps(self) -> list[Callable[[], None]]:
        return [
            self.the_card_is_read,
            self.a_question_is_answered,
            self.a_send_completes,
            self.a_get_returns_the_requested_history,
            self.an_unknown_task_is_not_found,
            self.a_stream_shows_each_chunk_in_order,
            self.an_error_on_a_stream_is_read,
            self.a_second_turn_continues_the_task,
            self.whole_numbers_arrive_as_such,
            self.a_cancel_may_be_repeated,
            self.a_file_arrives_byte_for_byte,
            self.a_finished_task_refuses_messages,
        ]

    def send(self, task: Task) -> Task:
        return asyncio.run(self.client.send_task_async(task))

    def the_card_is_read(self) -> None:
        self.client = A2AClient(self.base, timeout=CALL_TIMEOUT, google_a2a_compatible=True)
        # The option above changes conversations only; this switch of the SDK makes it
        # send tasks as 0.1 defines them.
        Task.enable_google_a2a_compatibility()
        card = self.client.get_agent_card()
        expect(card.name not in ("", "Unknown Agent"), f"a card was found: {card.name}")
        equal("streaming", card.capabilities.get("streaming"), True)

    def a_question_is_answered(self) -> None:
        equal("answer", self.client.ask("echo hello"), "echo: hello")

    def a_send_completes(self) -> None:
        sent = new_task("echo hello", session=f"session-{uuid.uuid4()}")
        task = self.send(sent)
        equal("id", task.id, sent.id)
        equal("session", task.session_id, sent.session_id)
        equal("state", task.status.state, TaskState.COMPLETED)
        equal("artifact text", task.get_text(), "echo: hello")
        self.done = task

    def a_get_returns_the_requested_history(self) -> None:
        task = self.client.get_task(self.done.id, history_length=10)
        equal("id", task.id, self.done.id)
        equal("state", task.status.state, TaskState.COMPLETED)
        equal("artifact text", task.get_text(), "echo: hello")
        equal("user messages in history", user_texts(task), ["echo hello"])
        equal("history by default", self.client.get_task(self.done.id).history, [])

    def an_unknown_task_is_not_found(self) -> None:
        unknown = str(uuid.uuid4())
        task = self.client.get_task(unknown)
        expect(task.id != unknown, f"no task of that id comes back: {task}")

    def a_stream_shows_each_chunk_in_order(self) -> None:
        sent = new_task("chunks 5 20")
        chunks, states, finals = [], [], []
        for answer in asyncio.run(self.streamed(sent)):
            expect("result" in answer, f"an event has a result: {answer}")
            event = answer["result"]
            equal("id", event["id"], sent.id)
            finals.append(event.get("final", False))
            if "artifact" in event:
                chunks.append(texts(event["artifact"]["parts"]))
            else:
                states.append(event["status"]["state"])
        equal("chunks", chunks, [f"chunk-{number} " for number in range(1, 6)])
        equal("last state", states[-1], "completed")
        equal("final", finals[-2:], [False, True])

    def an_error_on_a_stream_is_read(self) -> None:
        # Its `stream_task` skips each line that is no event, so it shows nothing of an error in a plain response.
        answers = asyncio.run(self.streamed(new_task("echo again", self.done.id)))
        equal("events of a refused message", answers, [])
        failing = asyncio.run(self.streamed(new_task("fail")))
        equal("an error after the first event", failing[-1]["result"]["status"]["state"], "failed")

    async def streamed(self, task: Task) -> list[dict]:
        return [event async for event in self.client.stream_task(task)]

    def a_second_turn_continues_the_task(self) -> None:
        asked = self.send(new_task("hello?"))
        equal("state after the first turn", asked.status.state, TaskState.INPUT_REQUIRED)
        task = self.send(new_task("echo done", asked.id, asked.session_id))
        equal("id", task.id, asked.id)
        equal("state after the second turn", task.status.state, TaskState.COMPLETED)
        equal("artifact text", task.get_text(), "echo: done")
        kept = self.client.get_task(asked.id, history_length=10)
        equal("user messages in history", user_texts(kept), ["hello?", "echo done"])

    def whole_numbers_arrive_as_such(self) -> None:
        sent = new_task("sum")
        sent.message["parts"].append({"type": "data", "data": {"a": 19, "b": 23}})
        equal("artifact text", self.send(sent).get_text(), "sum: 42")

    def a_cancel_may_be_repeated(self) -> None:
        asked = self.send(new_task("hello?"))
        canceled = self.client.cancel_task(asked.id)
        equal("id", canceled.id, asked.id)
        equal("state after the cancel", canceled.status.state, TaskState.CANCELED)
        again = self.client.cancel_task(asked.id)
        equal("state after a second cancel", again.status.state, TaskState.CANCELED)

    def a_file_arrives_byte_for_byte(self) -> None:
        task = self.send(new_task("file 1000"))
        files = [part["file"] for part in parts(task) if part.get("type") == "file"]
        equal("files", len(files), 1)
        content = base64.b64decode(files[0]["bytes"], validate=True)
        expect(content == pattern(1000), "the bytes are those the agent made")

    def a_finished_task_refuses_messages(self) -> None:
        answer = self.send(new_task("echo again", self.done.id))
        expect(answer.id != self.done.id, f"the message is refused: {answer}")
        kept = self.client.get_task(self.done.id, history_length=10)
        equal("user messages in history", user_texts(kept), ["echo hello"])


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--base", required=True, help="base URL of the agent")
    arguments.add_argument("--binding", required=True, choices=["paths"])
    chosen = arguments.parse_args()
    exchanges = Exchanges()
    record(exchanges)
    for step in Walk(chosen.base.rstrip("/")).steps():
        try:
            step()
        except Exception as error:
            report(step.__name__, error)
            exchanges.print()
            sys.exit(1)


if __name__ == "__main__":
    main()
