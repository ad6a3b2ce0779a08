"""What the readers in Python have in common: one line per check, and the exchange of a failed one."""

import json
import pathlib
import sys
import traceback
from collections.abc import Callable

WEATHER = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
NAMES = ("get_weather", "get_time")
# What the rules of script.json answer.
GREETING = "Grüß dich."
INPUT = {"city": "Köln", "days": 2}
CALLS = [("get_weather", json.dumps(INPUT, ensure_ascii=False, separators=(",", ":"))), ("get_time", "{}")]
BROKEN = [("get_weather", '{"city": "Kö')]


class Checks:
    """Runs checks against the stub that writes `log`."""

    def __init__(self, name: str, log: str) -> None:
        self.name, self.log, self.failed = name, pathlib.Path(log), False

    def equal(self, check: str, expected: object, call: Callable[[], object]) -> None:
        """Compares what `call` returns. An exception is an answer too."""
        try:
            answer = call()
        except Exception as error:
            answer = error
        if answer == expected:
            print(f"ok {self.name} {check}")
            return
        self.failed = True
        print(f"FAILED {self.name} {check}\n  expected {expected!r}\n  answer   {answer!r}")
        if isinstance(answer, Exception):
            traceback.print_exception(answer, file=sys.stdout)
        requests = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        print(f"  request  {requests[-1] if requests else 'none arrived'}")

    def end(self) -> None:
        sys.exit(1 if self.failed else 0)


def raised(call: Callable[[], object], read: Callable[[Exception], object]) -> object:
    """The name of the exception that `call` raises, and what `read` reads of it."""
    try:
        return "no exception", call()
    except Exception as error:
        return type(error).__name__, read(error)
