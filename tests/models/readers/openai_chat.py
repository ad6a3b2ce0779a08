"""Reads the stub's Chat Completions by the package `openai`."""

import functools
import sys

import openai
import pydantic

from checks import BROKEN, CALLS, GREETING, INPUT, NAMES, WEATHER, Checks, raised

BASE, LOG = sys.argv[1:]
# A repeated request would change the counters of the script.
client = openai.OpenAI(base_url=f"{BASE}/v1", api_key="unused", max_retries=0, timeout=30)
completions = client.chat.completions
TOOLS = [{"type": "function", "function": {"name": name, "parameters": WEATHER}} for name in NAMES]
NAMED = {"type": "function", "function": {"name": "get_time"}}


class Place(pydantic.BaseModel):
    city: str
    days: int


def messages(user: str) -> list:
    return [{"role": "system", "content": "be brief"}, {"role": "user", "content": user}]


def ask(user: str, **options):
    return completions.create(model="m", messages=messages(user), **options)


def pieces(user: str) -> list[str]:
    chunks = [chunk for chunk in ask(user, stream=True) if chunk.choices]
    return [chunk.choices[0].delta.content for chunk in chunks if chunk.choices[0].delta.content]


def streamed(user: str, **options):
    """The answer that the package puts together from a stream."""
    options["stream_options"] = {"include_usage": True}
    with completions.stream(model="m", messages=messages(user), **options) as stream:
        return stream.get_final_completion()


def text(answer) -> tuple:
    choice, usage = answer.choices[0], answer.usage
    return choice.message.content, choice.finish_reason, usage.prompt_tokens, usage.completion_tokens


def calls(answer) -> list[tuple]:
    return [(call.function.name, call.function.arguments) for call in answer.choices[0].message.tool_calls or []]


def after_tools() -> tuple:
    asked = ask("the weather", tools=TOOLS).choices[0].message
    results = [{"role": "tool", "tool_call_id": call.id, "content": "warm"} for call in asked.tool_calls]
    return text(completions.create(model="m", messages=[*messages("the weather"), asked, *results], tools=TOOLS))[:2]


def valid(answers) -> bool:
    """Whether the answers have every member of their types: the package itself reads them loosely."""
    for answer in answers:
        type(answer).model_validate(answer.to_dict(mode="json"))
    return True


def last_line(user: str) -> str:
    with completions.with_streaming_response.create(model="m", messages=messages(user), stream=True) as response:
        return [line for line in response.iter_lines() if line][-1]


def parsed() -> object:
    return completions.parse(model="m", messages=messages("place"), response_format=Place).choices[0].message.parsed


def error(call, *members: str) -> tuple:
    return raised(call, lambda error: tuple(getattr(error, name) for name in members))


checks = Checks("openai-python chat", LOG)
equal = checks.equal
equal("counter", ["first", "later", "later"], lambda: [text(ask("count"))[0] for _ in range(3)])
equal("text", (GREETING, "stop", 3, 4), lambda: text(ask("hello")))
equal("pieces", ["Grüß ", "dich", "."], lambda: pieces("hello"))
equal("delayed pieces", ["one ", "two"], lambda: pieces("slow"))
equal("stream", (GREETING, "stop", 3, 4), lambda: text(streamed("hello")))
equal("end of a stream", "data: [DONE]", lambda: last_line("hello"))
equal("length", "length", lambda: ask("novel").choices[0].finish_reason)
equal("tools", CALLS, lambda: calls(ask("weather", tools=TOOLS)))
equal("tools of a stream", CALLS, lambda: calls(streamed("weather", tools=TOOLS)))
equal("broken input", BROKEN, lambda: calls(ask("broken", tools=TOOLS)))
equal("broken input of a stream", BROKEN, lambda: calls(streamed("broken", tools=TOOLS)))
equal("tool result", ("It is warm.", "stop"), after_tools)
equal("forced tool", [("get_time", "{}")], lambda: calls(ask("xyzzy", tools=TOOLS, tool_choice=NAMED)))
equal("required tool", CALLS[:1], lambda: calls(ask("place", tools=TOOLS, tool_choice="required")))
equal("structured output", Place(**INPUT), parsed)
equal("members", True, lambda: valid([ask("weather", tools=TOOLS)]))
equal("members of a stream", True, lambda: valid(ask("weather", tools=TOOLS, stream=True)))
limited = ("RateLimitError", (429, "rate_limit_exceeded"))
equal("rate limit", limited, lambda: error(lambda: ask("busy"), "status_code", "code"))
equal("rate limit of a stream", limited, lambda: error(lambda: pieces("busy"), "status_code", "code"))
denied = ("PermissionDeniedError", (403, "no_access"))
equal("denied", denied, lambda: error(lambda: ask("denied"), "status_code", "code"))
late = ("APIError", ("model_error", "the model failed"))
equal("late error", late, lambda: error(lambda: pieces("late"), "code", "message"))
equal("cut stream", ("APIConnectionError", ()), lambda: error(lambda: pieces("cut")))
equal("cut answer", ("APIConnectionError", ()), lambda: error(lambda: ask("cut")))
equal("ended stream", ["one ", "two "], lambda: pieces("ended"))
equal("hang", ("APITimeoutError", ()), lambda: error(lambda: ask("hang", timeout=0.2)))
equal("no rule", ("BadRequestError", True), lambda: raised(lambda: ask("xyzzy"), lambda error: "xyzzy" in str(error)))
call = {"role": "assistant", "tool_calls": [{"id": "a", **NAMED}]}
unanswered = {"model": "m", "messages": [*messages("hello"), call, *messages("hello")]}
send = functools.partial(completions.create, **unanswered)
equal("call without result", ("BadRequestError", ("no_rule",)), lambda: error(send, "code"))
checks.end()
