"""The tree of errors: who is whose kind, which fields they carry, and that they survive a process border (A5)."""

from __future__ import annotations

import copy
import pickle

import pytest

from agentkernel_kb import errors
from agentkernel_kb.errors import (
    AKConfigError,
    DocumentChangedError,
    KnowledgeBackendError,
    KnowledgeCapabilityError,
    KnowledgeConnectionError,
    KnowledgeDependencyError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgeIdentityError,
    KnowledgeNotFoundError,
    KnowledgePathError,
    KnowledgeQueryError,
    KnowledgeStateError,
    KnowledgeTimeoutError,
    UnsupportedKnowledgeOperationError,
)

PARENTS: dict[type[KnowledgeError], tuple[type[BaseException], ...]] = {
    KnowledgeCapabilityError: (KnowledgeError,),
    KnowledgePathError: (KnowledgeError, ValueError),
    AKConfigError: (KnowledgeError, ValueError),
    KnowledgeDependencyError: (KnowledgeError, ImportError),
    KnowledgeGuardError: (KnowledgeError, ValueError),
    KnowledgeNotFoundError: (KnowledgeError, LookupError),
    KnowledgeStateError: (KnowledgeError, RuntimeError),
    DocumentChangedError: (KnowledgeError,),
    KnowledgeIdentityError: (KnowledgeError, PermissionError),
    UnsupportedKnowledgeOperationError: (KnowledgeError,),
    KnowledgeBackendError: (KnowledgeError,),
    KnowledgeConnectionError: (KnowledgeBackendError, ConnectionError),
    KnowledgeTimeoutError: (KnowledgeBackendError, TimeoutError),
    KnowledgeQueryError: (KnowledgeBackendError,),
}


@pytest.mark.parametrize("error", PARENTS, ids=lambda error: error.__name__)
def test_a5_an_error_is_of_the_kinds_that_fit(error: type[KnowledgeError]) -> None:
    assert error.__bases__ == PARENTS[error]


def test_the_tree_is_complete() -> None:
    defined = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, KnowledgeError)}
    assert defined == {KnowledgeError, *PARENTS}


def test_the_tree_is_drawn_in_the_modules_docstring() -> None:
    assert all(error.__name__ in (errors.__doc__ or "") for error in PARENTS)


def test_a5_an_undeclared_operation_is_not_an_unimplemented_one() -> None:
    assert not issubclass(KnowledgeCapabilityError, NotImplementedError)


def test_a5_an_undeclared_operation_names_backend_and_operation() -> None:
    error = KnowledgeCapabilityError("lake", "write")
    assert (error.subject, error.capability, str(error)) == ("lake", "write", "'lake' does not support write.")


def test_an_undeclared_operation_may_come_without_a_backend() -> None:
    error = KnowledgeCapabilityError("write")
    assert (error.subject, error.capability, str(error)) == ("", "write", "This backend does not support write.")


def test_a_missing_extra_says_how_to_install_it() -> None:
    error = KnowledgeDependencyError("neo4j", "Neo4jManager")
    assert (error.extra, error.purpose) == ("neo4j", "Neo4jManager")
    assert str(error) == "Neo4jManager needs the extra 'neo4j': pip install 'agentkernel-kb[neo4j]'"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (KnowledgeGuardError("it deletes"), "it deletes"),
        (KnowledgeGuardError("it deletes", part="DELETE"), "it deletes (DELETE)"),
        (KnowledgeGuardError("it deletes", part="DELETE", position=0), "it deletes (DELETE, position 0)"),
        (KnowledgeGuardError("it deletes", position=4), "it deletes (position 4)"),
    ],
)
def test_a_refused_statement_says_which_part_is_at_fault(error: KnowledgeGuardError, message: str) -> None:
    assert str(error) == message


@pytest.mark.parametrize(
    "error",
    [
        KnowledgeCapabilityError("lake", "write"),
        KnowledgeCapabilityError("write"),
        KnowledgeDependencyError("sql", "SQLManager"),
        KnowledgeGuardError("it deletes", part="DELETE", position=0),
        DocumentChangedError("a.md", "is gone"),
        KnowledgeTimeoutError("too late"),
        AKConfigError("wrong"),
    ],
    ids=repr,
)
def test_an_error_survives_copying_and_pickling(error: KnowledgeError) -> None:
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is type(error)
        assert (str(twin), vars(twin)) == (str(error), vars(error))
