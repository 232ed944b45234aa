"""Window functions of Trino that go through few rows for each row pass, whatever is written around them (X1, X20)."""

from __future__ import annotations

import pytest

from agentkernel_kb import KnowledgeGuardError
from agentkernel_kb.guard import check_read_only

WIDE = "RANGE BETWEEN INTERVAL '30' DAY PRECEDING AND CURRENT ROW"


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT max(x) OVER (ORDER BY d ROWS 399 PRECEDING) FROM t",
        "SELECT min(x) OVER (ORDER BY d ROWS BETWEEN 9 PRECEDING AND 9 FOLLOWING) FROM t",
        "SELECT max(x) OVER (ORDER BY d ROWS BETWEEN UNBOUNDED PRECEDING AND 9000 FOLLOWING) FROM t",
        "SELECT max(x) OVER (PARTITION BY a), array_agg(x) OVER (ORDER BY d RANGE CURRENT ROW), max(x) OVER () FROM t",
        f"SELECT sum(x) OVER (ORDER BY d {WIDE}), avg(t.x) OVER w, count(*) OVER w FROM t WINDOW w AS (ORDER BY d {WIDE})",
        f"SELECT sum(CAST(x AS double)) OVER (ORDER BY d {WIDE}) FROM (SELECT total AS x, placed AS d FROM orders)",
        f"SELECT max(x) OVER (ORDER BY d {WIDE}) FROM (SELECT d, x FROM t ORDER BY d LIMIT 10000) AS u (d, x) WHERE x > 1",
        "SELECT lag(x + 1) OVER w, nth_value(x, 9) OVER w, rank() OVER w FROM t WINDOW w AS (ORDER BY d ROWS 90000 PRECEDING)",
        "SELECT last_value(x) IGNORE NULLS OVER (ORDER BY d), lag(t.x) IGNORE NULLS OVER (ORDER BY d) FROM t",
        "SELECT first_value(nullif(x, 1)) IGNORE NULLS OVER (ORDER BY d ROWS BETWEEN 30 PRECEDING AND CURRENT ROW) FROM t",
        "SELECT last_value(x) IGNORE NULLS OVER (ORDER BY d) FROM (SELECT d, x FROM c LEFT JOIN t USING (d) LIMIT 10000)",
        "SELECT min(x) OVER (w ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING), max(x) OVER (w) FROM t WINDOW w AS (ORDER BY d)",
        "SELECT sum(rows) OVER (ORDER BY range), groups FROM t ORDER BY rows",
        "SELECT last_value(x) IGNORE NULLS OVER (ORDER BY d) FROM (VALUES (1, NULL), (2, 3)) AS t (d, x)",
        "WITH u AS (SELECT coalesce(x, lag(x) IGNORE NULLS OVER (ORDER BY d)) AS x, d FROM t) SELECT d, x FROM u",
    ],
)
def test_few_rows_for_each_row_pass(statement: str) -> None:
    check_read_only(statement, dialect="trino")


def test_the_frames_of_all_functions_count_together() -> None:
    frame = "OVER (ORDER BY d ROWS 399 PRECEDING)"
    check_read_only(f"SELECT {', '.join([f'max(x) {frame}'] * 6)} FROM t", dialect="trino")
    with pytest.raises(KnowledgeGuardError, match=r"begin at UNBOUNDED PRECEDING, span at most 400 ROWS.*LIMIT 10000"):
        check_read_only(f"SELECT {', '.join([f'max(x) {frame}'] * 7)} FROM t", dialect="trino")


@pytest.mark.parametrize(
    "source",
    [
        "(SELECT d, x FROM t LIMIT 10000) AS u CROSS JOIN v",
        "(SELECT d, x FROM t LIMIT 10000), v",
        "(SELECT d, x FROM t LIMIT 100000)",
        "(SELECT * FROM (SELECT d, x FROM t LIMIT 100) AS u, v)",
        "v WHERE d IN (SELECT d FROM t LIMIT 100)",
    ],
)
def test_a_limit_bounds_the_rows_of_its_own_source_alone(source: str) -> None:
    with pytest.raises(KnowledgeGuardError, match="whatever the time"):
        check_read_only(f"SELECT max(x) OVER (ORDER BY d {WIDE}) FROM {source}", dialect="trino")


@pytest.mark.parametrize("source", ["c", "c AS d", '"C" d', "c AS d (x, y)"])
def test_a_common_table_expression_with_a_limit_has_few_rows(source: str) -> None:
    few = f"WITH b AS (SELECT 1), c AS (SELECT d, x FROM t LIMIT 100) SELECT {{}} FROM {source}"
    check_read_only(few.format(f"max(x) OVER (ORDER BY d {WIDE})"), dialect="trino")
    if "(x" not in source:
        check_read_only(f"{few.format('*')} MATCH_RECOGNIZE (PATTERN (A B+) DEFINE B AS true)", dialect="trino")


@pytest.mark.parametrize(
    "statement",
    [
        "WITH c AS (SELECT {} FROM c LIMIT 100) SELECT * FROM c",
        "WITH c AS (SELECT d, x FROM t LIMIT 100) SELECT * FROM (WITH c AS (SELECT * FROM t) SELECT {} FROM c)",
        "WITH c AS (SELECT d, x FROM t LIMIT 100) SELECT {} FROM c, t",
        "WITH c AS (SELECT d, x FROM t LIMIT 100) SELECT {} FROM s.c",
        "WITH b AS (SELECT {} FROM c), c AS (SELECT d, x FROM t LIMIT 100) SELECT * FROM b",
        "SELECT {} FROM c WHERE d IN (WITH c AS (SELECT d FROM t LIMIT 100) SELECT d FROM c)",
        "WITH c AS (SELECT d, x FROM t LIMIT 100) SELECT d FROM t UNION ALL SELECT d FROM c ORDER BY {}",
        "WITH c AS (SELECT d, x FROM t LIMIT 100) TABLE t ORDER BY {}",
        "WITH c (d, x) AS (SELECT d, x FROM t LIMIT 100), c AS (SELECT * FROM t) SELECT {} FROM c",
    ],
)
def test_a_name_that_may_mean_more_rows_does_not(statement: str) -> None:
    with pytest.raises(KnowledgeGuardError, match="whatever the time"):
        check_read_only(statement.format(f"max(x) OVER (ORDER BY d {WIDE})"), dialect="trino")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT CAST(NULL AS bigint) AS x FROM t ORDER BY {}",
        "SELECT {} AS x FROM (SELECT nullif(d, d) AS x, d FROM t)",
        "SELECT {} AS x FROM (SELECT nullif(d, d), d FROM t) AS u (x, d)",
        "WITH u AS (SELECT nullif(d, d) x, d FROM t) SELECT {} AS x FROM u",
        "WITH u (x, d) AS (SELECT nullif(d, d), d FROM t) SELECT {} AS x FROM u",
        "WITH u (x, d) AS (SELECT x, d FROM (SELECT nullif(d, d) AS x, d FROM t)) SELECT {} AS x FROM u",
        "WITH RECURSIVE u (x, d) AS (SELECT x, d FROM t UNION ALL SELECT {} AS x, d FROM u) TABLE u",
    ],
)
def test_a_name_that_its_source_may_have_made_is_no_column(statement: str) -> None:
    with pytest.raises(KnowledgeGuardError, match="whatever the time"):
        check_read_only(statement.format("lead(x) IGNORE NULLS OVER (ORDER BY d)"), dialect="trino")


def test_so_it_is_for_row_patterns() -> None:
    matching = "MATCH_RECOGNIZE (PATTERN (A B+) DEFINE B AS true)"
    for source in ("s.c", "c CROSS JOIN t", "c, t", "t AS c"):
        with pytest.raises(KnowledgeGuardError, match="whatever the time"):
            check_read_only(f"WITH c AS (SELECT * FROM t LIMIT 100) SELECT * FROM {source} {matching}", dialect="trino")


@pytest.mark.parametrize("sketch", ["sketch", "d.sketch", '"sketch"'])
def test_a_stored_sketch_is_cast(sketch: str) -> None:
    check_read_only(f"SELECT cardinality(merge(CAST({sketch} AS HyperLogLog))) FROM daily AS d", dialect="trino")


@pytest.mark.parametrize("bounds", ["1, 1000000, 7", "start => -5, stop => 5", "start => 1, stop => 1000000000"])
def test_a_sequence_of_plain_numbers_is_a_table(bounds: str) -> None:
    check_read_only(f"SELECT * FROM TABLE(sequence({bounds}))", dialect="trino")
