"""An engine for the tests of isolation: it does whatever may happen to a child that runs hostile statements."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentkernel_kb.errors import AKConfigError, KnowledgeConnectionError, KnowledgeGuardError, KnowledgeQueryError


class StubbornEngine:
    """Answers, fails, spins, fills memory or dies as it is told."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._is_interrupted = False

    def answer(self, request: list[Any], seconds: float) -> object:
        self._is_interrupted = False
        match request:
            case ["echo", value]:
                return value
            case ["facts"]:
                return {"pid": os.getpid(), "path": sys.path, "environment": dict(os.environ), "options": dict(self._options)}
            case ["print", text]:
                print(text)
                os.write(1, text.encode())
                os.write(2, text.encode())
                return sys.stdin.read()
            case ["wait", wanted]:
                return self._wait(wanted)
            case ["pid after", wanted]:
                self._wait(wanted)
                return os.getpid()
            case ["hold the lock", letters]:
                return bool(re.match(r"(a+)+$", "a" * letters + "b"))
            case ["fill", size]:
                return len(bytearray(size))
            case ["keep", size]:
                self._kept = bytearray(size)
                return len(self._kept)
            case ["die"]:
                os.kill(os.getpid(), signal.SIGSEGV)
            case ["count and die", place]:
                with Path(place).open("a", encoding="utf-8") as file:
                    file.write(".")
                os.kill(os.getpid(), signal.SIGKILL)
            case ["leave", status]:
                os._exit(status)
            case ["fail", kind]:
                raise {
                    "query": KnowledgeQueryError("no such table"),
                    "guard": KnowledgeGuardError("This writes", part="DROP", position=7),
                    "connection": KnowledgeConnectionError("no file", state="missing"),
                    "other": LookupError("a secret"),
                }[kind] from ValueError("said the engine")
            case ["nest", depth]:
                return self._nested(depth)
            case _:
                pass
        raise KnowledgeQueryError("unknown")

    def _wait(self, seconds: float) -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self._is_interrupted:
                raise KnowledgeQueryError("interrupted")
            time.sleep(0.01)
        return "waited"

    def _nested(self, depth: int) -> object:
        value: object = 1
        for _ in range(depth):
            value = [value]
        return value

    def interrupt(self) -> None:
        self._is_interrupted = True

    def close(self) -> None:
        if place := self._options.get("closed"):
            Path(place).write_text("closed", encoding="utf-8")


def _wait_until_removed(file: Path) -> None:
    file.write_text("", encoding="utf-8")
    while file.exists():
        time.sleep(0.02)


def open_engine(options: Mapping[str, Any]) -> StubbornEngine:
    """Open it, or fail as the options say."""
    if options.get("opening") == "refuse":
        raise AKConfigError("there is no such file")
    if options.get("opening") == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if place := options.get("opening"):
        _wait_until_removed(Path(place))
    return StubbornEngine(options)
