"""Reads the stub's Converse and ConverseStream by the package `boto3`, which decodes the event stream."""

import json
import sys

import boto3
from botocore.config import Config
from botocore.validate import ParamValidator

from checks import BROKEN, CALLS, GREETING, INPUT, NAMES, WEATHER, Checks, raised

BASE, LOG = sys.argv[1:]
client = boto3.client(
    "bedrock-runtime",
    endpoint_url=BASE,
    region_name="us-east-1",
    aws_access_key_id="unused",
    aws_secret_access_key="unused",
    # A repeated request would change the counters of the script.
    config=Config(retries={"total_max_attempts": 1}, read_timeout=30),
)
# An id with a character that the path has to escape.
MODEL = "vendor.model-v1:0"
TOOLS = [{"toolSpec": {"name": name, "inputSchema": {"json": WEATHER}}} for name in NAMES]
SCHEMA = {"type": "json_schema", "structure": {"jsonSchema": {"schema": json.dumps(WEATHER), "name": "place"}}}


def user(text: str) -> dict:
    return {"role": "user", "content": [{"text": text}]}


def request(text: str, tools: bool = False, choice: dict | None = None) -> dict:
    made = {"modelId": MODEL, "messages": [user(text)], "system": [{"text": "be brief"}]}
    config = {"tools": TOOLS} | ({"toolChoice": choice} if choice else {})
    return made | ({"toolConfig": config} if tools else {})


def ask(text: str, **options) -> dict:
    return client.converse(**request(text, **options))


def text(answer: dict) -> tuple:
    texts = [block["text"] for block in answer["output"]["message"]["content"] if "text" in block]
    return "".join(texts), answer["stopReason"], answer["usage"]["inputTokens"], answer["usage"]["outputTokens"]


def calls(answer: dict) -> list[tuple]:
    blocks = [block["toolUse"] for block in answer["output"]["message"]["content"] if "toolUse" in block]
    return [(block["name"], block["input"]) for block in blocks]


def events(text: str, **options) -> list[tuple]:
    """Each event as its kind and its members."""
    return [next(iter(event.items())) for event in client.converse_stream(**request(text, **options))["stream"]]


def pieces(text: str) -> list[str]:
    return [event["delta"]["text"] for kind, event in events(text) if kind == "contentBlockDelta"]


def streamed(text: str, **options) -> dict:
    """A stream as the answer that Converse gives, with the inputs of tools as text."""
    content, answer = {}, {}
    for kind, event in events(text, **options):
        at = event.get("contentBlockIndex")
        if kind == "contentBlockStart":
            content[at] = {"toolUse": event["start"]["toolUse"] | {"input": ""}}
        elif kind == "contentBlockDelta" and "text" in event["delta"]:
            content.setdefault(at, {"text": ""})["text"] += event["delta"]["text"]
        elif kind == "contentBlockDelta":
            content[at]["toolUse"]["input"] += event["delta"]["toolUse"]["input"]
        elif kind in ("messageStop", "metadata"):
            answer |= event
    return answer | {"output": {"message": {"content": list(content.values())}}}


def after_tools() -> tuple:
    asked = ask("the weather", tools=True)["output"]["message"]
    made = [block["toolUse"] for block in asked["content"] if "toolUse" in block]
    results = [{"toolResult": {"toolUseId": call["toolUseId"], "content": [{"text": "warm"}]}} for call in made]
    messages = [user("the weather"), asked, {"role": "user", "content": results}]
    return text(client.converse(**request("", tools=True) | {"messages": messages}))[:2]


def structured() -> object:
    answer = client.converse(**request("place"), outputConfig={"textFormat": SCHEMA})
    return json.loads(text(answer)[0])


def missing(operation: str, answers: list[dict]) -> list[str]:
    """What the description of the service finds wrong: the package itself reads answers loosely."""
    shape = client.meta.service_model.operation_model(operation).output_shape
    shape = shape.members.get("stream", shape)
    reports = [ParamValidator().validate(answer, shape) for answer in answers]
    return [report.generate_report() for report in reports if report.has_errors()]


def whole(text: str) -> dict:
    answer = ask(text, tools=True)
    del answer["ResponseMetadata"]
    return answer


def error(call) -> tuple:
    """The exception, its code and its message."""
    return raised(call, lambda error: (error.response["Error"]["Code"], error.response["Error"]["Message"]))


def no_rule() -> tuple:
    return raised(lambda: ask("xyzzy"), lambda error: "xyzzy" in str(error))


KINDS = ["messageStart", *["contentBlockDelta"] * 2, "contentBlockStop"]
KINDS += ["contentBlockStart", *["contentBlockDelta"] * 3, "contentBlockStop"]
KINDS += ["contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"]
VALUES = [("get_weather", INPUT), ("get_time", {})]

checks = Checks("boto3", LOG)
equal = checks.equal
equal("counter", ["first", "later", "later"], lambda: [text(ask("count"))[0] for _ in range(3)])
equal("text", (GREETING, "end_turn", 3, 4), lambda: text(ask("hello")))
equal("pieces", ["Grüß ", "dich", "."], lambda: pieces("hello"))
equal("stream", (GREETING, "end_turn", 3, 4), lambda: text(streamed("hello")))
equal("length", "max_tokens", lambda: ask("novel")["stopReason"])
equal("tools", VALUES, lambda: calls(ask("weather", tools=True)))
equal("tools of a stream", CALLS, lambda: calls(streamed("weather", tools=True)))
equal("events", KINDS, lambda: [kind for kind, _ in events("weather", tools=True)])
equal("members", [], lambda: missing("Converse", [whole("weather")]))
stream = {"text": "weather", "tools": True}
equal("members of a stream", [], lambda: missing("ConverseStream", [dict([event]) for event in events(**stream)]))
equal("broken input of a stream", BROKEN, lambda: calls(streamed("broken", tools=True)))
equal("tool result", ("It is warm.", "end_turn"), after_tools)
forced = {"tool": {"name": "get_time"}}
equal("forced tool", [("get_time", {})], lambda: calls(ask("xyzzy", tools=True, choice=forced)))
equal("any tool", VALUES[:1], lambda: calls(ask("place", tools=True, choice={"any": {}})))
equal("structured output", INPUT, structured)
throttled = ("ThrottlingException", ("ThrottlingException", "slow down"))
equal("throttled", throttled, lambda: error(lambda: ask("busy")))
equal("throttled stream", throttled, lambda: error(lambda: events("busy")))
equal("denied", "AccessDeniedException", lambda: error(lambda: ask("denied"))[0])
late = ("EventStreamError", ("modelStreamErrorException", "the model failed"))
equal("late exception", late, lambda: error(lambda: events("late")))
equal("cut stream", "ProtocolError", lambda: raised(lambda: events("cut"), str)[0])
equal("ended stream", ["one ", "two "], lambda: pieces("ended"))
equal("no rule", ("ValidationException", True), no_rule)
checks.end()
