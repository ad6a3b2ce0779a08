"""The command line `handler`, PyPI `a2a-handler`: its text output."""

import asyncio
import pathlib
import re
import sys
import tempfile

from acts import Client, Reply, main

COMMAND = pathlib.Path(sys.executable).parent / "handler"


class Handler(Client):
    package = "a2a-handler"

    async def open(self, base):
        self.url = base
        self.folder = tempfile.mkdtemp()
        await self.run("card", "get")

    async def run(self, *words) -> str:
        # It keeps sessions below the home of its user.
        process = await asyncio.create_subprocess_exec(
            COMMAND,
            *words,
            "--url",
            self.url,
            env={"HOME": self.folder, "NO_PROXY": "127.0.0.1"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, error = (text.decode() for text in await process.communicate())
        if process.returncode:
            raise RuntimeError(error)
        return out

    async def ask(self, kind, text, *words) -> Reply:
        out = await self.run("message", kind, "--text", text, *words)
        task = re.search(r"task-[0-9a-f]{32}", out)
        context = re.search(r"^Context ID: (\S+)", out, re.M)
        state = re.search(r"^State: (\w+)", out, re.M)
        return Reply(
            text=out,
            files=len(re.findall(r"\[file: ", out)),
            state=state.group(1) if state else "",
            task=task.group() if task else "",
            handle=["--task-id", task.group(), "--context-id", context.group(1)] if task and context else [],
        )

    async def send(self, text, last=None):
        return await self.ask("send", text, *(last.handle if last else []))

    async def stream(self, text, last=None):
        return await self.ask("stream", text, *(last.handle if last else []))

    async def talk(self, text, last=None):
        return await self.send(text, last)

    async def say(self, text, last=None):
        # It saves the context of a session, and a stream shows the questions.
        return await self.ask("stream", text, *(["--continue"] if last else []))

    async def file(self, text, name, content):
        path = pathlib.Path(self.folder, name)
        path.write_bytes(content)
        return await self.ask("send", text, "--file", path)

    async def stream_to(self, task, text):
        return await self.ask("stream", text, "--task-id", task)

    async def cancel(self, task):
        return await self.run("task", "cancel", task)

    async def get(self, task):
        return Reply(text=await self.run("task", "get", task))

    async def list(self):
        return re.findall(r"^task-\S+", await self.run("task", "list"), re.M)


if __name__ == "__main__":
    main(Handler())
