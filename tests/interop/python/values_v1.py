"""Checks that the official Python types read the agent's 1.0 responses as the same
values, and that the conformance tests print requests by the official proto.
../exchanges.json has the exchanges."""

import argparse
import json
import re
import sys
import urllib.request
from pathlib import Path

from a2a.types import a2a_pb2
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError

from walk import CALL_TIMEOUT

EXCHANGES = Path(__file__).parent.parent / "exchanges.json"
PRINTED = Path(__file__).parents[2] / "conformance/printed.json"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def answers(base: str, exchange: dict, task: str) -> list:
    """The results of one JSON-RPC call: one, or those of a stream's events."""
    params = json.loads(json.dumps(exchange["params"]).replace('"$task"', json.dumps(task)))
    body = {"jsonrpc": "2.0", "id": 1, "method": exchange["method"], "params": params}
    headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
    request = urllib.request.Request(base, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=CALL_TIMEOUT) as answer:
        text = answer.read().decode()
        streams = answer.headers["Content-Type"] == "text/event-stream"
    lines = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    # Only `\n` ends a line of a stream; `splitlines` knows more line ends.
    if streams:
        lines = [line[6:] for line in text.split("\n") if line.startswith("data: ")]
    return [json.loads(line)["result"] for line in (lines if streams else [text])]


def task_of(result: dict) -> str | None:
    """The id of the task in a result."""
    event = result.get("statusUpdate") or result.get("artifactUpdate")
    return event["taskId"] if event else (result.get("task") or result).get("id")


def is_default(value) -> bool:
    """Whether ProtoJSON leaves a member of this value out."""
    return value in (False, 0, "", [])


def difference(ours, theirs, place: str = "") -> str | None:
    """The first difference by the rules of ProtoJSON: an absent member is its default,
    a time has as many digits as it needs, a number is a double."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in ours.keys() | theirs.keys():
            inside = f"{place}/{name}"
            if name in ours and name in theirs:
                found = difference(ours[name], theirs[name], inside)
            elif is_default(ours.get(name, theirs.get(name))):
                found = None
            else:
                found = f"{inside}: {ours.get(name)!r} is read as {theirs.get(name)!r}"
            if found:
                return found
        return None
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs))
        found = (difference(one, other, f"{place}/{n}") for n, (one, other) in pairs)
        return next(filter(None, found), None)
    if isinstance(ours, str) and TIME.fullmatch(ours) and isinstance(theirs, str):
        ours, theirs = (re.sub(r"\.?0*Z$", "Z", time) if "." in time else time for time in (ours, theirs))
    same = ours == theirs and isinstance(ours, bool) == isinstance(theirs, bool)
    return None if same else f"{place}: {ours!r} is read as {theirs!r}"


def printed(name: str) -> dict:
    """The fields that a message always shows, with their values, and those that are messages."""
    zeros = MessageToDict(getattr(a2a_pb2, name)(), always_print_fields_with_no_presence=True)
    members = {field.json_name: field for field in a2a_pb2.DESCRIPTOR.message_types_by_name[name].fields}
    inner = {key: it for key, it in members.items() if it.message_type and it.message_type.file is it.file}
    kinds = {key: [it.message_type.name] if it.is_repeated else {"of": it.message_type.name} for key, it in inner.items()}
    return zeros | kinds


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--base", required=True)
    arguments.add_argument("--binding", required=True)
    base = arguments.parse_args().base.rstrip("/")
    read, faults, task = 0, [], ""
    for exchange in json.loads(EXCHANGES.read_text()):
        kind = getattr(a2a_pb2, exchange["as"])
        for result in answers(base, exchange, task):
            task = task_of(result) or task
            read += 1
            try:
                theirs = MessageToDict(ParseDict(result, kind()))
                found = difference(result, theirs)
            except ParseError as error:
                found = str(error)
            if found:
                faults.append(f"{exchange['method']} as {exchange['as']}: {found}\n    {result}")
    with urllib.request.urlopen(f"{base}/.well-known/agent-card.json", timeout=CALL_TIMEOUT) as answer:
        card = json.load(answer)
    # The union card has members of the older generations too.
    theirs = MessageToDict(ParseDict(card, a2a_pb2.AgentCard(), ignore_unknown_fields=True))
    found = difference({name: card[name] for name in theirs if name in card and name not in OLDER}, {
        name: value for name, value in theirs.items() if name not in OLDER
    })
    if found:
        faults.append(f"the card: {found}")
    table = json.loads(PRINTED.read_text())
    methods = {it.name: it.input_type.name for it in a2a_pb2.DESCRIPTOR.services_by_name["A2AService"].methods}
    if table != {"methods": methods, "messages": {name: printed(name) for name in table["messages"]}}:
        faults.append(f"{PRINTED.name} is not what the proto has")
    for fault in faults:
        print(f"  {fault}")
    print(f"  {read} values of 1.0 and the card read")
    sys.exit(bool(faults))


#: Members of the union card with content that 1.0 does not define.
OLDER = {"capabilities", "securitySchemes"}

if __name__ == "__main__":
    main()
