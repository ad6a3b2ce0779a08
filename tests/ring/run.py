"""Walks published clients, each with its own defaults, against the default agent.

Makes the environment of one client below target/ring, runs its program, also its conversations
with an agent that has a (stub) model, removes the environment, and compares each act with
expected.json. Writes the page docs/clients.md from the run.

Exit status: 0 if every act is as expected and the page is that of the run, 1 if not, 2 for wrong
arguments. The agent is A2A_RING_AGENT, or the program that `cargo build --bin a2a-local` makes.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import history
import model
import page

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
RING = TARGET / "ring"
CLIENTS = json.loads((HERE / "clients.json").read_text())
EXPECTED = json.loads((HERE / "expected.json").read_text())

#: Limits in seconds: the start of the agent, an installation, a program.
START_LIMIT, INSTALL_LIMIT, PROGRAM_LIMIT = 60, 600, 600
LINE = re.compile(r"(?P<client>[^|]+) \| (?P<act>[^|]+) \| (?P<result>ok|FAIL|cannot) \| (?P<detail>.*)")


class NotHere(Exception):
    """The client cannot be installed on this machine; the text says why."""


class Agent:
    """The default agent on a free port, in memory, with these settings."""

    def __init__(self, program: str, name: str, settings: dict[str, str]) -> None:
        self.path = RING / f"{name}.log"
        self.log = self.path.open("w+")
        words = [program, "--memory", "--port", "0"]
        self.process = subprocess.Popen(
            words, stdout=self.log, stderr=subprocess.STDOUT, cwd=RING, env=os.environ | settings
        )
        self.base = self.address()

    def address(self) -> str:
        deadline = time.monotonic() + START_LIMIT
        while time.monotonic() < deadline and self.process.poll() is None:
            found = re.search(r"listening on (http://\S+)", self.path.read_text())
            if found:
                return found.group(1)
            time.sleep(0.2)
        sys.exit(f"the agent did not start:\n{self.path.read_text()}")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.log.close()


def install(*words, log) -> None:
    """One command of an installation. What it prints goes to the log."""
    name = pathlib.Path(words[0]).name
    try:
        done = subprocess.run([str(word) for word in words], stdout=log, stderr=log, timeout=INSTALL_LIMIT, check=False)
    except subprocess.TimeoutExpired as error:
        raise NotHere(f"{name} takes more than {INSTALL_LIMIT} s") from error
    if done.returncode:
        raise NotHere(f"{name} ended with {done.returncode}: {log.name}")


def played(key: str, program: list, base: str, place: pathlib.Path, log) -> dict[str, tuple[str, str]]:
    """The lines of a program, also of one that ends too early: act -> (result, detail). A
    conversation is right only if the agent has made nothing else of it."""
    words = [str(word) for word in (*program, "--base", base, "--client", key)]
    before = {task["id"] for task in history.tasks(base)}
    with (RING / f"{key}.lines").open("w+") as lines:
        try:
            subprocess.run(
                words, stdout=lines, stderr=log, timeout=PROGRAM_LIMIT, check=False, cwd=place, env=environment(place)
            )
        except subprocess.TimeoutExpired:
            print(f"{key} | stopped after {PROGRAM_LIMIT} s")
        lines.seek(0)
        found = [LINE.fullmatch(line) for line in lines.read().splitlines()]
    acts = {line["act"]: (line["result"], line["detail"]) for line in found if line and line["client"] == key}
    new = [task for task in history.tasks(base) if task["id"] not in before]
    for act in acts.keys() & history.CONVERSATIONS.keys():
        if acts[act][0] == "ok" and (why := history.differs(act, new)):
            acts[act] = ("FAIL", why)
    return acts


def python(key: str, place: pathlib.Path, log) -> list:
    """An environment with the packages of a client, and the program that walks with it."""
    install(sys.executable, "-m", "venv", place, log=log)
    requirements = HERE / f"python/requirements/{key}.txt"
    pip = [place / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    install(*pip, "-r", requirements, log=log)
    return [place / "bin/python", "-B", HERE / CLIENTS[key]["program"]]


def node(key: str, place: pathlib.Path, log) -> list:
    # A module finds packages from its own folder upwards.
    for file in (HERE / "conversations.json", *(HERE / "node").glob("*.mjs")):
        shutil.copy(file, place)
    shutil.copy(HERE / f"node/packages/{key}.json", place / "package.json")
    npm = ["npm", "install", "--prefix", place, "--loglevel=error", "--no-audit", "--no-fund", "--no-update-notifier"]
    install(*npm, log=log)
    return ["node", place / pathlib.Path(CLIENTS[key]["program"]).name]


def built(key: str, _place: pathlib.Path, _log) -> list:
    """A program that another step compiles."""
    program = os.environ.get("A2ACLI") or TARGET / f"interop/rust/a2acli-{version(key)}/bin/a2acli"
    if not pathlib.Path(program).is_file():
        raise NotHere("it needs a compile: tests/run.sh --only clients makes it")
    os.environ["A2ACLI"] = str(program)
    return [sys.executable, "-B", HERE / CLIENTS[key]["program"]]


def version(key: str) -> str:
    """The version of a client, from the file that pins it."""
    client = CLIENTS[key]
    if client["kind"] == "python":
        return (HERE / f"python/requirements/{key}.txt").read_text().splitlines()[0].partition("==")[2]
    if client["kind"] == "node":
        packages = json.loads((HERE / f"node/packages/{key}.json").read_text())["dependencies"]
        return next(iter(packages.values()))
    return client["version"]


def environment(place: pathlib.Path) -> dict:
    """No credentials, no telemetry, and nothing beside this machine."""
    local = "127.0.0.1,localhost"
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "A2ACLI") if name in os.environ}
    return kept | {
        "HOME": str(place),
        "NO_PROXY": local,
        "no_proxy": local,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONWARNINGS": "ignore",
        "OTEL_SDK_DISABLED": "true",
        "CREWAI_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "1",
    }


def walk(key: str, bases: tuple[str, str], keep: bool) -> dict[str, tuple[str, str]]:
    """Act -> (result, detail), with the agent and with the one that has a model. The environment of
    the client exists during the walk only."""
    place = RING / key
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    with (RING / f"{key}.log").open("w") as log:
        try:
            program = {"python": python, "node": node, "built": built}[CLIENTS[key]["kind"]](key, place, log)
            acts = played(key, program, bases[0], place, log)
            by_model = played(key, [*program, "--conversations"], bases[1], place, log)
            return acts | {act + history.BY_MODEL: result for act, result in by_model.items()}
        finally:
            if not keep:
                shutil.rmtree(place, ignore_errors=True)


def differences(key: str, acts: dict[str, tuple[str, str]]) -> list[str]:
    """What is not as expected.json says. A known failure that does not happen is one too."""
    wrong = []
    for act, expected in EXPECTED[key].items():
        result, detail = acts.get(act, ("FAIL", "not played"))
        wanted = "FAIL" if expected.startswith("known: ") else expected
        if result != wanted:
            wrong.append(f"{key} | {act} | {result}, expected {expected} | {detail}")
    wrong += [f"{key} | {act} | not in expected.json" for act in acts.keys() - EXPECTED[key].keys()]
    return wrong


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(CLIENTS), help="one client; repeat it for more")
    parser.add_argument("--write", action="store_true", help="write docs/clients.md instead of comparing it")
    parser.add_argument("--last", action="store_true", help="walk nothing: take the results of the last whole run")
    parser.add_argument("--keep", action="store_true", help="keep the environments")
    return parser.parse_args()


def walks(arguments: argparse.Namespace, bases: tuple[str, str]) -> tuple[dict, list[str]]:
    """The results of the clients that are here, and the lines of those that are not."""
    results, absent = {}, []
    for key in arguments.only or CLIENTS:
        began = time.monotonic()
        try:
            results[key] = walk(key, bases, arguments.keep)
        except NotHere as error:
            print(f"{key} | not here: {error}", flush=True)
            # Of a client that only another step compiles, nothing is expected.
            if CLIENTS[key]["kind"] != "built":
                absent.append(f"{key} | not here: {error}")
            continue
        for act, (result, detail) in results[key].items():
            print(f"{key} | {act} | {result} | {detail}")
        print(f"{key} | in {time.monotonic() - began:.0f} s", flush=True)
    if not arguments.only:
        (RING / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    return results, absent


def page_differs(results: dict, write: bool) -> list[str]:
    """Writes the page, or says that it is not the page of this run."""
    path = ROOT / "docs/clients.md"
    text = page.text(CLIENTS, EXPECTED, results, version)
    if write:
        path.write_text(text)
    elif path.read_text() != text:
        (RING / "clients.md").write_text(text)
        return ["docs/clients.md is not the page of this run: python3 tests/ring/run.py --last --write"]
    return []


def main() -> int:
    arguments = parsed()
    RING.mkdir(parents=True, exist_ok=True)
    if arguments.last:
        results, wrong = json.loads((RING / "results.json").read_text()), []
    else:
        program = os.environ.get("A2A_RING_AGENT") or str(TARGET / "debug/a2a-local")
        router, settings = model.start()
        agents = [Agent(program, "agent", {}), Agent(program, "agent-with-model", settings)]
        try:
            results, wrong = walks(arguments, (agents[0].base, agents[1].base))
        finally:
            for agent in agents:
                agent.stop()
        print(f"the model chose {router.asked} times")
    for key, acts in results.items():
        wrong += differences(key, acts)
    if not arguments.only:
        wrong += page_differs(results, arguments.write)
    print(*wrong, sep="\n")
    played_acts = sum(len(acts) for acts in results.values())
    print(f"ring: {len(results)} clients, {played_acts} acts, {len(wrong)} not as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
