"""Breaker: leaves a backend alone that cannot be reached, and lets one call at a time find out whether it can be again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from agentkernel_kb.errors import Unavailability

Kind = Unavailability | Literal["timeout"]
"""How a backend failed to be there."""

BreakerState = Literal["closed", "open", "half-open"]
"""`closed`: calls pass. `open`: they are answered at once. `half-open`: the next one, or the one that is out, finds out."""

Ticket = int
"""How a call went through: `PASS`, like any other, or a number of its own, as the one that finds out."""

PASS: Ticket = 0


@dataclass(frozen=True, slots=True)
class Outage:
    """What is known of a backend that is left alone.

    Attributes:
        kind: How the last call failed.
        failures: Calls that failed in a row.
        since: When the first of them did.
        next_try: From when on a call may try again; `None` while one does.
    """

    kind: Kind
    failures: int
    since: datetime
    next_try: datetime | None


class Breaker:
    """Counts the failures of one backend in a row.

    After `failures` of them it is open: no call passes for `open_seconds`. Then one call passes, the probe, and all others
    still do not until that has ended. If it fails, the breaker is open for twice as long as before, at most `max_open_seconds`;
    if it succeeds, the breaker is closed; if it ends without telling, the next call is the probe. A success of any call closes
    the breaker: a call that began before it opened knows as well as the probe that the backend answers.

    Args:
        failures: Failures in a row after which it opens, at least 1.
        open_seconds: How long it is open the first time.
        max_open_seconds: How long it is open at most.
        clock: Seconds that never go back.
        now: The time of day.

    Attributes:
        failing: Something has failed since the last success. It can be read without a lock: nobody has to ask, or to tell of a
            success, while it is false, so that a sound backend costs nothing.
    """

    def __init__(
        self,
        failures: int,
        open_seconds: float,
        max_open_seconds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._threshold = failures
        self._first_open = open_seconds
        self._longest_open = max_open_seconds
        self._clock = clock
        self._now = now
        self._lock = threading.Lock()
        self._probes = 0
        self._close()

    def _close(self) -> None:
        self.failing = False
        self._failures = 0
        self._open = False
        self._probe: Ticket = PASS
        self._open_seconds = 0.0
        self._next_try = 0.0
        self._since: datetime | None = None
        self._kind: Kind = "unreachable"

    @property
    def state(self) -> BreakerState:
        """Where it stands."""
        with self._lock:
            return self._state()

    def _state(self) -> BreakerState:
        if not self._open:
            return "closed"
        return "half-open" if self._probe or self._clock() >= self._next_try else "open"

    @property
    def outage(self) -> Outage | None:
        """What is known of the failure, `None` while the breaker is closed."""
        with self._lock:
            if not self._open or self._since is None:
                return None
            left = timedelta(seconds=self._next_try - self._clock())
            return Outage(self._kind, self._failures, self._since, None if self._probe else self._now() + left)

    def enter(self) -> Ticket | None:
        """Ask to make a call.

        Returns:
            A ticket to be handed back to `failed` or `left` where the call does not succeed; `None` where the backend is left
            alone.
        """
        with self._lock:
            if not self._open:
                return PASS
            if self._state() == "open" or self._probe:
                return None
            self._probes += 1
            self._probe = self._probes
            return self._probe

    def succeeded(self) -> None:
        """A call reached the backend."""
        with self._lock:
            self._close()

    def failed(self, ticket: Ticket, kind: Kind) -> bool:
        """A call did not reach the backend.

        Returns:
            Whether calls are stopped because of that: the breaker has opened, or stays open.
        """
        with self._lock:
            if self._open and ticket != (self._probe or None):
                return False  # It began before the breaker opened, and tells nothing new.
            self.failing = True
            self._failures += 1
            self._since = self._since or self._now()
            self._kind = kind
            opens = self._open or self._failures >= self._threshold
            if opens:
                self._open_again()
            return opens

    def _open_again(self) -> None:
        self._open, self._probe = True, PASS
        self._open_seconds = min(2 * self._open_seconds or self._first_open, self._longest_open)
        self._next_try = self._clock() + self._open_seconds

    def left(self, ticket: Ticket) -> None:
        """A call ended in a way that tells nothing of the backend."""
        with self._lock:
            if ticket == self._probe:
                self._probe = PASS
