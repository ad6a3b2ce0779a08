"""The first generation (0.1: the `tasks/send` family) without any SDK.

Two bindings: `jsonrpc` posts envelopes to the base URL, `paths` posts the bare
params to one path per method. The module uses only the standard library, so it
compares the bytes on the wire.
"""

import argparse
import base64
import http.client
import json
import sys
import uuid
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from webhook import TOKEN, Webhook
from walk import CALL_TIMEOUT, Exchanges, equal, expect, later, pattern, report

#: Where a client of this generation looks for the card.
CARDS = ("/.well-known/agent.json", "/agent.json")


class Refused(Exception):
    """An error response, by its JSON-RPC code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Wire:
    """One binding of the first generation."""

    def __init__(self, base: str, binding: str, exchanges: Exchanges) -> None:
        self.base = urlsplit(base)
        self.paths = binding == "paths"
        self.exchanges = exchanges

    def open(self, method: str, path: str, body: object = None, accept: str = "application/json"):
        """One request on its own connection: the response and its record."""
        connection = http.client.HTTPConnection(
            self.base.hostname, self.base.port, timeout=CALL_TIMEOUT
        )
        text = None if body is None else json.dumps(body)
        entry = self.exchanges.begin(method, path, text)
        entry["answer"] = bytearray()
        headers = {"Accept": accept}
        if text is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, f"{self.base.path}{path}", text, headers)
        response = connection.getresponse()
        entry["status"] = f"{response.status} {response.headers.get('content-type', '')}"
        return response, entry

    def json(self, method: str, path: str, body: object = None) -> tuple[int, object]:
        """One request with a JSON answer: its status and body."""
        response, entry = self.open(method, path, body)
        entry["answer"].extend(response.read())
        return response.status, json.loads(entry["answer"])

    def envelope(self, method: str, params: dict) -> dict:
        return {"jsonrpc": "2.0", "id": str(uuid.uuid4()), "method": method, "params": params}

    def call(self, method: str, params: dict) -> dict:
        """Calls a method; the result, or `Refused`."""
        if self.paths:
            status, answer = self.json("POST", f"/{method}", params)
            if status >= 400:
                raise Refused(answer["code"], answer["message"])
            return answer
        request = self.envelope(method, params)
        status, answer = self.json("POST", "/", request)
        equal("HTTP status", status, 200)
        equal("jsonrpc", answer.get("jsonrpc"), "2.0")
        equal("envelope id", answer.get("id"), request["id"])
        if "error" in answer:
            raise Refused(answer["error"]["code"], answer["error"]["message"])
        return answer["result"]

    def stream(self, method: str, params: dict) -> Iterator[dict]:
        """Calls a streaming method; yields each event as it arrives."""
        path, body = (f"/{method}", params) if self.paths else ("/", self.envelope(method, params))
        response, entry = self.open("POST", path, body, "text/event-stream")
        kind = response.headers.get_content_type()
        if kind != "text/event-stream":
            entry["answer"].extend(response.read())
            raise AssertionError(f"the response to a stream has the type {kind}")
        return self.events(response, entry["answer"], body)

    def events(self, response, copy: bytearray, body: dict) -> Iterator[dict]:
        for line in response:
            copy.extend(line)
            if not line.startswith(b"data:"):
                continue
            event = json.loads(line[len(b"data:") :])
            if self.paths:
                yield event
            else:
                equal("envelope id of an event", event.get("id"), body["id"])
                expect("result" in event, f"an event has a result: {event}")
                yield event["result"]


def message(text: str) -> dict:
    return {"role": "user", "parts": [{"type": "text", "text": text}]}


def texts(parts: list[dict]) -> str:
    return "".join(part["text"] for part in parts if part["type"] == "text")


def user_texts(task: dict) -> list[str]:
    return [texts(one["parts"]) for one in task.get("history", []) if one["role"] == "user"]


class Walk:
    """The steps, in order."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.done = ""
        self.session = f"session-{uuid.uuid4()}"

    def steps(self) -> list[Callable[[], None]]:
        return [
            self.the_card_is_read,
            self.a_send_completes_under_the_clients_own_id,
            self.history_comes_only_when_asked_for,
            self.an_unknown_task_is_not_found,
            self.a_stream_shows_each_chunk_in_order,
            self.a_second_turn_continues_the_task,
            self.whole_numbers_arrive_as_such,
            self.a_cancel_may_be_repeated,
            self.every_stream_of_a_task_sees_its_cancel,
            self.a_push_configuration_is_kept,
            self.a_webhook_receives_the_end_of_the_task,
            self.a_file_arrives_byte_for_byte,
            self.a_finished_task_takes_no_other_message,
        ]

    def send(self, text: str, task_id: str | None = None, **options) -> dict:
        params = {"id": task_id or f"task-{uuid.uuid4()}", "message": message(text), **options}
        task = self.wire.call("tasks/send", params)
        equal("id", task["id"], params["id"])
        return task

    def get(self, task_id: str, **options) -> dict:
        task = self.wire.call("tasks/get", {"id": task_id, **options})
        equal("id", task["id"], task_id)
        return task

    def refused(self, code: int, call: Callable[[], object]) -> None:
        try:
            answer = call()
        except Refused as refusal:
            equal("error code", refusal.code, code)
        else:
            raise AssertionError(f"a response instead of error {code}: {answer}")

    def the_card_is_read(self) -> None:
        cards = []
        for path in CARDS:
            status, card = self.wire.json("GET", path)
            equal("HTTP status", status, 200)
            cards.append(card)
        equal("the card at both places", cards[1], cards[0])
        for member in ("name", "url", "version", "capabilities", "skills"):
            expect(member in cards[0], f"the card has {member}")
        equal("streaming", cards[0]["capabilities"].get("streaming"), True)

    def a_send_completes_under_the_clients_own_id(self) -> None:
        task = self.send("echo hello", sessionId=self.session, historyLength=10)
        equal("sessionId", task.get("sessionId"), self.session)
        equal("state", task["status"]["state"], "completed")
        equal("artifacts", [one.get("index") for one in task["artifacts"]], [0])
        equal("artifact text", texts(task["artifacts"][0]["parts"]), "echo: hello")
        equal("user messages in history", user_texts(task), ["echo hello"])
        for member in ("kind", "contextId"):
            expect(member not in task, f"a task of this generation has no {member}")
        self.done = task["id"]

    def history_comes_only_when_asked_for(self) -> None:
        equal("history", self.get(self.done).get("history", []), [])
        task = self.get(self.done, historyLength=10)
        equal("user messages in history", user_texts(task), ["echo hello"])
        equal("sessionId", task.get("sessionId"), self.session)
        if self.wire.paths:
            status, same = self.wire.json("GET", f"/tasks/{self.done}/get")
            equal("HTTP status", status, 200)
            equal("id by GET", same["id"], self.done)
            equal("state by GET", same["status"]["state"], "completed")

    def an_unknown_task_is_not_found(self) -> None:
        self.refused(-32001, lambda: self.get(f"task-{uuid.uuid4()}"))

    def a_stream_shows_each_chunk_in_order(self) -> None:
        task_id = f"task-{uuid.uuid4()}"
        events = list(
            self.wire.stream(
                "tasks/sendSubscribe", {"id": task_id, "message": message("chunks 5 20")}
            )
        )
        equal("ids", {event["id"] for event in events}, {task_id})
        expect("status" in events[0], f"the first event is a status: {events[0]}")
        for event in events:
            expect(("status" in event) != ("artifact" in event), f"one of two shapes: {event}")
        chunks = [event["artifact"] for event in events if "artifact" in event]
        wanted = [f"chunk-{number} " for number in range(1, 6)]
        equal("chunks", [texts(chunk["parts"]) for chunk in chunks], wanted)
        equal("index", {chunk["index"] for chunk in chunks}, {0})
        appended = [chunk.get("append", False) for chunk in chunks]
        equal("append", appended, [False] + [True] * 4)
        last = [chunk.get("lastChunk", False) for chunk in chunks]
        equal("last chunk", last, [False] * 4 + [True])
        equal("final", [event.get("final", False) for event in events][-2:], [False, True])
        equal("last state", events[-1]["status"]["state"], "completed")
        kept = self.get(task_id)["artifacts"]
        equal("kept", "".join(texts(one["parts"]) for one in kept), "".join(wanted))

    def a_second_turn_continues_the_task(self) -> None:
        asked = self.send("hello?", sessionId=self.session)
        equal("state after the first turn", asked["status"]["state"], "input-required")
        task = self.send("echo done", asked["id"], sessionId=self.session)
        equal("state after the second turn", task["status"]["state"], "completed")
        kept = self.get(asked["id"], historyLength=10)
        equal("user messages in history", user_texts(kept), ["hello?", "echo done"])
        newest = self.get(asked["id"], historyLength=1)
        equal("messages asked for", newest["history"], kept["history"][-1:])

    def whole_numbers_arrive_as_such(self) -> None:
        for a in (19, 19.0):
            said = message("sum")
            said["parts"].append({"type": "data", "data": {"a": a, "b": 23}})
            params = {"id": f"task-{uuid.uuid4()}", "message": said}
            task = self.wire.call("tasks/send", params)
            equal("artifact text", texts(task["artifacts"][0]["parts"]), "sum: 42")

    def a_cancel_may_be_repeated(self) -> None:
        asked = self.send("hello?")
        canceled = self.wire.call("tasks/cancel", {"id": asked["id"]})
        equal("state after the cancel", canceled["status"]["state"], "canceled")
        again = self.wire.call("tasks/cancel", {"id": asked["id"]})
        equal("state after a second cancel", again["status"]["state"], "canceled")
        self.refused(-32002, lambda: self.wire.call("tasks/cancel", {"id": self.done}))

    def every_stream_of_a_task_sees_its_cancel(self) -> None:
        task_id = f"task-{uuid.uuid4()}"
        params = {"id": task_id, "message": message("wait 20")}
        first = self.wire.stream("tasks/sendSubscribe", params)
        expect("status" in next(first), "the first event is a status")
        second = self.wire.stream("tasks/resubscribe", {"id": task_id})
        expect("status" in next(second), "the first event is a status")
        canceled = self.wire.call("tasks/cancel", {"id": task_id})
        equal("state", canceled["status"]["state"], "canceled")
        for name, events in (("the sender", first), ("the subscriber", second)):
            last = list(events)[-1]
            equal(f"last state {name} sees", last["status"]["state"], "canceled")
            equal(f"final for {name}", last.get("final"), True)

    def a_push_configuration_is_kept(self) -> None:
        config = {"url": "http://localhost:9/interop"}
        params = {"id": self.done, "pushNotificationConfig": config}
        stored = self.wire.call("tasks/pushNotification/set", params)
        equal("id", stored["id"], self.done)
        found = self.wire.call("tasks/pushNotification/get", {"id": self.done})
        equal("id", found["id"], self.done)
        equal("url", found["pushNotificationConfig"]["url"], config["url"])

    def a_webhook_receives_the_end_of_the_task(self) -> None:
        with Webhook() as hook:
            task = self.send("echo pushed", pushNotification={"url": hook.url, "token": TOKEN})
            equal("state", task["status"]["state"], "completed")
            received = hook.until_completed()
        equal("the task of each delivery", {body["id"] for body in received}, {task["id"]})
        expect(all("kind" not in body for body in received), "a task of 0.1 has no kind")

    def a_file_arrives_byte_for_byte(self) -> None:
        task = self.send("file 1000")
        parts = [part for one in task["artifacts"] for part in one["parts"]]
        files = [part["file"] for part in parts if part["type"] == "file"]
        equal("files", len(files), 1)
        content = base64.b64decode(files[0]["bytes"], validate=True)
        expect(content == pattern(1000), "the bytes are those the agent made")

    def a_finished_task_takes_no_other_message(self) -> None:
        # 0.1 has no message id, so the agent treats the same content as a retry.
        again = self.send("echo hello", self.done, historyLength=10)
        equal("state", again["status"]["state"], "completed")
        equal("user messages in history", user_texts(again), ["echo hello"])
        self.refused(-32009, lambda: self.send("echo again", self.done))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--base", required=True, help="base URL of the agent")
    arguments.add_argument("--binding", required=True, choices=["jsonrpc", "paths"])
    chosen = arguments.parse_args()
    exchanges = Exchanges()
    wire = Wire(chosen.base.rstrip("/"), chosen.binding, exchanges)
    for step in Walk(wire).steps():
        if later(step.__name__):
            continue
        try:
            step()
        except Exception as error:
            report(step.__name__, error)
            exchanges.print()
            sys.exit(1)


if __name__ == "__main__":
    main()
