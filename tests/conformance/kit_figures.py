"""Reads the reports of one kit run, prints the figures and checks them.

A run passes when exactly the expected tests failed, and at least as many
requirements were tested as in the last run. The second rule is needed because
a kit skips what it cannot test, and a skipped test does not fail the run.
"""

import argparse
import json
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

#: The runs of each generation with the number of tests that passed last time, and the
#: same for the requirements of 1.0 by level. A lower number is a failure. Update the
#: numbers when more tests pass.
RUNS = {"1.0": {"compatibility": 173}, "0.3": {"mandatory": 30, "capabilities": 31}}
LEVELS = {"MUST": 79, "SHOULD": 7, "MAY": 4}


def outcome(case: ElementTree.Element) -> str:
    """The outcome of one test: passed, failed or skipped."""
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "passed" if case.find("skipped") is None else "skipped"


def read(report: Path) -> dict[str, str]:
    """The tests of one JUnit report with their outcomes. The report lists a test twice
    that failed in its tear-down; the failure counts."""
    found: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        result = outcome(case)
        if found.get(name) != "failed":
            found[name] = result
    return found


def expected(file: Path, generation: str) -> set[str]:
    """The tests of a generation that are known to fail."""
    lines = (line.split("#")[0].split(maxsplit=1) for line in file.read_text().splitlines())
    return {words[1].strip() for words in lines if len(words) == 2 and words[0] == generation}


def requirements(report: Path) -> dict[str, Counter]:
    """The number of requirements of each level that passed, failed, or were not tested."""
    levels = {level: Counter() for level in LEVELS}
    for requirement in json.loads(report.read_text())["per_requirement"].values():
        levels[requirement["level"]][requirement["status"]] += 1
    return levels


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--generation", choices=sorted(RUNS), required=True)
    parser.add_argument("--reports", type=Path, required=True)
    parser.add_argument("--expected", type=Path, required=True)
    options = parser.parse_args()

    faults = []
    tests: dict[str, str] = {}
    for run, floor in RUNS[options.generation].items():
        report = options.reports / f"{run}.xml"
        of_run = read(report) if report.exists() else {}
        tests |= of_run
        count = Counter(of_run.values())
        print(f"{run}: {count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
        if count["passed"] < floor:
            faults.append(f"{run}: fewer than {floor} tests passed")

    if options.generation == "1.0":
        report = options.reports / "requirements.json"
        levels = requirements(report) if report.exists() else {}
        for level, floor in LEVELS.items():
            count = levels.get(level, Counter())
            tested = count["PASS"] + count["FAIL"]
            left = f"{count['SKIPPED']} skipped, {count['NOT TESTED']} not tested"
            print(f"{level}: {count['PASS']}/{tested} passed, {left}")
            if count["PASS"] < floor:
                faults.append(f"{level}: fewer than {floor} requirements passed")

    failed = {name for name, result in tests.items() if result == "failed"}
    known = expected(options.expected, options.generation)
    faults += [f"failed: {name}" for name in sorted(failed - known)]
    faults += [f"expected to fail, but passed: {name}" for name in sorted(known - failed)]
    for fault in faults:
        print(f"FAILED: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
