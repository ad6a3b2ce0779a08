"""A stub model that chooses as a plausible model does, for the sentences of conversations.json."""

import json
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "models"))
import stub  # noqa: E402

#: What a sentence that no rule decides is to an earlier task of which skill.
CHOICES = {
    "user": ("memory_add", "answers"),
    "Helsinki": ("book-flight", "answers"),
    "Next Monday": ("book-flight", "answers"),
    "Lisbon": ("book-flight", "answers"),
    "tomorrow": ("book-flight", "answers"),
    "PDF format": ("create-report", "answers"),
    "never mind": ("book-flight", "answers"),
    "yes": ("assist", "answers"),
    "Make it blue": ("logo", "about"),
    "Make it shorter": ("create-report", "about"),
}

#: What the assistant wishes to store, a note a turn: each needs the consent of the user.
NOTES = ("The office has no lift", "The train is late on Mondays")


def choice(system: str, text: str) -> dict:
    """The input of the tool `route`: the task that spoke last or else the newest that fits, else a question."""
    lines = system.partition("The earlier tasks of the conversation")[2].splitlines()
    tasks = [json.loads(line[2:]) for line in lines if line.startswith("- {")]
    skill, relation = CHOICES.get(text, ("none", "new"))
    fits = [one for one in tasks if one["skill"] == skill and (one["state"] == "input-required") == (relation == "answers")]
    fits.reverse()
    if not fits:
        return {"skill": "none", "question": "What do you mean?"}
    return {"skill": skill, "task": max(fits, key=lambda one: one["spokeLast"])["task"], "relation": relation}


def keep(count: int) -> dict:
    """The turn of the assistant after the results of so many notes."""
    if count == len(NOTES):
        return {"text": "I will remember both."}
    return {"tools": [{"name": "memory_add", "input": {"content": NOTES[count], "layer": "user"}}]}


class Router:
    """In the place of a script of the stub."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked = 0

    def rule(self, request) -> tuple[int, dict]:
        self.asked += 1
        if "Keep both in mind" in request.user and not request.forced:
            return 0, keep(len(request.results))
        if request.forced != "route":
            return 0, {"text": "I cannot help with that."}
        return 0, {"input": choice(request.system, request.user)}


def start() -> tuple[Router, dict[str, str]]:
    """Serves the stub on a free port until the process ends; the settings of an agent with this model."""
    router = stub.Handler.script = Router()
    server = stub.Server(("127.0.0.1", 0), stub.Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    return router, {"A2A_MODEL_PROVIDER": "openai", "A2A_MODEL_ID": "stub", "A2A_MODEL_ENDPOINT_URL": url}
