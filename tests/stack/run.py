"""Deploys template.yaml to an emulator of AWS with IAM, and calls it as clients do.

The functions are the dev builds of the workspace; those that serve an agent serve the
conformance agent. It prints what it served and what it did not.
"""

import argparse
import importlib
import pathlib
import re
import sys
import time
import traceback

import parameters
import rights
from deploy import ROOT, dev_packages
from emulator import Emulator
from world import World

HERE = pathlib.Path(__file__).parent
NOT_SERVED = """\
not served: TLS, throttling and time limits of API Gateway, its own access log, removals by TTL,
polling of queues under the role of a function, a webhook that answers, alarms on metric math,
cold starts, arm64"""


def cases(only=()):
    """Every case as (name, function), in the order of the files."""
    found = []
    for file in sorted((HERE / "cases").glob("[a-z]*.py")):
        module = importlib.import_module(f"cases.{file.stem}")
        found += [(name, it) for name, it in vars(module).items() if name.startswith("case_")]
    named = [(name.removeprefix("case_"), it) for name, it in found]
    chosen = [(name, it) for name, it in named if not only or any(word in name for word in only)]
    if not chosen:
        sys.exit(f"no case is called {only}")
    return chosen


def denials(world, after=0):
    """What a role was refused, and what the logs say of it."""
    refused = [it for it in world.emulator.decided(after) if not it["allowed"]]
    logs = [file for file in world.emulator.folder.glob("*.log")]
    said = [f"{file.name}: {line[:300]}" for file in logs for line in file.read_text(errors="replace").splitlines()
            if re.search(r"AccessDenied|not authorized to perform", line) and line not in world.meant]
    return [f"{it['role']} may not {it['action']} on {it['resource']}" for it in refused] + said


def run(world, chosen):
    """Runs the cases, each to its end. Returns the number that failed."""
    failed = 0
    for name, case in chosen:
        began, after = time.monotonic(), len(world.emulator.decided())
        try:
            case(world)
            print(f"ok  {name.replace('_', ' ')} ({time.monotonic() - began:.1f} s)", flush=True)
        except Exception as wrong:  # every case is tried
            failed += 1
            print(f"FAILED: {name.replace('_', ' ')}: {type(wrong).__name__}: {wrong}", flush=True)
            if not type(wrong).__name__ == "Wrong":
                traceback.print_exc()
        world.times[name] = time.monotonic() - began
        world.marks[name] = after, len(world.emulator.decided())
    return failed


def report(world):
    used = {(it["role"], it["action"]) for it in world.emulator.decided()}
    print(f"served: {len(world.gateway.routes_served)} of {world.gateway.routes_known} routes, "
          f"{len(used)} different calls of AWS under {len({role for role, _ in used})} roles")
    for edit in world.deployment.edited:
        print(f"edit: {edit}")
    print(NOT_SERVED)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--binaries", type=pathlib.Path, default=ROOT / "target/debug", help="the folder of the programs")
    arguments.add_argument("--folder", type=pathlib.Path, default=ROOT / "target/stack", help="for packages and logs")
    arguments.add_argument("--aws", type=pathlib.Path, default=ROOT / "target/venv/aws/bin", help="the folder of the AWS CLI")
    arguments.add_argument("--only", action="append", default=[], metavar="WORD", help="cases with this in their name")
    arguments.add_argument("--rights", nargs="?", const="", metavar="WORD", help="also show that each grant with WORD is needed")
    arguments.add_argument("--parameters", action="store_true", help="change each parameter of the template, and no cases")
    arguments.add_argument("--list", action="store_true", help="print the names of the cases")
    options = arguments.parse_args()
    chosen = cases(options.only)
    if options.rights is not None:
        # A deployment would give back the grant that is taken away, and some cases take a right away themselves.
        chosen = [it for it in chosen if it[1].__module__ not in ("cases.updates", "cases.documents") and "_right_" not in it[0]]
    if options.list:
        print(*(name for name, _ in chosen), sep="\n")
        return 0
    emulator = Emulator(options.folder.resolve())
    world = None
    try:
        emulator.wait()
        binaries = options.binaries.resolve()
        world = World(emulator, dev_packages(binaries), binaries)
        world.aws = options.aws.resolve()
        if options.parameters:
            return 1 if parameters.run(world) else 0
        failed = run(world, chosen)
        problems = world.gateway.problems + denials(world)
        for problem in problems:
            print(f"FAILED: {problem}")
        if options.rights is not None and not (failed or problems):
            failed = rights.run(world, chosen, options.rights)
        report(world)
        print(f"{len(chosen)} cases, {failed} failed; logs: {options.folder}")
        return 1 if failed or problems else 0
    finally:
        if world:
            world.stop()
        emulator.stop()


if __name__ == "__main__":
    sys.exit(main())
