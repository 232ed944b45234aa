"""The SQL guard on SQLite's dialect (X1): what is refused, what passes, and what a refusal says."""

from __future__ import annotations

import pytest

from agentkernel_kb import AKConfigError, KnowledgeGuardError
from agentkernel_kb.guard import ReadStatement, analyse_read, check_read_only, supported_dialects
from agentkernel_kb.guard.sql import MAX_NESTING, MAX_STATEMENT_CHARS

NOT_READS = {
    "delete": "DELETE FROM t",
    "insert": "INSERT INTO t VALUES (1)",
    "insert default": "insert into t default values",
    "update": "UPDATE t SET a = 1",
    "update without where, in mixed case": "uPdAtE t sEt a = 1",
    "replace": "REPLACE INTO t VALUES (1)",
    "upsert": "INSERT INTO t VALUES (1) ON CONFLICT DO UPDATE SET a = 2",
    "write behind a CTE": "WITH x AS (SELECT 1) DELETE FROM t",
    "insert from a CTE": "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x",
    "write inside a CTE": "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x",
    "write inside a subquery": "SELECT * FROM (INSERT INTO t VALUES (1) RETURNING *)",
    "write as a branch of a union": "SELECT 1 UNION DELETE FROM t",
    "write in brackets": "(DELETE FROM t)",
    "returning": "VALUES (1) RETURNING *",
    "select into": "SELECT * INTO x FROM t",
    "select into a file": "SELECT a FROM t INTO OUTFILE '/tmp/x'",
    "row lock": "SELECT * FROM t FOR UPDATE",
    "stacked": "SELECT 1; DELETE FROM t",
    "stacked reads": "SELECT 1; SELECT 2",
    "stacked behind a comment": "SELECT 1 /* ; */ ; DROP TABLE t",
    "stacked behind an empty statement": "SELECT 1;;DROP TABLE t",
    "leading semicolon": "; SELECT 1",
    "comment that only some lexers nest": "SELECT 1 /* /* */ ; DELETE FROM t; -- */",
    "comment first": "/* SELECT */ DROP TABLE t",
    "line comment first": "-- SELECT 1\nDROP TABLE t",
    "create table": "CREATE TABLE x (a)",
    "create table as": "CREATE TABLE x AS SELECT 1",
    "create temporary view": "CREATE TEMP VIEW x AS SELECT 1",
    "create virtual table": "CREATE VIRTUAL TABLE x USING fts5(a)",
    "create trigger": "CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END",
    "create index": "CREATE INDEX x ON t (a)",
    "drop table": "DROP TABLE t",
    "drop index": "DROP INDEX IF EXISTS x",
    "alter table": "ALTER TABLE t RENAME TO u",
    "attach": "ATTACH DATABASE 'x.db' AS y",
    "detach": "DETACH DATABASE y",
    "vacuum": "VACUUM",
    "vacuum into": "VACUUM INTO '/tmp/x.db'",
    "reindex": "REINDEX t",
    "analyze": "ANALYZE",
    "begin": "BEGIN",
    "begin exclusive": "BEGIN EXCLUSIVE TRANSACTION",
    "commit": "COMMIT",
    "end": "END",
    "rollback": "ROLLBACK",
    "savepoint": "SAVEPOINT x",
    "release": "RELEASE x",
    "pragma that sets": "PRAGMA journal_mode = WAL",
    "pragma that may set": "PRAGMA journal_mode",
    "pragma that sets in brackets": "PRAGMA user_version(5)",
    "pragma that opens the schema": "PRAGMA writable_schema = 1",
    "pragma that runs": "PRAGMA main.wal_checkpoint(TRUNCATE)",
    "pragma that optimizes": "PRAGMA optimize",
    "pragma that shows a path": "PRAGMA database_list",
    "reading pragma by assignment": "PRAGMA table_info = t",
    "reading pragma without argument": "PRAGMA table_info",
    "reading pragma with an expression": "PRAGMA table_info(t, u)",
    "pragma without a name": "PRAGMA",
    "pragma behind a CTE": "WITH x AS (SELECT 1) PRAGMA table_info(t)",
    "explained write": "EXPLAIN DELETE FROM t",
    "explained plan of a write": "EXPLAIN QUERY PLAN INSERT INTO t VALUES (1)",
    "explained explanation": "EXPLAIN EXPLAIN SELECT 1",
    "explained pragma": "EXPLAIN PRAGMA table_info(t)",
    "nothing to explain": "EXPLAIN",
    "extension": "SELECT load_extension('x')",
    "extension in double quotes": "SELECT \"load_extension\"('x')",
    "extension in square brackets": "SELECT [load_extension] ('x')",
    "extension in backticks, apart": "SELECT `load_extension` /* */ ('x')",
    "extension in capitals": "SELECT LOAD_EXTENSION ( 'x' )",
    "extension in a CTE": "WITH x(a) AS (SELECT load_extension('x')) SELECT a FROM x",
    "extension named like a CTE": "WITH load_extension(a) AS (SELECT 1) SELECT load_extension('x')",
    "extension as a column of a CTE": "WITH x(load_extension) AS (SELECT 1) SELECT load_extension('x') FROM x",
    "extension in a cast": "SELECT CAST(load_extension('x') AS TEXT)",
    "extension after AS": "SELECT 1 AS load_extension('x')",
    "extension in ORDER BY": "SELECT a FROM t ORDER BY load_extension(a)",
    "extension in LIMIT": "SELECT a FROM t LIMIT load_extension(a)",
    "extension in FILTER": "SELECT sum(a) FILTER (WHERE load_extension(a)) FROM t",
    "extension in a window": "SELECT sum(a) OVER (ORDER BY load_extension(a)) FROM t",
    "extension between quotes that lexers read differently": "SELECT `a\"`, load_extension('x'), `b\"`",
    "reading a file": "SELECT readfile('/etc/passwd')",
    "writing a file": "SELECT writefile('/tmp/x', 'y')",
    "an editor": "SELECT edit(a, 'vi') FROM t",
    "files as a table": "SELECT * FROM fsdir('/')",
    "a tokenizer's address": "SELECT fts3_tokenizer('x', x'00')",
    "the log": "SELECT sqlite_log(1, 'x')",
    "a value out of nothing": "SELECT zeroblob(1000000000)",
    "a random value of any size": "SELECT randomblob(1000000000)",
    "quadratic work": "SELECT json_patch(a, b) FROM t",
    "state of the connection": "SELECT last_insert_rowid()",
    "optimize of a full-text table": "SELECT optimize(docs) FROM docs",
    "unknown function": "SELECT frobnicate(a) FROM t",
    "unknown function named by a string": "SELECT * FROM 'frobnicate'(1)",
    "pragma as a table": "SELECT * FROM pragma_database_list",
    "pragma as a quoted table": 'SELECT * FROM "pragma_database_list"',
    "pragma as a table named by a string": "SELECT * FROM 'pragma_database_list'",
    "pragma as a table with a schema": "SELECT * FROM main.pragma_journal_mode",
    "pragma as a table function": "SELECT * FROM pragma_integrity_check(5)",
    "pragma as a set": "SELECT 'x' IN pragma_database_list",
    "raw pages": "SELECT data FROM sqlite_dbpage",
    "statements of the connection": "SELECT sql FROM sqlite_stmt",
    "raise": "SELECT raise(ABORT, 'x')",
    "another dialect's call": "CALL x()",
    "another dialect's show": "SHOW TABLES",
    "another dialect's describe": "DESCRIBE t",
    "another dialect's copy": "COPY t TO 'x'",
    "another dialect's set": "SET x = 1",
    "another dialect's use": "USE x",
    "another dialect's merge": "MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE",
    "another dialect's grant": "GRANT ALL ON t TO x",
    "another dialect's query": "FROM t SELECT a",
    "question mark": "SELECT ?",
    "numbered parameter": "SELECT ?1",
    "named parameter": "SELECT :a",
    "at parameter": "SELECT @a",
    "dollar parameter": "SELECT $a",
    "template": "SELECT {{ x }}",
    "template comment": "SELECT 1 {# ; DELETE FROM t #}",
    "open string": "SELECT 'x",
    "open name": 'SELECT "x',
    "open bracket": "SELECT [x",
    "broken number": "SELECT 1e",
    "no break space": "SELECT\u00a01",
    "ideographic space": "SELECT\u30001",
    "zero width space": "SELECT\u200b 1",
    "byte order mark": "\ufeffSELECT 1",
    "vertical tab": "SELECT\x0b1",
    "NUL": "SELECT 1\x00; DELETE FROM t",
    "NUL in a string": "SELECT 'a\x00b'",
    "lone surrogate": "SELECT '\ud800'",
    "empty": "",
    "blank": " \t\n",
    "comment alone": "-- SELECT 1",
    "semicolon alone": ";",
    "prose": "How many cities are there?",
    "half a query": "SELECT FROM WHERE",
    "open brackets": "SELECT ((1)",
    "closed twice": "SELECT (1))",
    "CTE without a query": "WITH x AS (SELECT 1)",
    "sample": "SELECT * FROM t TABLESAMPLE (10)",
}

READS = """
SELECT 1
SELECT * FROM t;
SELECT * FROM t ; -- done
select a, b from t where a = 1 and b <> 2 or not c order by a desc nulls last limit 5
SELECT a FROM t ORDER BY b COLLATE NOCASE ASC NULLS FIRST, 1 LIMIT 5 OFFSET 2
SELECT a FROM t LIMIT 2, 5
SELECT a FROM t LIMIT -1
WITH x AS (SELECT 1 AS a) SELECT * FROM x
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 10) SELECT n FROM c
WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c LIMIT 10) SELECT n FROM c
WITH x(a) AS MATERIALIZED (SELECT 1) SELECT * FROM x
WITH x(a, "b c") AS NOT MATERIALIZED (SELECT 1, 2) SELECT * FROM x
WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b UNION SELECT * FROM a
SELECT * FROM t WHERE a IN (WITH c AS (SELECT 2) SELECT * FROM c)
VALUES (1, 'a'), (2, 'b')
VALUES (1) UNION ALL VALUES (2) ORDER BY 1
SELECT * FROM (VALUES (1, 2), (3, 4))
(SELECT 1)
SELECT 1 UNION SELECT 2 UNION ALL SELECT 3 INTERSECT SELECT 4 EXCEPT SELECT 5 ORDER BY 1 LIMIT 3
SELECT row_number() OVER (PARTITION BY a ORDER BY b) FROM t
SELECT sum(a) OVER w, avg(b) OVER (w ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t WINDOW w AS (PARTITION BY c ORDER BY d)
SELECT sum(a) OVER (ORDER BY b GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING EXCLUDE TIES) FROM t
SELECT sum(a) OVER (ORDER BY b RANGE BETWEEN 5 PRECEDING AND 5 FOLLOWING) FROM t
SELECT first_value(a) OVER (ORDER BY b), nth_value(a, 2) OVER (ORDER BY b), lag(a, 1, 0) OVER (ORDER BY b) FROM t
SELECT ntile(4) OVER (ORDER BY a), percent_rank() OVER (ORDER BY a), cume_dist() OVER (ORDER BY a) FROM t
SELECT a, RANK() OVER (ORDER BY SUM(b) DESC) AS r FROM t GROUP BY a
SELECT count(*) FILTER (WHERE a > 1), sum(b) FILTER (WHERE c) OVER (PARTITION BY d) FROM t
SELECT d->'$.a', d->>'$.a.b[0]', d->>'x', d -> 0 FROM t WHERE d->>'$.x' > 3 GROUP BY d->>'$.y'
SELECT json_extract(d, '$.a', '$.b'), json_type(d), json_array(1, 2), json_object('a', 1), json_valid(d) FROM t
SELECT json_group_array(a), json_group_object(a, b) FROM t
SELECT json_set('{}', '$.a', 1), json_insert('{}', '$.a', 1), json_remove('{"a": 1}', '$.a')
SELECT j.key, j.value FROM t, json_each(t.d) AS j
SELECT * FROM t JOIN json_tree(t.d, '$.a') ON true
SELECT value FROM generate_series(1, 10, 2)
SELECT a FROM t WHERE a GLOB 'x*' AND b LIKE 'a!%' ESCAPE '!' AND c NOT LIKE 'z' AND d NOT GLOB '?'
SELECT a FROM t WHERE a REGEXP 'x' OR a NOT REGEXP 'y'
SELECT bm25(docs), rank, substr(body, 1, 80) FROM docs WHERE docs MATCH 'x' ORDER BY rank
SELECT CASE WHEN a > 1 THEN 'x' ELSE 'y' END, CASE a WHEN 1 THEN 2 END FROM t
SELECT CAST(a AS INTEGER), CAST(a AS VARCHAR(10)), CAST(a AS DECIMAL(10, 2)), CAST(a AS BLOB), CAST(a AS NUMERIC) FROM t
SELECT a IS DISTINCT FROM b, a IS NOT DISTINCT FROM b, a IS b, a IS NOT b, a IS NULL, a ISNULL, a NOTNULL, a NOT NULL FROM t
SELECT * FROM t WHERE a IS TRUE OR b IS NOT FALSE OR c IS NULL
SELECT * FROM t WHERE (a, b) = (1, 2) OR (a, b) IN (SELECT 1, 2) OR (a, b) < (3, 4)
SELECT * FROM t WHERE (a, b) IN (VALUES (1, 2), (3, 4))
SELECT * FROM t WHERE a IN u OR a IN () OR a NOT IN (1, 2)
SELECT date('now'), datetime('now', '-1 day', 'localtime'), time('now'), julianday('now'), unixepoch(), strftime('%Y', a) FROM t
SELECT strftime('%Y-%m', a, 'start of month'), current_date, current_time, current_timestamp FROM t
SELECT * FROM t WHERE date(created) BETWEEN '2024-01-01' AND '2024-12-31' AND b NOT BETWEEN 3 AND 4
SELECT * FROM t INDEXED BY idx WHERE a = 1
SELECT * FROM t AS x NOT INDEXED WHERE a = 1
SELECT "a b", [c d], `e` FROM "my table", [other one], `third`
SELECT "a""b", [it's], `x``y` FROM t
SELECT 'insert' AS "update", "delete" FROM [drop table]
SELECT a AS 'label', b "other", c [third] FROM t
SELECT 0x1F, x'00ff', X'AB', 1e5, .5, 5., 1.5E-3
SELECT 'it''s', '--', '/* x */', ';', 'DROP TABLE t; --'
SELECT a -- comment; DROP TABLE t
SELECT /* DELETE FROM t; */ 1
SELECT 1 /* a comment that ends with the statement
-- leading\\nSELECT 1
/* leading */ SELECT 1
SELECT a FROM t FULL OUTER JOIN u ON t.a = u.a
SELECT a FROM t RIGHT JOIN u USING (a, b)
SELECT a FROM t LEFT OUTER JOIN u ON t.a = u.a CROSS JOIN v NATURAL JOIN w INNER JOIN z
SELECT a FROM t, u AS v, (SELECT 1) AS w WHERE t.a = v.b
SELECT a FROM (t JOIN u ON t.a = u.a)
SELECT main.t.a, t.*, rowid, _rowid_, oid FROM main.t
SELECT DISTINCT a FROM t
SELECT count(DISTINCT a), count(*), total(a), group_concat(a, ';') FROM t GROUP BY b HAVING count(*) > 1
SELECT group_concat(a, ', ' ORDER BY b), string_agg(a, ',') FROM t
SELECT EXISTS (SELECT 1), NOT EXISTS (SELECT 1 FROM t), (SELECT max(a) FROM t) AS m
SELECT a || b || 'x', a % 2, a << 1, a >> 1, a & 1, a | 1, ~a, -a, +a, a == b, a != b FROM t
SELECT coalesce(a, 0), ifnull(a, 0), nullif(a, 0), iif(a, 1, 2), abs(a), round(a, 2), min(a, b), max(a, b), length(a) FROM t
SELECT lower(a), upper(a), trim(a), ltrim(a, 'x'), rtrim(a), substr(a, 1, 2), replace(a, 'x', 'y'), instr(a, 'x'), hex(a) FROM t
SELECT quote(a), typeof(a), unicode(a), char(65, 66), printf('%d', a), format('%s', a), random(), soundex(a) FROM t
SELECT sqrt(a), pow(a, 2), exp(a), ln(a), log(2, a), log10(a), sin(a), floor(a), ceil(a), pi(), mod(a, 2), sign(a) FROM t
SELECT likely(a), unlikely(b), likelihood(a, 0.5), glob('a*', a), like('a%', a) FROM t
SELECT name, sql FROM sqlite_master WHERE type = 'table'
SELECT m.name, p.name FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS p
SELECT name FROM pragma_table_list
EXPLAIN SELECT 1
EXPLAIN QUERY PLAN SELECT * FROM t WHERE a = 1
PRAGMA table_info(t)
pragma main.table_xinfo('my table');
PRAGMA foreign_key_list("t")
PRAGMA table_list
SELECT replace, key, action, plan, query, row, first, last, temp, view, trigger FROM t
SELECT date, time, year, month, day, status, name, type, value, text, level, position, rank, interval, json FROM t
SELECT "group", t."order" FROM t
SELECT lower(name) AS nom_é, "naïve" FROM città
SELECT a FROM t WHERE b = 'Ünïcödé 東京 🏙' AND c = 'a\u00a0b'
SELECT a FROM t ORDER BY CASE WHEN a IS NULL THEN 1 ELSE 0 END, random() LIMIT 1
SELECT 1 WHERE 1
SELECT t.a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.kind IN ('a', 'b'))
SELECT * FROM t JOIN u JOIN v ON t.a = u.a AND u.b = v.b
SELECT * FROM t a, t b WHERE a.id = b.parent LIMIT (SELECT 5)
""".strip().split("\n")


@pytest.mark.parametrize("statement", [pytest.param(text, id=name) for name, text in NOT_READS.items()])
def test_what_is_not_provably_a_read_is_refused(statement: str) -> None:
    with pytest.raises(KnowledgeGuardError):
        check_read_only(statement, dialect="sqlite")


@pytest.mark.parametrize("statement", READS)
def test_an_honest_read_passes(statement: str) -> None:
    check_read_only(statement.replace("\\n", "\n"), dialect="sqlite")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM t", "This statement deletes (DELETE, position 0)"),
        ("SELECT 1 /* é */; DROP TABLE t", "A second statement follows (DROP, position 18)"),
        ("SELECT  frobnicate(a)", "This function is not known to only read (frobnicate, position 8)"),
        ("SELECT subst(a, 1)", "This function is not known to only read, did you mean substr? (subst, position 7)"),
        ("SELECT a FROM t WHERE WHERE b", "The statement cannot be parsed (WHERE, position 22)"),
        ("SELECT a,\n  -- the second\n  * FORM t", "The statement cannot be parsed (t, position 35)"),
        (
            "VACUUM",
            "A statement that starts like this is not a read; reads start with EXPLAIN, PRAGMA, SELECT, VALUES, WITH "
            "(VACUUM, position 0)",
        ),
        ("SELECT :name", "Parameters are not supported, write the value itself (:name, position 7)"),
        ("SELECT 'x", "The quote that opens here is never closed ('x, position 7)"),
        ("SELECT\u00a01", "This character cannot stand here (U+00A0, position 6)"),
        (
            "SELECT a FROM sqlite_stmt",
            "This table belongs to the engine and is not part of the data (sqlite_stmt, position 14)",
        ),
        ("", "The statement is empty"),
    ],
)
def test_a_refusal_says_what_is_wrong_and_where(statement: str, message: str) -> None:
    with pytest.raises(KnowledgeGuardError) as refusal:
        check_read_only(statement, dialect="sqlite")
    assert str(refusal.value) == message


def test_the_position_is_an_offset_in_the_statement_as_written() -> None:
    statement = "EXPLAIN /* 東京 */ SELECT '🏙', [x] FROM t WHERE \"load_extension\"('x')"
    with pytest.raises(KnowledgeGuardError) as refusal:
        check_read_only(statement, dialect="sqlite")
    assert refusal.value.position == statement.index('"load_extension"')
    assert refusal.value.part == '"load_extension"'


def test_a_cached_refusal_is_the_same_refusal() -> None:
    messages: list[str] = []
    for _ in range(2):
        with pytest.raises(KnowledgeGuardError) as refusal:
            check_read_only("SELECT nope(1)", dialect="sqlite")
        messages.append(str(refusal.value))
    assert messages[0] == messages[1]


def test_allow_names_further_table_functions_whatever_their_case() -> None:
    check_read_only("SELECT * FROM Sheet('x')", dialect="sqlite", allow=["SHEET"])
    with pytest.raises(KnowledgeGuardError):
        check_read_only("SELECT * FROM Sheet('x')", dialect="sqlite", allow=["other"])


def test_allow_opens_nothing_but_the_named_function() -> None:
    with pytest.raises(KnowledgeGuardError):
        check_read_only("SELECT * FROM sheet((DELETE FROM t))", dialect="sqlite", allow=["sheet"])


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT 1", ReadStatement()),
        ("SELECT 1 LIMIT 7", ReadStatement(has_limit=True, limit=7)),
        ("SELECT 1 LIMIT 7 OFFSET 1", ReadStatement(has_limit=True, limit=7)),
        ("SELECT 1 LIMIT 1, 7", ReadStatement(has_limit=True, limit=7)),
        ("SELECT 1 UNION SELECT 2 LIMIT 7", ReadStatement(has_limit=True, limit=7)),
        ("(SELECT 1 LIMIT 7)", ReadStatement(has_limit=True, limit=7)),
        ("SELECT 1 LIMIT -1", ReadStatement(has_limit=True)),
        ("SELECT 1 LIMIT 3 + 4", ReadStatement(has_limit=True)),
        ("SELECT * FROM (SELECT 1 LIMIT 7)", ReadStatement()),
        ("SELECT 1 -- LIMIT 7", ReadStatement()),
        ("SELECT 'LIMIT 7'", ReadStatement()),
        ("WITH x AS (SELECT 1 LIMIT 7) SELECT * FROM x", ReadStatement()),
        ("EXPLAIN SELECT 1 LIMIT 7", ReadStatement()),
        ("PRAGMA table_list", ReadStatement()),
        ('SELECT a FROM main.T JOIN "U v" ON b IN w', ReadStatement(tables=frozenset({"t", "u v", "w"}))),
        ("WITH x AS (SELECT a FROM t) SELECT * FROM x, json_each('[]')", ReadStatement(tables=frozenset({"t"}))),
    ],
)
def test_the_outer_limit_and_the_tables_are_read_from_the_tree(statement: str, expected: ReadStatement) -> None:
    assert analyse_read(statement, dialect="sqlite") == expected


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("SELECT " + "(" * 50_000 + "1" + ")" * 49_000, id="brackets"),
        pytest.param("SELECT " + "(" * 99_000, id="open brackets"),
        pytest.param("SELECT " + "abs(" * (MAX_NESTING + 1) + "1" + ")" * (MAX_NESTING + 1), id="calls"),
        pytest.param("SELECT " + "NOT " * 20_000 + "1", id="negations"),
        pytest.param("SELECT " + "- " * 40_000 + "1", id="signs"),
        pytest.param("SELECT " + "CASE WHEN 1 THEN " * 4_000 + "1" + " END" * 4_000, id="cases"),
        pytest.param("SELECT 1 FROM a " + "JOIN a " * 12_000, id="joins"),
        pytest.param("SELECT * FROM " + "(SELECT * FROM " * 5_000 + "t" + ")" * 5_000, id="subqueries"),
        pytest.param("SELECT " + ", ".join(["a LIKE b"] * 201) + " FROM t", id="patterns"),
        pytest.param("SELECT '" + "x" * MAX_STATEMENT_CHARS + "'", id="length"),
    ],
)
def test_what_is_too_long_or_too_deep_is_refused_at_once(statement: str) -> None:
    with pytest.raises(KnowledgeGuardError):
        check_read_only(statement, dialect="sqlite")


def test_a_long_flat_read_passes() -> None:
    check_read_only("SELECT a FROM t WHERE " + " OR ".join(["a LIKE 'b%'"] * 200), dialect="sqlite")
    check_read_only("SELECT a FROM t WHERE b IN (" + ", ".join(str(i) for i in range(4_900)) + ")", dialect="sqlite")


def test_an_unknown_dialect_is_an_error_that_names_the_known_ones() -> None:
    assert {"postgres", "sqlite", "trino"} <= set(supported_dialects())
    with pytest.raises(AKConfigError, match=r"'oracle'. Supported: \[.*'sqlite'"):
        check_read_only("SELECT 1", dialect="oracle")


@pytest.mark.parametrize("statement", [None, 5, b"SELECT 1"])
def test_what_is_no_text_is_refused(statement: object) -> None:
    with pytest.raises(KnowledgeGuardError, match="A statement is text"):
        check_read_only(statement, dialect="sqlite")  # pyright: ignore[reportArgumentType] - what an untyped caller hands over
