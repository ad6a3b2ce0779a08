"""The shell commands of the documents for operators, run as they are there with the AWS CLI."""

import os
import re
import subprocess

from emulator import ROOT as KEYS
from world import ROOT, Wrong, check

DOCUMENTS = ("docs/local.md", "docs/operations.md", "docs/guide/ship.md")
# The blocks that do not run here, by the beginning of their first command, and who runs them.
ELSEWHERE = {
    "cargo run -- --env-file": "the step watch",
    "sam build  ": "the step fresh-clone",
    "CARGO_PROFILE_RELEASE_LTO=off": "nobody: it compiles every function",
    "(cd functions/tasks-send": "nobody: the emulator has no API of cargo-lambda; the step ship builds one function",
    'cargo run -q -- check "$API_URL"': "the step fresh-clone",
    "cargo run -- template": "the steps author and fresh-clone",
    "sam deploy --template infra/own.yaml": "each run: the stack with what skills use is deployed with the transform of SAM",
}


def _blocks():
    texts = [(ROOT / name).read_text() for name in DOCUMENTS]
    return [it for text in texts for it in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)]


def _run(world, block, **variables):
    """Runs a block for this stack. What CloudFormation then does is over."""
    deployment, folder = world.deployment, world.emulator.folder
    names = {"STACK": deployment.name, "https://BUCKET.s3.amazonaws.com": f"{world.emulator.url}/packages", "BUCKET": "packages"}
    for name, value in names.items():
        block = re.sub(rf"(?<![$\w]){re.escape(name)}\b", value, block)
    keys = {name.upper(): value for name, value in KEYS.items() if name != "region_name"} | {"AWS_DEFAULT_REGION": "us-east-1"}
    environment = keys | variables | {"PATH": f"{world.aws}:{os.environ['PATH']}", "AWS_ENDPOINT_URL": world.emulator.url, "AWS_PAGER": ""}
    done = subprocess.run(["bash", "-euc", block], env=environment, cwd=folder, capture_output=True, text=True)
    check(done.returncode == 0, "the block succeeds", block, done.stderr)
    deployment._done(deployment.name)


def case_every_command_of_the_documents_runs_or_says_who_runs_it(world):
    deployment = world.deployment
    blocks = [it for it in _blocks() if not it.startswith(tuple(ELSEWHERE))]
    check(len(_blocks()) - len(blocks) == len(ELSEWHERE), "each reason is that of one block", sorted(ELSEWHERE))
    secret, trigger, back, protect = blocks

    _run(world, secret, SECRET_ARN=deployment.physical["SecretKey"])
    check(world.owner().send("echo hello")["id"], "the agent answers with a new secret key")

    _run(world, protect)
    table = world.dynamodb.describe_table(TableName=world.table)["Table"]
    check(table.get("DeletionProtectionEnabled"), "the table is protected", table)
    world.dynamodb.update_table(TableName=world.table, DeletionProtectionEnabled=False)

    # The emulator takes a trigger that is an alarm, and refuses another one.
    _run(world, trigger)
    check(world.owner().send("echo hello")["id"], "the agent answers")
    try:
        _run(world, trigger.replace("DeploymentAlarmArn", "NoSuchAlarm").replace("=on", "=off"))
    except Wrong as refused:
        check("do not exist" in str(refused), "CloudFormation says why", str(refused))
    else:
        raise Wrong("a trigger that is no alarm is set")

    # A release that adds a parameter, and back.
    before, after = back.split("# back\n")
    _run(world, before)
    deployment.next_release("A2A_NEXT_RELEASE: !Ref NextRelease")
    check(world.variables("tasks-get")["A2A_NEXT_RELEASE"] == "new", "the next release is deployed")
    _run(world, after)
    check("A2A_NEXT_RELEASE" not in world.variables("tasks-get"), "and is gone")
    world.deploy()
    check(world.owner().send("echo hello")["id"], "the agent answers")
