"""A stub of model services on loopback: four wire formats from one script.

README.md documents the script. The standard library is enough to run it.
"""

import argparse
import http.server
import json
import pathlib
import re
import sys
import threading
import time
import urllib.parse

# Programs of any kind start the stub: it leaves no compiled files beside the sources.
sys.dont_write_bytecode = True
from formats import Block, Chat, Converse, Format, Request, Responses, encode  # noqa: E402

#: The members of a script. A misspelled member must not pass as an absent one.
RULE = {"name", "when", "text", "tools", "input", "stop", "usage", "delay_ms", "error", "fault"}
PARTS = {
    "when": {"model", "system", "user", "tool", "result", "count"},
    "tools": {"name", "input", "raw"},
    "error": {"status", "code", "exception", "message", "retry_after", "after"},
    "fault": {"wait_ms", "cut", "clean", "hang"},
}
ANSWERS = {"text", "tools", "error", "fault"}
USAGE = [11, 7]
#: The characters of a piece of a tool's input.
INPUT_PIECE = 9
#: The characters of a request that a refusal quotes.
QUOTED = 2000
ROUTES: list[tuple[str, type[Format]]] = [
    (r"/v1/chat/completions", Chat),
    (r"/v1/responses", Responses),
    (r"/model/(?P<model>[^/]+)/converse(?P<stream>-stream)?", Converse),
]


class Refused(Exception):
    """A request that the stub does not answer."""


def check_request(request: Request, body: dict) -> None:
    """Refuses what every service refuses."""
    if request.forced is not None and request.forced not in request.tools:
        raise Refused(f"the forced tool {request.forced!r} is not offered")
    # A request that continues a stored response has only the results.
    if sorted(request.calls) != sorted(request.results) and not body.get("previous_response_id"):
        raise Refused(f"the tool calls {request.calls} have the results {request.results}")


class Script:
    """The rules of a script, with their counters."""

    def __init__(self, text: str) -> None:
        self.rules = json.loads(text)["rules"]
        for rule in self.rules:
            unknown = rule.keys() - RULE
            for name, members in PARTS.items():
                values = rule.get(name, [])
                for value in values if isinstance(values, list) else [values]:
                    unknown |= value.keys() - members
            if unknown or not rule.keys() & (ANSWERS | {"input"}):
                raise ValueError(f"unknown members {sorted(unknown)}, or no answer: {json.dumps(rule)}")
        self.counts = [0] * len(self.rules)
        self.lock = threading.Lock()

    def rule(self, request: Request) -> tuple[int | None, dict]:
        """The first rule for a request, with its index."""
        chosen: tuple[int | None, dict] = (None, {})
        with self.lock:
            for at, rule in enumerate(self.rules):
                if not meets(rule, request):
                    continue
                # Also counts what an earlier rule answers: `count` then numbers the same requests in each rule.
                self.counts[at] += 1
                count = rule.get("when", {}).get("count", [1, None])
                first, last = count if isinstance(count, list) else (count, count)
                if chosen[0] is None and first <= self.counts[at] and (last is None or self.counts[at] <= last):
                    chosen = (at, rule)
        if chosen[0] is None and request.forced is None:
            asked = {name: getattr(request, name) for name in ("model", "user", "system", "tools", "result")}
            raise Refused(f"no rule matches {json.dumps(asked, ensure_ascii=False)}")
        return chosen


def meets(rule: dict, request: Request) -> bool:
    when = rule.get("when", {})
    result = when.get("result")
    return (
        all(when.get(name, "") in getattr(request, name) for name in ("model", "system", "user"))
        and when.get("tool") in [None, *request.tools]
        and (not isinstance(result, bool) or result == (request.result is not None))
        and (not isinstance(result, str) or result in (request.result or ""))
        # A rule with an `input` alone is for requests that ask for one.
        and bool(rule.keys() & ANSWERS or request.forced or request.structured)
    )


def blocks_of(rule: dict, request: Request, number: int) -> list[Block]:
    texts, calls = rule.get("text", []), rule.get("tools", [])
    texts = [texts] if isinstance(texts, str) else texts
    if request.forced and ("input" in rule or not rule):
        texts, calls = [], [{"name": request.forced, "input": rule.get("input", {})}]
    elif request.structured and "input" in rule:
        texts, calls = cut_in_pieces(rule["input"]), []
    blocks = [Block(texts)] if texts else []
    for at, call in enumerate(calls):
        raw = call.get("raw")
        pieces = cut_in_pieces(call.get("input", {})) if raw is None else [raw] if isinstance(raw, str) else raw
        value = call.get("input", {}) if raw is None else "".join(pieces)
        blocks.append(Block(pieces, call["name"], f"call_{number}_{at}", value))
    return blocks


def cut_in_pieces(value: object) -> list[str]:
    text = encode(value).decode()
    return [text[at : at + INPUT_PIECE] for at in range(0, len(text), INPUT_PIECE)]


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    # Each piece leaves at once.
    disable_nagle_algorithm = True
    script: Script
    log: pathlib.Path | None = None
    number = 0

    def log_message(self, *_: object) -> None:
        """Silent: the log has the requests."""

    def do_POST(self) -> None:
        with self.script.lock:
            Handler.number += 1
            number = Handler.number
        try:
            self.answer(number)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def answer(self, number: int) -> None:
        path = self.path.split("?")[0]
        routes = ((re.fullmatch(pattern, path), form) for pattern, form in ROUTES)
        route, form = next((route for route in routes if route[0]), (None, Chat))
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode(errors="replace")
        at: int | None = None
        rule: dict = {}
        body: object = raw
        try:
            body = json.loads(raw)
            if route is None:
                raise Refused(f"the path {path} has no format")
            model = urllib.parse.unquote(route.groupdict().get("model", ""))
            request = form.read(body, model)
            check_request(request, body)
            at, rule = self.script.rule(request)
            blocks = blocks_of(rule, request, number)
            check_faults(rule, blocks)
        except (Refused, ValueError, LookupError, TypeError, AttributeError) as error:
            self.record(number, path, None, body)
            text = f"the stub of model services: {error if isinstance(error, Refused) else repr(error)}"
            print(text, file=sys.stderr, flush=True)
            return self.refuse(form, {"status": 400, "code": "no_rule", "message": f"{text}; request: {raw[:QUOTED]}"})
        self.record(number, path, at if at is None else rule.get("name", at), body)
        streams = bool(route.groupdict().get("stream")) or body.get("stream") is True
        stop = rule.get("stop", "tools" if any(block.name for block in blocks) else "end")
        written = form(body, request.model, blocks, stop, rule.get("usage", USAGE), number)
        fault = rule.get("fault", {})
        error = {"status": 500, "message": "refused by the script"} | rule["error"] if "error" in rule else {}
        time.sleep(fault.get("wait_ms", 0) / 1000)
        if fault.get("hang") == 0 or "hang" in fault and not streams:
            self.hang()
        elif error and not (streams and "after" in error):
            self.refuse(form, error)
        elif streams:
            self.stream(written, fault, error, rule.get("delay_ms", 0) / 1000)
        else:
            self.whole(encode(written.whole()), fault)

    def record(self, number: int, path: str, rule: int | str | None, body: object) -> None:
        """Appends a request to the log. Of the credentials it keeps only whether and how they were sent."""
        if self.log:
            scheme, space, _ = self.headers.get("Authorization", "").partition(" ")
            entry = {"number": number, "path": path, "scheme": scheme if space else None, "rule": rule, "body": body}
            with self.script.lock, self.log.open("ab") as log:
                log.write(encode(entry) + b"\n")

    def head(self, status: int, content_type: str, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in ({"Content-Type": content_type} | headers).items():
            self.send_header(name, value)
        self.end_headers()

    def refuse(self, form: type[Format], error: dict) -> None:
        body, headers = form.refusal(error)
        data = encode(body)
        self.head(error["status"], "application/json", headers | {"Content-Length": str(len(data))})
        self.wfile.write(data)

    def whole(self, data: bytes, fault: dict) -> None:
        sent = data[: len(data) // 2] if "cut" in fault else data
        self.close_connection = "cut" in fault
        length = len(sent) if fault.get("clean") else len(data)
        self.head(200, "application/json", {"Content-Length": str(length)})
        self.wfile.write(sent)

    def stream(self, answer: Format, fault: dict, error: dict, delay: float) -> None:
        self.head(200, answer.content_type, {"Transfer-Encoding": "chunked"})
        sent, late = 0, error.get("after")
        for frame, is_piece in answer.frames() if late != 0 else ():
            if fault.get("hang") == sent:
                return self.hang()
            if fault.get("cut") == sent:
                if fault.get("clean"):
                    break
                # Half of the next event: a reader must not take it for a whole one.
                self.wfile.write(b"%x\r\n" % len(frame) + frame[: len(frame) // 2])
                self.close_connection = True
                return
            if is_piece and sent:
                time.sleep(delay)
            self.chunk(frame)
            sent += is_piece
            # The number of an event after this one depends on the events that were made.
            if late == sent:
                break
        if late is not None:
            self.chunk(answer.late_error(error))
        self.chunk(b"")

    def chunk(self, data: bytes) -> None:
        """An event leaves in one write; an empty chunk ends the answer."""
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def hang(self) -> None:
        """Sends nothing until the client gives up."""
        while self.connection.recv(1024):
            pass
        self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    # The default of 5 refuses connections when a test opens many at once.
    request_queue_size = 256


def check_faults(rule: dict, blocks: list[Block]) -> None:
    """Refuses a fault that would never happen."""
    pieces = sum(len(block.pieces) for block in blocks)
    places = (rule.get("fault", {}).get("cut"), rule.get("fault", {}).get("hang"), rule.get("error", {}).get("after"))
    if any(place is not None and place > pieces for place in places):
        raise Refused(f"the fault comes after more than the {pieces} pieces of {json.dumps(rule)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="README.md documents the script.")
    parser.add_argument("--script", metavar="FILE.json", type=pathlib.Path, required=True, help="the rules")
    parser.add_argument("--port", type=int, default=0, help="the port on loopback; 0, the default, is a free one")
    parser.add_argument("--log", metavar="FILE", type=pathlib.Path, help="appends each request as one line of JSON")
    options = parser.parse_args()
    Handler.log = options.log
    try:
        Handler.script = Script(options.script.read_text(encoding="utf-8"))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        parser.error(f"--script {options.script}: {error!r}")
    server = Server(("127.0.0.1", options.port), Handler)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
