"""What the errors of a server mean, as a table; what it says about itself or about others is left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from agentkernel_kb.errors import (
    KnowledgeBackendError,
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgeIdentityError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.render import one_line

_MAX_MESSAGE = 600
_HAS_POSITION = re.compile(r"line \d+:\d+: ")
# What the parser expected instead may be a hundred words long.
_EXPECTED = re.compile(r"\. Expecting: .*", re.DOTALL)


class DroppedError(KnowledgeConnectionError):
    """The connection broke, or the server forgot the query, as after a restart: the same call may succeed at once."""


class ServerFailure(NamedTuple):
    """An error of the server.

    Attributes:
        name: Its name, such as `TABLE_NOT_FOUND`.
        kind: `USER_ERROR`, `INTERNAL_ERROR`, `INSUFFICIENT_RESOURCES` or `EXTERNAL`.
        message: Its text.
        location: Line and column in the statement, where it has a place there.
    """

    name: str
    kind: str
    message: str
    location: tuple[int, int] | None = None

    @property
    def sentence(self) -> str:
        """The text on one line, with the place, bounded."""
        text = _EXPECTED.sub("", one_line(self.message[: 10 * _MAX_MESSAGE])).strip()
        if self.location and not _HAS_POSITION.match(text):
            text = f"line {self.location[0]}:{self.location[1]}: {text}"
        return text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]}…"


def _rejected(failure: ServerFailure) -> KnowledgeError:
    return KnowledgeQueryError(failure.sentence)


def _refused(failure: ServerFailure) -> KnowledgeError:
    return KnowledgeGuardError(f"The server runs it in a read-only transaction: {failure.sentence}")


def _out_of_time(failure: ServerFailure) -> KnowledgeError:
    return KnowledgeTimeoutError("The server stopped the query: its time was out.")


def _too_much(failure: ServerFailure) -> KnowledgeError:
    return KnowledgeQueryError(f"The statement needs more than the server gives to one ({failure.name}): narrow it")


def _not_ready(failure: ServerFailure) -> KnowledgeError:
    return KnowledgeConnectionError(f"The server takes no queries at the moment ({failure.name}).")


def _cancelled(failure: ServerFailure) -> KnowledgeError:
    return KnowledgeBackendError(f"The query was stopped on the server ({failure.name}).")


def _lost(failure: ServerFailure) -> KnowledgeError:
    return DroppedError(f"The server has lost the query ({failure.name}).")


# By the error's name; see "StandardErrorCode" in Trino's sources.
_BY_NAME: Mapping[str, Callable[[ServerFailure], KnowledgeError]] = {
    "ABANDONED_QUERY": _lost,
    "ADMINISTRATIVELY_KILLED": _cancelled,
    "ADMINISTRATIVELY_PREEMPTED": _cancelled,
    "CLUSTER_OUT_OF_MEMORY": _too_much,
    "EXCEEDED_CPU_LIMIT": _out_of_time,
    "EXCEEDED_TIME_LIMIT": _out_of_time,
    "NO_NODES_AVAILABLE": _not_ready,
    "OPTIMIZER_TIMEOUT": _out_of_time,
    "PERMISSION_DENIED": _rejected,
    "QUERY_QUEUE_FULL": _not_ready,
    "READ_ONLY_VIOLATION": _refused,
    "SERVER_SHUTTING_DOWN": _not_ready,
    "SERVER_STARTING_UP": _not_ready,
    "TRANSACTION_ALREADY_ABORTED": _lost,
    "UNKNOWN_TRANSACTION": _lost,
    "USER_CANCELED": _cancelled,
}
_BY_KIND: Mapping[str, Callable[[ServerFailure], KnowledgeError]] = {
    "INSUFFICIENT_RESOURCES": _too_much,
    "USER_ERROR": _rejected,
}


def meaning_of(failure: ServerFailure) -> KnowledgeError:
    """Return what an error of the server is to whoever asked.

    Of internal errors and those of a system behind a connector only the name is told: their text may hold addresses and more.
    """
    found = _BY_NAME.get(failure.name) or _BY_KIND.get(failure.kind)
    return found(failure) if found else KnowledgeBackendError(f"The server failed on it ({failure.name or 'no name given'}).")


def failure_of(error: Any) -> ServerFailure:
    """Return what a `TrinoQueryError` says."""
    return ServerFailure(
        str(error.error_name or ""), str(error.error_type or ""), str(error.message or ""), error.error_location
    )


def failure_in(error: BaseException) -> ServerFailure:
    """Return what the server said that led to an error of ours; an empty failure where it said nothing."""
    cause = error.__cause__
    return failure_of(cause) if hasattr(cause, "error_name") else ServerFailure("", "", "")


_BUSY = frozenset([429, 502, 503, 504])


def meaning_of_status(status: int, address: str, *, acts_for: str | None, is_query: bool) -> KnowledgeError | None:
    """Return what the status of a response means, `None` where it is a good one.

    Args:
        status: The HTTP status.
        address: Host and port, for the message.
        acts_for: The user that the session acts for in place of its own, if there is one.
        is_query: A query that the server knew was asked about, rather than a new one sent.
    """
    if status < 400:
        return None
    if status == 401:
        return KnowledgeConnectionError(f"The server {address} does not accept the login.", state="unauthorized")
    if status == 403 and acts_for is not None:
        return KnowledgeIdentityError(f"The server {address} does not let this application act for '{acts_for}'.")
    if status == 403:
        return KnowledgeConnectionError(f"The server {address} does not let this user in.", state="unauthorized")
    if status in _BUSY:
        return KnowledgeConnectionError(f"The server {address} is busy or not ready (HTTP {status}).")
    if is_query and status in (404, 410):
        return DroppedError(f"The server {address} no longer knows the query (HTTP {status}).")
    if status in (404, 405):
        return KnowledgeConnectionError(f"There is no Trino at {address} (HTTP {status}).", state="missing")
    return KnowledgeBackendError(f"The server {address} answered with HTTP {status}.")
