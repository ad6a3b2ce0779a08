"""What the agent made of a conversation: its tasks, as the agent lists them."""

import base64
import contextlib
import json
import pathlib
import re
import urllib.request

#: What a conversation with the agent that has a model is called.
BY_MODEL = " by model"
CONVERSATIONS = json.loads((pathlib.Path(__file__).resolve().parent / "conversations.json").read_text())
WITH_MODEL = [name for name, talk in CONVERSATIONS.items() if "only" in talk]
IN_BOTH = [name for name in CONVERSATIONS if name not in WITH_MODEL]


def tasks(base: str) -> list[dict]:
    """The newest tasks, in the order in which they ended."""
    request = urllib.request.Request(f"{base}/tasks?pageSize=100&includeArtifacts=true", headers={"A2A-Version": "1.0"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)["tasks"][::-1]


def made(task: dict) -> str:
    """The first words of a task, and its results: data, names of files, and what a logo says of itself."""
    parts = (task.get("history") or [{}])[0].get("parts", [])
    words = [part.get("text", "") for part in parts] + [task["status"]["state"].removeprefix("TASK_STATE_")]
    for artifact in task.get("artifacts", []):
        for part in artifact["parts"]:
            drawn = re.search(rb"Description\0(\w+ (?:black|red|blue))", base64.b64decode(part.get("raw", "")))
            words += [artifact["name"], drawn[1].decode()] if drawn else [artifact["name"]]
            # A client that accepts text alone gets data as its text.
            with contextlib.suppress(ValueError):
                words += [json.dumps(part["data"] if "data" in part else json.loads(part.get("text", "")), sort_keys=True)]
    return " ".join(words)


def differs(conversation: str, new: list[dict]) -> str:
    """Why no context has exactly the tasks of a conversation; empty if one has. A question of the
    agent itself ends without a result, and is none of them."""
    wanted, contexts = CONVERSATIONS[conversation].get("tasks"), {}
    if wanted is None:
        return ""
    for task in new:
        if task.get("artifacts") or task["status"]["state"] != "TASK_STATE_COMPLETED":
            contexts.setdefault(task["contextId"], []).append(made(task))
    begins, near = tuple(one[0] for one in wanted), []
    for found in contexts.values():
        pairs = zip(wanted, found, strict=False)
        right = [one.startswith(begin) and result in one for (begin, result), one in pairs]
        if len(found) == len(wanted) and all(right):
            return ""
        near = max(near, found, key=lambda all: sum(one.startswith(begins) for one in all) - len(all) / 9)
    return f"the agent made: {'; '.join(near) or 'nothing of it'}"
