"""The fallback LIMIT (X1, X2): where it goes, and which statements it leaves alone."""

from __future__ import annotations

import pytest

from agentkernel_kb import AKConfigError, KnowledgeGuardError
from agentkernel_kb.guard import analyse_read, fallback_limit, with_limit

DIALECTS = ["duckdb", "postgres", "sqlite", "trino"]


def limited(statement: str, dialect: str) -> str:
    return fallback_limit(statement, dialect=dialect, limit=7)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT a FROM t", "SELECT a FROM t LIMIT 7"),
        ("SELECT a FROM t;", "SELECT a FROM t LIMIT 7;"),
        ("SELECT a FROM t -- LIMIT 5", "SELECT a FROM t LIMIT 7 -- LIMIT 5"),
        ("SELECT a FROM t--", "SELECT a FROM t LIMIT 7--"),
        ("SELECT a\nFROM t /* LIMIT 5 */ ;\n", "SELECT a\nFROM t LIMIT 7 /* LIMIT 5 */ ;\n"),
        ("SELECT 'LIMIT 5'", "SELECT 'LIMIT 5' LIMIT 7"),
        ("SELECT a FROM t ORDER BY a DESC", "SELECT a FROM t ORDER BY a DESC LIMIT 7"),
        ("SELECT a FROM (SELECT a FROM t LIMIT 5) AS s", "SELECT a FROM (SELECT a FROM t LIMIT 5) AS s LIMIT 7"),
        ("WITH c AS (SELECT 1 LIMIT 5) SELECT * FROM c", "WITH c AS (SELECT 1 LIMIT 5) SELECT * FROM c LIMIT 7"),
        ("SELECT 1 UNION SELECT 2", "SELECT 1 UNION SELECT 2 LIMIT 7"),
        ("SELECT a FROM t WHERE a IN (SELECT 1 LIMIT 5)", "SELECT a FROM t WHERE a IN (SELECT 1 LIMIT 5) LIMIT 7"),
    ],
)
def test_a_limit_goes_to_the_end_of_the_outermost_query(dialect: str, statement: str, expected: str) -> None:
    assert limited(statement, dialect) == expected


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT a FROM t LIMIT 5",
        "SELECT a FROM t limit 5 OFFSET 2 ; -- done",
        "SELECT 1 UNION SELECT 2 LIMIT 5",
        "WITH c AS (SELECT 1) SELECT * FROM c LIMIT 500",
        "VALUES (1), (2)",
        "EXPLAIN SELECT a FROM t",
    ],
)
def test_what_has_a_limit_or_needs_none_stays_as_it_is(dialect: str, statement: str) -> None:
    assert limited(statement, dialect) == statement


@pytest.mark.parametrize(
    ("dialect", "statement", "expected"),
    [
        ("postgres", "TABLE t", "TABLE t LIMIT 7"),
        ("postgres", "(SELECT 1)", "(SELECT 1) LIMIT 7"),
        ("postgres", "(SELECT 1 LIMIT 5)", "(SELECT 1 LIMIT 5)"),
        ("postgres", "SELECT 1 UNION (SELECT 2 LIMIT 5)", "SELECT 1 UNION (SELECT 2 LIMIT 5) LIMIT 7"),
        ("postgres", "SELECT a FROM t OFFSET 2 ROWS", "SELECT a FROM t OFFSET 2 ROWS LIMIT 7"),
        ("postgres", "SELECT a FROM t FETCH FIRST 5 ROWS WITH TIES", "SELECT a FROM t FETCH FIRST 5 ROWS WITH TIES"),
        ("postgres", "SELECT a FROM t LIMIT ALL", "SELECT a FROM t LIMIT ALL"),
        ("postgres", "SELECT $$;$$ /* /* LIMIT */ */", "SELECT $$;$$ LIMIT 7 /* /* LIMIT */ */"),
        ("postgres", "SHOW server_version", "SHOW server_version"),
        ("postgres", "SELECT 1 UNION ALL VALUES (2)", "SELECT 1 UNION ALL VALUES (2) LIMIT 7"),
        ("trino", "SELECT a FROM t OFFSET 2", "SELECT a FROM t OFFSET 2 LIMIT 7"),
        ("trino", "SELECT a FROM t OFFSET 2 FETCH NEXT ROW ONLY", "SELECT a FROM t OFFSET 2 FETCH NEXT ROW ONLY"),
        ("trino", "SHOW TABLES", "SHOW TABLES"),
        ("trino", "DESCRIBE t;", "DESCRIBE t;"),
        ("sqlite", "SELECT 1 UNION ALL VALUES (2)", "SELECT 1 UNION ALL VALUES (2)"),
        ("sqlite", "PRAGMA table_info(t)", "PRAGMA table_info(t)"),
        ("sqlite", "SELECT a FROM t /* never closed", "SELECT a FROM t LIMIT 7 /* never closed"),
        ("duckdb", "FROM t SELECT a", "FROM t SELECT a LIMIT 7"),
        ("duckdb", "SELECT a FROM t LIMIT 10%", "SELECT a FROM t LIMIT 10%"),
    ],
)
def test_each_dialect_has_its_own_order_of_clauses(dialect: str, statement: str, expected: str) -> None:
    assert limited(statement, dialect) == expected


def test_what_is_no_read_gets_no_limit_but_a_refusal() -> None:
    with pytest.raises(KnowledgeGuardError):
        limited("DELETE FROM t", "postgres")


def test_a_negative_limit_is_an_error_of_whoever_wrote_it() -> None:
    with pytest.raises(AKConfigError, match="at least 0, not -1"):
        fallback_limit("SELECT 1", dialect="postgres", limit=-1)


def test_allowed_functions_may_stand_in_what_is_limited() -> None:
    statement = "SELECT * FROM TABLE(kb.system.sheet(id => 'x'))"
    assert fallback_limit(statement, dialect="trino", limit=1, allow=["kb.system.sheet"]) == statement + " LIMIT 1"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("statement", ["SELECT a FROM t; -- LIMIT 5", "SELECT a FROM t LIMIT 5", "EXPLAIN SELECT a FROM t"])
def test_what_is_proven_already_gets_the_same_limit_without_a_second_proof(dialect: str, statement: str) -> None:
    read = analyse_read(statement, dialect=dialect)
    assert with_limit(statement, read, 7) == limited(statement, dialect)
