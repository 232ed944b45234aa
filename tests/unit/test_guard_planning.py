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


STARS = "SELECT *, * FROM {0}"
OF_ONE = "SELECT {0}.*, {0}.* FROM {0}"
JOINED = "SELECT * FROM {0} AS a CROSS JOIN {0} AS b"


@pytest.mark.parametrize("dialect", supported_dialects())
@pytest.mark.parametrize("step", [STARS, OF_ONE, JOINED])
def test_columns_that_multiply_are_refused(dialect: str, step: str) -> None:
    with pytest.raises(KnowledgeGuardError, match=r"more than 20,000 columns|more than 2,000 queries"):
        check_read_only(doubled(step, 18).replace("SELECT x FROM", "SELECT 1 FROM"), dialect=dialect)


@pytest.mark.parametrize("dialect", supported_dialects())
def test_columns_that_multiply_in_subqueries_are_refused(dialect: str) -> None:
    inner = "t"
    for level in range(18):
        inner = f"(SELECT *, * FROM {inner} AS a{level})"
    with pytest.raises(KnowledgeGuardError, match="more than 20,000 columns; name those that matter"):
        check_read_only(f"SELECT count(*) FROM {inner} AS a", dialect=dialect)


@pytest.mark.parametrize("dialect", supported_dialects())
def test_the_columns_of_a_few_joins_pass(dialect: str) -> None:
    steps = [f"c{level} AS (SELECT a.*, b.* FROM c{level - 1} AS a JOIN t AS b ON a.x = b.y)" for level in range(1, 9)]
    check_read_only(f"WITH c0 AS (SELECT * FROM t), {', '.join(steps)} SELECT count(*), c8.* FROM c8", dialect=dialect)


def nested_recursions(levels: int) -> str:
    """Return a query of recursions, each of which reads the one before in each of its steps."""
    first = "c0(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c0 WHERE n < 9)"
    steps = [
        f"c{level}(n) AS (SELECT 1 UNION ALL SELECT c{level}.n + 1 FROM c{level}, c{level - 1} WHERE c{level}.n < 9)"
        for level in range(1, levels)
    ]
    return f"WITH RECURSIVE {', '.join([first, *steps])} SELECT count(*) FROM c{levels - 1}"


def test_recursions_that_trino_writes_out_in_each_other_are_refused() -> None:
    check_read_only(nested_recursions(2), dialect="trino")
    check_read_only(nested_recursions(6), dialect="sqlite")
    with pytest.raises(KnowledgeGuardError, match="more than 2,000 queries"):
        check_read_only(nested_recursions(6), dialect="trino")
