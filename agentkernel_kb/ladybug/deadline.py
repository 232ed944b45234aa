"""The moment by which a call has to be over."""

from __future__ import annotations

import time


class Deadline:
    """A moment on the monotonic clock.

    Args:
        seconds: How far it lies ahead; a negative number counts as zero.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = max(0.0, seconds)
        self._at = time.monotonic() + self.seconds

    def left(self) -> float:
        """Return the seconds left, never less than zero."""
        return max(0.0, self._at - time.monotonic())

    def passed(self) -> bool:
        """Tell whether the moment has come."""
        return time.monotonic() >= self._at
