"""What a statement makes the engine plan is bounded, in every dialect (X1, X3)."""

from __future__ import annotations

import pytest

from agentkernel_kb import KnowledgeGuardError
from agentkernel_kb.guard import check_read_only, supported_dialects
from agentkernel_kb.guard.planning import MAX_JOINED, MAX_QUERIES

UNION = "SELECT x FROM {0} UNION ALL SELECT x FROM {0}"
JOIN = "SELECT a.x FROM {0} AS a, {0} AS b"
SCALARS = "SELECT (SELECT x FROM {0}) + (SELECT x FROM {0}) AS x"
CHOICE = "SELECT 1 AS x WHERE 1 IN (SELECT x FROM {0}) OR 2 IN (SELECT x FROM {0})"


def doubled(step: str, levels: int) -> str:
    """Return a query in which each of so many expressions names the one before twice."""
    steps = [f"c{level} AS ({step.format(f'c{level - 1}')})" for level in range(1, levels + 1)]
    return f"WITH c0 AS (SELECT 1 AS x), {', '.join(steps)} SELECT x FROM c{levels}"


@pytest.mark.parametrize("dialect", supported_dialects())
@pytest.mark.parametrize("step", [UNION, JOIN, SCALARS, CHOICE])
@pytest.mark.parametrize("levels", [12, 24, 200])
def test_expressions_that_multiply_are_refused(dialect: str, step: str, levels: int) -> None:
    reason = rf"more than {MAX_QUERIES:,} queries; use each of them once|too long for the sizes"
    with pytest.raises(KnowledgeGuardError, match=reason):
        check_read_only(doubled(step, levels), dialect=dialect)


def test_an_expression_may_multiply_behind_a_set() -> None:
    statement = doubled(UNION, 20).replace("SELECT x FROM c20", "SELECT 1 WHERE 1 IN c20")
    with pytest.raises(KnowledgeGuardError, match="more than 2,000 queries"):
        check_read_only(statement, dialect="sqlite")


def test_an_inner_expression_is_counted_too() -> None:
    with pytest.raises(KnowledgeGuardError, match="more than 2,000 queries"):
        check_read_only(f"SELECT * FROM ({doubled(JOIN, 20)}) AS inner_query", dialect="sqlite")


@pytest.mark.parametrize("dialect", supported_dialects())
@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(doubled(JOIN, 6), id="used twice"),
        pytest.param(doubled("SELECT x FROM {0}", 100), id="a long chain"),
        pytest.param(
            "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 9) SELECT a.n FROM c AS a, c AS b",
            id="recursion",
        ),
        pytest.param("SELECT 1 AS x" + " UNION ALL SELECT 2" * 300, id="a long union"),
        pytest.param("WITH t AS (SELECT * FROM t) SELECT * FROM t AS a, t AS b", id="named like its table"),
    ],
)
def test_honest_expressions_pass(dialect: str, statement: str) -> None:
    check_read_only(statement, dialect=dialect)


@pytest.mark.parametrize("dialect", supported_dialects())
@pytest.mark.parametrize("join", [" NATURAL JOIN t", " CROSS JOIN t", ", t", " JOIN t USING (a)"])
def test_the_tables_of_one_join_are_bounded(dialect: str, join: str) -> None:
    check_read_only("SELECT 1 FROM t" + join * (MAX_JOINED - 1), dialect=dialect)
    with pytest.raises(KnowledgeGuardError, match=f"joins {MAX_JOINED + 1} tables at once, more than {MAX_JOINED}"):
        check_read_only("SELECT 1 FROM t" + join * MAX_JOINED, dialect=dialect)


def test_joins_in_different_queries_do_not_add_up() -> None:
    part = "SELECT 1 FROM t" + ", t" * 20
    check_read_only(f"{part} UNION ALL {part}", dialect="sqlite")
