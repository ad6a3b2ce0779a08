"""An agent of the official Python SDK, 1.0 or 0.3 as it is installed, for `a2a-local check`.

It asks once if a text begins with `book`, works for half a second, and streams two chunks.
"""

import argparse
import asyncio
import importlib.metadata
import socket

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from httpx import AsyncClient
from starlette.applications import Starlette

V1 = importlib.metadata.version("a2a-sdk").startswith("1.")
if V1:
    from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
    from a2a.types.a2a_pb2 import AgentCard, Part, Task, TaskState, TaskStatus
    from google.protobuf.json_format import ParseDict

    SUBMITTED, ASKS = TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_INPUT_REQUIRED

    def text(words):
        return Part(text=words)
else:
    from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
    from a2a.types import AgentCard, Part, Task, TaskState, TaskStatus, TextPart

    SUBMITTED, ASKS = TaskState.submitted, TaskState.input_required

    def text(words):
        return Part(root=TextPart(text=words))


class Worker(AgentExecutor):
    async def execute(self, context, event_queue):
        task = context.current_task
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if not task:
            status = TaskStatus(state=SUBMITTED)
            task = Task(id=context.task_id, context_id=context.context_id, status=status, history=[context.message])
            await event_queue.enqueue_event(task)
            if context.get_user_input().startswith("book"):
                message = updater.new_agent_message([text("When?")])
                await updater.update_status(ASKS, message, **({} if V1 else {"final": True}))
                return
        await updater.start_work()
        for chunk in ("one", "two"):
            await asyncio.sleep(0.25)
            await updater.add_artifact([text(chunk)], artifact_id="a", append=chunk == "two")
        await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


class Echo(AgentExecutor):
    """Answers with a message and makes no task."""

    async def execute(self, context, event_queue):
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await event_queue.enqueue_event(updater.new_agent_message([text(context.get_user_input())]))

    async def cancel(self, context, event_queue):
        pass


def card(url, rest):
    skill = {"id": "work", "name": "Work", "description": "Works.", "tags": ["test"]}
    members = {
        "name": "SDK server",
        "description": "An agent of the official SDK.",
        "version": "1",
        "capabilities": {"streaming": True, "pushNotifications": True},
        "defaultInputModes": ["text/plain", "application/octet-stream"],
        "defaultOutputModes": ["text/plain"],
        "skills": [skill | {"examples": ["hello"]}, skill | {"id": "ask", "examples": ["book a table"]}],
    }
    binding = "HTTP+JSON" if rest else "JSONRPC"
    if V1:
        interface = {"url": url, "protocolBinding": binding, "protocolVersion": "1.0"}
        return ParseDict(members | {"supportedInterfaces": [interface]}, AgentCard())
    return AgentCard.model_validate(members | {"url": url, "preferredTransport": binding, "protocolVersion": "0.3.0"})


def application(url, rest, path="", worker=Worker):
    described, hooks = card(url + path, rest), InMemoryPushNotificationConfigStore()
    options = {"push_config_store": hooks, "push_sender": BasePushNotificationSender(AsyncClient(), hooks)}
    if V1:
        options["agent_card"] = described
    handler = DefaultRequestHandler(worker(), InMemoryTaskStore(), **options)
    if not V1:
        kind = A2ARESTFastAPIApplication if rest else A2AStarletteApplication
        return kind(agent_card=described, http_handler=handler).build()
    calls = create_rest_routes(handler) if rest else create_jsonrpc_routes(handler, path or "/")
    return Starlette(routes=[*create_agent_card_routes(described), *calls])


def buffered(served):
    """The same application, whose responses are sent when they are whole."""

    async def serve(scope, receive, send):
        kept = []

        async def keep(message):
            kept.append(message)

        await served(scope, receive, keep if scope["type"] == "http" else send)
        for message in kept:
            await send(message)

    return serve


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rest", action="store_true", help="serve REST instead of JSON-RPC")
    arguments.add_argument("--buffer", action="store_true", help="hold back each response until its end")
    arguments.add_argument("--path", default="", help="the path of JSON-RPC of 1.0")
    arguments.add_argument("--messages", action="store_true", help="answer with messages and make no task")
    options = arguments.parse_args()
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    served = application(url, options.rest, options.path, Echo if options.messages else Worker)
    if options.buffer:
        served = buffered(served)
    server = uvicorn.Server(uvicorn.Config(served, log_level="warning"))
    print(f"listening on {url}", flush=True)
    server.run(sockets=[listener])


if __name__ == "__main__":
    main()
