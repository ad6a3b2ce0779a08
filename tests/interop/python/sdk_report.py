"""Compares a report of `a2a-local check` with what a server is known to do: each step works on each
interface, except the named ones. A server of others allows no browser and shows no health."""

import argparse
import json
import pathlib
import sys

STEPS = ["card", "send", "question", "stream", "background", "file", "webhook", "refused", "preflight", "health"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("report", type=pathlib.Path)
    arguments.add_argument("--failed", default="", help="steps, with commas between them")
    arguments.add_argument("--hidden", default="", help="more steps that are not shown")
    arguments.add_argument("--detail", default="", help="a text that the detail of a step has")
    options = arguments.parse_args()
    text = options.report.read_text()
    steps = json.loads(text)["steps"]
    results = {}
    for step in steps:
        results.setdefault(step["step"].split(" ")[0], set()).add(step["result"])
    expected = {step: {"ok"} for step in STEPS} | {step: {"not shown"} for step in ("preflight", "health")}
    for names, result in ((options.hidden, "not shown"), (options.failed, "failed")):
        expected |= {step: {result} for step in names.split(",") if step}
    if results != expected or not any(options.detail in step["detail"] for step in steps):
        print(text)
        sys.exit(1)


if __name__ == "__main__":
    main()
