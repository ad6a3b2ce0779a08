"""Walks all operations of the reference agent with PyPI `a2a-sdk` 1.x: memory, knowledge, governance."""

import argparse
import asyncio
import json
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageRequest, TaskState
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value

OPERATIONS = {
    "memory_add", "memory_search", "memory_list", "memory_delete",
    "knowledge_query", "knowledge_show", "knowledge_check", "knowledge_store", "knowledge_status",
    "governance_validate", "governance_drift_check", "session_context",
}
LEAD = "role:architect,project:shop,team:red,org:eu"
ADR = {"path": "adr/0001-use-dynamodb.md", "layer": "project"}
RULES = {"path": "policies/code.json", "layer": "company"}
POLICY = {
    "id": "code", "layer": "company", "mandatory": True,
    "rules": [{"id": "no-unwrap", "kind": "must_not_use", "target": "code", "pattern": "unwrap()",
               "severity": "block", "message": "Return an error instead"}],
}


class Caller:
    """A user of one binding who names skills by id, or writes everything as text."""

    def __init__(self, client, written):
        self.client, self.written, self.used = client, written, set()
        self.context = str(uuid.uuid4())

    async def send(self, part, task=None, skill=None):
        message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[part], context_id=self.context)
        if task:
            message.task_id = task.id
        if skill:
            message.metadata["skillId"] = skill
        request = SendMessageRequest(message=message)
        return [one async for one in self.client.send_message(request)][-1].task

    async def call(self, skill, given):
        """The task of a call."""
        self.used.add(skill)
        if self.written:
            return await self.send(Part(text=f"/{skill} {json.dumps(given)}"))
        return await self.send(Part(data=ParseDict(given, Value())), skill=skill)

    async def done(self, skill, given):
        """The output of a call that completes."""
        return output(await self.call(skill, given), skill)


def output(task, skill):
    assert task.status.state == TaskState.TASK_STATE_COMPLETED, task
    [artifact] = [one for one in task.artifacts if one.name == skill]
    return MessageToDict(artifact.parts[0].data)


async def remember(lead):
    team = await lead.done("memory_add", {"content": "The team drinks tea at four", "layer": "team", "tags": ["tea"]})
    assert team["scopeId"] == "red" and team["indexed"] == "lexical", team
    asked = await lead.send(Part(text="Remember that I like tea"))
    assert asked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED, asked
    own = output(await lead.send(Part(text="user"), asked), "memory_add")
    assert own["layer"] == "user", own
    found = await lead.done("memory_search", {"query": "tea"})
    assert [one["layer"] for one in found["results"]] == ["user", "team"], found
    said = output(await lead.send(Part(text="What do you remember about tea")), "memory_search")
    assert said["total"] == 2, said
    listed = await lead.done("memory_list", {"limit": 1})
    rest = await lead.done("memory_list", {"cursor": listed["cursor"]})
    origins = [one["origin"] for one in listed["memories"] + rest["memories"]]
    assert [one["author"] for one in origins] == ["ann", "ann"] and "cursor" not in rest, (listed, rest)
    return team


async def decide(lead):
    rules = {**RULES, "kind": "policy", "content": json.dumps(POLICY), "message": "Rules"}
    record = {**ADR, "kind": "adr", "content": "# Use DynamoDB\n\nOne table.", "tags": ["storage"], "message": "Decide"}
    stored = {}
    for item, place in ((rules, RULES), (record, ADR)):
        stored = await lead.done("knowledge_store", item)
        for to in ("proposed", "accepted"):
            changed = await lead.done("knowledge_status", {**place, "to": to, "message": f"Now {to}"})
            assert changed["to"] == to, changed
    found = await lead.done("knowledge_query", {"query": "dynamodb"})
    assert [one["title"] for one in found["items"]] == ["Use DynamoDB"], found
    said = output(await lead.send(Part(text="What is our decision on storage")), "knowledge_query")
    assert said["items"] == found["items"], said
    shown = await lead.done("knowledge_show", ADR)
    assert [one["message"] for one in shown["history"]] == ["Now accepted", "Now proposed", "Decide"], shown
    before = await lead.done("knowledge_show", {**ADR, "at": stored["commit"]})
    assert before["item"]["status"] == "draft", before
    stale = await lead.call("knowledge_store", {**record, "content": "Other", "expect": stored["commit"]})
    assert stale.status.state == TaskState.TASK_STATE_FAILED, stale


async def govern(lead):
    checked = await lead.done("knowledge_check", {"content": "x.unwrap()", "kind": "pattern"})
    assert not checked["valid"] and checked["violations"][0]["ruleId"] == "no-unwrap", checked
    context = {"path": "src/main.rs", "content": "a\nx.unwrap()"}
    judged = await lead.done("governance_validate", {"layer": "project", "context": context})
    assert judged["policies"] == ["code"] and judged["violations"][0]["at"] == 2, judged
    drift = await lead.done("governance_drift_check", {"projectId": "shop", "context": context})
    assert drift["driftScore"] == 1 and drift["requiresManualReview"], drift
    known = await lead.done("session_context", {"query": "tea"})
    assert known["memories"] and known["constraints"][0]["ruleId"] == "no-unwrap", known
    assert known["promptAddition"] == "What has to hold:\n- Return an error instead", known


async def keep_out(lead, member, stranger, memory):
    """A colleague without a role, and another tenant."""
    refused = await member.call("knowledge_status", {**ADR, "to": "deprecated", "message": "No"})
    assert refused.status.state == TaskState.TASK_STATE_REJECTED, refused
    for other in (member, stranger):
        assert (await other.done("memory_search", {"query": "tea"})).get("results") == [], other
    shown = await stranger.done("knowledge_show", ADR)
    assert shown["item"] is None, shown
    named = {"id": memory["id"], "layer": "team", "scopeId": "red"}
    invented = {**named, "id": "mem-0"}
    assert await stranger.done("memory_delete", named) == {"deleted": False}
    assert await lead.done("memory_delete", invented) == {"deleted": False}
    assert (await lead.done("memory_search", {"query": "team"}))["total"] == 1
    gone = await lead.done("memory_delete", named)
    assert gone["deleted"] and gone["remains"], gone
    assert await lead.done("memory_delete", named) == {"deleted": False}
    assert (await lead.done("memory_search", {"query": "team"}))["total"] == 0


async def walk(base):
    for binding in ("JSONRPC", "HTTP+JSON"):
        for written in (False, True):
            async with httpx.AsyncClient() as http:
                card = await A2ACardResolver(http, base).get_agent_card()
            assert OPERATIONS <= {skill.id for skill in card.skills}, card
            form = "text" if written else "ids"
            tenant = f"{binding.split('+')[0].lower()}-{form}"

            def caller(token, written=written, binding=binding, card=card):
                http = httpx.AsyncClient(headers={"Authorization": f"Bearer dev:{token}"})
                config = ClientConfig(httpx_client=http, supported_protocol_bindings=[binding], streaming=False)
                return Caller(ClientFactory(config).create(card), written)

            lead = caller(f"{tenant}:ann:default:{LEAD}")
            memory = await remember(lead)
            await decide(lead)
            await govern(lead)
            member = caller(f"{tenant}:bob:default:project:shop,team:blue")
            stranger = caller(f"{tenant}-other:ann:default:{LEAD}")
            await keep_out(lead, member, stranger, memory)
            assert lead.used == OPERATIONS, OPERATIONS - lead.used
            print(f"ok a2a-sdk-1.3.0 {binding}: all operations by {form}")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--base", required=True, help="the address of the agent")
    asyncio.run(walk(arguments.parse_args().base))
