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

_REFUSED = {"ChromaAuthError", "AuthorizationError"}


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
    kinds = _kinds(error)
    if "TimeoutException" in kinds or "TimeoutError" in kinds:
        return KnowledgeTimeoutError(f"Chroma at {place} did not answer in time while '{subject}' tried to {doing}.")
    if "TransportError" in kinds or "ConnectionError" in kinds:
        return KnowledgeConnectionError(f"Chroma at {place} can't be reached by '{subject}'; is its server running?")
    if kinds & _REFUSED:
        return KnowledgeBackendError(f"Chroma at {place} refused the credentials of '{subject}'.")
    if "NotFoundError" in kinds:
        return KnowledgeBackendError(
            f"Chroma at {place} does not know the tenant, database or collection of '{subject}'; "
            "if it was deleted, call close() and connect() to begin a new one."
        )
    return KnowledgeBackendError(f"Chroma at {place} failed with {type(error).__name__} while '{subject}' tried to {doing}.")


def _kinds(error: BaseException) -> set[str]:
    """Return the names of an error's classes. Names, because the HTTP client is a dependency of Chroma and not of ours.

    Chroma hides a failure of the HTTP client behind a plain ValueError; then the hidden one's are meant.
    """
    hidden = error.__context__
    if type(error) is ValueError and hidden is not None and type(hidden).__module__.startswith("httpx"):
        error = hidden
    return {kind.__name__ for kind in type(error).__mro__}
