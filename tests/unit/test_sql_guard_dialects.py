"""What is particular to the SQL guard on PostgreSQL and Trino (X1): names in schemas, messages, corners of their grammar."""

from __future__ import annotations

import pytest

from agentkernel_kb import KnowledgeGuardError
from agentkernel_kb.guard import ReadStatement, analyse_read, check_read_only
from agentkernel_kb.guard.postgres import POSTGRES
from agentkernel_kb.guard.trino import TRINO


def refusal(statement: str, dialect: str, allow: list[str] | None = None) -> str:
    with pytest.raises(KnowledgeGuardError) as refused:
        check_read_only(statement, dialect=dialect, allow=allow or [])
    return str(refused.value)


@pytest.mark.parametrize(
    "call", ["kb.system.sheet(id => 'x')", 'KB."system".Sheet (id => 1)', "kb /* x */ . system . sheet(id => 'x')"]
)
def test_allow_matches_a_qualified_name_whatever_its_case_and_blanks(call: str) -> None:
    check_read_only(f"SELECT * FROM TABLE({call})", dialect="trino", allow=["kb.System.sheet"])


@pytest.mark.parametrize(
    "call",
    [
        "sheet(id => 'x')",
        "system.sheet(id => 'x')",
        "other.system.sheet(id => 'x')",
        "x.kb.system.sheet(id => 'x')",
        "kb.system.sheets(id => 'x')",
        "\"kb.system.sheet\"(id => 'x')",
        'kb."system.sheet"(id => 1)',
        "kb.system.query(query => 'x')",
    ],
)
def test_allow_matches_nothing_but_the_whole_name(call: str) -> None:
    assert "not known to only read" in refusal(f"SELECT * FROM TABLE({call})", "trino", ["kb.system.sheet"])


def test_what_is_allowed_is_not_allowed_to_hold_something_else() -> None:
    call = "kb.system.sheet(id => pg.system.query(query => 'x'))"
    assert "(query, position" in refusal(f"SELECT * FROM TABLE({call})", "trino", ["kb.system.sheet"])


def test_allow_without_a_schema_allows_no_call_with_one() -> None:
    check_read_only("SELECT * FROM crosstab('SELECT 1') AS t(a int)", dialect="postgres", allow=["crosstab"])
    assert "crosstab" in refusal("SELECT * FROM evil.crosstab('SELECT 1') AS t(a int)", "postgres", ["crosstab"])


@pytest.mark.parametrize(
    ("dialect", "statement", "message"),
    [
        ("postgres", "SELECT substrin(a, 1) FROM t", "This function is not known to only read, did you mean substring?"),
        ("trino", "SELECT regexp_extract_al(a, 'x') FROM t", "did you mean regexp_extract_all?"),
        (
            "postgres",
            "WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d",
            "DELETE changes data; put the word in double quotes",
        ),
        ("postgres", "SELECT * FROM t FOR SHARE", "This statement locks rows (FOR, position 16)"),
        ("postgres", "VACUUM", "reads start with EXPLAIN, SELECT, SHOW, TABLE, VALUES, WITH (VACUUM, position 0)"),
        ("trino", "USE a", "reads start with DESC, DESCRIBE, EXPLAIN, SELECT, SHOW, TABLE, VALUES, WITH (USE, position 0)"),
        ("postgres", "SELECT $1", "Parameters are not supported, write the value itself ($1, position 7)"),
        ("trino", "SELECT ?", "Parameters are not supported, write the value itself (?, position 7)"),
        ("postgres", "SELECT 'a\\' FROM t", r"write it as E'…' with \\ for each backslash ('a\', position 7)"),
        ("postgres", "SELECT 1 /* x", "The comment that opens here is never closed, or nests too deep (/* x, position 9)"),
        ("postgres", "SELECT $a$ x $b$", "The quote that opens here is never closed ($a$ x $b$, position 7)"),
        ("postgres", "EXPLAIN (ANALYZE)", "There is nothing to explain"),
        ("postgres", "EXPLAIN (ANALYZE, EVIL) SELECT 1", "A statement that starts like this is not a read"),
        ("postgres", "SELECT g.pg_sleep FROM abs(1) g", "name the columns of g in brackets after AS (pg_sleep, position 9)"),
        ("trino", "DESCRIBE INPUT p", "DESCRIBE takes the name of one table (INPUT, position 9)"),
        ("trino", "SELECT `a`", "This character cannot stand here (`, position 7)"),
        (
            "trino",
            "SELECT * FROM system.runtime.queries",
            "This table belongs to the engine and is not part of the data (queries",
        ),
    ],
)
def test_a_refusal_says_what_is_wrong_and_where(dialect: str, statement: str, message: str) -> None:
    assert message in refusal(statement, dialect)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT g.i FROM generate_series(1, 3) AS g(i)",
        "SELECT generate_series.generate_series FROM generate_series(1, 3)",
        "SELECT e.key, e.value FROM t, jsonb_each(t.a) e",
        "SELECT t.length, s.upper FROM t, (SELECT 1 AS upper) s",
        "SELECT public.t.a FROM public.t",
        "SELECT l.x FROM t, LATERAL (SELECT t.a AS x) l",
        'SELECT "user".name FROM "user"',
        "SELECT c.a, c.* FROM (VALUES (1)) AS c(a)",
    ],
)
def test_a_column_of_a_source_is_no_call(statement: str) -> None:
    check_read_only(statement, dialect="postgres")


@pytest.mark.parametrize(
    ("dialect", "word"),
    [("postgres", word) for word in sorted(POSTGRES.after_operand)] + [("trino", word) for word in sorted(TRINO.after_operand)],
)
def test_a_word_of_the_grammar_is_a_function_where_no_operand_stands_before_it(dialect: str, word: str) -> None:
    for statement in (f"SELECT {word}(a) FROM t", f"SELECT a, {word}(a, a) FROM t", f"SELECT * FROM {word}(1)"):
        with pytest.raises(KnowledgeGuardError):
            check_read_only(statement, dialect=dialect)


@pytest.mark.parametrize("operator", ["|/", "@", "<<=", "-|-", "&<|", "?-|", "@-@", "%>", "<->"])
def test_operators_that_the_parser_does_not_know_pass_all_the_same(operator: str) -> None:
    check_read_only(
        f"SELECT a {operator} b FROM t" if operator not in ("|/", "@") else f"SELECT {operator} b", dialect="postgres"
    )


@pytest.mark.parametrize("operator", ["@!", "<|>", "+-*", "=@", "||-", "~-", "!"])
def test_operators_that_somebody_may_have_made_are_refused(operator: str) -> None:
    with pytest.raises(KnowledgeGuardError):
        check_read_only(f"SELECT a {operator} b FROM t", dialect="postgres")


@pytest.mark.parametrize(("statement", "depth"), [("/* " * n + "x" + " */" * n, n) for n in (1, 2, 4)])
def test_comments_nest(statement: str, depth: int) -> None:
    check_read_only(f"SELECT 1 {statement}", dialect="postgres")
    if depth > 1:
        with pytest.raises(KnowledgeGuardError):
            check_read_only(f"SELECT 1 {statement}", dialect="trino")


@pytest.mark.parametrize(
    ("dialect", "statement", "expected"),
    [
        ("postgres", "TABLE sales.T LIMIT 7", ReadStatement(has_limit=True, limit=7, tables=frozenset({"sales.t"}))),
        ("postgres", 'SELECT * FROM public.T, "T"', ReadStatement(tables=frozenset({"t", "T"}))),
        ("postgres", "SELECT * FROM a, unnest(b) AS u(x)", ReadStatement(tables=frozenset({"a"}))),
        ("postgres", "SELECT 1 FETCH FIRST 5 ROWS ONLY", ReadStatement(has_limit=True)),
        ("trino", 'SELECT * FROM lake.s."T$files" OFFSET 2 LIMIT 5', ReadStatement(True, 5, frozenset({"t$files"}))),
        ("trino", "SHOW TABLES FROM lake.s", ReadStatement()),
    ],
)
def test_the_outer_limit_and_the_tables_are_read_from_the_tree(dialect: str, statement: str, expected: ReadStatement) -> None:
    assert analyse_read(statement, dialect=dialect) == expected
