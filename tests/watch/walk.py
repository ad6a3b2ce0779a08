"""Calls every function under `cargo lambda watch`, over one base URL.

The functions run as they do on Lambda: one process per function, the Runtime API
between, DynamoDB and S3 behind the AWS SDKs. Those are the embedded ones of the local
agent, which runs the background work of the functions. The router table in Cargo.toml
replaces API Gateway.
"""

import argparse
import contextlib
import http.client
import http.server
import json
import os
import pathlib
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
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

    walk_behind_the_calls(agent)
    walk_first_generation(agent)
    walk_as_a_web_page(agent)

    status, answer = agent.call("DELETE", "/tasks", headers=V1)
    check(status in (404, 405), "a method without a route enters no function", status, answer)


def walk_behind_the_calls(agent):
    """A turn that no call waits for: the local agent reads the stream and runs it."""
    ask = {"message": message("add 19 and 23"), "configuration": {"returnImmediately": True}}
    sent = agent.rpc("SendMessage", ask)
    id = sent["task"]["id"]
    check(state(sent) == "TASK_STATE_SUBMITTED", "a send that does not wait is answered at once", sent)
    seen = [state(sent)]
    while seen[-1] in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"):
        seen.append(agent.rpc("GetTask", {"id": id})["status"]["state"])
    check(seen[-1] == "TASK_STATE_COMPLETED", "and the local agent completes its task", seen[-1])

    receiver = Receiver()
    config = {"url": receiver.url, "token": "walk"}
    ask = {
        "message": message("add 19 and 23"),
        "configuration": {"returnImmediately": True, "taskPushNotificationConfig": config},
    }
    id = agent.rpc("SendMessage", ask)["task"]["id"]
    seen = receiver.until(lambda event: state(event) == "TASK_STATE_COMPLETED")
    check(id in json.dumps(seen), "and posts the events to the webhook", seen)


class Receiver:
    """A webhook on loopback."""

    def __init__(self):
        posted = self.posted = queue.Queue()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                length = int(self.headers.get("Content-Length", 0))
                posted.put(json.loads(self.rfile.read(length)))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"

    def until(self, found):
        """The events up to one that is looked for."""
        seen = []
        while not (seen and found(seen[-1])):
            try:
                seen.append(self.posted.get(timeout=PATIENCE_S))
            except queue.Empty:
                raise Wrong(f"the webhook got {seen}") from None
        return seen


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


def until_it_listens(process):
    """Returns when the local agent can be called."""
    for line in process.stdout:
        print(line, end="", flush=True)
        if line.startswith("listening on http://127.0.0.1:"):
            return
    raise Wrong("the local agent ended before it could be called")


def until_connected(process, port):
    """Returns when the tool accepts connections."""
    while process.poll() is None:
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.1)
    raise Wrong("`cargo lambda watch` ended before the functions could be called")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--tools", required=True, help="the folder that holds cargo-lambda")
    options = arguments.parse_args()
    environment = os.environ | {
        "PATH": f"{options.tools}{os.pathsep}{os.environ['PATH']}",
        # The webhook of this walk is on loopback.
        "A2A_PUSH_ALLOW_PRIVATE": "on",
    }
    # All functions at once, so that no first call waits for its build.
    subprocess.run(["cargo", "build", "--locked", "--quiet"], cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory() as folder:
        settings = os.path.join(folder, "functions.env")
        agent = ["cargo", "run", "--locked", "--quiet", "--", "--memory", "--port", "0", "--env-file", settings]
        port = free_port()
        # The two commands of docs/local.md, at a free port.
        watch = ["cargo", "lambda", "watch", "-A", "127.0.0.1", "--disable-cors", "--concurrency", "4"]
        watch += ["--ignore-changes", "-P", str(port), "--env-file", settings]
        watch += ["--env-var", f"A2A_PUBLIC_URL=http://127.0.0.1:{port}"]
        with running(agent, env=environment, stdout=subprocess.PIPE, text=True) as local:
            try:
                until_it_listens(local)
                with running(watch, env=environment, stdin=subprocess.DEVNULL) as tool:
                    until_connected(tool, port)
                    walk(Agent(port))
            except (Wrong, OSError, KeyError, IndexError, StopIteration, http.client.HTTPException) as wrong:
                print(f"FAILED: {type(wrong).__name__}: {wrong}", flush=True)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
