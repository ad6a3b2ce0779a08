"""Calls every function under `cargo lambda watch`, over one base URL.

The functions run as they do on Lambda: one process per function, the Runtime API
between, DynamoDB and S3 behind the AWS SDKs (here the embedded ones of a2a-local).
The router table in Cargo.toml replaces API Gateway.
"""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Long enough for a slow machine; no check depends on speed.
PATIENCE_S = 180
V1 = {"A2A-Version": "1.0"}
# No skill fits this text, so the agent asks which one is meant, and the task stays
# open until a call ends it.
UNCLEAR = "Hm."


class Wrong(Exception):
    """A response that the walk does not expect."""


def check(condition, what, *seen):
    if not condition:
        raise Wrong(f"{what}: {json.dumps(seen, default=str)[:2000]}")
    print(f"ok  {what}", flush=True)


class Agent:
    """A client of one base URL."""

    def __init__(self, port):
        self.port = port

    def open(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        sent = dict(headers or {})
        if body is not None:
            sent["Content-Type"] = "application/json"
        connection.request(method, path, None if body is None else json.dumps(body), sent)
        return connection.getresponse()

    def call(self, method, path, body=None, headers=None):
        response = self.open(method, path, body, headers)
        text = response.read()
        with contextlib.suppress(ValueError):
            return response.status, json.loads(text)
        return response.status, text.decode(errors="replace")

    def rpc(self, method, params):
        status, answer = self.call("POST", "/", envelope(method, params), V1)
        if status != 200 or "result" not in answer:
            raise Wrong(f"{method} answered {status}: {answer}")
        return answer["result"]


def envelope(method, params):
    return {"jsonrpc": "2.0", "id": "walk", "method": method, "params": params}


def message(text, **more):
    return {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [{"text": text}], **more}


def frames(response):
    """The events of a stream, each as soon as it arrives."""
    check(response.status == 200, "a stream opens", response.status)
    kind = response.headers.get("Content-Type", "")
    check(kind.startswith("text/event-stream"), "as an event stream", kind)
    while line := response.readline():
        if line.startswith(b"data:"):
            yield json.loads(line[5:])


def state(frame):
    """The state in a 1.0 frame, or None."""
    for member in ("task", "statusUpdate"):
        if member in frame:
            return frame[member]["status"]["state"]
    return None


def walk(agent):
    status, card = agent.call("GET", "/.well-known/agent-card.json")
    check(status == 200 and card["name"], "agent-card returns the card", status, card)
    base = f"http://127.0.0.1:{agent.port}"
    check(base in card["supportedInterfaces"][0]["url"], "which names the configured address", card)
    for path in ("/.well-known/agent.json", "/agent.json"):
        status, old = agent.call("GET", path)
        check(status == 200 and old["url"].startswith(base), f"{path} returns the older one", status, old)

    sent = agent.rpc("SendMessage", {"message": message(UNCLEAR)})
    first = sent["task"]["id"]
    check(state(sent) == "TASK_STATE_INPUT_REQUIRED", "rpc runs a task until its question", sent)

    status, sent = agent.call("POST", "/message:send", {"message": message(UNCLEAR)}, V1)
    check(status == 200 and state(sent) == "TASK_STATE_INPUT_REQUIRED", "tasks-send does too", status, sent)
    second = sent["task"]["id"]

    for path, headers in ((f"/tasks/{first}", V1), (f"/v1/tasks/{first}", {}), (f"/local/tasks/{first}", V1)):
        status, task = agent.call("GET", path, headers=headers)
        check(status == 200 and task["id"] == first, f"tasks-get finds it at {path}", status, task)
    status, page = agent.call("GET", "/tasks?pageSize=10", headers=V1)
    listed = [task["id"] for task in page["tasks"]] if status == 200 else page
    check(listed == [second, first], "tasks-get lists both, newest first", status, page)
    someone = {"Authorization": "Bearer dev:other:alice", **V1}
    status, refused = agent.call("GET", f"/tasks/{first}", headers=someone)
    check(status == 404, "and refuses it to another tenant", status, refused)

    # Reads the first frame before the cancel and the last after it: the stream is not
    # buffered, and it does not block other calls.
    for subscribe, id in (("GET", first), ("POST", second)):
        events = frames(agent.open(subscribe, f"/tasks/{id}:subscribe", headers=V1))
        seen = [next(events)]
        check(state(seen[0]) == "TASK_STATE_INPUT_REQUIRED", f"{subscribe} :subscribe begins with the task", seen)
        status, task = agent.call("POST", f"/tasks/{id}:cancel", {}, V1)
        check(status == 200 and task["status"]["state"] == "TASK_STATE_CANCELED", "a cancel works meanwhile", status, task)
        seen += events
        check(state(seen[-1]) == "TASK_STATE_CANCELED", "and ends the stream", seen)

    ask = {"message": message(UNCLEAR)}
    seen = list(frames(agent.open("POST", "/message:stream", ask, V1)))
    check(state(seen[-1]) == "TASK_STATE_INPUT_REQUIRED", "tasks-stream streams a turn", seen)
    ask = {"message": message(UNCLEAR)}
    seen = list(frames(agent.open("POST", "/", envelope("SendStreamingMessage", ask), V1)))
    check(state(seen[-1]["result"]) == "TASK_STATE_INPUT_REQUIRED", "rpc streams one too", seen)

    walk_first_generation(agent)
    walk_as_a_web_page(agent)

    status, answer = agent.call("DELETE", "/tasks", headers=V1)
    check(status in (404, 405), "a method without a route enters no function", status, answer)


def walk_first_generation(agent):
    """The path calls of 0.1: ids from the client, bare parameters."""
    id = f"walk-{uuid.uuid4()}"
    said = {"role": "user", "parts": [{"type": "text", "text": UNCLEAR}]}
    call = {"id": id, "message": said}
    status, task = agent.call("POST", "/tasks/send", call)
    asks = status == 200 and task["id"] == id and task["status"]["state"] == "input-required"
    check(asks, "tasks-send takes a 0.1 call", status, task)
    for method, path, body in (("POST", "/tasks/get", {"id": id}), ("GET", f"/tasks/{id}/get", None)):
        status, task = agent.call(method, path, body)
        check(status == 200 and task["id"] == id, f"tasks-get answers {method} {path}", status, task)
    status, task = agent.call("POST", "/tasks/cancel", {"id": id})
    check(status == 200 and task["status"]["state"] == "canceled", "tasks-send cancels it", status, task)
    call = {**call, "id": f"walk-{uuid.uuid4()}"}
    seen = list(frames(agent.open("POST", "/tasks/sendSubscribe", call)))
    check(seen[-1]["final"] is True, "tasks-stream streams a 0.1 call", seen)


def walk_as_a_web_page(agent):
    """The calls of a web page of another site: it reads nothing and changes nothing."""
    ask = {"message": message(UNCLEAR)}
    for path in ("/message:send", "/message:stream", "/"):
        for name, value in (("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site")):
            status, answer = agent.call("POST", path, ask, {**V1, name: value})
            check(status == 403, f"{path} refuses a page by its {name}", status, answer)
    status, answer = agent.call("GET", "/tasks", headers={**V1, "Host": "evil.example"})
    check(status == 421, "another host is not served", status, answer)
    preflight = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    response = agent.open("OPTIONS", "/message:send", headers=preflight)
    response.read()
    allowed = response.headers.get("Access-Control-Allow-Origin")
    check(allowed is None, "no page may read", response.status, allowed)


@contextlib.contextmanager
def running(command, **options):
    """A process with its children; all of them are stopped at the end."""
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, **options)
    try:
        yield process
    finally:
        for stop in (signal.SIGINT, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, stop)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)


def store_settings(process):
    """The settings that the embedded store prints before `ready`."""
    settings = {}
    for line in process.stdout:
        line = line.strip()
        if line == "ready":
            return settings
        name, _, value = line.partition("=")
        settings[name] = value
    raise Wrong("the embedded store ended before it was ready")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_open(port, process):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise Wrong("cargo lambda watch does not listen")


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--tools", required=True, help="the folder that holds cargo-lambda")
    options = arguments.parse_args()
    path = f"{options.tools}{os.pathsep}{os.environ['PATH']}"

    # Watch compiles a function at its first call; building first keeps calls from waiting.
    subprocess.run(["cargo", "build", "--locked"], cwd=ROOT, check=True)
    store = ["cargo", "run", "--locked", "--quiet", "--", "aws", "--memory"]
    with running(store, stdout=subprocess.PIPE, text=True) as process:
        settings = store_settings(process)
        port = free_port()
        environment = os.environ | settings | {
            "PATH": path,
            "A2A_AUTH": "dev",
            "A2A_PUBLIC_URL": f"http://127.0.0.1:{port}",
        }
        watch = ["cargo", "lambda", "watch", "--ignore-changes", "-P", str(port)]
        # As in the README: by default watch listens on all addresses, and lets every page read.
        watch += ["-A", "127.0.0.1", "--disable-cors"]
        # One process serves one call at a time, so an open stream needs further processes.
        with running([*watch, "--concurrency", "4"], env=environment) as watching:
            wait_until_open(port, watching)
            try:
                walk(Agent(port))
            except (Wrong, OSError, KeyError, IndexError, StopIteration, http.client.HTTPException) as wrong:
                print(f"FAILED: {type(wrong).__name__}: {wrong}", flush=True)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
