"""Deploys the agent of the template to the emulator, where one program is every function, and calls it."""

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/stack"))

from deploy import stripped
from emulator import Emulator
from world import World, check, message, state


def walk(world):
    owner = world.owner()
    task = owner.send("pasta")
    check(task["artifacts"][0]["parts"][0]["text"] == "pasta: 11.50 EUR", "tasks-send answers", task)
    asked = owner.rpc("SendMessage", {"message": message("", parts=[{"data": {"when": "Friday"}}])})["task"]
    check(state(asked) == "TASK_STATE_INPUT_REQUIRED", "rpc asks", asked)
    answer = message("4", taskId=asked["id"], contextId=asked["contextId"])
    frames = [frame for _, frame in owner.frames("POST", "/message:stream", {"message": answer})]
    check(state(frames[-1]) == "TASK_STATE_COMPLETED", "tasks-stream ends the task", frames)
    later = owner.until(owner.send("pasta", immediately=True)["id"])
    check("11.50" in str(later["artifacts"]), "relay and worker run a turn behind the call", later)
    report = owner.ok("GET", "/a2a-lambda/health")
    check(report["status"] == "ok", "ops reports", report)
    check(world.invoke("sweep", {"source": "aws.events"}) is None, "sweep runs")
    check(world.stranger().call("GET", "/tasks")[0] == 401, "the authorizer refuses a stranger")
    status, card = world.stranger().call("GET", "/.well-known/agent-card.json")
    check(status == 200 and [it["id"] for it in card["skills"]] == ["price", "book"], "the card has the skills", card)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--agent", type=pathlib.Path, required=True, help="the folder of the agent")
    arguments.add_argument("--program", type=pathlib.Path, required=True, help="its program for Lambda")
    arguments.add_argument("--folder", type=pathlib.Path, required=True, help="for packages and logs")
    options = arguments.parse_args()
    emulator, world = Emulator(options.folder.resolve()), None
    try:
        emulator.wait()
        packages = lambda _name, _kind, folder: ("agent", lambda: stripped(options.program.resolve(), folder))
        world = World(emulator, packages, root=options.agent.resolve())
        walk(world)
        refused = [it for it in emulator.decided() if not it["allowed"]]
        check(not (refused or world.gateway.problems), "no role was refused anything", refused, world.gateway.problems)
        print("the agent was deployed: its one program answered as each of the functions")
    finally:
        if world:
            world.stop()
        emulator.stop()


if __name__ == "__main__":
    main()
