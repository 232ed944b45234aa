"""What is told about a tool call once it is over."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

Outcome = Literal[
    "ok",
    "empty",
    "partial",
    "stale",
    "bad_argument",
    "unknown_backend",
    "undeclared",
    "unknown_token",
    "refused",
    "identity",
    "timeout",
    "unavailable",
    "rejected",
    "error",
    "closed",
    "cancelled",
]
"""How a call ended.

`ok`: everything asked for. `empty`: nothing found. `partial`: something was left out, and the answer says what. `stale`: the
backend cannot be reached or did not answer in time, and the answer is an older one, which says so. The others are failures,
each with a sentence of its own: an argument that cannot be understood, a name that is not registered, an operation that is not
declared, a placeholder that is not known, a statement that is not a read or something that the agent may not do, a call that
acts for nobody or for somebody that the store does not take, no answer in time, a backend that cannot be reached (`attempts` is
0 where it was not asked, because it could not be lately), a statement that the store rejected, any other failure of the
backend, and a router that is closed.
`cancelled`: the caller gave up, so that there is no answer.
"""

_LOG = logging.getLogger("agentkernel_kb.router")
_HEARD: ContextVar[list[ToolEvent] | None] = ContextVar("agentkernel_kb_heard", default=None)


@dataclass(frozen=True, slots=True)
class ToolEvent:
    """One tool call, without anything confidential: no text, no parameters, nobody's name.

    Attributes:
        tool: Name of the tool.
        backend: Name of the backend, `""` for a tool that asks all of them or a name that is not registered.
        operation: The operation that ran: search, query, fetch, browse, write, schema or describe.
        outcome: How the call ended.
        rows: Records in the answer.
        characters: Length of the answer.
        milliseconds: Time from the call to the answer.
        attempts: How often the backend was asked: 0 for a call that did not get that far, more than 1 for a read that was
            repeated because nobody answered.
    """

    tool: str
    backend: str
    operation: str
    outcome: Outcome
    rows: int
    characters: int
    milliseconds: float
    attempts: int = 0


@contextmanager
def heard() -> Generator[list[ToolEvent]]:
    """Hear of the calls that end inside the block, in this task or thread, to tell whoever asked how they ended."""
    events: list[ToolEvent] = []
    token = _HEARD.set(events)
    try:
        yield events
    finally:
        _HEARD.reset(token)


def emit(event: ToolEvent, listener: Callable[[ToolEvent], object] | None) -> None:
    """Log an event and hand it to the listener, whose failure is logged and goes no further."""
    _LOG.debug("%s", event)
    if (events := _HEARD.get()) is not None:
        events.append(event)
    if listener is None:
        return
    try:
        listener(event)
    except Exception:  # noqa: BLE001 - an observer must not break the call that it observes
        _LOG.warning("on_event failed for a call of %s", event.tool, exc_info=_LOG.isEnabledFor(logging.DEBUG))
