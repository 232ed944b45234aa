"""The errors of the library: one tree, so that one `except KnowledgeError` catches every failure of a knowledge base.

    KnowledgeError
    ├─ KnowledgeCapabilityError               the operation is not declared
    ├─ KnowledgePathError (ValueError)        a path leaves the store or cannot be an identity
    ├─ AKConfigError (ValueError)             wrong construction, file or map
    ├─ KnowledgeDependencyError (ImportError) an extra is missing, and named
    ├─ KnowledgeGuardError (ValueError)       a statement is not provably a read
    ├─ KnowledgeNotFoundError (LookupError)   required evidence is missing
    ├─ KnowledgeStateError (RuntimeError)     the wrong moment, such as use after close
    ├─ DocumentChangedError                   a conditional write met a document that was changed meanwhile
    ├─ KnowledgeIdentityError (PermissionError) the call acts for nobody, or for somebody the store does not take
    ├─ UnsupportedKnowledgeOperationError     a lifecycle call on a corpus that is not ours
    └─ KnowledgeBackendError                  the server or SDK failed; its error is the cause
       ├─ KnowledgeConnectionError (ConnectionError)
       ├─ KnowledgeTimeoutError (TimeoutError)
       └─ KnowledgeQueryError                 a rejected statement, which the model can fix

Finding nothing is not an error. Messages are built from fields and never hold credentials or parameter values: the router
shows the message of a `KnowledgeError` to the model.
"""

from __future__ import annotations

from typing import Literal


class KnowledgeError(Exception):
    """Any failure of a knowledge base."""


class KnowledgeCapabilityError(KnowledgeError):
    """An operation that the backend does not declare.

    Takes `(subject, operation)` or `(operation,)`. Not a `NotImplementedError`: an undeclared operation is a fact about the
    backend, and a missing implementation of an abstract method is a fault in its code.

    Attributes:
        subject: Name of the backend or store, `""` when it is not known.
        capability: The operation that was asked for.
    """

    def __init__(self, subject: str, operation: str | None = None) -> None:
        self.subject, self.capability = ("", subject) if operation is None else (subject, operation)
        who = f"'{self.subject}'" if self.subject else "This backend"
        super().__init__(f"{who} does not support {self.capability}.")

    def __reduce__(self) -> tuple[type[KnowledgeCapabilityError], tuple[str, str]]:
        return type(self), (self.subject, self.capability)


class KnowledgePathError(KnowledgeError, ValueError):
    """A path leaves its store, or cannot be an identity."""


class AKConfigError(KnowledgeError, ValueError):
    """Wrong construction: an argument, a configuration file or a semantic map."""


class KnowledgeDependencyError(KnowledgeError, ImportError):
    """An optional dependency is missing.

    Attributes:
        extra: The extra that brings it.
    """

    def __init__(self, extra: str, purpose: str) -> None:
        self.extra, self.purpose = extra, purpose
        super().__init__(f"{purpose} needs the extra '{extra}': pip install 'agentkernel-kb[{extra}]'")

    def __reduce__(self) -> tuple[type[KnowledgeDependencyError], tuple[str, str]]:
        return type(self), (self.extra, self.purpose)


class KnowledgeGuardError(KnowledgeError, ValueError):
    """A statement that is not provably a read.

    Attributes:
        part: The refused part as it stands in the statement, shortened.
        position: Character offset of that part in the statement, or `None` when it is not known.
        reason: What is wrong with it, in words.
    """

    def __init__(self, reason: str, *, part: str = "", position: int | None = None) -> None:
        self.reason, self.part, self.position = reason, part, position
        where = [part] if part else []
        if position is not None:
            where.append(f"position {position}")
        super().__init__(f"{reason} ({', '.join(where)})" if where else reason)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_guard_error, (self.reason, self.part, self.position)


def _rebuild_guard_error(reason: str, part: str, position: int | None) -> KnowledgeGuardError:
    return KnowledgeGuardError(reason, part=part, position=position)


class KnowledgeNotFoundError(KnowledgeError, LookupError):
    """Evidence that a caller required is missing."""


class KnowledgeStateError(KnowledgeError, RuntimeError):
    """A call at the wrong moment, such as use after close."""


class DocumentChangedError(KnowledgeError):
    """A conditional write or removal met a document that is not as its caller last saw it; nothing was changed.

    Attributes:
        path: Which document.
        reason: What is different, as the end of a sentence.
    """

    def __init__(self, path: str, reason: str = "was changed by somebody else") -> None:
        self.path, self.reason = path, reason
        super().__init__(f"The document {path!r} {reason}; read it again before you write it.")

    def __reduce__(self) -> tuple[type[DocumentChangedError], tuple[str, str]]:
        return type(self), (self.path, self.reason)


class KnowledgeIdentityError(KnowledgeError, PermissionError):
    """A call that acts for nobody where the backend demands somebody, or for somebody that the store does not take."""


class UnsupportedKnowledgeOperationError(KnowledgeError):
    """A lifecycle call on a corpus that this library does not own."""


class KnowledgeBackendError(KnowledgeError):
    """The server or SDK behind a backend failed; its own error is the cause."""


Unavailability = Literal["unreachable", "unauthorized", "missing", "untrusted"]
"""Why a store cannot be used: nobody answers, the login is wrong, the database is not there, its certificate does not hold."""


class KnowledgeConnectionError(KnowledgeBackendError, ConnectionError):
    """The backend cannot be reached, or does not let this application in.

    Attributes:
        state: Why. Only what is `unreachable` may be different a moment later, and is tried again.
    """

    def __init__(self, message: str = "", *, state: Unavailability = "unreachable") -> None:
        self.state: Unavailability = state
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_connection_error, (type(self), str(self), self.state)


def _rebuild_connection_error(
    kind: type[KnowledgeConnectionError], message: str, state: Unavailability
) -> KnowledgeConnectionError:
    return kind(message, state=state)


class KnowledgeTimeoutError(KnowledgeBackendError, TimeoutError):
    """The backend did not answer in time."""


class KnowledgeQueryError(KnowledgeBackendError):
    """The backend rejected a statement, in a way that whoever wrote it can fix."""
