"""What runs in a child: an engine that answers one request after the other, and a thread that listens to the parent meanwhile.

The parent's first message says which engine: a module of ours with a function `open_engine(options)`. Then come requests, each
with a number and the seconds that it may take, and interrupts of the request with a number. A request is answered twice: that
it begins, before the engine sees anything of it, and what came of it. The end of the pipe is the end of the parent, and of the
child.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
import time
from queue import SimpleQueue
from typing import Any, Protocol

from agentkernel_kb.isolation import wire
from agentkernel_kb.isolation.failures import described
from agentkernel_kb.isolation.limits import Memory, end_after, forbid_core_dumps

START_SECONDS = 60.0
"""How long an engine may take to open."""

OVERTIME_SECONDS = 5.0
"""How long after its deadline a request lives at most, whoever is left to end it."""

_CLOSING_SECONDS = 10.0
_SECONDS_BETWEEN_INTERRUPTS = 0.05
_BEGUN = wire.encoded(["begun", None, False])
_TOO_LARGE = ["KnowledgeQueryError", "The answer is too large to be handed over. Select less of it.", None]


class Engine(Protocol):
    """What a child runs."""

    def answer(self, request: list[Any], seconds: float) -> object:
        """Return what a request asks for, in at most so many seconds if the engine can tell.

        Raises:
            KnowledgeError: What its failure means.
        """
        ...

    def interrupt(self) -> None:
        """Ask the request that runs to end; called again and again until it does."""
        ...

    def close(self) -> None:
        """Close the engine."""
        ...


def main() -> None:
    """Serve the parent at the other end of the standard streams, and end with it."""
    requests, replies = _take_streams()
    end_after(START_SECONDS)
    forbid_core_dumps()
    try:
        module, options, most_bytes = wire.receive(requests)
        engine: Engine = importlib.import_module(module).open_engine(options)
        memory = Memory(most_bytes)
    except EOFError:
        os._exit(0)
    except Exception as error:  # noqa: BLE001 - the parent is told, whatever it is
        wire.send(replies, ["failed", described(error), False])
        os._exit(1)
    end_after(0)
    try:
        wire.send(replies, ["opened", None, False])
    except OSError:
        _close(engine)  # Nobody waits for it any more, but what it has opened is not to stay behind.
    else:
        _Server(engine, memory, requests, replies).serve()
    os._exit(0)  # At once: nothing that is left to end is ours.


def _close(engine: Engine) -> None:
    end_after(_CLOSING_SECONDS)
    engine.close()


def _take_streams() -> tuple[int, int]:
    """Return descriptors of what were standard input and output, in whose place nothing can be read or seen any more."""
    requests, replies = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)
    return requests, replies


class _Server:
    def __init__(self, engine: Engine, memory: Memory, requests: int, replies: int) -> None:
        self._engine = engine
        self._memory = memory
        self._requests, self._replies = requests, replies
        self._waiting: SimpleQueue[tuple[int, list[Any], float] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._running: int | None = None

    def serve(self) -> None:
        """Answer requests until the parent has ended."""
        threading.Thread(target=self._listen, daemon=True).start()
        while (job := self._waiting.get()) is not None:
            self._reply(*job)
        _close(self._engine)

    def _reply(self, number: int, request: list[Any], seconds: float) -> None:
        with self._lock:
            self._running = number
        try:
            wire.send_frame(self._replies, _BEGUN)
            end_after(seconds + OVERTIME_SECONDS)
            frame = self._frame(request, seconds)
            end_after(0)
            with self._lock:
                self._running = None
            wire.send_frame(self._replies, frame)
        except OSError:
            self._waiting.put(None)

    def _frame(self, request: list[Any], seconds: float) -> bytes:
        try:
            frame = wire.encoded(["answer", self._engine.answer(request, seconds), self._memory.is_worn()])
        except Exception as error:  # noqa: BLE001 - engines raise many types, and the parent is told of each
            return wire.encoded(["failed", described(error.with_traceback(None)), self._memory.is_worn()])
        return frame if len(frame) <= wire.MAX_REPLY_BYTES else wire.encoded(["failed", _TOO_LARGE, True])

    def _listen(self) -> None:
        try:
            while True:
                message = wire.receive(self._requests)
                if message[0] == "request":
                    self._waiting.put((message[1], message[2], message[3]))
                else:
                    self._interrupt(message[1])
        except (EOFError, OSError, ValueError):
            self._end()

    def _interrupt(self, number: int | None) -> None:
        """Interrupt a request again and again until it ends, as an interrupt only meets what runs at that moment."""
        while self._interrupted(number):
            time.sleep(_SECONDS_BETWEEN_INTERRUPTS)

    def _interrupted(self, number: int | None) -> bool:
        with self._lock:
            if number is None or self._running != number:
                return False
            with contextlib.suppress(Exception):  # What cannot be interrupted is ended from outside.
                self._engine.interrupt()
            return True

    def _end(self) -> None:
        """End with the parent: close the engine if it is idle or can be interrupted, and leave anyway."""
        self._waiting.put(None)
        with self._lock:
            running = self._running
        threading.Timer(OVERTIME_SECONDS, os._exit, (1,)).start()
        self._interrupt(running)
