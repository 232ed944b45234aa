"""What a tester got past the SQL guard, by kind (X1, X3): ranked searches, sizes of statements, names that only look alike."""

from __future__ import annotations

import logging
from contextlib import suppress

import pytest

from agentkernel_kb import KnowledgeGuardError
from agentkernel_kb.guard import check_read_only, supported_dialects

LONG = "'" + "a* " * 80 + "'"


@pytest.mark.parametrize(
    "function", ["highlight(f, 0, '', '')", "snippet(f, 0, '', '', '', 9)", "matchinfo(f, 'x')", "offsets(f)"]
)
def test_full_text_functions_of_unbounded_cost_are_refused(function: str) -> None:
    with pytest.raises(KnowledgeGuardError, match="This function is not known to only read"):
        check_read_only(f"SELECT {function} FROM f WHERE f MATCH 'a'", dialect="sqlite")


@pytest.mark.parametrize(
    "rank", ["SELECT bm25(f) FROM f WHERE {0}", "SELECT * FROM f WHERE {0} ORDER BY rank", "SELECT f.RANK FROM f WHERE {0}"]
)
@pytest.mark.parametrize(
    "search",
    [
        f"f MATCH {LONG}",
        "f MATCH 'a' || 'b'",
        "f MATCH replace('a', 'a', 'b')",
        "f MATCH (SELECT 'a')",
        f"body MATCH {LONG}",
        f"f = {LONG}",
        "F == replace('a', 'a', 'b')",
        "'a' || 'b' = main.f.f",
        "f IN (SELECT 'a')",
        f"f IN ({LONG})",
        "EXISTS (SELECT 1 FROM g JOIN f USING (f))",
    ],
)
def test_a_ranked_search_is_short(rank: str, search: str) -> None:
    with pytest.raises(KnowledgeGuardError, match="A search that is ranked takes one string of at most 200 characters"):
        check_read_only(rank.format(search), dialect="sqlite")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT title FROM f WHERE f MATCH 'delete OR drop' ORDER BY rank LIMIT 3",
        "SELECT bm25(f) FROM f WHERE f = 'a'",
        f"SELECT title FROM f WHERE f MATCH {LONG}",
        "SELECT rank FROM players WHERE player IN (SELECT name FROM names)",
    ],
)
def test_other_searches_pass(statement: str) -> None:
    check_read_only(statement, dialect="sqlite")


BULKY = {
    "a list": "SELECT 1 IN (" + ",".join("1" * 49_000) + ")",
    "columns": "SELECT " + ",".join(["a"] * 49_000),
    "names": "SELECT " + ",".join(['"a"'] * 20_000),
    "strings": "SELECT " + "||".join(["'a'"] * 18_000),
    "conditions": "SELECT 1 WHERE " + " AND ".join(["1"] * 15_000),
    "queries": " UNION ".join(["SELECT 1"] * 5_000),
    "brackets": "SELECT " + ",".join(["(1)"] * 20_000),
}


@pytest.mark.parametrize("dialect", supported_dialects())
@pytest.mark.parametrize("statement", [pytest.param(text, id=kind) for kind, text in BULKY.items()])
def test_the_proof_of_a_bulky_statement_is_refused_before_it_takes_long(dialect: str, statement: str) -> None:
    with pytest.raises(KnowledgeGuardError, match="The statement has more than 10,000 words and marks; shorten it"):
        check_read_only(statement, dialect=dialect)


@pytest.mark.parametrize("dialect", supported_dialects())
def test_a_long_list_and_a_long_string_pass(dialect: str) -> None:
    check_read_only("SELECT 1 IN (" + ",".join(["12345678"] * 4_900) + ")", dialect=dialect)
    check_read_only(f"SELECT '{'x' * 99_000}'", dialect=dialect)


LITERAL = "hunter2"


@pytest.mark.parametrize("dialect", supported_dialects())
@pytest.mark.parametrize(
    "statement",
    [
        "WITH x AS (SELECT '{0}-1') EXPLAIN SELECT 1",
        "SELECT '{{}}' -> '$.{0}[1e5]'",
        "SELECT json_extract('{{}}', '$[{0}-3')",
        "SELECT '{{}}' ->> '$[1e5] {0}-4'",
        "SELECT 1 FROM (ALTER SESSION {0} 'x')",
        "SELECT CAST('{0}' AS nonsense type)",
        "SELECT 1 AS {0} FROM t MATCH_RECOGNIZE ({0})",
        "SHOW {0} '{0}'",
        "SELECT date '{0}', interval '{0}' day, '{0}'::{0}",
        "SELECT * FROM t PIVOT (sum(a) FOR b IN ('{0}'))",
    ],
)
def test_no_literal_is_logged_at_any_level(dialect: str, statement: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), suppress(KnowledgeGuardError):
        check_read_only(statement.format(LITERAL), dialect=dialect)
    assert LITERAL not in caplog.text
