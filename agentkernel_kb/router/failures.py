"""Every way in which a call can fail, as one sentence that a model can act on and one outcome."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

from agentkernel_kb.errors import (
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgeIdentityError,
    KnowledgePathError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.identity import current_identity
from agentkernel_kb.model import KnowledgeCapabilities, Operation
from agentkernel_kb.near import nearest
from agentkernel_kb.render import one_line
from agentkernel_kb.router.breaker import Kind, Outage
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
_NEARLY_A_MINUTE = timedelta(seconds=59, microseconds=999_999)
_WHY_NOT_THERE: dict[Kind, str] = {
    "unreachable": "can't be reached",
    "timeout": "does not answer",
    "unauthorized": "does not let this application in",
    "missing": "does not have what this application was told to open",
    "untrusted": "can't be trusted: its certificate does not hold",
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
    names = list(known)
    near = nearest(name, names)
    hint = f" Did you mean '{near}'?" if near else ""
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


def why_not_there(kind: Kind) -> str:
    """Say in what way a backend is not there, as the rest of a sentence that begins with it."""
    return _WHY_NOT_THERE[kind]


def left_alone(name: str, outage: Outage, working: list[str]) -> str:
    """Say that a backend could not be reached lately and is not asked now."""
    failures = f"{outage.failures} failure{'' if outage.failures == 1 else 's'} since {_clock(outage.since)} UTC"
    # In full minutes, so rounded up: by then a call is let through.
    until = f"next try {_clock(outage.next_try + _NEARLY_A_MINUTE)}" if outage.next_try else "a call is trying it now"
    return f"Backend '{name}' {why_not_there(outage.kind)} ({failures}, {until}). Working: {working}."


def _clock(at: datetime) -> str:
    return f"{at:%H:%M}" if at.date() == datetime.now(at.tzinfo).date() else f"{at:%Y-%m-%d %H:%M}"


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
    if isinstance(error, KnowledgeIdentityError):
        return Refusal("identity", f"Refused: {message}")
    if isinstance(error, KnowledgeTimeoutError | TimeoutError):
        return timed_out(name, operation, seconds)
    if isinstance(error, KnowledgeQueryError):
        return Refusal("rejected", f"Backend '{name}' rejected the {_written(operation)}: {message}")
    if isinstance(error, KnowledgeConnectionError | ConnectionError):
        detail = f" {message}" if isinstance(error, KnowledgeError) and message else ""
        state: Kind = error.state if isinstance(error, KnowledgeConnectionError) else "unreachable"
        then = "Try again later, or use another backend." if state == "unreachable" else "Use another backend."
        return Refusal("unavailable", f"Backend '{name}' {why_not_there(state)}.{detail} {then}")
    if isinstance(error, KnowledgeError):
        return Refusal("error", f"Backend '{name}' failed on {operation}: {message}")
    return Refusal(
        "error",
        f"Backend '{name}' failed on {operation} ({type(error).__name__}). This is not an empty result: "
        "its content is unknown. Try another way of asking, or another backend.",
    )


def message_of(error: BaseException) -> str:
    """Return the message of one of this library's errors on one line, bounded, without credentials and the acting user's name.

    Of any other error nothing.
    """
    if not isinstance(error, KnowledgeError):
        return ""
    try:
        text = _unnamed(redact(one_line(str(error)[: 20 * _MAX_MESSAGE])).strip())
    except Exception:  # noqa: BLE001 - an error that has no text is told by what it is
        return type(error).__name__
    return text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]}…"


def _unnamed(text: str) -> str:
    """Take the name of the user that a call acts for out of a store's message: it is not for the model."""
    identity = current_identity()
    return text if identity is None else re.sub(rf"(?<!\w){re.escape(identity.principal)}(?!\w)", "***", text)


def _written(operation: str) -> str:
    return "statement" if operation in ("query", "write") else operation
