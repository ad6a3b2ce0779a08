"""Walks the skill `assist` of the reference agent by PyPI `a2a-sdk` 1.x. The stub is its model."""

import json
import os

from walk import Agent, Client, artifact, killed, log, main, said, start_stub, state

CANARY = "canary-darjeeling"
CONSTRAINT = "Name the source of every figure"
ANN = "dev:acme:ann:default:role:admin,project:shop"


async def without_a_model(options):
    """The agent is as before, and says so."""
    agent = Agent(options.program, os.path.join(options.data, "bare"), None, None, "reference")
    agent.start()
    try:
        client = await Client(agent, "JSONRPC", ANN).connect()
        assert "assist" not in [skill.id for skill in client.card.skills], client.card
        [line] = [line for line in agent.said if line.strip().startswith("model ")]
        assert "no `assist`" in line, line
        asked = await client.send("Which tea do I drink?")
        assert state(asked) == "input_required" and "`assist`" not in said(asked), asked
    finally:
        agent.kill()


async def call(client, skill, **arguments):
    done = await client.send(f"/{skill} {json.dumps(arguments)}")
    assert state(done) == "completed", done
    return artifact(done, skill)


async def constrained(client):
    rule = {"id": "source", "kind": "must_use", "target": "code", "pattern": "source", "severity": "block", "message": CONSTRAINT}
    policy = json.dumps({"id": "figures", "layer": "company", "rules": [rule]})
    item = {"path": "policies/figures.json", "layer": "company", "message": "Write it"}
    await call(client, "knowledge_store", kind="policy", content=policy, **item)
    for status in ("proposed", "accepted"):
        await call(client, "knowledge_status", to=status, **item)


async def remembered(client):
    """A memory is stored once its user has said yes, and not before."""
    for answer, text, count in (("no", "I stored nothing.", 0), ("yes", "I will remember that.", 1)):
        asked = await client.send("Keep in mind what I drink")
        assert state(asked) == "input_required", asked
        assert "memory_add" in said(asked) and CANARY in said(asked), asked
        assert (await call(client, "memory_search", query="tea"))["total"] == 0
        done = await client.send(answer, task=asked)
        assert artifact(done, "assist") == text, done
        assert (await call(client, "memory_search", query="tea"))["total"] == count


def read_by_the_model(path):
    """Memories are data, constraints are instructions."""
    found = 0
    for line in log(path):
        messages = line["body"]["messages"]
        system = json.dumps([one for one in messages if one["role"] in ("system", "developer")])
        assert CANARY not in system, system
        if (line["rule"] or "") == "kill: look":
            assert system.count(CONSTRAINT) == 1, system
            [data] = [one for one in messages if one["role"] == "user" and CANARY in json.dumps(one)]
            assert "untrustedMemories" in json.dumps(data), data
            found += 1
    assert found == 1


async def walk(options):
    await without_a_model(options)
    stub, base = start_stub(options)
    agent = Agent(options.program, os.path.join(options.data, "assist"), f"{base}/v1", "openai", "reference")
    agent.start()
    try:
        client = await Client(agent, "JSONRPC", ANN).connect()
        assert "assist" in [skill.id for skill in client.card.skills], client.card
        await remembered(client)
        await constrained(client)
        # In another conversation the process dies between two calls of the model.
        task = await client.send("Which tea do I drink?", at_once=True)
        client, task = await killed(agent, client, options.log, task)
        assert artifact(task, "assist") == "You drink Darjeeling.", task
        again = await client.send("Say it again", context=task.context_id)
        assert artifact(again, "assist") == "Darjeeling, as I said.", again
        [last] = [line for line in log(options.log) if line["rule"] == "again"]
        assert "You drink Darjeeling." in json.dumps(last["body"]["messages"]), last
        read_by_the_model(options.log)
    finally:
        agent.kill()
        stub.kill()
    print("ok assist: asks before it stores, remembers, keeps a constraint, SIGKILL, no model", flush=True)


if __name__ == "__main__":
    main(__doc__, walk)
