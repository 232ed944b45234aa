"""Transactions that only read, each started ahead of the call that will use it, so that no call waits for the start."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import NamedTuple

from requests.adapters import HTTPAdapter

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import KnowledgeError
from agentkernel_kb.starburst.asking import Asker
from agentkernel_kb.starburst.attempt import CLEANUP_SECONDS, Attempt
from agentkernel_kb.starburst.settings import Settings

LIFETIME_SECONDS = 120.0
"""Seconds for which one is kept. Trino itself ends one that has been idle for longer than its `transaction.idle-timeout`, five
minutes by default; so it also ends the last one of an asker who never comes back."""
_MOST_ASKERS = 16


class _Ready(NamedTuple):
    transaction: str
    until: float


class ReadyTransactions:
    """At most one for each asker. One that was taken is its taker's alone.

    Args:
        settings: The server.
        connections: Where HTTP connections are taken from.
    """

    def __init__(self, settings: Settings, connections: HTTPAdapter) -> None:
        self._settings, self._connections = settings, connections
        self._lock = threading.Lock()
        self._ready: dict[Asker, _Ready] = {}  # The oldest first.
        self._starting: set[Asker] = set()
        self._is_closed = False

    def take(self, asker: Asker) -> str | None:
        """Return one that was started for this asker, `None` where there is none."""
        with self._lock:
            found = self._ready.get(asker)
            if found is None or found.until < time.monotonic():
                return None
            return self._ready.pop(asker).transaction

    def prepare(self, asker: Asker) -> None:
        """Start one for the next call of an asker unless there is one, and end those that are too many or too old.

        It waits for the server. A start that fails is no failure of anything: the next call then starts its own.
        """
        for old_asker, transaction in self._outdated():
            self.end(old_asker, transaction)
        with self._lock:
            if self._is_closed or asker in self._ready or asker in self._starting:
                return
            self._starting.add(asker)
        try:
            with suppress(KnowledgeError):
                self._keep(asker, self._attempt(asker).begin())
        finally:
            with self._lock:
                self._starting.discard(asker)

    def _outdated(self) -> list[tuple[Asker, str]]:
        now = time.monotonic()
        with self._lock:
            too_many = list(self._ready)[: max(0, len(self._ready) - _MOST_ASKERS + 1)]
            outdated = [asker for asker, ready in self._ready.items() if asker in too_many or ready.until < now]
            return [(asker, self._ready.pop(asker).transaction) for asker in outdated]

    def _keep(self, asker: Asker, transaction: str) -> None:
        with self._lock:
            if not self._is_closed:
                self._ready[asker] = _Ready(transaction, time.monotonic() + LIFETIME_SECONDS)
                return
        self.end(asker, transaction)

    def end(self, asker: Asker, transaction: str) -> None:
        """End one that is ready no more; never raises."""
        self._attempt(asker, transaction).finish()

    def _attempt(self, asker: Asker, transaction: str | None = None) -> Attempt:
        return Attempt(self._settings, self._connections, asker, Deadline(CLEANUP_SECONDS), {}, transaction)

    def close(self) -> list[tuple[Asker, str]]:
        """Start no more, and return those that are still to be ended, each with its asker."""
        with self._lock:
            self._is_closed = True
            left, self._ready = self._ready, {}
        return [(asker, ready.transaction) for asker, ready in left.items()]
