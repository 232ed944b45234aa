"""Every way in which a call can fail, as one sentence that a model can act on and one outcome."""

from __future__ import annotations

from collections.abc import Iterable

from agentkernel_kb.errors import (
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgePathError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.model import KnowledgeCapabilities, Operation
from agentkernel_kb.render import one_line
from agentkernel_kb.router.events import Outcome
from agentkernel_kb.router.redaction import redact
from agentkernel_kb.router.semantic_map import UnknownTokenError

_MAX_MESSAGE = 1_000
_TOOL_FOR = {
    "search": "search_kb for text",
    "fetch": "fetch_kb for known ids",
    "browse": "browse_kb for what there is",
    "write": "write_kb to store",
}


class Refusal(Exception):  # noqa: N818 - it is an answer on its way out, not an error of the program
    """The end of a call: what to tell the model, and how the call counts.

    Attributes:
        outcome: How the call ended.
        sentence: What the model reads.
    """

    def __init__(self, outcome: Outcome, sentence: str) -> None:
        super().__init__(sentence)
        self.outcome: Outcome = outcome
        self.sentence = sentence


def unknown_backend(name: str, known: Iterable[str]) -> Refusal:
    """No backend of that name is registered."""
    from difflib import get_close_matches  # Only a failure needs it.

    names = list(known)
    near = get_close_matches(name.casefold(), [other.casefold() for other in names], n=1, cutoff=0.6)
    hint = next((f" Did you mean '{other}'?" for other in names if near and other.casefold() == near[0]), "")
    return Refusal("unknown_backend", f"Unknown backend '{name}'. Available: {names}.{hint}")


def undeclared(name: str, operation: str, capable: list[str], own: KnowledgeCapabilities) -> Refusal:
    """The backend does not declare the operation."""
    sentence = f"Backend '{name}' does not support {operation}. Backends that do: {capable}."
    return Refusal("undeclared", f"{sentence} '{name}' takes: {', '.join(ways_in(own))}.")


def not_implemented(name: str, operation: str) -> Refusal:
    """The backend declares the operation and does not have it."""
    return Refusal("error", f"Backend '{name}' declares {operation} but does not implement it. Use another backend or tool.")


def ways_in(capabilities: KnowledgeCapabilities) -> list[str]:
    """Name the tools that a backend can serve, with what they take."""
    query = [f"read_kb with {one_line(capabilities.query_language or '')} statements"] if capabilities.query else []
    operations: tuple[Operation, ...] = ("search", "fetch", "browse", "write")
    return query + [_TOOL_FOR[operation] for operation in operations if capabilities.supports(operation)]


def timed_out(name: str, operation: str, seconds: float) -> Refusal:
    """No answer within the limit."""
    if operation == "write":
        then = "It may or may not have been stored: look before you write it again."
    else:
        then = "Narrow it, or try again."
    return Refusal("timeout", f"Backend '{name}' did not answer within {seconds:g} s. {then}")


def broken_contract(name: str, operation: str, what: str) -> Refusal:
    """The backend answered with something that is no list of records."""
    return Refusal("error", f"Backend '{name}' failed: its {operation} answered with {what} in place of a list of records.")


def from_exception(error: BaseException, name: str, operation: str, seconds: float) -> Refusal:
    """Turn what a backend raised into a sentence.

    The message of one of this library's errors is shown, credentials taken out; of any other only its type, as its message may
    hold anything.
    """
    message = message_of(error)
    if isinstance(error, UnknownTokenError):
        return Refusal("unknown_token", message)
    if isinstance(error, KnowledgeGuardError):
        return Refusal("refused", f"Refused: read_kb only reads. {message.rstrip('.')}.")
    if isinstance(error, KnowledgePathError):
        return Refusal("refused", f"Refused: {message}")
    if isinstance(error, KnowledgeTimeoutError | TimeoutError):
        return timed_out(name, operation, seconds)
    if isinstance(error, KnowledgeQueryError):
        return Refusal("rejected", f"Backend '{name}' rejected the {_written(operation)}: {message}")
    if isinstance(error, KnowledgeConnectionError | ConnectionError):
        detail = f" {message}" if isinstance(error, KnowledgeError) and message else ""
        return Refusal("unavailable", f"Backend '{name}' can't be reached.{detail} Try again later, or use another backend.")
    if isinstance(error, KnowledgeError):
        return Refusal("error", f"Backend '{name}' failed on {operation}: {message}")
    return Refusal(
        "error",
        f"Backend '{name}' failed on {operation} ({type(error).__name__}). This is not an empty result: "
        "its content is unknown. Try another way of asking, or another backend.",
    )


def message_of(error: BaseException) -> str:
    """Return the message of one of this library's errors on one line, bounded and without credentials; of others nothing."""
    if not isinstance(error, KnowledgeError):
        return ""
    try:
        text = redact(one_line(str(error)[: 20 * _MAX_MESSAGE])).strip()
    except Exception:  # noqa: BLE001 - an error that has no text is told by what it is
        return type(error).__name__
    return text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]}…"


def _written(operation: str) -> str:
    return "statement" if operation in ("query", "write") else operation
