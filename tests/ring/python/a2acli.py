"""The official command line `a2acli`, crate `a2a-cli`: its JSON output. `A2ACLI` is the program."""

import asyncio
import json
import os
import pathlib
import tempfile

from acts import Client, Reply, ids, main


def see(reply: Reply, parts: list[dict]) -> None:
    for part in parts:
        if "text" in part:
            reply.text += part["text"]
        elif "data" in part:
            reply.text += json.dumps(part["data"])
        else:
            reply.files += 1


def whole(task: dict) -> Reply:
    reply = Reply(task=task["id"], handle=(task["id"], task["contextId"]), state=task["status"]["state"])
    for artifact in task.get("artifacts", []):
        see(reply, artifact["parts"])
    see(reply, task["status"].get("message", {}).get("parts", []))
    return reply


def add(reply: Reply, event: dict) -> Reply:
    if "task" in event:
        return whole(event["task"])
    if "message" in event:
        see(reply, event["message"]["parts"])
    elif "artifactUpdate" in event:
        see(reply, event["artifactUpdate"]["artifact"]["parts"])
    else:
        status = event["statusUpdate"]["status"]
        reply.state = status["state"]
        see(reply, status.get("message", {}).get("parts", []))
    return reply


def options(last: Reply | None) -> list[str]:
    task, context = ids(last) or (None, None)
    return [*(["--task-id", task] if task else []), *(["--context-id", context] if context else [])]


class Cli(Client):
    async def open(self, base):
        self.begin = [os.environ["A2ACLI"], "--agent-card", base, "--output", "json"]
        await self.run("card", "get")

    async def run(self, *words) -> str:
        process = await asyncio.create_subprocess_exec(
            *self.begin, *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, error = (text.decode() for text in await process.communicate())
        if process.returncode:
            raise RuntimeError(error)
        return out

    async def send(self, text, last=None):
        return add(Reply(), json.loads(await self.run("send", text, *options(last))))

    async def stream(self, text, last=None):
        reply = Reply()
        for line in (await self.run("send", "--stream", text, *options(last))).splitlines():
            reply = add(reply, json.loads(line))
        return reply

    async def talk(self, text, last=None):
        return await self.send(text, last)

    async def file(self, text, name, content):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, name)
            path.write_bytes(content)
            return add(Reply(), json.loads(await self.run("send", "--text-part", text, "--file-part", str(path))))

    async def stream_to(self, task, text):
        return await self.stream(text, Reply(handle=(task, None), state="input-required"))

    async def cancel(self, task):
        return json.loads(await self.run("task", "cancel", task))["status"]["state"]

    async def get(self, task):
        return whole(json.loads(await self.run("task", "get", task)))

    async def list(self):
        return [task["id"] for task in json.loads(await self.run("task", "list"))["tasks"]]


if __name__ == "__main__":
    main(Cli())
