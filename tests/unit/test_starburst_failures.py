"""What the errors of a Trino server mean (A13, X7)."""

from __future__ import annotations

import pickle

import pytest

from agentkernel_kb import (
    KnowledgeBackendError,
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.guard.trino import without_semicolon
from agentkernel_kb.starburst.failures import DroppedError, ServerFailure, meaning_of
from agentkernel_kb.starburst.names import parts_of, path_of, qualified, written


@pytest.mark.parametrize(
    ("name", "kind", "meaning"),
    [
        ("COLUMN_NOT_FOUND", "USER_ERROR", KnowledgeQueryError),
        ("PERMISSION_DENIED", "USER_ERROR", KnowledgeQueryError),
        ("READ_ONLY_VIOLATION", "USER_ERROR", KnowledgeGuardError),
        ("EXCEEDED_TIME_LIMIT", "INSUFFICIENT_RESOURCES", KnowledgeTimeoutError),
        ("OPTIMIZER_TIMEOUT", "INSUFFICIENT_RESOURCES", KnowledgeTimeoutError),
        ("EXCEEDED_CPU_LIMIT", "INSUFFICIENT_RESOURCES", KnowledgeTimeoutError),
        ("EXCEEDED_LOCAL_MEMORY_LIMIT", "INSUFFICIENT_RESOURCES", KnowledgeQueryError),
        ("QUERY_QUEUE_FULL", "INSUFFICIENT_RESOURCES", KnowledgeConnectionError),
        ("SERVER_STARTING_UP", "INTERNAL_ERROR", KnowledgeConnectionError),
        ("NO_NODES_AVAILABLE", "INTERNAL_ERROR", KnowledgeConnectionError),
        ("UNKNOWN_TRANSACTION", "USER_ERROR", DroppedError),
        ("ADMINISTRATIVELY_KILLED", "USER_ERROR", KnowledgeBackendError),
        ("GENERIC_INTERNAL_ERROR", "INTERNAL_ERROR", KnowledgeBackendError),
        ("JDBC_ERROR", "EXTERNAL", KnowledgeBackendError),
        ("A_NEW_ONE", "USER_ERROR", KnowledgeQueryError),
        ("", "", KnowledgeBackendError),
    ],
)
def test_each_error_of_the_server_has_its_meaning(name: str, kind: str, meaning: type[KnowledgeError]) -> None:
    assert type(meaning_of(ServerFailure(name, kind, "text"))) is meaning


def test_what_a_system_behind_a_connector_says_is_not_told() -> None:
    failure = ServerFailure("JDBC_ERROR", "EXTERNAL", "connection to jdbc:postgresql://db/?password=secret failed")
    assert str(meaning_of(failure)) == "The server failed on it (JDBC_ERROR)."


def test_the_place_in_the_statement_is_told_once_and_the_message_is_bounded() -> None:
    assert str(meaning_of(ServerFailure("X", "USER_ERROR", "bad", (2, 5)))) == "line 2:5: bad"
    assert str(meaning_of(ServerFailure("X", "USER_ERROR", "line 2:5: bad", (2, 5)))) == "line 2:5: bad"
    expected = "line 1:1: mismatched input 'x'. Expecting: 'SELECT', " + "'A', " * 500
    assert str(meaning_of(ServerFailure("SYNTAX_ERROR", "USER_ERROR", expected))) == "line 1:1: mismatched input 'x'"
    assert len(str(meaning_of(ServerFailure("X", "USER_ERROR", "y" * 10_000)))) < 700


def test_a_dropped_connection_survives_a_process_boundary() -> None:
    copied = pickle.loads(pickle.dumps(DroppedError("gone")))
    assert (type(copied), str(copied), copied.state) == (DroppedError, "gone", "unreachable")


@pytest.mark.parametrize("parts", [["a"], ["a b", "c%d", "e/f"], [" x ", "<T>", "zoë.ü", 'q"t'], ["a", "b", "100% cotton?#"]])
def test_a_path_leads_back_to_its_names(parts: list[str]) -> None:
    path = path_of(parts)
    assert parts_of(f"/{path}/") == parts
    assert "<" not in path


def test_a_name_is_quoted_where_a_statement_needs_it() -> None:
    assert (written("orders"), written("Order"), written('a"b')) == ("orders", '"Order"', '"a""b"')
    assert qualified(["a", 'b"; DROP']) == '"a"."b""; DROP"'


@pytest.mark.parametrize(
    ("statement", "sent"),
    [
        ("SELECT 1", "SELECT 1"),
        ("SELECT 1;", "SELECT 1"),
        ("SELECT ';' AS \";\" /* ; */ ; -- ;", "SELECT ';' AS \";\" /* ; */ "),
    ],
)
def test_the_semicolon_that_trino_does_not_take_is_left_out(statement: str, sent: str) -> None:
    assert without_semicolon(statement) == sent
