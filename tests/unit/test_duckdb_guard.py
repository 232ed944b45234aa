"""The SQL guard on DuckDB's dialect (X1): what a refusal says, sizes, file names, tables, and generated statements.

What is refused and accepted is in the corpora, `tests/corpora/duckdb.*.yaml`.
"""

from __future__ import annotations

from contextlib import closing, suppress

import duckdb
import pytest
from corpora.runner import load
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkernel_kb import KnowledgeGuardError
from agentkernel_kb.guard import ReadStatement, analyse_read, check_read_only
from agentkernel_kb.guard.duckdb import DUCKDB
from agentkernel_kb.guard.duckdb_functions import DUCKDB_FUNCTIONS, DUCKDB_TABLE_FUNCTIONS, REGULAR_EXPRESSIONS
from agentkernel_kb.guard.duckdb_sizes import MAX_PATTERN_STATES, pattern_states

READS = [item.statement for item in load("duckdb", "reads")]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("WITH x AS (SELECT 1) INSERT INTO t SELECT 1", "This statement inserts (INSERT, position 21)"),
        ("WITH x AS (DELETE FROM t RETURNING a) FROM x", "This statement changes data (RETURNING, position 25)"),
        ("WITH x AS (DELETE FROM t) FROM x", "DELETE is not part of a read (position 23)"),
        ("SELECT 1; DROP TABLE t", "A second statement follows (DROP, position 10)"),
        (
            "SET threads = 1",
            "A statement that starts like this is not a read; reads start with DESC, DESCRIBE, EXPLAIN, FROM, PIVOT, SELECT, "
            "SHOW, SUMMARIZE, TABLE, UNPIVOT, VALUES, WITH (SET, position 0)",
        ),
        ("FROM read_csv('x.csv')", "This function is not known to only read (read_csv, position 5)"),
        (
            "FROM 'x.csv'",
            "This name can be that of a file; tables are named by words, schemas and tables apart (x.csv, position 5)",
        ),
        ("SUMMARIZE 'x.csv'", "One table or one query follows here ('x.csv', position 10)"),
        ("FROM duckdb_settings()", "This function is not known to only read (duckdb_settings, position 5)"),
        (
            "FROM duckdb_databases",
            "This table belongs to the engine and is not part of the data (duckdb_databases, position 5)",
        ),
        (
            "SHOW VARIABLES",
            "SHOW lists TABLES, ALL TABLES, SCHEMAS or DATABASES here; for one table use DESCRIBE (VARIABLES, position 5)",
        ),
        (
            "SELECT repeat('x', n) FROM t",
            "The size has to be a plain number up to 10,000, as the second argument (repeat, position 7)",
        ),
        (
            "SELECT range(n) FROM t",
            "A list is made from plain numbers or dates and has up to 10,000 elements; for more, select FROM range(…) "
            "(range, position 7)",
        ),
        ("SELECT a ~ b FROM t", "A regular expression has to be a plain string right here (~, position 9)"),
        ("SELECT /* x", "The comment that opens here is never closed, or nests too deep (/* x, position 7)"),
        ("SELECT $1", "Parameters are not supported, write the value itself ($1, position 7)"),
        ("DESCRIBE", "One table or one query follows here (DESCRIBE, position 0)"),
        ("EXPLAIN", "There is nothing to explain (EXPLAIN, position 0)"),
    ],
)
def test_a_refusal_says_what_is_wrong_and_where(statement: str, message: str) -> None:
    with pytest.raises(KnowledgeGuardError) as refusal:
        check_read_only(statement, dialect="duckdb")
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("FROM t", {"t"}),
        ("FROM main.T, s.u", {"t", "s.u"}),
        ("FROM db.main.t", {"db.main.t"}),
        ("WITH t AS (FROM t) FROM t", {"t"}),
        ("WITH t AS (SELECT 1) FROM t", set()),
        ("WITH t AS (SELECT 1) FROM main.t", {"t"}),
        ("WITH a AS (FROM b), b AS (SELECT 1) FROM a", {"b"}),
        ("WITH RECURSIVE a AS (SELECT 1 UNION FROM a) FROM a", set()),
        ("FROM (WITH t AS (SELECT 1) FROM t), t", {"t"}),
        ("PIVOT t ON a USING sum(b)", {"t"}),
        ("WITH t AS (FROM u) PIVOT t ON a", {"u"}),
        ("DESCRIBE s.t", {"s.t"}),
        ("DESC main.t", {"t"}),
        ("DESCRIBE FROM t", {"t"}),
        ("SUMMARIZE t", {"t"}),
        ("EXPLAIN ANALYZE FROM t", {"t"}),
        ("SHOW TABLES", {"information_schema"}),
        ("FROM duckdb_tables()", {"duckdb_tables"}),
        ("FROM range(3)", set()),
    ],
)
def test_the_tables_are_those_that_the_engine_would_open(statement: str, expected: set[str]) -> None:
    assert analyse_read(statement, dialect="duckdb") == ReadStatement(tables=frozenset(expected))


@pytest.mark.parametrize(
    ("statement", "has_limit", "limit"),
    [
        ("FROM t LIMIT 7", True, 7),
        ("FROM t LIMIT 50%", True, None),
        ("SELECT * FROM (FROM t LIMIT 7)", False, None),
        ("DESCRIBE FROM t LIMIT 7", False, None),
    ],
)
def test_the_outer_limit_is_read_from_the_tree(statement: str, has_limit: bool, limit: int | None) -> None:
    read = analyse_read(statement, dialect="duckdb")
    assert (read.has_limit, read.limit) == (has_limit, limit)


@pytest.mark.parametrize(
    "call",
    [
        "repeat('x', 10000)",
        "repeat(repeat('x', 1000), 1000)",
        "lpad(a, 10, '0')",
        "range(10000)",
        "generate_series(-5, 5, 2)",
        "range(DATE '2020-01-01', DATE '2024-12-31', INTERVAL 1 DAY)",
        "generate_series('2024-01-01'::DATE, '2024-12-31'::DATE, INTERVAL '1 month')",
        "format('{:>10} {{}} {:.2f}', a, b)",
        "printf('%-20s|%5.2f', a, b)",
        r"regexp_replace(a, '(\d{4})-(\d{2})-(\d{2})T.{0,30}', '\1', 'g')",
        "a.regexp_matches('x+')",
        "~a",
        "a ~ 'x' AND NOT b !~ 'y' OR c SIMILAR TO 'z'",
    ],
)
def test_sizes_that_can_be_read_are_accepted(call: str) -> None:
    check_read_only(f"SELECT {call} FROM t", dialect="duckdb")


@pytest.mark.parametrize(
    "call",
    [
        "repeat('x', 10001)",
        "repeat('x', 5000 * 5000)",
        "repeat('x', 1e9)",
        "repeat(repeat('x', 1001), 1000)",
        "lpad(a, 99999)",
        "rpad(a, b, 'x')",
        "a.rpad(5)",
        "list_resize([1], (SELECT 5))",
        "range(10001)",
        "range(0, -20000, -1)",
        "range(5, a)",
        "range(DATE '0001-01-01', DATE '9999-12-31', INTERVAL 1 DAY)",
        "range(DATE '2024-01-01', DATE '2024-12-31', INTERVAL 1 SECOND)",
        "range(DATE '2024-01-01', DATE '2024-12-31', INTERVAL '0.001 day')",
        "range(DATE '2024-01-01', current_date, INTERVAL 1 DAY)",
        "format('{:1000}', a)",
        "format('{:{}}', a, 1000000)",
        "format(a, b)",
        "printf('%*d', 1000000, a)",
        "regexp_matches(a, b)",
        "regexp_matches(a, 'x' || 'y')",
        "regexp_matches(a, '((a?){30}){30}')",
        "a SIMILAR TO (b)",
        "', '.join(a) ~ lower(b)",
        " OR ".join(["a ~ 'x'"] * 51),
    ],
)
def test_sizes_that_cannot_be_read_or_are_too_large_are_refused(call: str) -> None:
    with pytest.raises(KnowledgeGuardError):
        check_read_only(f"SELECT {call} FROM t", dialect="duckdb")


def test_the_states_of_a_pattern_are_about_right() -> None:
    assert pattern_states(r"\d{4}-\d{2}") < 25
    assert pattern_states("(a?){1000}") > MAX_PATTERN_STATES
    assert pattern_states("((a?){30}){30}") > MAX_PATTERN_STATES
    assert pattern_states("a{1000000000000}") > MAX_PATTERN_STATES


@pytest.mark.parametrize("name", ['"a/b"', '"x.csv"', "x.csv", "s.x.parquet", '"http://x"', '"*"', '"~x"', "data.json"])
@pytest.mark.parametrize(
    "shape", ["FROM {}", "SELECT * FROM t JOIN {} ON true", "PIVOT {} ON a", "DESCRIBE {}", "SUMMARIZE {}"]
)
def test_a_name_that_can_be_a_file_is_no_table(shape: str, name: str) -> None:
    with pytest.raises(KnowledgeGuardError, match="can be that of a file"):
        check_read_only(shape.format(name), dialect="duckdb")


def test_allow_names_further_functions() -> None:
    check_read_only("FROM read_parquet('x')", dialect="duckdb", allow=["READ_PARQUET"])
    check_read_only("FROM sheet('x') SELECT fahrenheit(a)", dialect="duckdb", allow=["sheet", "fahrenheit"])
    with pytest.raises(KnowledgeGuardError):
        check_read_only("FROM read_parquet('x'), read_csv('y')", dialect="duckdb", allow=["read_parquet"])


def test_every_listed_function_exists_in_the_engine_or_is_grammar() -> None:
    with closing(duckdb.connect()) as connection:
        known = {name.lower() for (name,) in connection.execute("SELECT function_name FROM duckdb_functions()").fetchall()}
    grammar = {
        "coalesce",
        "columns",
        "extract",
        "grouping",
        "grouping_id",
        "ifnull",
        "percentile_cont",
        "percentile_disc",
        "try",
    }
    assert DUCKDB_FUNCTIONS - known - grammar == set()
    assert (DUCKDB_TABLE_FUNCTIONS | REGULAR_EXPRESSIONS) - known == set()


def test_no_listed_function_touches_the_world() -> None:
    words = (
        "read_",
        "_read",
        "scan",
        "glob",
        "sniff",
        "secret",
        "setting",
        "variable",
        "execute",
        "query",
        "attach",
        "log_",
        "sleep",
        "seed",
    )
    assert [name for name in DUCKDB_FUNCTIONS | DUCKDB_TABLE_FUNCTIONS if any(word in name for word in words)] == []


COMMENTS = st.sampled_from([" ", "\n", " /* DELETE FROM t; */ ", " -- DROP TABLE t\n", "\t/* ' */", " /* a /* b */ c */ "])


@given(read=st.sampled_from(READS), comments=st.lists(COMMENTS, min_size=8, max_size=8))
@settings(max_examples=60, deadline=None)
def test_comments_between_the_words_of_a_read_change_nothing(read: str, comments: list[str]) -> None:
    tokens = DUCKDB.lexer.read(read).tokens
    text, position = "", 0
    for index, token in enumerate(tokens):
        is_apart = token.start > position  # Signs that stand together stay together.
        text += (comments[index % 8] if is_apart else "") + token.text
        position = token.end
    check_read_only(comments[0] + text + comments[1], dialect="duckdb")


_WORDS = """
SELECT FROM WHERE WITH AS ( ) , ; ' " $$ -- /* */ * . : :: := [ ] { } | ~ # @ PIVOT ON USING DELETE INSERT INTO UPDATE SET
DROP TABLE CREATE TEMP VIEW DESCRIBE SHOW EXPLAIN ANALYZE UNION VALUES IN NOT LIMIT ALL RETURNING t u a b 1 'x' E'\\'' "q"
read_text query abs( lambda EXCLUDE REPLACE COLUMNS( QUALIFY SAMPLE
"""
PIECES = st.sampled_from(_WORDS.split())


@given(
    pieces=st.lists(PIECES | st.text(max_size=3), max_size=14), start=st.sampled_from(["", "SELECT a FROM t WHERE", "FROM t"])
)
@settings(max_examples=200, deadline=None)
def test_what_is_accepted_changes_nothing_on_an_unlocked_connection(pieces: list[str], start: str) -> None:
    text = " ".join([start, *pieces])
    try:
        check_read_only(text, dialect="duckdb")
    except KnowledgeGuardError:
        return
    with closing(duckdb.connect()) as connection:
        connection.execute("CREATE TABLE t (a INT, b INT); CREATE TABLE u (a INT); INSERT INTO t VALUES (1, 2)")
        with suppress(duckdb.Error):
            assert len(connection.extract_statements(text)) <= 1
            connection.execute(text).fetchmany(100)
        assert connection.execute("SELECT list(table_name ORDER BY 1) FROM duckdb_tables()").fetchone() == (["t", "u"],)
        assert connection.execute("SELECT count(*), sum(a + b) FROM t").fetchone() == (1, 3)
        assert connection.execute("SELECT count(*) FROM duckdb_views() WHERE NOT internal").fetchone() == (0,)


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("SELECT " + "[" * 5_000 + "1" + "]" * 5_000, id="lists"),
        pytest.param("SELECT " + "{'a': " * 3_000 + "1" + "}" * 3_000, id="structs"),
        pytest.param("SELECT a" + ".upper()" * 10_000 + " FROM t", id="chained calls"),
        pytest.param("SELECT a" + "::INT" * 15_000 + " FROM t", id="casts"),
        pytest.param("SELECT " + "lambda x: " * 5_000 + "1", id="lambdas"),
        pytest.param("/*" * 40_000, id="comments"),
        pytest.param("SELECT a ~ '" + "(a{9}){9}" * 10_000 + "'", id="pattern"),
    ],
)
def test_what_is_too_long_or_too_deep_is_refused(statement: str) -> None:
    with pytest.raises(KnowledgeGuardError):
        check_read_only(statement, dialect="duckdb")
