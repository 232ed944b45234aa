"""What PostgreSQL's errors mean to whoever asked.

Sources: appendix A of PostgreSQL's manual (error codes). Why a server refuses a connection is told as text alone, which is read
in English; libpq keeps the code to itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import (
    KnowledgeBackendError,
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
    Unavailability,
)
from agentkernel_kb.render import one_line

if TYPE_CHECKING:
    import psycopg

_MAX_CHARS = 300

_REASONS: tuple[tuple[Unavailability, re.Pattern[str], str], ...] = (
    (
        "untrusted",
        re.compile(r"\bSSL\b|\bTLS\b|certificate|GSSAPI", re.IGNORECASE),
        "is reached, but its certificate or encryption is not what this application demands",
    ),
    (
        "unauthorized",
        re.compile(
            r"authentication failed|no password supplied|no pg_hba\.conf entry|role .* does not exist|not permitted to log in"
            r"|permission denied for database|authentication method|password has expired",
            re.IGNORECASE,
        ),
        "does not let this application in: the login is wrong or may not use the database",
    ),
    ("missing", re.compile(r"database .* does not exist|not currently accepting connections", re.IGNORECASE), "is not there"),
    (
        "unreachable",
        re.compile(r"too many (?:clients|connections)|remaining connection slots", re.IGNORECASE),
        "has no free connection",
    ),
    ("unreachable", re.compile(r"starting up|shutting down|recovery mode", re.IGNORECASE), "is starting or stopping"),
)

# What answers is another kind of server, as a web server is.
_OTHER_PROTOCOL = re.compile(r"invalid response to (?:SSL|GSSAPI) negotiation|expected authentication request", re.IGNORECASE)

_STATES: dict[str, Unavailability] = {"28": "unauthorized", "3D": "missing"}
_UNAVAILABLE = ("08", "57P", "53300", "25P03", "25P04", "58")
_OF_CONNECTIONS = ("08", "28", "3D", "57P", "53300", "58")
_REFUSED = ("25001", "25006", "42501")  # A transaction that only reads stays one; what the login may not do.
_CANCELLED, _LOCKED = "57014", "55P03"
_RESOURCES = {
    "53100": "The server has no room left on its disk for this statement. Aggregate or narrow it",
    "53200": "The server has no memory left for this statement. Aggregate or narrow it",
    "53400": "The statement needs more temporary files than the server allows. Aggregate or narrow it",
}
# Syntax and names, values, limits of statements, features, and what functions raise.
_FIXABLE = ("0A", "20", "21", "22", "23", "2F", "34", "39", "42", "44", "54", "55", "HV", "P0")
_UNKNOWN_NAMES = ("42703", "42P01", "42883", "42P02", "3F000")
_QUOTED = re.compile('["„«“‘](?P<quoted>[^"“»”’]+)["“»”’]')
_DOTTED = re.compile(r"\b(?P<plain>[^\W\d]\w*\.[^\W\d]\w*)\b")


def meaning(error: Exception, deadline: Deadline, place: str) -> KnowledgeError:
    """Return what an error of the driver means.

    Args:
        error: The error.
        deadline: When the call had to be over.
        place: How the database is called, for people.
    """
    import psycopg

    if not isinstance(error, psycopg.Error):
        return KnowledgeBackendError(f"The database failed ({type(error).__name__}).")
    if error.sqlstate is None:
        return _without_code(error, deadline, place)
    return _with_code(error, error.sqlstate, deadline, place)


def _without_code(error: psycopg.Error, deadline: Deadline, place: str) -> KnowledgeError:
    import psycopg

    message = str(error)
    if _OTHER_PROTOCOL.search(message):
        return KnowledgeConnectionError(f"{place} cannot be reached: what answers there is no PostgreSQL server.")
    for state, reason, words in _REASONS:
        if state != "unreachable" and reason.search(message):
            return KnowledgeConnectionError(f"{place} {words}.", state=state)
    if deadline.passed():
        return _late(deadline)
    for state, reason, words in _REASONS:
        if reason.search(message):
            return KnowledgeConnectionError(f"{place} {words}.", state=state)
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return KnowledgeConnectionError(f"{place} cannot be reached, or ended the connection.")
    if isinstance(error, psycopg.ProgrammingError | psycopg.DataError | psycopg.NotSupportedError):
        return KnowledgeQueryError(one_line(message)[:_MAX_CHARS])
    return KnowledgeBackendError(f"The database failed ({type(error).__name__}).")


def _with_code(error: psycopg.Error, code: str, deadline: Deadline, place: str) -> KnowledgeError:
    if code == _CANCELLED:
        return _late(deadline) if _is_about_over(deadline) else KnowledgeTimeoutError("The server cancelled the statement.")
    if code == _LOCKED:
        return KnowledgeTimeoutError(f"A table stayed locked by a writer for most of {deadline.seconds:g} s.")
    if _is_told_inside(error, code):
        return KnowledgeQueryError(_explained(error))
    if state := _STATES.get(code[:2]):
        words = next(words for known, _, words in _REASONS if known == state)
        return KnowledgeConnectionError(f"{place} {words}.", state=state)
    if code.startswith(_UNAVAILABLE):
        return _late(deadline) if deadline.passed() else KnowledgeConnectionError(f"{place} ended the connection.")
    if code in _REFUSED:
        return KnowledgeGuardError(f"The database refused: {_primary(error)}")
    if code in _RESOURCES:
        return KnowledgeQueryError(_RESOURCES[code])
    if code.startswith(_FIXABLE):
        return KnowledgeQueryError(_explained(error))
    return KnowledgeBackendError(f"The database failed (PostgreSQL error {code}).")


def _is_told_inside(error: psycopg.Error, code: str) -> bool:
    """Tell whether a statement has such a code of its own, of a foreign table's server or raised by a function.

    An error that ends the connection is of the severity `FATAL` or `PANIC`, in whichever language that is shown.
    """
    return code.startswith(_OF_CONNECTIONS) and error.diag.severity_nonlocalized == "ERROR"


def _is_about_over(deadline: Deadline) -> bool:
    """Tell whether the server stopped a statement because its time was out, which it is told to do a little early."""
    return deadline.left() <= max(0.5, deadline.seconds * 0.2)


def _late(deadline: Deadline) -> KnowledgeTimeoutError:
    return KnowledgeTimeoutError(f"The statement was stopped after {deadline.seconds:g} s. Narrow it.")


def _primary(error: psycopg.Error) -> str:
    return one_line(error.diag.message_primary or str(error))[:_MAX_CHARS].rstrip(". ")


def _explained(error: psycopg.Error) -> str:
    """Return PostgreSQL's message with the place in the statement, counted as the guard does, and its hint."""
    position = error.diag.statement_position
    where = f" (position {int(position) - 1})" if position and position.isdecimal() else ""
    hint = one_line(error.diag.message_hint or "")[:_MAX_CHARS].rstrip(". ")
    return f"{_primary(error)}{where}" + (f". {hint}" if hint else "")


def unknown_name(error: BaseException | None) -> str | None:
    """Return the name that a rejected statement uses and the database does not have, in whichever language it says so."""
    import psycopg

    if not isinstance(error, psycopg.Error) or error.sqlstate not in _UNKNOWN_NAMES:
        return None
    message = error.diag.message_primary or ""
    found = _QUOTED.search(message) or _DOTTED.search(message)
    return next((name for name in found.groups() if name), None) if found else None
