"""The SQL guard on statements that nobody thought of (X1): generated reads, writes hidden in them, and arbitrary text."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkernel_kb import KnowledgeGuardError
from agentkernel_kb.guard import check_read_only, fallback_limit
from agentkernel_kb.guard.duckdb import DUCKDB
from agentkernel_kb.guard.postgres import POSTGRES
from agentkernel_kb.guard.sql import MAX_STATEMENT_CHARS
from agentkernel_kb.guard.sqlite import SQLITE
from agentkernel_kb.guard.trino import TRINO

RULES = {rules.name: rules for rules in (DUCKDB, POSTGRES, SQLITE, TRINO)}


@dataclass(frozen=True)
class Words:
    """What statements of a dialect are made of, besides what all dialects share."""

    names: tuple[str, ...]
    literals: tuple[str, ...]
    operators: tuple[str, ...]
    function: str
    table: str
    unknown: tuple[str, ...]
    nested_comment: str = " /* /* */ "
    calls: tuple[str, ...] = ("{}({})", '"{}" ({})', '"{}"/**/({})', "{}\n( {})")
    endings: tuple[str, ...] = ("", ";", " ; -- LIMIT 5", " /* LIMIT 5; */ ", "-- LIMIT 5")


DIALECTS = {
    "duckdb": Words(
        names=('"x y"',),
        literals=("$$it's; DELETE FROM t$$", "[1, 2]"),
        operators=("->>", "//", "ILIKE"),
        function="list_sum",
        table="range(5) AS r(i)",
        unknown=("read_csv", "read_text", "glob", "getenv", "nobody_knows"),
        nested_comment=" /* a /* DELETE FROM t */ ' */ ",
    ),
    "postgres": Words(
        names=("a$1", "naïve"),
        literals=("$$it's; DELETE FROM t$$", "$q$ $$ $q$", "E'it\\'s; DROP TABLE t --'", "X'1F'", "B'101'", "N'x'"),
        operators=("->>", "#>", "@>", "?", "?|", "~*", "ILIKE", "@@"),
        function="to_jsonb",
        table="jsonb_each(t.b) AS e(k, v)",
        unknown=("pg_sleep", "pg_read_file", "lo_import", "dblink", "nextval", "query_to_xml", "nobody_knows"),
        nested_comment=" /* a /* DELETE FROM t */ ' */ ",
    ),
    "sqlite": Words(
        names=("[x y]", "`select`", "naïve"),
        literals=("x'00ff'", "0x1F"),
        operators=("IS", "IS NOT", "GLOB", "<<", "->>"),
        function="json_array",
        table="json_each('[1]')",
        unknown=("load_extension", "readfile", "zeroblob", "fts3_tokenizer", "nobody_knows"),
        calls=("{}({})", '"{}" ({})', "[{}]/**/({})", "`{}`\n({})"),
    ),
    "trino": Words(
        names=('"x$y"',),
        literals=("X'00ff'", "U&'\\0027 DROP'", "'a\\'", "DECIMAL '1.5'", "ARRAY[1]"),
        operators=("%", "NOT LIKE"),
        function="cardinality",
        table="UNNEST(a) WITH ORDINALITY AS u (x, n)",
        unknown=("query", "raw_query", "sheet", "fail", "nobody_knows"),
        calls=("{}({})", '"{}" ({})', "pg.system.{}/**/({})", "lake.x.lower({}({}))"),
    ),
}
EACH_DIALECT = pytest.mark.parametrize("dialect", DIALECTS)

WRITES = st.sampled_from(
    [
        "DELETE FROM t",
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET a = 1",
        "DROP TABLE t",
        "CREATE TABLE u (a)",
        "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE",
        "REPLACE INTO t VALUES (1)",
    ]
)


@cache
def names(words: Words) -> st.SearchStrategy[str]:
    return st.sampled_from(["a", "b", "t", '"my col"', '"de""lete"', *words.names])


@cache
def literals(words: Words) -> st.SearchStrategy[str]:
    return st.sampled_from(["1", "-2.5", "'x'", "'it''s; DELETE FROM t --'", "NULL", "'/*'", "''", *words.literals])


@cache
def comments(words: Words) -> st.SearchStrategy[str]:
    shared = ["", " ", "\n", " /* DELETE FROM t; */ ", " -- DROP TABLE t\n", "\t/* ' */"]
    return st.sampled_from([*shared, words.nested_comment])


@cache
def expressions(words: Words) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "||", "=", "<>", "AND", "OR", "LIKE", "IS DISTINCT FROM", *words.operators])
    functions = st.sampled_from(["abs", "lower", "max", "coalesce", words.function])
    types = st.sampled_from(["INTEGER", "VARCHAR(9)", "DECIMAL(10, 2)"])

    def larger(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.builds("({} {} {})".format, children, operators, children),
            st.builds("{}({})".format, functions, children),
            st.builds("CASE WHEN {} THEN {} ELSE {} END".format, children, children, children),
            st.builds("CAST({} AS {})".format, children, types),
            st.builds("({} IN ({}, {}))".format, children, children, children),
            st.builds("(SELECT {} FROM t WHERE {})".format, children, children),
            st.builds("EXISTS (SELECT 1 FROM t WHERE {})".format, children),
            st.builds("sum({}) OVER (PARTITION BY {} ORDER BY {})".format, children, children, children),
        )

    return st.recursive(names(words) | literals(words), larger, max_leaves=8)


@cache
def selects(words: Words) -> st.SearchStrategy[str]:
    """Return queries without a limit of their own."""
    sources = st.one_of(
        st.sampled_from(["t", "t AS x", "t, u", "t JOIN u USING (a)", f"t, {words.table}", "t LEFT JOIN u ON t.a = u.a"]),
        st.builds("(SELECT {} FROM t) AS s".format, expressions(words)),
    )
    return st.builds("SELECT {} FROM {} WHERE {}".format, expressions(words), sources, expressions(words))


@cache
def unlimited(words: Words) -> st.SearchStrategy[str]:
    select = selects(words)
    return st.one_of(
        select,
        st.builds("{} ORDER BY 1 DESC".format, select),
        st.builds("{} UNION ALL {}".format, select, select),
        st.builds("WITH c(z) AS ({} LIMIT 3) SELECT z FROM c".format, select),
    )


@cache
def reads(words: Words) -> st.SearchStrategy[str]:
    return st.one_of(
        unlimited(words),
        st.builds("{} ORDER BY 1 LIMIT {}".format, selects(words), st.integers(0, 99)),
        st.builds("EXPLAIN {}".format, selects(words)),
    )


@cache
def fragments(words: Words) -> st.SearchStrategy[list[str]]:
    pieces = st.one_of(
        names(words), literals(words), comments(words), WRITES, st.sampled_from([*PIECES, *words.unknown]), st.text(max_size=4)
    )
    return st.lists(pieces, max_size=25)


PIECES = [
    "SELECT",
    "FROM",
    "WHERE",
    "WITH",
    "AS",
    "(",
    ")",
    ",",
    ";",
    "'",
    '"',
    "`",
    "[",
    "]",
    "--",
    "/*",
    "*/",
    "*",
    ".",
    "|",
    "->",
    "PRAGMA",
    "ATTACH",
    "EXPLAIN",
    "UNION",
    "VALUES",
    "IN",
    "NOT",
    "CASE",
    "END",
    "LIMIT",
    ":",
    "?",
    "{",
    "}",
    "pragma_database_list",
    "pg_authid",
    "system.runtime.queries",
    "x.pg_sleep",
    "OPERATOR",
    "TABLE",
    "FOR",
    "U&",
    "E'",
    "$$",
    "$a$",
    "::",
    "=>",
    "é",
    "𝟙",
    "٣",
    "\\",
    "\x00",
    "\u00a0",
    "\u2028",
]


@EACH_DIALECT
@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_a_generated_read_passes(dialect: str, data: st.DataObject) -> None:
    check_read_only(data.draw(reads(DIALECTS[dialect])), dialect=dialect)


@EACH_DIALECT
@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_a_read_that_sqlglot_renders_anew_passes(dialect: str, data: st.DataObject) -> None:
    read = data.draw(selects(DIALECTS[dialect]))
    check_read_only(sqlglot.transpile(read, read=dialect, write=dialect, pretty=True, comments=False)[0], dialect=dialect)


@EACH_DIALECT
@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_comments_between_the_words_of_a_read_change_nothing(dialect: str, data: st.DataObject) -> None:
    words = DIALECTS[dialect]
    read = data.draw(reads(words))
    between = data.draw(st.lists(comments(words), min_size=8, max_size=8))
    tokens = RULES[dialect].lexer.read(read).tokens
    pieces, end = [between[0]], 0
    for index, token in enumerate(tokens):
        pieces.append(f"{between[index % 8]} {token.text}" if token.start > end else token.text)
        end = token.end
    check_read_only("".join(pieces) + between[1], dialect=dialect)


@EACH_DIALECT
@given(data=st.data(), write=WRITES)
@settings(max_examples=30, deadline=None)
@pytest.mark.parametrize(
    "shape",
    [
        "{write}",
        "{read}; {write}",
        "{write}; {read}",
        "EXPLAIN {write}",
        "EXPLAIN ANALYZE {write}",
        "WITH c AS ({read}) {write}",
        "WITH c AS ({write} RETURNING *) {read}",
        "{read} UNION {write}",
        "SELECT * FROM ({write} RETURNING a)",
        "SELECT a FROM t WHERE a IN ({write}) OR EXISTS ({read})",
        "SELECT abs(({write})) FROM t",
        "{read} LIMIT ({write})",
        "/* {read} */ {write}",
    ],
)
def test_a_write_anywhere_is_refused(dialect: str, shape: str, data: st.DataObject, write: str) -> None:
    read = data.draw(selects(DIALECTS[dialect])).replace("/*", "x").replace("*/", "x")
    with pytest.raises(KnowledgeGuardError):
        check_read_only(shape.format(read=read, write=write), dialect=dialect)


@EACH_DIALECT
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_an_unknown_function_anywhere_is_refused(dialect: str, data: st.DataObject) -> None:
    words = DIALECTS[dialect]
    read, name = data.draw(expressions(words)), data.draw(st.sampled_from(words.unknown))
    call = data.draw(st.sampled_from(words.calls)).format(name, read, read)
    with pytest.raises(KnowledgeGuardError):
        check_read_only(f"SELECT a FROM t WHERE ({read}) = {call}", dialect=dialect)


@EACH_DIALECT
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_any_text_is_accepted_or_refused_and_nothing_else(dialect: str, data: st.DataObject) -> None:
    words = data.draw(fragments(DIALECTS[dialect]))
    text = data.draw(st.one_of(st.text(), st.sampled_from([" ".join(words), "".join(words), "SELECT " + " ".join(words)])))
    try:
        check_read_only(text, dialect=dialect)
    except KnowledgeGuardError as refusal:
        position = refusal.position or 0
    else:
        position = 0
    assert 0 <= position <= len(text)


@EACH_DIALECT
@given(data=st.data(), limit=st.integers(0, 999))
@settings(max_examples=50, deadline=None)
def test_a_fallback_limit_adds_a_limit_to_the_tree_and_nothing_else(dialect: str, data: st.DataObject, limit: int) -> None:
    words = DIALECTS[dialect]
    read = data.draw(unlimited(words))
    limited = fallback_limit(read, dialect=dialect, limit=limit)
    tree = sqlglot.parse_one(limited, read=dialect)
    added = tree.args.pop("limit")
    assert added.expression.name == str(limit)
    assert tree == sqlglot.parse_one(read, read=dialect)


@EACH_DIALECT
@given(data=st.data(), limit=st.integers(0, 999))
@settings(max_examples=50, deadline=None)
def test_a_fallback_limit_stands_between_the_query_and_what_follows_it(dialect: str, data: st.DataObject, limit: int) -> None:
    words = DIALECTS[dialect]
    start, read = data.draw(comments(words)), data.draw(unlimited(words))
    ending = data.draw(st.sampled_from(words.endings))
    limited = fallback_limit(f"{start}{read}{ending}", dialect=dialect, limit=limit)
    assert limited == f"{start}{read} LIMIT {limit}{ending}"


@EACH_DIALECT
@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_a_fallback_limit_leaves_what_it_added_alone(dialect: str, data: st.DataObject) -> None:
    once = fallback_limit(data.draw(reads(DIALECTS[dialect])), dialect=dialect, limit=5)
    assert fallback_limit(once, dialect=dialect, limit=3) == once


@EACH_DIALECT
def test_a_fallback_limit_that_would_make_a_statement_too_long_is_left_out(dialect: str) -> None:
    read = "SELECT a FROM t".ljust(MAX_STATEMENT_CHARS - 1)
    assert fallback_limit(read, dialect=dialect, limit=100) == read


@given(
    text=st.one_of(
        fragments(DIALECTS["sqlite"]).map(" ".join),
        fragments(DIALECTS["sqlite"]).map("".join),
        fragments(DIALECTS["sqlite"]).map(lambda words: "SELECT a FROM t WHERE " + " ".join(words)),
    )
)
@settings(max_examples=200, deadline=None)
def test_what_is_accepted_changes_nothing_on_an_unlocked_connection(text: str) -> None:
    try:
        check_read_only(text, dialect="sqlite")
    except KnowledgeGuardError:
        return
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript("CREATE TABLE t (a, b); CREATE TABLE u (a); INSERT INTO t VALUES (1, 2); INSERT INTO u VALUES (3)")
    before = list(connection.iterdump())
    with suppress(sqlite3.Error):
        connection.execute(text).fetchmany(100)
    assert list(connection.iterdump()) == before
    connection.close()
