"""Chroma's failures in the words of the contract: by kind, without the text of the SDK's error, which may hold values."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from agentkernel_kb.errors import (
    KnowledgeBackendError,
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgeTimeoutError,
)

_STATUS_OF = {"ChromaAuthError": 401, "AuthorizationError": 403, "NotFoundError": 404}
_NOT_LET_IN = (401, 403, 407)
_DEEPEST = 10
_NOBODY_BEHIND = (502, 503, 504)  # A proxy answers, and the server behind it does not.


@contextmanager
def translated(subject: str, place: str, doing: str) -> Generator[None]:
    """Turn whatever Chroma raises inside into an error of the contract, with Chroma's own as its cause.

    Args:
        subject: Name of the backend.
        place: Where its Chroma is, without credentials.
        doing: What was tried, as an infinitive.
    """
    try:
        yield
    except KnowledgeError:
        raise
    except Exception as error:  # The SDK raises its own tree, the HTTP client's, ValueError and what its core panics with.
        raise translate(error, subject, place, doing) from error


def translate(error: Exception, subject: str, place: str, doing: str) -> KnowledgeError:
    """Return the error of the contract for one of Chroma or of its HTTP client."""
    meant = _meant(error)
    kinds = {kind.__name__ for one in meant for kind in type(one).__mro__}
    status = _status(meant)
    if "TimeoutException" in kinds or "TimeoutError" in kinds:
        return KnowledgeTimeoutError(f"Chroma at {place} did not answer in time while '{subject}' tried to {doing}.")
    if "SSLCertVerificationError" in kinds:
        return KnowledgeConnectionError(
            f"Chroma at {place} has a certificate that does not hold for '{subject}'.", state="untrusted"
        )
    if "TransportError" in kinds or "ConnectionError" in kinds or status in _NOBODY_BEHIND:
        return KnowledgeConnectionError(f"Chroma at {place} can't be reached by '{subject}'; is its server running?")
    if status in _NOT_LET_IN:
        return KnowledgeConnectionError(f"Chroma at {place} refused the credentials of '{subject}'.", state="unauthorized")
    if status == 404:
        return KnowledgeConnectionError(
            f"Chroma at {place} does not know the tenant, database or collection of '{subject}'; "
            "if it was deleted, call close() and connect() to begin a new one.",
            state="missing",
        )
    return KnowledgeBackendError(f"Chroma at {place} failed with {type(error).__name__} while '{subject}' tried to {doing}.")


def _meant(error: BaseException) -> list[BaseException]:
    """Return an error and what it hides: Chroma wraps failures of its HTTP client into plain ones, and that those of sockets.

    By name and not by class, because the HTTP client is a dependency of Chroma and not of ours.
    """
    chain = [error]
    while len(chain) < _DEEPEST and (hidden := _hidden(chain[-1])) is not None:
        chain.append(hidden)
    return chain


def _hidden(error: BaseException) -> BaseException | None:
    """Return what an error was raised from, but not what the application was dealing with when it called."""
    context = error.__context__
    if error.__cause__ is not None or _is_of_client(error):
        return error.__cause__ or context
    wraps = type(error) in (ValueError, Exception) and (type(context) is Exception or _is_of_client(context))
    return context if wraps else None


def _is_of_client(error: BaseException | None) -> bool:
    return type(error).__module__.startswith(("httpx", "httpcore"))


def _status(meant: list[BaseException]) -> int | None:
    """Return the HTTP status by which a server, or a proxy in front of it, refused."""
    for error in meant:
        status: object = _STATUS_OF.get(type(error).__name__)
        status = status or getattr(getattr(error, "response", None), "status_code", None)
        if isinstance(status, int):
            return status
    return None
