"""Bounds of the guard on what one expression of Trino can make, and on how long it may take (X1, X20)."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict, cast

import pytest
import yaml
from corpora.runner import CORPORA

from agentkernel_kb import KnowledgeGuardError
from agentkernel_kb.guard import check_read_only
from agentkernel_kb.guard import trino_kinds as kinds
from agentkernel_kb.guard.trino_functions import TRINO_FUNCTIONS


class Expression(TypedDict):
    """A statement that would harm the server, and the part of it that a refusal names."""

    statement: str
    part: str


EXPRESSIONS = cast("list[Expression]", yaml.safe_load((Path(CORPORA) / "trino.expressions.yaml").read_text(encoding="utf-8")))
BOUNDS = (
    "bytes are the most",
    "steps for one row",
    "plain number",
    "plain string",
    "grows with every",
    "without Unicode escapes",
    "works through its rows whatever the time",
    "for each row, whatever the time",
    "A sketch is cast from a column of a table",
    "takes plain numbers between",
    "a row can have more than 5,000,000 bytes",
)


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=lambda expression: expression["statement"][:80])
def test_an_expression_that_would_harm_the_server_is_refused_for_the_part_that_does(expression: Expression) -> None:
    with pytest.raises(KnowledgeGuardError) as refusal:
        check_read_only(expression["statement"], dialect="trino")
    assert refusal.value.part == expression["part"]
    assert any(bound in refusal.value.reason for bound in (*BOUNDS, "steps once counts and PERMUTE"))


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "SELECT rpad('a', 900000)",
            "This can make a value of 900,000 bytes, where 100,000 bytes are the most; make it shorter",
        ),
        ("SELECT rpad(name, id) FROM t", "The length has to be a plain number here, or least(…, 1000) (rpad, position 7)"),
        ("SELECT format(name) FROM t", "The template has to be a plain string, so that its widths can be read (format"),
        (
            "SELECT any_match(sequence(1, 9999), x -> any_match(sequence(1, 9999), y -> x = y))",
            "more than 60,000 steps for one row; use rows (UNNEST) in place of lambdas inside each other (any_match, position",
        ),
        ("SELECT numeric_histogram(1000000000, a) FROM t", "How many values this keeps has to be a plain number up to 10,000"),
        ("SELECT reduce_agg(a, '', (s, x) -> s || x, (s, x) -> s) FROM t", "keep a number, or use array_agg or listagg"),
        (
            "SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A B+) DEFINE B AS true)",
            "at most 500, as in FROM (SELECT … LIMIT 500) MATCH_RECOGNIZE (…)",
        ),
        (
            "SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A B{1,19}) DEFINE B AS true)",
            "at most 5,000, as in FROM (SELECT … LIMIT 5000) MATCH_RECOGNIZE (…)",
        ),
    ],
)
def test_a_refusal_says_what_would_be_accepted(statement: str, message: str) -> None:
    with pytest.raises(KnowledgeGuardError) as refusal:
        check_read_only(statement, dialect="trino")
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT rpad(name, least(id * 2, 1000)) FROM t",
        "SELECT rpad('a', 100000)",
        "SELECT *, " + ", ".join(f"coalesce(x, c{number}) AS d{number}" for number in range(900)) + " FROM t",
        " UNION ALL ".join(["SELECT rpad('x', 1500, 'y') AS x, * FROM t"] * 200),
        "SELECT * FROM (SELECT * FROM t LIMIT 500) AS x MATCH_RECOGNIZE (PATTERN ((B | C)+ A) DEFINE A AS true) AS m",
        "SELECT * FROM (SELECT * FROM t LIMIT 5000) MATCH_RECOGNIZE (PATTERN (A B{1,19}) DEFINE B AS true)",
        "SELECT reduce(sequence(1, 1000), 0, (s, x) -> s + x * s, s -> s)",
        "SELECT reduce_agg(a, 0, (s, x) -> s + x, (s, x) -> s + x) FROM t",
        "SELECT cardinality(filter(sequence(a, b, INTERVAL '1' DAY), d -> day_of_week(d) NOT IN (6, 7))) FROM t",
        "SELECT x || x AS x FROM (SELECT x || x AS x FROM (SELECT x || x AS x FROM (SELECT x || x AS x FROM t)))",
        "WITH RECURSIVE c (id, path) AS (SELECT id, CAST(name AS varchar) FROM t WHERE up IS NULL "
        "UNION ALL SELECT t.id, c.path || ' > ' || t.name FROM t JOIN c ON t.up = c.id) SELECT path FROM c",
        "WITH RECURSIVE c (name, path) AS (SELECT name, name FROM t "
        "UNION ALL SELECT u.name, c.path || ' > ' || u.name FROM t AS u JOIN c ON u.up = c.name) TABLE c",
        "SELECT CASE WHEN a > b THEN a || b ELSE concat(b, a) END || name FROM t",
        "SELECT * FROM t WHERE id IN (" + ", ".join(map(str, range(3_000))) + ")",
        "SELECT " + ", ".join(f"upper(trim(c{number})) AS c{number}" for number in range(100)) + " FROM t",
    ],
)
def test_what_stays_small_passes(statement: str) -> None:
    check_read_only(statement, dialect="trino")


def test_every_function_that_may_be_called_is_of_one_kind() -> None:
    gathered = kinds.GATHERED | kinds.SKETCHED
    groups = (kinds.SMALL, kinds.ONE, kinds.ELEMENT, kinds.ALL, gathered, kinds.PIECES, kinds.COMPARED, kinds.OWN)
    listed = sorted(name for group in (*groups, kinds.TIMES) for name in group)
    assert listed == sorted(TRINO_FUNCTIONS)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT " + "x || " * 3_000 + "x",
        "SELECT " + "CASE WHEN a THEN " * 300 + "1" + " END" * 300,
        "WITH a0 AS (SELECT 'a' AS x)"
        + "".join(f", a{n} AS (SELECT x || 'a' AS x FROM a{n - 1})" for n in range(1, 600))
        + " TABLE a599",
        "SELECT " + "reduce(a, 0, (s, x) -> " * 20 + "s" + ", s -> s)" * 20,
    ],
)
def test_a_statement_of_any_size_is_decided(statement: str) -> None:
    try:
        check_read_only(statement, dialect="trino")
    except KnowledgeGuardError as refusal:
        assert refusal.reason  # noqa: PT017 - accepting it is as good an answer
