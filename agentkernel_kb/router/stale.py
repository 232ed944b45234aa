"""What a backend last answered to a call, kept for the time when it cannot be reached: by identity, and within bounds."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import cast

from agentkernel_kb.identity import Identity, current_identity
from agentkernel_kb.router.answer import Answer
from agentkernel_kb.router.plan import Plan

ROOM_FOR_LABEL = 250
"""Characters of an answer that are left for the line that says how old it is."""

_Key = tuple[Identity | None, str, str, tuple[object, ...], int, str, tuple[str, ...], bool]


@dataclass(frozen=True, slots=True)
class _Kept:
    answer: Answer
    at: float
    told_at: datetime
    size: int


class StaleAnswers:
    """The last good answer to each of the latest calls.

    An answer belongs to the identity that it was given to: principal, tenant and roles. Nobody else is shown it.

    Args:
        seconds: How old an answer may be that is given again.
        entries: Most answers that are kept; the one used longest ago goes first.
        characters: Most characters of all of them, the calls' own included.
        clock: Seconds that never go back.
    """

    def __init__(self, seconds: float, entries: int, characters: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._entries = entries
        self._characters = characters
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._size = 0

    def keep(self, plan: Plan, answer: Answer, longest: int) -> None:
        """Remember the answer to a call, unless there would be no room to say that it is an old one.

        Args:
            plan: The call, a read.
            answer: A good answer to it.
            longest: Most characters of an answer.
        """
        key = _key(plan)
        size = answer.size + _key_size(key)
        with self._lock:
            self._drop(key)
            if len(answer.text) > longest - ROOM_FOR_LABEL or size > self._characters:
                return
            self._kept[key] = _Kept(answer, self._clock(), datetime.now(UTC), size)
            self._size += size
            while len(self._kept) > self._entries or self._size > self._characters:
                self._drop(next(iter(self._kept)))

    def find(self, plan: Plan, why: str) -> Answer | None:
        """Return the last answer to the same call of the same identity, labelled as an old one; `None` where there is none.

        Args:
            plan: The call.
            why: What is wrong with the backend, as the rest of a sentence that begins with it.
        """
        key = _key(plan)
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return None
            age = self._clock() - kept.at
            if age > self._seconds:
                self._drop(key)
                return None
            self._kept.move_to_end(key)
        label = f"Stale: backend '{plan.target.name}' {why}; this is what it answered at {kept.told_at:%H:%M:%S} UTC, "
        return replace(kept.answer, text=f"{label}{age:.0f} s ago.\n{kept.answer.text}", outcome="stale")

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._size = 0

    def _drop(self, key: _Key) -> None:
        dropped = self._kept.pop(key, None)
        if dropped is not None:
            self._size -= dropped.size


def _key(plan: Plan) -> _Key:
    arguments = tuple(_hashable(argument) for argument in plan.positional)
    return (
        current_identity(),
        plan.target.name,
        plan.operation,
        arguments,
        plan.limit,
        plan.bounded_by,
        plan.allow,
        plan.as_hits,
    )


def _hashable(argument: object) -> object:
    return tuple(cast("list[str]", argument)) if isinstance(argument, list) else argument


def _key_size(key: _Key) -> int:
    return sum(map(_length, key[3]))


def _length(argument: object) -> int:
    return sum(map(len, cast("tuple[str, ...]", argument))) if isinstance(argument, tuple) else len(str(argument))
