"""Failures on their way from a child: which error of ours it was, what it said, and what the engine itself had said."""

from __future__ import annotations

from typing import Any, cast, get_args

from agentkernel_kb import errors
from agentkernel_kb.errors import (
    KnowledgeBackendError,
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgeQueryError,
)

_MOST_CHARS = 4_000
_KINDS = {
    kind.__name__: kind
    for kind in (
        errors.AKConfigError,
        errors.KnowledgeBackendError,
        errors.KnowledgeError,
        errors.KnowledgeQueryError,
        errors.KnowledgeStateError,
        errors.KnowledgeTimeoutError,
    )
}
_STATES = get_args(errors.Unavailability)


class EngineError(Exception):
    """What an engine in a child said, as the cause of the error that tells what it means."""


class ChildEndedError(KnowledgeQueryError):
    """A statement ended the process in which it ran."""


class NotBegunError(KnowledgeConnectionError):
    """A process ended before it began what it was asked, of which nothing was done."""

    def __init__(self, how: str) -> None:
        super().__init__(f"The process of the engine ended before it began ({how}). Nothing was done; try it again.")


def described(error: Exception) -> list[object]:
    """Return an error as it goes over the pipe: its type, what it says, and the text of its cause."""
    if isinstance(error, MemoryError):
        error = KnowledgeQueryError("The statement needs more memory than it may have. Narrow it.")
    elif not isinstance(error, KnowledgeError):
        error = KnowledgeBackendError(f"The engine failed ({type(error).__name__}).")
    cause = error.__cause__
    said: object = str(error)[:_MOST_CHARS]
    if isinstance(error, KnowledgeGuardError):
        said = [error.reason[:_MOST_CHARS], error.part[:_MOST_CHARS], error.position]
    if isinstance(error, KnowledgeConnectionError):
        said = [said, error.state]
    return [type(error).__name__, said, None if cause is None else str(cause)[:_MOST_CHARS]]


def rebuilt(description: object) -> KnowledgeError:
    """Return the error that a child described.

    Raises:
        ValueError: It is no description of an error.
    """
    if not isinstance(description, list) or len(cast("list[object]", description)) != 3:
        raise ValueError("a failure cannot be read")
    name, said, cause = cast("list[Any]", description)
    error = _error(str(name), said)
    error.__cause__ = None if cause is None else EngineError(str(cause))
    return error


def _error(name: str, said: object) -> KnowledgeError:
    if not isinstance(said, list):
        return _KINDS.get(name, KnowledgeBackendError)(str(said))
    parts = cast("list[Any]", said)
    if len(parts) == 2:
        return KnowledgeConnectionError(str(parts[0]), state=parts[1] if parts[1] in _STATES else "unreachable")
    reason, part, position = parts
    return KnowledgeGuardError(str(reason), part=str(part), position=position if isinstance(position, int) else None)
