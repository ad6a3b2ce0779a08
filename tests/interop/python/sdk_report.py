"""Says whether a report of `a2a-local check` is that of a server of the SDK: only what such a
server has not is not shown, and only the named step fails."""

import json
import pathlib
import sys

STEPS = ["card", "send", "question", "stream", "background", "file", "webhook", "refused", "preflight", "health"]


def main(path, failing):
    text = pathlib.Path(path).read_text()
    found = {it["step"].split(" ")[0]: it["result"] for it in json.loads(text)["steps"]}
    expected = {step: "ok" for step in STEPS} | {"preflight": "not shown", "health": "not shown"}
    if failing:
        expected[failing] = "failed"
    if found != expected:
        print(text)
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
