"""Edits a skill of the template under `cargo run -- dev`: the new answer, an open question, an error."""

import argparse
import json
import pathlib
import re
import subprocess
import time
import urllib.error
import urllib.request
import uuid

PATIENCE = 600


def send(base, part, task=None):
    """The task after a send, or nothing between two programs."""
    message = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [part]}
    if task:
        message.update(taskId=task["id"], contextId=task["contextId"])
    body = json.dumps({"message": message}).encode()
    headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{base}/message:send", body, headers)) as answer:
            return json.load(answer)["task"]
    except (urllib.error.URLError, ConnectionError):
        return None


def price(base):
    task = send(base, {"text": "pasta"})
    return task and task["artifacts"][0]["parts"][0]["text"]


def until(what, wanted):
    began = time.monotonic()
    while (last := what()) != wanted:
        assert time.monotonic() - began < PATIENCE, f"{last} instead of {wanted}"
        time.sleep(0.05)
    return time.monotonic() - began


def walk(agent, output):
    token = base = None
    for line in output:
        token = token or (found := re.search(r"#token=(\w+)", line)) and found[1]
        if found := re.match(r"listening on (\S+)", line):
            base = found[1]
            break
    assert price(base) == "pasta: 11.50 EUR"
    asked = send(base, {"data": {"when": "Friday"}})
    assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED", asked

    def state():
        request = urllib.request.Request(f"{base}/a2a-local/page/changes", headers={"X-A2A-Local-Token": token})
        try:
            with urllib.request.urlopen(request) as answer:
                return (json.load(answer)["build"] or {}).get("state")
        except (urllib.error.URLError, ConnectionError):
            return None

    skills = agent / "agent/src/lib.rs"
    text = skills.read_text()
    skills.write_text(text.replace("1150", "1250"))
    seconds = until(lambda: price(base), "pasta: 12.50 EUR")
    print(f"from an edit to the new answer: {seconds:.1f} s")
    done = send(base, {"text": "4"}, asked)
    assert done["status"]["state"] == "TASK_STATE_COMPLETED", done
    skills.write_text(text.replace("1150", "1250 +"))
    until(state, "failed")
    assert price(base) == "pasta: 12.50 EUR"
    skills.write_text(text)
    until(lambda: price(base), "pasta: 11.50 EUR")
    until(state, "serves")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("agent", type=pathlib.Path, help="the folder of the agent")
    agent = parser.parse_args().agent
    command = ["cargo", "run", "-q", "--", "dev", "--port", "0", "--data", ".a2a-dev"]
    with subprocess.Popen(command, cwd=agent, stdout=subprocess.PIPE, text=True) as dev:
        try:
            walk(agent, dev.stdout)
        finally:
            dev.terminate()
    print("an edit is served, an open question goes on, an error leaves the old build: all steps passed")


main()
