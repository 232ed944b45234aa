"""Keeps the link's event loop from being held by one row: the driver reads a row at once, and nothing else runs meanwhile.

A million small lists in one row, as `collect` makes them, held the loop for a quarter of a minute, in which no deadline of any
other call was kept. So a thread looks whether the loop still answers while calls run, and ends the reading of a row that takes
too long, by raising an error in it.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from asyncio import AbstractEventLoop
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

MOST_SECONDS = 3.0
"""How long reading one row may hold the loop."""

_BETWEEN_SECONDS = 0.5
_GIVING_UP_SECONDS = 10.0
_READING = ("neo4j._codec.", "agentkernel_kb.neo4j.values", "agentkernel_kb.render")
"""Modules that read a row; anywhere else an error from outside could end the loop itself."""


class RowTooLargeError(Exception):
    """A row takes too long to be read."""


class Watch:
    """Looks after one event loop.

    Args:
        loop: The loop.
        thread: The thread that it runs in.
        name: Name of the thread that looks.
    """

    def __init__(self, loop: AbstractEventLoop, thread: threading.Thread, name: str) -> None:
        self._loop, self._thread = loop, thread
        self._busy, self._ended = threading.Event(), threading.Event()
        self._calls = 0
        threading.Thread(target=self._run, name=name, daemon=True).start()

    @contextmanager
    def call(self) -> Generator[None]:
        """Look after the loop as long as the block runs in it."""
        self._calls += 1
        self._busy.set()
        try:
            yield
        finally:
            self._calls -= 1
            if not self._calls and not self._ended.is_set():
                self._busy.clear()

    def end(self) -> None:
        """Look no longer."""
        self._ended.set()
        self._busy.set()

    def _run(self) -> None:
        while self._busy.wait() and not self._ended.wait(_BETWEEN_SECONDS):
            answered = threading.Event()
            try:
                self._loop.call_soon_threadsafe(answered.set)
            except RuntimeError:  # It is closed.
                return
            if not answered.wait(MOST_SECONDS) and self._is_reading():
                interrupt(self._thread)
                answered.wait(_GIVING_UP_SECONDS)  # What was read is let go of first; a second error would disturb that.

    def _is_reading(self) -> bool:
        frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage] - documented, and there is no other way
        frame: FrameType | None = frames.get(self._thread.ident or 0)
        while frame is not None:
            if str(frame.f_globals.get("__name__")).startswith(_READING):
                return True
            frame = frame.f_back
        return False


def interrupt(thread: threading.Thread) -> None:
    """Raise `RowTooLargeError` in a thread, wherever it is."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(RowTooLargeError))
