"""Reads the stub's Responses by the package `openai`."""

import sys

import openai
import pydantic
from openai.types.responses import Response, ResponseStreamEvent

from checks import BROKEN, CALLS, GREETING, INPUT, NAMES, WEATHER, Checks, raised

BASE, LOG = sys.argv[1:]
# A repeated request would change the counters of the script.
responses = openai.OpenAI(base_url=f"{BASE}/v1", api_key="unused", max_retries=0, timeout=30).responses
TOOLS = [{"type": "function", "name": name, "parameters": WEATHER, "strict": False} for name in NAMES]
NAMED = {"type": "function", "name": "get_time"}


class Place(pydantic.BaseModel):
    city: str
    days: int


def ask(user, **options):
    return responses.create(model="m", instructions="be brief", input=user, **options)


def pieces(user: str) -> list[str]:
    return [event.delta for event in ask(user, stream=True) if event.type == "response.output_text.delta"]


def streamed(user: str, **options):
    """The answer that the package puts together from a stream."""
    with responses.stream(model="m", instructions="be brief", input=user, **options) as stream:
        return stream.get_final_response()


def text(answer) -> tuple:
    return answer.output_text, answer.status, answer.usage.input_tokens, answer.usage.output_tokens


def calls(answer) -> list[tuple]:
    return [(item.name, item.arguments) for item in answer.output if item.type == "function_call"]


def after_tools() -> tuple:
    asked = ask("the weather", tools=TOOLS)
    made = [item for item in asked.output if item.type == "function_call"]
    results = [{"type": "function_call_output", "call_id": call.call_id, "output": "warm"} for call in made]
    return text(ask([{"role": "user", "content": "the weather"}, *asked.output, *results], tools=TOOLS))[:2]


def valid(answers, form: object) -> bool:
    """Whether the answers have every member of their types: the package itself reads them loosely."""
    for answer in answers:
        pydantic.TypeAdapter(form).validate_python(answer.to_dict(mode="json"))
    return True


def numbered(user: str, **options) -> list:
    """The events of a stream, which has to number them."""
    events = list(ask(user, stream=True, **options))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    return events


def kinds(user: str, **options) -> list[str]:
    return [event.type.removeprefix("response.") for event in numbered(user, **options)]


def last(user: str) -> tuple:
    event = numbered(user)[-1]
    return event.type, event.code, event.message


def error(call, *members: str) -> tuple:
    return raised(call, lambda error: tuple(getattr(error, name) for name in members))


OPENING = ["created", "in_progress"]
MESSAGE = ["output_item.added", "content_part.added", "output_text.delta", "output_text.delta"]
MESSAGE += ["output_text.done", "content_part.done", "output_item.done"]
CALL = ["output_item.added", "function_call_arguments.delta", "function_call_arguments.delta"]
CALL += ["function_call_arguments.done", "output_item.done"]

checks = Checks("openai-python responses", LOG)
equal = checks.equal
equal("text", (GREETING, "completed", 3, 4), lambda: text(ask("hello")))
equal("pieces", ["Grüß ", "dich", "."], lambda: pieces("hello"))
equal("stream", (GREETING, "completed", 3, 4), lambda: text(streamed("hello")))
equal("events of a text", [*OPENING, *MESSAGE, "incomplete"], lambda: kinds("novel"))
equal("events of a call", [*OPENING, *CALL, "completed"], lambda: kinds("broken", tools=TOOLS))
equal("length", "max_output_tokens", lambda: ask("novel").incomplete_details.reason)
equal("tools", CALLS, lambda: calls(ask("weather", tools=TOOLS)))
equal("tools of a stream", CALLS, lambda: calls(streamed("weather", tools=TOOLS)))
equal("broken input", BROKEN, lambda: calls(ask("broken", tools=TOOLS)))
equal("tool result", ("It is warm.", "completed"), after_tools)
equal("forced tool", [("get_time", "{}")], lambda: calls(ask("xyzzy", tools=TOOLS, tool_choice=NAMED)))
equal("required tool", CALLS[:1], lambda: calls(ask("place", tools=TOOLS, tool_choice="required")))
parsed = {"model": "m", "input": "place", "text_format": Place}
equal("structured output", Place(**INPUT), lambda: responses.parse(**parsed).output_parsed)
equal("members", True, lambda: valid([ask("weather", tools=TOOLS)], Response))
events = {"tools": TOOLS, "stream": True}
equal("members of a stream", True, lambda: valid(ask("weather", **events), ResponseStreamEvent))
equal("members of a late error", True, lambda: valid(ask("late", stream=True), ResponseStreamEvent))
limited = ("RateLimitError", (429, "rate_limit_exceeded"))
equal("rate limit", limited, lambda: error(lambda: ask("busy"), "status_code", "code"))
equal("late error", ("error", "model_error", "the model failed"), lambda: last("late"))
equal("cut stream", ("APIConnectionError", ()), lambda: error(lambda: pieces("cut")))
equal("ended stream", ["one ", "two "], lambda: pieces("ended"))
equal("no rule", ("BadRequestError", True), lambda: raised(lambda: ask("xyzzy"), lambda error: "xyzzy" in str(error)))
checks.end()
