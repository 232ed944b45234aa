"""Who may have a graph: any number that read, or one that writes, in the order in which they came."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import KnowledgeTimeoutError

_SECONDS_BETWEEN_LOOKS = 0.25  # A deadline may be brought forward, by a caller that gives up.


class Turns:
    """Hands out turns to read and to write. Nobody overtakes whoever waits longer, so that neither kind keeps the other out."""

    def __init__(self) -> None:
        self._state = threading.Condition()
        self._waiting: list[object] = []
        self._reading = 0
        self._writing = False

    @contextmanager
    def reading(self, deadline: Deadline) -> Generator[None]:
        """Read beside others that read.

        Raises:
            KnowledgeTimeoutError: A write did not end in time.
        """
        with self._state:
            self._wait(lambda: not self._writing, deadline, "A write")
            self._reading += 1
        try:
            yield
        finally:
            with self._state:
                self._reading -= 1
                self._state.notify_all()

    @contextmanager
    def writing(self, deadline: Deadline) -> Generator[None]:
        """Write alone.

        Raises:
            KnowledgeTimeoutError: Those that read, or another that writes, did not end in time.
        """
        with self._state:
            self._wait(lambda: not (self._writing or self._reading), deadline, "Another call")
            self._writing = True
        try:
            yield
        finally:
            with self._state:
                self._writing = False
                self._state.notify_all()

    def _wait(self, is_free: Callable[[], bool], deadline: Deadline, who: str) -> None:
        ticket = object()
        self._waiting.append(ticket)
        try:
            while not (self._waiting[0] is ticket and is_free()):
                if deadline.passed():
                    raise KnowledgeTimeoutError(f"{who} held the graph for {deadline.seconds:g} s.")
                self._state.wait(min(deadline.left(), _SECONDS_BETWEEN_LOOKS))
        finally:
            self._waiting.remove(ticket)
            self._state.notify_all()
