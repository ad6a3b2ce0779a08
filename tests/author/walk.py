"""Walks the agent of the template with the SDK for Python: card, an answer, a question, a stream."""

import argparse
import asyncio
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageRequest, TaskState
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value


def request(part, task=None):
    message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[part])
    if task:
        message.task_id, message.context_id = task.id, task.context_id
    return SendMessageRequest(message=message)


async def last(client, asked):
    """The task, after the last event of a send."""
    return [one async for one in client.send_message(asked)][-1].task


async def walk(base):
    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(http, base).get_agent_card()
        assert [skill.id for skill in card.skills] == ["price", "book"], card
        for binding in ("JSONRPC", "HTTP+JSON"):
            def client(streaming):
                config = ClientConfig(httpx_client=http, supported_protocol_bindings=[binding], streaming=streaming)
                return ClientFactory(config).create(card)

            sends = client(streaming=False)
            task = await last(sends, request(Part(text="pasta")))
            assert task.artifacts[0].parts[0].text == "pasta: 11.50 EUR", task
            asked = await last(sends, request(Part(data=ParseDict({"when": "Friday"}, Value()))))
            assert asked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED, asked
            events = [one async for one in client(streaming=True).send_message(request(Part(text="4"), asked))]
            [booked] = [one.artifact_update.artifact for one in events if one.WhichOneof("payload") == "artifact_update"]
            assert MessageToDict(booked.parts[0].data) == {"when": "Friday", "guests": 4}, booked
            ended = events[-1].status_update.status.state
            assert ended == TaskState.TASK_STATE_COMPLETED, events
            print(f"the SDK learned a price and booked a table over {binding}")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("base", help="the address of the agent")
    asyncio.run(walk(arguments.parse_args().base))
