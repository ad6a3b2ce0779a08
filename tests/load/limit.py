#!/usr/bin/env python3
"""Sends three times the allowed rate of one tenant to the local agent for a minute.

It checks that every accepted task ends, that every refusal says when to come back, and that
no call of another tenant is refused. It prints the latencies of the other tenant, alone and
beside the flood. Latencies are figures to read; only the three checks can fail.
"""

import argparse
import collections
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLOOD, OTHER = "Bearer dev:flood:ann", "Bearer dev:other:bob"
THREADS = 12


class Agent:
    """The program with a rate limit, until the end of the `with` block."""

    def __init__(self, program, rate):
        limit = {"A2A_RATE_LIMIT": str(rate)}
        self.settings = {**os.environ, **limit, "A2A_LOG": "error"}
        self.program = program

    def __enter__(self):
        command = [self.program, "--port", "0", "--memory"]
        self.process = subprocess.Popen(command, env=self.settings, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if found := re.search(r"listening on http://([\w.]+):(\d+)", line):
                self.address = found[1], int(found[2])
                # The program must not wait for a reader of its output.
                threading.Thread(target=self.process.stdout.read, daemon=True).start()
                return self
        raise SystemExit("the agent does not start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


class Client:
    """A caller with one connection."""

    def __init__(self, address, token):
        self.connection = http.client.HTTPConnection(*address, timeout=60)
        self.headers = {"authorization": token, "a2a-version": "1.0", "content-type": "application/json"}

    def call(self, method, target, body=None):
        """Status, headers, document, and milliseconds of a call."""
        began = time.perf_counter()
        self.connection.request(method, target, body and json.dumps(body), self.headers)
        response = self.connection.getresponse()
        document = json.loads(response.read() or "null")
        return response.status, response.headers, document, (time.perf_counter() - began) * 1000

    def send(self):
        part = {"text": "add 19 and 23"}
        message = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [part]}
        return self.call("POST", "/message:send", {"message": message})


def paced(rate, seconds, call):
    """Calls `call` `rate` times a second, as far as it is fast enough."""
    began, number = time.monotonic(), 0
    while (due := number / rate) < seconds:
        time.sleep(max(0.0, began + due - time.monotonic()))
        if time.monotonic() - began > seconds:
            return
        call()
        number += 1


class Flood:
    """The tenant that sends too much."""

    def __init__(self):
        self.statuses = collections.Counter()
        self.tasks, self.unnamed = set(), 0
        self.lock = threading.Lock()

    def run(self, address, rate, seconds):
        clients = [Client(address, FLOOD) for _ in range(THREADS)]
        threads = [
            threading.Thread(target=paced, args=(rate / THREADS, seconds, lambda it=it: self.one(it))) for it in clients
        ]
        for thread in threads:
            thread.start()
        return threads

    def one(self, client):
        status, headers, document, _ = client.send()
        with self.lock:
            self.statuses[status] += 1
            if status == 200:
                self.tasks.add(document["task"]["id"])
            elif not headers.get("retry-after", "").isdigit():
                self.unnamed += 1


def other(address, rate, seconds):
    """Latencies and refusals of a tenant that stays below its rate."""
    client, times, refused = Client(address, OTHER), [], 0

    def one():
        nonlocal refused
        status, _, _, ms = client.send()
        times.append(ms)
        refused += status != 200

    paced(rate, seconds, one)
    return sorted(times), refused


def p(times, share):
    return times[min(len(times) - 1, int(len(times) * share))]


def unfinished(address, tasks, rate):
    """The accepted tasks that have not ended; reads below the rate."""
    client, left = Client(address, FLOOD), []
    for task in tasks:
        while True:
            status, headers, document, _ = client.call("GET", f"/tasks/{task}")
            if status != 429:
                break
            time.sleep(int(headers["retry-after"]))
        if status != 200 or document["status"]["state"] != "TASK_STATE_COMPLETED":
            left.append((task, status, document))
    return left


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "target/debug/a2a-local"), help="the local agent (%(default)s)")
    parser.add_argument("--rate", type=int, default=3000, help="the allowed calls a minute (%(default)s)")
    parser.add_argument("--seconds", type=int, default=60, help="how long the flood lasts (%(default)s)")
    args = parser.parse_args()
    allowed = args.rate / 60
    with Agent(args.program, args.rate) as agent:
        print(f"{args.rate} calls a minute are allowed; the flood sends {3 * args.rate}", flush=True)
        alone, refused_alone = other(agent.address, allowed / 5, args.seconds / 3)
        flood = Flood()
        threads = flood.run(agent.address, 3 * allowed, args.seconds)
        beside, refused_beside = other(agent.address, allowed / 5, args.seconds)
        for thread in threads:
            thread.join()
        left = unfinished(agent.address, flood.tasks, args.rate)
    print(f"flood: {dict(sorted(flood.statuses.items()))}, {flood.unnamed} refusals without Retry-After")
    print(f"flood: {len(flood.tasks)} accepted tasks, {len(left)} of them not completed")
    for name, times in (("alone", alone), ("beside the flood", beside)):
        print(f"other tenant {name}: {len(times)} calls, p50 {p(times, 0.5):.1f} ms, p99 {p(times, 0.99):.1f} ms")
    print(f"other tenant: {refused_alone + refused_beside} refusals")
    strange = set(flood.statuses) - {200, 429}
    if left or flood.unnamed or refused_alone or refused_beside or strange or not flood.statuses[429]:
        sys.exit(f"FAILED: {left[:3]} {strange}")


if __name__ == "__main__":
    main()
