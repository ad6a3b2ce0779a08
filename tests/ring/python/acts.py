"""The acts of every Python client, written once against a small adapter.

A client module supplies a `Client`: the calls of its framework with the framework's own
defaults, and its answers as a `Reply`: what a user of that framework sees. `main` plays the
acts and prints one line for each: `client | act | ok, FAIL or cannot | detail`.
"""

import argparse
import asyncio
import importlib.metadata
import json
import logging
import os
import pathlib
import re
import zlib
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

#: Seconds that one act may take, and a conversation.
ACT_LIMIT, CONVERSATION_LIMIT = 60, 120
#: Seconds of one call, for clients that take a limit.
CALL_LIMIT = 30
#: Characters of a detail.
DETAIL_MAX = 240
#: A task that does not exist.
UNKNOWN = "task-that-does-not-exist"
#: What the agent says of the message that a client provokes an error with.
REFUSALS = ("task not found", "the context has expired", "must have 1 to 64")
#: The words that a user sends with a file.
WORDS = "fingerprint"
#: What is said in each conversation, and what its user sees: the same for both languages.
CONVERSATIONS = json.loads((pathlib.Path(__file__).resolve().parents[1] / "conversations.json").read_text())


class Cannot(Exception):
    """The client has no such call; the text says what is missing."""


@dataclass
class Reply:
    """What a user of the client sees of one answer."""

    #: All texts, those of data parts (as JSON) too.
    text: str = ""
    #: Files, inline or by URL.
    files: int = 0
    #: The state in the client's words, if it shows one.
    state: str = ""
    #: What the client needs to continue: a task, ids, a session.
    handle: Any = None
    #: The id of the task, if the client shows it.
    task: str = ""


class Client:
    """The adapter of one client. A method that is not overridden is a call that the client
    does not have."""

    package = ""
    #: Whether the framework hands out the files and the data of an answer.
    shows_files = shows_data = True
    #: Whether the framework refers to earlier tasks by itself.
    refers = False

    async def open(self, base: str) -> None:
        """Reads the card, as the client does by default."""
        raise NotImplementedError

    async def send(self, text: str, last: Reply | None = None) -> Reply:
        """Sends a text and waits for the answer, without a stream."""
        raise Cannot("every call streams")

    async def stream(self, text: str, last: Reply | None = None) -> Reply:
        """Sends a text and reads the stream to its end."""
        raise Cannot("no call streams")

    async def talk(self, text: str, last: Reply | None = None) -> Reply:
        """Sends a text in the mode that is the client's default."""
        return await self.stream(text, last)

    async def say(self, text: str, last: Reply | None = None) -> Reply:
        """Sends the next text of a session: the answer to `last`, if that asks."""
        return await self.talk(text, last)

    async def refer(self, text: str, last: Reply, about: Reply) -> Reply:
        """Continues the session with a text that refers to the task of `about`."""
        raise Cannot("its user attaches no references")

    async def file(self, text: str, name: str, content: bytes) -> Reply:
        """Sends a text and a file, as the client attaches one."""
        raise Cannot("it sends text only")

    async def stream_to(self, task: str, text: str) -> Reply:
        """Streams a message to a task by its id."""
        raise Cannot("its calls take no task id")

    async def provoke(self) -> Reply:
        """Streams a message that the agent refuses: for a task that does not exist, or the
        nearest that the client can send."""
        return await self.stream_to(UNKNOWN, "hello")

    async def cancel(self, task: str) -> str:
        """Cancels a task; returns its state."""
        raise Cannot("no such call")

    async def get(self, task: str) -> Reply:
        """Gets a task."""
        raise Cannot("no such call")

    async def list(self) -> list[str]:
        """Lists the ids of tasks."""
        raise Cannot("no such call")


def png() -> bytes:
    """A picture of one grey pixel."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")

    head = (1).to_bytes(4, "big") * 2 + bytes([8, 0, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0\x80")) + chunk(b"IEND", b"")


def asks(reply: Reply | None) -> bool:
    return bool(reply and re.search("input.required", reply.state, re.I))


def ids(last: Reply | None) -> tuple:
    """The task and the context of the next message, of a reply with both: the task if that asks."""
    if not last or not last.handle:
        return ()
    task, context = last.handle
    return (task if asks(last) else None, context)


def shows(reply: Reply, *words: str) -> str:
    """Fails unless the user sees one of the words."""
    if not any(word in reply.text for word in words):
        raise AssertionError(f"{words[0]!r} is not shown: {reply.text or 'no text'!r}, state {reply.state or 'not shown'}")
    return next(word for word in words if word in reply.text)


def code(reply: Reply) -> str:
    """The code that a question of consent asks for."""
    if not (line := re.search(r"Answer `yes (\w+)`", reply.text)):
        raise AssertionError(f"no code is shown: {reply.text!r}")
    return line[1]


def has_file(reply: Reply) -> str:
    if not reply.files:
        raise AssertionError(f"no file is shown: text {reply.text!r}, state {reply.state or 'not shown'}")
    return f"{reply.files} file"


def chain(error: BaseException) -> str:
    """The texts of an error and of its causes."""
    texts, one = [], error
    while one is not None and len(texts) < 6:
        texts.append(f"{type(one).__name__}: {one}")
        one = one.__cause__ or one.__context__
    return " < ".join(texts)


class Acts:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.question: Reply | None = None
        self.ended: Reply | None = None

    async def echo_sent(self) -> str:
        return shows(await self.client.send("echo hello"), "hello")

    async def echo_streamed(self) -> str:
        return shows(await self.client.stream("echo hello"), "hello")

    async def sum(self) -> str:
        self.ended = await self.client.talk("What's 2+2?")
        if not re.search(r"\b4\b", self.ended.text):
            raise AssertionError(f"4 is not shown: {self.ended.text or 'no text'!r}, state {self.ended.state or 'not shown'}")
        return "4"

    async def report(self) -> str:
        reply = await self.client.talk("Generate Q4 financial report")
        return shows(reply, "## Analysis")

    async def titled(self) -> str:
        return shows(await self.client.talk("Format my report as Markdown"), "# Report")

    async def picture(self) -> str:
        return has_file(await self.client.talk("Generate logo"))

    async def asked(self) -> str:
        self.question = await self.client.talk("Book a flight")
        return shows(self.question, "Where to?")

    async def asked_streamed(self) -> str:
        return shows(await self.client.stream("Book a flight"), "Where to?")

    async def answered(self) -> str:
        if self.question is None:
            raise AssertionError("the question did not arrive")
        first = await self.client.talk("Lisbon", self.question)
        shows(first, "When?")
        return shows(await self.client.talk("tomorrow", first), "Lisbon")

    async def failed(self) -> str:
        try:
            reply = await self.client.talk("/add 2+2+2")
        except Exception as error:
            reply = Reply(chain(error))
        return shows(reply, "two whole numbers are needed")

    async def captioned(self) -> str:
        reply = await self.client.file(WORDS, "pixel.png", png())
        if self.client.shows_files:
            return has_file(reply)
        if reply.state != "completed":
            raise AssertionError(f"state {reply.state}: {reply.text}")
        return "sent"

    async def converse(self, name: str) -> str:
        replies: list[Reply] = []
        for turn in CONVERSATIONS[name]["turns"]:
            for _ in range(turn.get("times", 1)):
                replies.append(await self.turn(turn, replies))
        return f"{len(replies)} turns"

    async def turn(self, turn: dict, replies: list[Reply]) -> Reply:
        """One sentence of a conversation, and whether its user sees the right answer."""
        client, text = self.client, turn["say"]
        if "{code}" in text:
            text = text.replace("{code}", code(replies[-1]))
        last = replies[turn.get("to", -1)] if replies else None
        if turn.get("aside"):
            last = replace(last, state="")
        if "about" in turn and type(client).refer is not Client.refer:
            reply = await client.refer(text, last, replies[turn["about"]])
        elif "about" in turn and "plain" not in turn:
            raise Cannot("its user attaches no references")
        else:
            reply = await client.say(text if client.refers else turn.get("plain", text), last)
        if "choose" in turn and "Which of these do you mean" in reply.text:
            reply = await client.say(turn["choose"], reply)
        is_hidden = turn.get("data") and not client.shows_data
        is_file = turn.get("file") and reply.files
        if not (is_hidden or is_file or any(word in reply.text for word in turn["see"])):
            raise AssertionError(f"after {text!r}: {reply.text or 'no text'!r}, state {reply.state or 'not shown'}")
        return reply

    async def refused(self, stream: Awaitable[Reply], *words: str) -> str:
        try:
            reply = await stream
        except Cannot:
            raise
        except Exception as error:
            reply = Reply(chain(error))
        return shows(reply, *words)

    async def unknown(self) -> str:
        return await self.refused(self.client.provoke(), *REFUSALS)

    async def over(self) -> str:
        if type(self.client).stream_to is Client.stream_to:
            raise Cannot("its calls take no task id")
        if self.ended is None or not self.ended.task:
            # Some clients show the id of a task in one mode only.
            self.ended = await self.client.stream("What's 2+2?")
        return await self.refused(self.client.stream_to(self.ended.task, "hello"), "accepts no message")

    async def canceled(self) -> str:
        if type(self.client).cancel is Client.cancel:
            raise Cannot("no such call")
        task = (await self.client.talk("Book a flight")).task
        states = [await self.client.cancel(task) for _ in range(2)]
        if not all("cancel" in state.lower() for state in states):
            raise AssertionError(f"states {states}")
        return "twice"

    async def got(self) -> str:
        if type(self.client).get is Client.get:
            raise Cannot("no such call")
        task = (await self.client.talk("Book a flight")).task
        return shows(await self.client.get(task), "Where to?")

    async def listed(self) -> str:
        tasks = await self.client.list()
        if not tasks:
            raise AssertionError("the list is empty")
        return "tasks"


#: The acts in their order: the name in the table, and what plays it.
ACTS = {
    "send": Acts.echo_sent,
    "stream": Acts.echo_streamed,
    "data": Acts.sum,
    "chunks": Acts.report,
    "text artifact": Acts.titled,
    "picture": Acts.picture,
    "question": Acts.asked,
    "streamed question": Acts.asked_streamed,
    "answer": Acts.answered,
    "failure": Acts.failed,
    "file with words": Acts.captioned,
    "stream error": Acts.unknown,
    "ended task": Acts.over,
    "cancel twice": Acts.canceled,
    "get": Acts.got,
    "list": Acts.listed,
}


class Lines:
    """The standard output, for the lines alone: what a framework prints goes to the standard error."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def write(self, act: str, result: str, detail: str) -> None:
        detail = " ".join(detail.split()).replace("|", "/")
        print(f"{self.name} | {act} | {result} | {detail[:DETAIL_MAX]}", file=self.out, flush=True)


async def play(client: Client, base: str, lines: Lines, talk_only: bool) -> None:
    acts = Acts(client)

    async def card() -> str:
        await client.open(base)
        return ""

    plays = {"card": card, **{act: partial(method, acts) for act, method in ACTS.items()}}
    talks = {name: partial(acts.converse, name) for name, talk in CONVERSATIONS.items() if talk_only or "only" not in talk}
    if talk_only:
        await card()
    for act, method in (talks if talk_only else plays | talks).items():
        try:
            limit = CONVERSATION_LIMIT if act in talks else ACT_LIMIT
            lines.write(act, "ok", await asyncio.wait_for(method(), limit))
        except Cannot as missing:
            lines.write(act, "cannot", str(missing))
        # Some frameworks cancel the task that calls them.
        except (Exception, asyncio.CancelledError) as error:
            lines.write(act, "FAIL", chain(error))


def main(client: Client) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", required=True, help="URL of the agent")
    parser.add_argument("--client", help="the name in the lines")
    parser.add_argument("--conversations", action="store_true", help="the conversations alone")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    name = arguments.client or f"{client.package} {importlib.metadata.version(client.package)}"
    asyncio.run(play(client, arguments.base, Lines(name), arguments.conversations))
    # Some frameworks leave threads that would keep the process.
    os._exit(0)
