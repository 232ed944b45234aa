"""The SQL guard on statements that nobody thought of (X1): generated reads, writes hidden in them, and arbitrary text."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from functools import partial

import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkernel_kb import KnowledgeGuardError
from agentkernel_kb.guard import check_read_only

check = partial(check_read_only, dialect="sqlite")

NAMES = st.sampled_from(["a", "b", "t", '"my col"', "[x y]", "`select`", "naïve", '"de""lete"'])
LITERALS = st.sampled_from(["1", "-2.5", "'x'", "'it''s; DELETE FROM t --'", "NULL", "x'00ff'", "0x1F", "'/*'", "''"])
COMMENTS = st.sampled_from(["", " ", "\n", " /* DELETE FROM t; */ ", " -- DROP TABLE t\n", "\t/* ' */", " /* /* */ "])

WRITES = st.sampled_from(
    [
        "DELETE FROM t",
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET a = 1",
        "DROP TABLE t",
        "CREATE TABLE u (a)",
        "REPLACE INTO t VALUES (1)",
    ]
)


def _expressions(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(
        ["+", "||", "=", "<>", "AND", "OR", "IS", "IS NOT", "LIKE", "GLOB", "<<", "->>", "IS DISTINCT FROM"]
    )
    return st.one_of(
        st.builds("({} {} {})".format, children, operators, children),
        st.builds("{}({})".format, st.sampled_from(["abs", "lower", "max", "json_array", "coalesce"]), children),
        st.builds("CASE WHEN {} THEN {} ELSE {} END".format, children, children, children),
        st.builds("CAST({} AS {})".format, children, st.sampled_from(["INTEGER", "TEXT", "DECIMAL(10, 2)"])),
        st.builds("({} IN ({}, {}))".format, children, children, children),
        st.builds("(SELECT {} FROM t WHERE {})".format, children, children),
        st.builds("EXISTS (SELECT 1 FROM t WHERE {})".format, children),
        st.builds("sum({}) OVER (PARTITION BY {} ORDER BY {})".format, children, children, children),
    )


EXPRESSIONS = st.recursive(NAMES | LITERALS, _expressions, max_leaves=8)
SOURCES = st.one_of(
    st.sampled_from(["t", "t AS x", "t, u", "t JOIN u USING (a)", "json_each('[1]')", "t LEFT JOIN u ON t.a = u.a"]),
    st.builds("(SELECT {} FROM t)".format, EXPRESSIONS),
)
SELECTS = st.builds("SELECT {} FROM {} WHERE {}".format, EXPRESSIONS, SOURCES, EXPRESSIONS)
READS = st.one_of(
    SELECTS,
    st.builds("{} ORDER BY 1 DESC LIMIT {}".format, SELECTS, st.integers(0, 99)),
    st.builds("{} UNION ALL {}".format, SELECTS, SELECTS),
    st.builds("WITH c(z) AS ({}) SELECT z FROM c".format, SELECTS),
    st.builds("EXPLAIN QUERY PLAN {}".format, SELECTS),
)

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
    "load_extension",
    "pragma_database_list",
    "é",
    "𝟙",
    "٣",
    "\\",
    "\x00",
    "\u00a0",
    "\u2028",
]

FRAGMENTS = st.lists(
    st.one_of(
        NAMES,
        LITERALS,
        COMMENTS,
        WRITES,
        st.sampled_from(PIECES),
        st.text(max_size=4),
    ),
    max_size=25,
)


@given(read=READS)
@settings(max_examples=50, deadline=None)
def test_a_generated_read_passes(read: str) -> None:
    check(read)


@given(read=SELECTS)
@settings(max_examples=50, deadline=None)
def test_a_read_that_sqlglot_renders_anew_passes(read: str) -> None:
    check(sqlglot.transpile(read, read="sqlite", write="sqlite", pretty=True, comments=False)[0])


@given(read=READS, comments=st.lists(COMMENTS, min_size=8, max_size=8))
@settings(max_examples=50, deadline=None)
def test_comments_between_the_words_of_a_read_change_nothing(read: str, comments: list[str]) -> None:
    from agentkernel_kb.guard.sqlite import SQLITE

    tokens = SQLITE.lexer.read(read).tokens
    check("".join(f"{comments[index % 8]} {token.text}" for index, token in enumerate(tokens)) + comments[0])


@given(read=SELECTS, write=WRITES)
@settings(max_examples=50, deadline=None)
@pytest.mark.parametrize(
    "shape",
    [
        "{write}",
        "{read}; {write}",
        "{write}; {read}",
        "EXPLAIN {write}",
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
def test_a_write_anywhere_is_refused(shape: str, read: str, write: str) -> None:
    with pytest.raises(KnowledgeGuardError):
        check(shape.format(read=read.replace("/*", "x").replace("*/", "x"), write=write))


@given(read=EXPRESSIONS, name=st.sampled_from(["load_extension", "readfile", "zeroblob", "fts3_tokenizer", "nobody_knows"]))
@settings(max_examples=50, deadline=None)
@pytest.mark.parametrize("call", ["{}({})", '"{}" ({})', "[{}]/**/({})", "`{}`\n({})"])
def test_an_unknown_function_anywhere_is_refused(call: str, name: str, read: str) -> None:
    with pytest.raises(KnowledgeGuardError):
        check(f"SELECT a FROM t WHERE ({read}) = {call.format(name, read)}")


@given(
    text=st.one_of(st.text(), FRAGMENTS.map(" ".join), FRAGMENTS.map("".join), FRAGMENTS.map(lambda f: "SELECT " + " ".join(f)))
)
@settings(max_examples=200, deadline=None)
def test_any_text_is_accepted_or_refused_and_nothing_else(text: str) -> None:
    try:
        check(text)
    except KnowledgeGuardError as refusal:
        position = refusal.position or 0
    else:
        position = 0
    assert 0 <= position <= len(text)


@given(
    text=st.one_of(
        FRAGMENTS.map(" ".join), FRAGMENTS.map("".join), FRAGMENTS.map(lambda f: "SELECT a FROM t WHERE " + " ".join(f))
    )
)
@settings(max_examples=200, deadline=None)
def test_what_is_accepted_changes_nothing_on_an_unlocked_connection(text: str) -> None:
    try:
        check(text)
    except KnowledgeGuardError:
        return
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript("CREATE TABLE t (a, b); CREATE TABLE u (a); INSERT INTO t VALUES (1, 2); INSERT INTO u VALUES (3)")
    before = list(connection.iterdump())
    with suppress(sqlite3.Error):
        connection.execute(text).fetchmany(100)
    assert list(connection.iterdump()) == before
    connection.close()
