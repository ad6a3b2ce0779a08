"""Walks the conformance agent with the official command line, `a2acli`.

Usage: a2acli.py PROGRAM URL [V1_URL]

URL is the agent, V1_URL the same agent with the card of 1.0 alone: `card get --validate` compares
that card with the published JSON schema.
"""

import base64
import json
import pathlib
import subprocess
import sys
import tempfile
import time

LIMIT = 60
BYTES = bytes(range(256))


class Failed(Exception):
    """A promise that was not kept."""


def check(holds, what, *seen):
    if not holds:
        raise Failed(f"{what}: {seen}")


class Cli:
    def __init__(self, program, url, transport):
        self.begin = [program, "--agent-card", url, "--transport", transport]

    def start(self, *arguments):
        return subprocess.Popen([*self.begin, "--output", "json", *arguments], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def run(self, *arguments, fails=False):
        """The lines that the program prints, as JSON."""
        program = self.start(*arguments)
        printed, complained = program.communicate(timeout=LIMIT)
        check((program.returncode != 0) == fails, " ".join(arguments), program.returncode, printed, complained)
        # An error is one JSON object on the standard error.
        return json.loads(complained if fails else printed)

    def lines(self, *arguments):
        program = self.start(*arguments)
        printed, complained = program.communicate(timeout=LIMIT)
        check(program.returncode == 0, " ".join(arguments), program.returncode, complained)
        return [json.loads(line) for line in printed.splitlines()]

    def task(self, *arguments):
        return self.run("send", *arguments)["task"]


def parts(task):
    return [part for artifact in task.get("artifacts", []) for part in artifact["parts"]]


def state(task):
    return task["status"]["state"].removeprefix("TASK_STATE_")


def walk(cli, folder):
    done = cli.task("echo hello")
    check(state(done) == "COMPLETED" and parts(done) == [{"text": "echo: hello"}], "text is echoed", done)
    check(cli.run("task", "get", done["id"])["id"] == done["id"], "the task is read")
    listed = cli.run("task", "list", "--context-id", done["contextId"])["tasks"]
    check([task["id"] for task in listed] == [done["id"]], "its context is listed", listed)

    added = cli.task("--text-part", "sum", "--data-part", '{"a": 19, "b": 23}')
    check(parts(added) == [{"text": "sum: 42"}], "data is added", added)

    file = folder / "all.bin"
    file.write_bytes(BYTES)
    back = parts(cli.task("--text-part", "back", "--file-part", str(file)))
    check(len(back) == 1 and base64.b64decode(back[0]["raw"]) == BYTES, "a file comes back", back)
    check(back[0]["filename"] == "all.bin", "with its name", back)

    events = cli.lines("send", "--stream", "chunks 3 20")
    chunks = [event["artifactUpdate"]["artifact"]["parts"][0]["text"] for event in events if "artifactUpdate" in event]
    check("task" in events[0] and chunks == ["chunk-1 ", "chunk-2 ", "chunk-3 "], "a stream shows each chunk", events)
    check(state(events[-1]["statusUpdate"]) == "COMPLETED", "and ends", events)

    failing = cli.lines("send", "--stream", "fail")
    check(state(failing[-1]["statusUpdate"]) == "FAILED", "an error after the first event is shown", failing)

    asked = cli.task("hello?")
    check(state(asked) == "INPUT_REQUIRED", "a question", asked)
    answered = cli.task("echo done", "--task-id", asked["id"])
    check(answered["id"] == asked["id"] and state(answered) == "COMPLETED", "its answer", answered)

    running = cli.task("wait 60", "--return-immediately", "--async")
    watching = cli.start("task", "subscribe", running["id"])
    first = json.loads(watching.stdout.readline())
    check(first["task"]["id"] == running["id"], "a subscription begins with the task", first)
    check(state(cli.run("task", "cancel", running["id"])) == "CANCELED", "the cancel")
    rest, _ = watching.communicate(timeout=LIMIT)
    check(state(json.loads(rest.splitlines()[-1])["statusUpdate"]) == "CANCELED", "and the subscriber sees it", rest)

    hook = cli.run("task", "push-config", "create", cli.task("hello?")["id"], "https://hooks.example.com/a")
    check(hook["url"] == "https://hooks.example.com/a", "a webhook is stored", hook)

    for code, arguments in (
        (-32001, ("task", "get", "task-00000000000000000000000000000000")),
        (-32002, ("task", "cancel", done["id"])),
        (-32004, ("send", "again", "--task-id", done["id"])),
        (-32004, ("send", "--stream", "again", "--task-id", done["id"])),
    ):
        refused = cli.run(*arguments, fails=True)["error"]
        check(refused["a2aCode"] == code, " ".join(arguments), refused)


def main():
    if len(sys.argv) not in (3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    program, url, *v1 = sys.argv[1:]
    failed = 0
    for transport in ("jsonrpc", "rest"):
        began = time.monotonic()
        try:
            with tempfile.TemporaryDirectory() as folder:
                walk(Cli(program, url, transport), pathlib.Path(folder))
            print(f"ok      a2acli {transport} in {time.monotonic() - began:.0f} s")
        except Failed as error:
            failed = 1
            print(f"FAILED  a2acli {transport}: {error}")
    for one in v1:
        validated = subprocess.run([program, "--agent-card", one, "card", "get", "--validate"], capture_output=True,
                                   text=True, timeout=LIMIT, check=False)
        print(f"{'FAILED' if validated.returncode else 'ok    '}  a2acli card get --validate {validated.stderr.strip()}")
        failed |= validated.returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
