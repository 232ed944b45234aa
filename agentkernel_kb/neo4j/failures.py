"""What the failures of Neo4j and its driver mean, in words that hold no password and no parameter value."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from typing import Any

from agentkernel_kb.errors import (
    KnowledgeBackendError,
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgeIdentityError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.graph_writes import without_values
from agentkernel_kb.neo4j.arguments import Scope, Target
from agentkernel_kb.neo4j.watch import RowTooLargeError
from agentkernel_kb.render import one_line

_MAX_CHARS = 300
_PLACE = re.compile(r"\s*\(line \d+, column \d+ \(offset: \d+\)\)")
_CONSTRAINED = re.compile(r"with (?:label|type) `[^`]*` and propert(?:y|ies) (?:`[^`]*`(?:, )?)+", re.DOTALL)
_NO_TLS = "BoltSecurityError"
"""What the driver raises, and does not export, where TLS cannot be agreed on."""
_TIMED_OUT = ("TransactionTimedOut", "LockClientStopped")
_ENDED = ("Terminated", "TransactionTerminated")
_TOLD = ("SyntaxError", "SemanticError", "ParameterMissing", "ProcedureNotFound", "EntityNotFound")
"""Titles of failures whose message is about the statement's text and never about a value that was bound to it."""


def translated(error: Exception, target: Target, scope: Scope, parameters: Mapping[str, Any] | None = None) -> KnowledgeError:
    """Return what a failure of the server or the driver means.

    Args:
        error: The failure.
        target: The server.
        scope: What the call ran as.
        parameters: What was bound to the statement; where there is anything, less of the server's message is told.
    """
    from neo4j.exceptions import DriverError, Neo4jError

    if isinstance(error, KnowledgeError):
        return error
    if isinstance(error, Neo4jError):
        return _of_server(error, target, scope, parameters or {})
    if isinstance(error, DriverError | OSError):
        return _of_driver(error, target)
    if isinstance(error, RowTooLargeError):
        return KnowledgeQueryError("A row is too large to be read. Return less in one row, or aggregate it.")
    if isinstance(error, RecursionError):
        return KnowledgeQueryError(f"A {'parameter' if parameters else 'value'} is nested too deeply for the driver of Neo4j.")
    if isinstance(error, TypeError | ValueError | OverflowError):  # Its text may hold the value.
        return KnowledgeQueryError(f"A parameter has a value that Neo4j does not take ({type(error).__name__}).")
    return KnowledgeBackendError(f"The driver of Neo4j failed ({type(error).__name__}).")


def is_safe_to_repeat(error: BaseException) -> bool:
    """Tell whether the driver calls it safe to repeat the transaction that failed so; a lost answer to a commit is not."""
    from neo4j.exceptions import DriverError, Neo4jError

    return isinstance(error, Neo4jError | DriverError) and error.is_retryable()


def _of_driver(error: Exception, target: Target) -> KnowledgeError:
    from neo4j.exceptions import (
        ConfigurationError,
        ConnectionPoolError,
        IncompleteCommit,
        ResultError,
        TransactionError,
        UnsupportedServerProduct,
    )

    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(error)):
        return KnowledgeConnectionError(f"The certificate of Neo4j at {target.place} does not hold.", state="untrusted")
    if any(isinstance(cause, ssl.SSLError) or type(cause).__name__ == _NO_TLS for cause in _causes(error)):
        return KnowledgeConnectionError(f"Neo4j at {target.place} does not speak TLS as it should.", state="untrusted")
    if isinstance(error, IncompleteCommit):
        return KnowledgeConnectionError(f"Neo4j at {target.place} was lost while it stored; whether it did is not known.")
    if isinstance(error, ConnectionPoolError):
        return KnowledgeConnectionError(f"All connections to Neo4j at {target.place} are in use.")
    if isinstance(error, UnsupportedServerProduct | ConfigurationError):
        return KnowledgeConnectionError(f"What answers at {target.place} is no Neo4j server that this driver knows.")
    if isinstance(error, TransactionError | ResultError) and (cause := error.__cause__) is not None:
        return translated(cause, target, Scope(None, None)) if isinstance(cause, Exception) else KnowledgeBackendError()
    return KnowledgeConnectionError(f"Neo4j at {target.place} cannot be reached.")


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def _of_server(error: Any, target: Target, scope: Scope, parameters: Mapping[str, Any]) -> KnowledgeError:
    code = str(error.code or "")
    _, _, category, title = ([*code.split("."), "", "", "", ""])[:4]
    message = _first_line(error.message)
    if title.startswith(_TIMED_OUT):
        return KnowledgeTimeoutError("Neo4j stopped the statement: time was out.")
    if title in _ENDED:
        return KnowledgeTimeoutError("Neo4j stopped the statement.")
    if category == "Database" or title == "DatabaseNotFound":
        return _of_database(title, target, scope)
    if title == "Forbidden":
        return KnowledgeQueryError("The user may not do this on the server.")
    if category == "Security":
        return KnowledgeConnectionError(f"Neo4j at {target.place} does not let the user in.", state="unauthorized")
    if "mpersonat" in message:
        return KnowledgeIdentityError(
            f"Neo4j at {target.place} takes no impersonation; its Enterprise edition does, for a user with that right."
        )
    if title == "AccessMode":
        return KnowledgeGuardError("The server found that this statement writes, in a transaction that only reads")
    if code.startswith("Neo.TransientError"):
        return _of_moment(title, target)
    if code == "Neo.DatabaseError.Statement.ExecutionFailed":  # A number out of range, say: the statement's own fault.
        return KnowledgeQueryError(_told(title, message, parameters))
    if code.startswith("Neo.DatabaseError"):
        return KnowledgeBackendError(f"Neo4j failed ({title}).")
    if category == "Cluster":
        return KnowledgeConnectionError(f"Neo4j at {target.place} is changing its leader.")
    return KnowledgeQueryError(_told(title, message, parameters))


def _of_database(title: str, target: Target, scope: Scope) -> KnowledgeError:
    if title == "DatabaseUnavailable":
        return KnowledgeConnectionError(f"The database of Neo4j at {target.place} is not ready.")
    name = one_line(scope.database or "")[:64]
    return KnowledgeConnectionError(
        f"Neo4j at {target.place} has no database {name!r}. Without database= the user's home database is taken.",
        state="missing",
    )


def _of_moment(title: str, target: Target) -> KnowledgeError:
    if "Memory" in title:
        return KnowledgeQueryError("The statement needs more memory than the server gives. Narrow it.")
    return KnowledgeConnectionError(f"Neo4j at {target.place} cannot do this at the moment ({title}).")


def _told(title: str, message: str, parameters: Mapping[str, Any]) -> str:
    if not parameters:
        return message or title
    if title == "ConstraintValidationFailed":
        named = _CONSTRAINED.search(message)
        return f"A constraint forbids it{f': there is one already {named[0].strip()}' if named else ''}."
    if title in _TOLD and "regex" not in message.lower():  # Where it is wrong tells how long the value is.
        return without_values(message, parameters)
    return f"Neo4j rejected the statement or a value that is bound to it ({title})."


def _first_line(message: object) -> str:
    lines = str(message or "").strip().splitlines()
    return one_line(_PLACE.sub("", lines[0]))[:_MAX_CHARS] if lines else ""
