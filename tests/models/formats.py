"""The wire formats of model services: OpenAI Chat Completions and Responses, Bedrock Converse.

Ids and times are fixed, so that equal requests get equal answers.
"""

import dataclasses
import json
import struct
import zlib
from collections.abc import Iterator

CREATED = 1_700_000_000
OPENAI_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded", 500: "server_error"}
BEDROCK_EXCEPTIONS = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}
#: The bytes of an event, and whether it is a piece of the content.
Frame = tuple[bytes, bool]


@dataclasses.dataclass
class Request:
    """What the formats have in common."""

    model: str
    system: str
    user: str
    tools: list[str]
    #: The tool that the request forces, by its name or as the first of all.
    forced: str | None
    #: The text of the last message, when it is a tool result.
    result: str | None
    #: Whether the answer has to be JSON.
    structured: bool
    #: The ids of the tool calls, and of the calls that have a result.
    calls: list[str]
    results: list[str]


@dataclasses.dataclass
class Block:
    """A text, or a tool call when it has a name; `pieces` are those of the stream."""

    pieces: list[str]
    name: str | None = None
    id: str = ""
    input: object = None

    @property
    def text(self) -> str:
        return "".join(self.pieces)


def encode(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def text_of(content: str | list[dict] | None) -> str:
    """The text of a message, a system prompt or a tool result."""
    if isinstance(content, str):
        return content
    parts = (part.get("text", json.dumps(part["json"]) if "json" in part else "") for part in content or [])
    return "".join(parts)


def last_user(messages: list[dict]) -> str:
    """The text of the last user message. Converse sends tool results as such messages, without a text."""
    texts = [text_of(message["content"]) for message in messages if message.get("role") == "user"]
    return next((text for text in reversed(texts) if text), "")


def forced_tool(choice: str | dict | None, tools: list[str]) -> str | None:
    if choice == "required" or isinstance(choice, dict) and "any" in choice:
        return tools[0]
    if not isinstance(choice, dict) or "auto" in choice:
        return None
    return choice.get("function", choice.get("tool", choice))["name"]


class Format:
    """An answer in one format. The class methods belong to requests, the others to one answer."""

    content_type = "text/event-stream"
    #: The service's words for the stop reasons of the script.
    stops: dict[str, str | None] = {}

    def __init__(self, body: dict, model: str, blocks: list[Block], stop: str, usage: list[int], number: int) -> None:
        self.request, self.model, self.blocks, self.number = body, model, blocks, number
        self.stop = self.stops.get(stop, stop)
        self.given, self.made = usage

    @staticmethod
    def refusal(error: dict) -> tuple[dict, dict[str, str]]:
        """The body and the headers of an error."""
        code = error.get("code", OPENAI_CODES.get(error["status"]))
        kind = "invalid_request_error" if error["status"] < 500 and error["status"] != 429 else code or "server_error"
        headers = {"Retry-After": str(error["retry_after"])} if "retry_after" in error else {}
        return {"error": {"message": error["message"], "type": kind, "param": None, "code": code}}, headers


class Chat(Format):
    """Chat Completions."""

    stops = {"end": "stop", "tools": "tool_calls", "length": "length", "filter": "content_filter"}

    @staticmethod
    def read(body: dict, _model: str) -> Request:
        messages, last = body["messages"], body["messages"][-1]
        tools = [tool["function"]["name"] for tool in body.get("tools") or []]
        prompts = (text_of(m["content"]) for m in messages if m["role"] in ("system", "developer"))
        return Request(
            model=body["model"],
            system="\n".join(prompts),
            user=last_user(messages),
            tools=tools,
            forced=forced_tool(body.get("tool_choice"), tools),
            result=text_of(last["content"]) if last["role"] == "tool" else None,
            structured=(body.get("response_format") or {}).get("type", "text") != "text",
            calls=[call["id"] for message in messages for call in message.get("tool_calls") or []],
            results=[message["tool_call_id"] for message in messages if message["role"] == "tool"],
        )

    def __init__(self, *answer) -> None:
        super().__init__(*answer)
        # The service ends the call of a tool that the request names with the reason of a text.
        if self.stop == "tool_calls" and isinstance(self.request.get("tool_choice"), dict):
            self.stop = "stop"

    def object(self, kind: str, choices: list[dict], usage: bool = False) -> dict:
        spent = {"prompt_tokens": self.given, "completion_tokens": self.made, "total_tokens": self.given + self.made}
        head = {"id": f"chatcmpl-{self.number}", "object": kind, "created": CREATED, "model": self.model}
        return head | {"choices": choices, "usage": spent if usage else None}

    def whole(self) -> dict:
        texts = [block.text for block in self.blocks if not block.name]
        message = {"role": "assistant", "content": "".join(texts) if texts else None, "refusal": None}
        for block in self.blocks:
            if block.name:
                call = {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": block.text}}
                message.setdefault("tool_calls", []).append(call)
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.stop}
        return self.object("chat.completion", [choice], usage=True)

    def chunk(self, delta: dict | None, stop: str | None = None) -> bytes:
        """One chunk; the chunk with the usage has no delta."""
        choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": stop}]
        return b"data: " + encode(self.object("chat.completion.chunk", choices, delta is None)) + b"\n\n"

    def frames(self) -> Iterator[Frame]:
        yield self.chunk({"role": "assistant", "content": "", "refusal": None}), False
        index = -1
        for block in self.blocks:
            if block.name:
                index += 1
                function = {"name": block.name, "arguments": ""}
                call = {"index": index, "id": block.id, "type": "function", "function": function}
                yield self.chunk({"tool_calls": [call]}), False
            for piece in block.pieces:
                call = {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
                yield self.chunk(call if block.name else {"content": piece}), True
        yield self.chunk({}, self.stop), False
        if (self.request.get("stream_options") or {}).get("include_usage"):
            yield self.chunk(None), False
        yield b"data: [DONE]\n\n", False

    def late_error(self, error: dict) -> bytes:
        return b"data: " + encode(self.refusal(error)[0]) + b"\n\n"


class Responses(Format):
    """Responses. An answer with a stop reason is incomplete; the others are complete."""

    stops = {"end": None, "tools": None, "length": "max_output_tokens", "filter": "content_filter"}
    sequence = -1

    @staticmethod
    def read(body: dict, _model: str) -> Request:
        items = body["input"]
        items = [{"role": "user", "content": items}] if isinstance(items, str) else items
        tools = [tool["name"] for tool in body.get("tools") or []]
        prompts = [text_of(item["content"]) for item in items if item.get("role") in ("system", "developer")]
        results = [item for item in items if item.get("type") == "function_call_output"]
        return Request(
            model=body["model"],
            system="\n".join([body.get("instructions") or "", *prompts]),
            user=last_user(items),
            tools=tools,
            forced=forced_tool(body.get("tool_choice"), tools),
            result=text_of(items[-1]["output"]) if items[-1].get("type") == "function_call_output" else None,
            structured=((body.get("text") or {}).get("format") or {}).get("type", "text") != "text",
            calls=[item["call_id"] for item in items if item.get("type") == "function_call"],
            results=[item["call_id"] for item in results],
        )

    def item(self, at: int, status: str) -> dict:
        block, ended = self.blocks[at], status != "in_progress"
        if block.name:
            head = {"type": "function_call", "id": f"fc_{self.number}_{at}", "status": status, "call_id": block.id}
            return head | {"name": block.name, "arguments": block.text if ended else ""}
        head = {"type": "message", "id": f"msg_{self.number}_{at}", "status": status, "role": "assistant"}
        return head | {"content": [self.part(block.text)] if ended else []}

    def part(self, text: str) -> dict:
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

    def whole(self, status: str | None = None) -> dict:
        status = status or ("incomplete" if self.stop else "completed")
        ended = status != "in_progress"
        usage = {
            "input_tokens": self.given,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": self.made,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": self.given + self.made,
        }
        defaults = {"instructions": None, "tool_choice": "auto", "tools": [], "text": {"format": {"type": "text"}}}
        return {name: self.request.get(name, default) for name, default in defaults.items()} | {
            "id": f"resp_{self.number}",
            "object": "response",
            "created_at": CREATED,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": self.stop} if ended and self.stop else None,
            "model": self.model,
            "output": [self.item(at, status) for at in range(len(self.blocks))] if ended else [],
            "parallel_tool_calls": True,
            "usage": usage if ended else None,
        }

    def event(self, kind: str, **members: object) -> bytes:
        self.sequence += 1
        data = encode({"type": kind, "sequence_number": self.sequence} | members)
        return f"event: {kind}\ndata: ".encode() + data + b"\n\n"

    def frames(self) -> Iterator[Frame]:
        end = self.whole()
        for kind in ("response.created", "response.in_progress"):
            yield self.event(kind, response=self.whole("in_progress")), False
        for at, block in enumerate(self.blocks):
            item = end["output"][at]
            place = {"output_index": at, "item_id": item["id"]}
            yield self.event("response.output_item.added", output_index=at, item=self.item(at, "in_progress")), False
            if block.name:
                for piece in block.pieces:
                    yield self.event("response.function_call_arguments.delta", **place, delta=piece), True
                done = {"name": block.name, "arguments": block.text}
                yield self.event("response.function_call_arguments.done", **place, **done), False
            else:
                place |= {"content_index": 0}
                yield self.event("response.content_part.added", **place, part=self.part("")), False
                for piece in block.pieces:
                    yield self.event("response.output_text.delta", **place, delta=piece, logprobs=[]), True
                yield self.event("response.output_text.done", **place, text=block.text, logprobs=[]), False
                yield self.event("response.content_part.done", **place, part=self.part(block.text)), False
            yield self.event("response.output_item.done", output_index=at, item=item), False
        yield self.event(f"response.{end['status']}", response=end), False

    def late_error(self, error: dict) -> bytes:
        body = self.refusal(error)[0]["error"]
        return self.event("error", code=body["code"], message=body["message"], param=None)


class Converse(Format):
    """Bedrock's Converse and ConverseStream."""

    content_type = "application/vnd.amazon.eventstream"
    stops = {"end": "end_turn", "tools": "tool_use", "length": "max_tokens", "filter": "content_filtered"}

    @staticmethod
    def read(body: dict, model: str) -> Request:
        messages, config = body["messages"], body.get("toolConfig") or {}
        blocks = [block for message in messages for block in message["content"]]
        tools = [tool["toolSpec"]["name"] for tool in config.get("tools", []) if "toolSpec" in tool]
        results = [block["toolResult"] for block in messages[-1]["content"] if "toolResult" in block]
        return Request(
            model=model,
            system=text_of(body.get("system")),
            user=last_user(messages),
            tools=tools,
            forced=forced_tool(config.get("toolChoice"), tools),
            result="".join(text_of(result["content"]) for result in results) if results else None,
            structured="textFormat" in (body.get("outputConfig") or {}),
            calls=[block["toolUse"]["toolUseId"] for block in blocks if "toolUse" in block],
            results=[block["toolResult"]["toolUseId"] for block in blocks if "toolResult" in block],
        )

    @staticmethod
    def refusal(error: dict) -> tuple[dict, dict[str, str]]:
        exception = error.get("exception") or BEDROCK_EXCEPTIONS.get(error["status"], "InternalServerException")
        return {"message": error["message"]}, {"x-amzn-ErrorType": exception}

    def measures(self) -> dict:
        usage = {"inputTokens": self.given, "outputTokens": self.made, "totalTokens": self.given + self.made}
        return {"usage": usage, "metrics": {"latencyMs": 1}}

    def whole(self) -> dict:
        content = [
            {"toolUse": {"toolUseId": block.id, "name": block.name, "input": block.input}}
            if block.name
            else {"text": block.text}
            for block in self.blocks
        ]
        message = {"role": "assistant", "content": content}
        return {"output": {"message": message}, "stopReason": self.stop} | self.measures()

    def event(self, kind: str, payload: dict, message_type: str = "event") -> bytes:
        """A frame: prelude (both lengths), its CRC-32, headers, payload, and the CRC-32 of all of that."""
        pairs = {f":{message_type}-type": kind, ":content-type": "application/json", ":message-type": message_type}
        head = b""
        for name, value in pairs.items():
            # 7 is the type of a header with a string.
            head += struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        body = encode(payload)
        prelude = struct.pack("!II", 16 + len(head) + len(body), len(head))
        frame = prelude + struct.pack("!I", zlib.crc32(prelude)) + head + body
        return frame + struct.pack("!I", zlib.crc32(frame))

    def frames(self) -> Iterator[Frame]:
        # The service pads its events with a member `p`, which no model of the API names.
        yield self.event("messageStart", {"role": "assistant", "p": "abcd"}), False
        for at, block in enumerate(self.blocks):
            place = {"contentBlockIndex": at, "p": "abcdefg"}
            if block.name:
                start = {"toolUse": {"toolUseId": block.id, "name": block.name}}
                yield self.event("contentBlockStart", place | {"start": start}), False
            for piece in block.pieces:
                delta = {"toolUse": {"input": piece}} if block.name else {"text": piece}
                yield self.event("contentBlockDelta", place | {"delta": delta}), True
            yield self.event("contentBlockStop", place), False
        yield self.event("messageStop", {"stopReason": self.stop, "p": "ab"}), False
        yield self.event("metadata", self.measures() | {"p": "abc"}), False

    def late_error(self, error: dict) -> bytes:
        body, headers = self.refusal(error)
        exception = headers["x-amzn-ErrorType"]
        # An error of the model has another name in a stream.
        exception = "ModelStreamErrorException" if exception == "ModelErrorException" else exception
        return self.event(exception[0].lower() + exception[1:], body, "exception")
