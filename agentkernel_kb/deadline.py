"""The moment by which a call has to be over."""

from __future__ import annotations

import time

DEFAULT_SECONDS = 30.0
"""How long a call to a store may take where nobody says."""

_MOST_SECONDS = 86_400.0


class Deadline:
    """A moment on the monotonic clock.

    Args:
        seconds: How far it lies ahead; a negative number counts as zero, and a day is the most.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = min(max(0.0, seconds), _MOST_SECONDS)
        self._at = time.monotonic() + self.seconds

    def end(self) -> None:
        """Let the moment be now: nobody waits any more for what was to be done by then."""
        self._at = min(self._at, time.monotonic())

    def left(self) -> float:
        """Return the seconds left, never less than zero."""
        return max(0.0, self._at - time.monotonic())

    def passed(self) -> bool:
        """Tell whether the moment has come."""
        return time.monotonic() >= self._at

    def within(self, seconds: float) -> Deadline:
        """Return a deadline that comes after `seconds`, or with this one if that is sooner."""
        return Deadline(min(seconds, self.left()))


def deadline_of(timeout: float | None) -> Deadline:
    """Return the deadline of a call that was given `timeout` seconds, or none."""
    return Deadline(DEFAULT_SECONDS if timeout is None else timeout)
