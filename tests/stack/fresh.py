"""Deploys what `sam build` made, and asks the stack as the README does: with curl and the first key, then with tests/aws/walk.sh."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

from deploy import built_packages
from emulator import ROOT as KEYS
from emulator import Emulator
from world import ROOT, World

ASK = {"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "add 19 and 23"}]}}


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--built", type=pathlib.Path, required=True, help="the folder that `sam build` made")
    arguments.add_argument("--folder", type=pathlib.Path, required=True, help="for packages and logs")
    arguments.add_argument("--aws", type=pathlib.Path, required=True, help="the folder of the AWS CLI")
    arguments.add_argument("--program", type=pathlib.Path, required=True, help="a2a-local")
    options = arguments.parse_args()
    emulator, world = Emulator(options.folder.resolve()), None
    try:
        emulator.wait()
        print("step 3: deploy", flush=True)
        world = World(emulator, built_packages(options.built))
        print("step 4: curl", flush=True)
        print("replaced: API Gateway, by tests/stack/gateway.py")
        variables = {name.upper(): value for name, value in KEYS.items() if name != "region_name"}
        operator = variables | {"PATH": f"{options.aws}:{os.environ['PATH']}", "AWS_ENDPOINT_URL": emulator.url}
        command = ["bash", "-c", world.deployment.outputs["FirstKeyCommand"]]
        key = subprocess.run(command, capture_output=True, text=True, check=True, env=operator).stdout.strip()
        url = f"http://127.0.0.1:{world.gateway.port}/{world.gateway.stage}"
        command = ["curl", "--silent", "--show-error", f"{url}/message:send", "-H", f"Authorization: Bearer {key}",
                   "-H", "A2A-Version: 1.0", "-H", "Content-Type: application/json", "-d", json.dumps(ASK)]
        answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        print(json.dumps(answer)[:600])
        found = answer["task"]["artifacts"][0]["parts"][0]["data"]
        if found != {"sum": 42} or world.gateway.problems:
            print(f"FAILED: {found} {world.gateway.problems}")
            return 1
        print("step 4 answered: 19 and 23 are 42")
        print("step 5: tests/aws/walk.sh", flush=True)
        print("replaced: the address on the card, by that of tests/stack/gateway.py, which has no TLS")
        stage, names = world.deployment.stage()
        world.gateway.load(world.deployment.api, world.deployment.physical["Api"], stage, names | {"publicUrl": url})
        walked = subprocess.run(
            ["bash", ROOT / "tests/aws/walk.sh", world.deployment.name], capture_output=True, text=True, timeout=300,
            env=operator | {"API_URL": url, "PROGRAM": str(options.program), "AWS_DEFAULT_REGION": "us-east-1"},
        )
        print(walked.stdout + walked.stderr)
        hidden = [line for line in walked.stdout.splitlines() if line.startswith("not shown")]
        if walked.returncode or not all(line.startswith("not shown webhook") for line in hidden):
            print("FAILED: only the webhook may be not shown")
            return 1
        return 0
    finally:
        if world:
            world.stop()
        emulator.stop()


if __name__ == "__main__":
    sys.exit(main())
