"""What PostgreSQL does not stop, and what tells about people or functions, is refused before it is sent (X1, X16)."""

from __future__ import annotations

import contextlib
import time

import pytest

from agentkernel_kb import KnowledgeGuardError
from agentkernel_kb.guard import check_read_only

LONG_QUERIES = {
    "plain": "SELECT plainto_tsquery(repeat('a b ', 20000))",
    "phrase": "SELECT phraseto_tsquery('simple', repeat('a b ', 20000))",
    "web": "SELECT websearch_to_tsquery('english', string_agg(name, ' or ')) FROM customers",
    "subquery": "SELECT to_tsquery('simple', s) FROM (SELECT repeat('a & ', 10000) || 'a' AS s) AS x",
}
ROUND_POLYGONS = {
    "overlap": "SELECT polygon(20000, '<(0,0),1>'::circle) && polygon(20000, '<(3,0),2>'::circle)",
    "contained": "SELECT polygon(n, '<(0,0),1>'::circle) @> polygon(n, '<(0,0),1>'::circle) FROM unnest(ARRAY[90000]) AS g(n)",
    "distance": "SELECT path(polygon(20000, '<(0,0),1>'::circle)) <-> path(polygon(20000, '<(5,0),1>'::circle))",
}
TYPES = {
    "xml-cast": "SELECT '<x/>'::xml",
    "xml-literal": "SELECT xml '<x/>'",
    "xml-quoted": "SELECT CAST('<x/>' AS \"xml\")",
    "xml-column": "SELECT x.a FROM json_to_recordset('[]') AS x(a xml)",
    "regrole": "SELECT 10::oid::regrole::text",
    "regrole-array": "SELECT '{10}'::_regrole",
    "role-tried": "SELECT pg_input_is_valid('kb', 'regrole')",
    "xml-tried": "SELECT pg_input_is_valid(repeat('<a>', 200000), 'xml')",
    "grants": "SELECT 'kb=r/kb'::aclitem",
    "xml-document": "SELECT note IS NOT DOCUMENT FROM orders",
}
LONG_PATTERNS = {
    "repeated": "SELECT repeat('a', 900000) LIKE '%' || repeat('a', 400000) || 'b'",
    "by-sign": "SELECT repeat('a', 900000) !~~* ('%' || repeat('a', 400000) || 'b')",
    "gathered": "SELECT c.name LIKE p.s FROM customers AS c, (SELECT '%' || string_agg(name, '') AS s FROM products) AS p",
    "list": "SELECT name LIKE ANY (ARRAY['%' || repeat('a', 400000) || 'b']) FROM customers",
    "escaped": "SELECT name ILIKE repeat('a%', 90000) || 'b' ESCAPE '!' FROM customers",
}
BUILT_IN_A_ROW = {
    "chain": f"SELECT length({' || '.join(['s'] * 90)}) FROM (SELECT repeat('x', 1000000) AS s) AS q",
    "replaced": "SELECT length(replace(repeat('x', 1000000), 'x', repeat('y', 900)))",
    "replaced-by-pattern": "SELECT length(regexp_replace(repeat('x', 1000000), 'x', repeat('y', 900), 'g'))",
    "filled": "SELECT array_to_string(array_fill(repeat('x', 1000000), ARRAY[500]), '')",
    "formatted": f"SELECT format('{'%1$s' * 90}', s) FROM (SELECT repeat('x', 1000000) AS s) AS q",
    "handed-on": "WITH a AS (SELECT repeat('x', 1000000) AS s), b AS (SELECT concat(s, s, s, s, s) AS t FROM a) "
    "SELECT concat(t, t, t, t, t) FROM b",
    "looked-at": f"SELECT {'similarity(s, s), ' * 9} 1 FROM (SELECT repeat('ab ', 300000) AS s) AS q",
    "logarithms": f"SELECT {'ln(n), ' * 9} 1 FROM (SELECT power(3::numeric, 250000) AS n) AS q",
    "roots": f"SELECT {'sqrt(n + 1), ' * 90} 1 FROM (SELECT factorial(g) AS n FROM generate_series(30000, 30001) AS h(g)) AS q",
    "digits": f"SELECT {'ln(n), ' * 9} 1 FROM (SELECT repeat('7', 60000)::numeric AS n) AS q",
    "exponent": "SELECT sqrt(3e90000 + 1), ln(7e90000 + 1), log(5e90000 + 1)",
    "gathered": "SELECT cardinality(array_agg(repeat('x', 1000000))) FROM generate_series(1, 100000)",
    "gathered-by-name": "SELECT jsonb_agg(s) FROM (SELECT repeat('x', 900000) || g AS s FROM generate_series(1, 9) AS h(g)) q",
    "kept-to-compare": "SELECT 'a' NOT IN (SELECT repeat('x', 1000000) || g FROM generate_series(1, 90000) AS g)",
    "kept-for-any": "SELECT 'a' <> ALL (SELECT repeat('x', 1000000) || g FROM generate_series(1, 90000) AS g)",
}
SLOW_TO_PROVE = {
    "differences": "SELECT " + ", ".join("1 - " * 300 + "1" for _ in range(16)),
    "names": "WITH RECURSIVE "
    + ", ".join(f"c{n} AS (SELECT x{n + 1} AS x{n} FROM c{n + 1})" for n in range(700))
    + ", c700 AS (SELECT repeat('a', 1000) AS x700) SELECT x0 - '1' FROM c0",
}
HANG_SECONDS = {"differences": 5.0, "names": 15.0}
HONEST = {
    "bar": "SELECT name, repeat('*', (salary / 10000)::int) AS bar FROM employees",
    "part-of-name": "SELECT a.name FROM customers AS a JOIN customers AS b ON a.name LIKE '%' || b.name || '%'",
    "interest": "SELECT sum(total * (1 + 0.02) ^ line), sqrt(avg(power(total - 5, 2))), ln(1e6), power(1.05, 36.5) FROM orders",
    "padded": "SELECT string_agg(rpad(name, 20) || lpad(total::text, 10), E'\n') FROM orders",
    "nested-json": "SELECT json_agg(json_build_object('n', name, 'o', (SELECT json_agg(o) FROM orders AS o))) FROM customers",
    "long-chain": f"SELECT {' || '.join(['name'] * 300)} FROM customers",
    "many-branches": " UNION ALL ".join(["SELECT name FROM customers"] * 500),
    "tried": "SELECT id FROM orders WHERE pg_input_is_valid(comment, 'int4')",
    "search": "SELECT name FROM products WHERE search @@ plainto_tsquery('english', 'desk lamp')",
    "stored-search": "SELECT name FROM products p, customers c WHERE p.search @@ websearch_to_tsquery(c.name)",
    "small-polygons": "SELECT polygon(400, '<(0,0),1>'::circle) && polygon(400, '<(3,0),2>'::circle)",
    "one-large": "SELECT polygon(20000, '<(0,0),1>'::circle) @> '(0,0)'::point",
    "names": "SELECT a AS xml, b AS regrole FROM t",
}


@pytest.mark.parametrize("statement", LONG_QUERIES.values(), ids=LONG_QUERIES)
def test_no_long_text_is_made_a_query_of_a_text_search(statement: str) -> None:
    with pytest.raises(KnowledgeGuardError, match=r"query of .*tsquery has to be written out, or short"):
        check_read_only(statement, dialect="postgres")


@pytest.mark.parametrize("statement", ROUND_POLYGONS.values(), ids=ROUND_POLYGONS)
def test_polygons_of_many_points_are_not_compared(statement: str) -> None:
    with pytest.raises(KnowledgeGuardError, match="Both sides are built by this statement"):
        check_read_only(statement, dialect="postgres")


@pytest.mark.parametrize("statement", TYPES.values(), ids=TYPES)
def test_nothing_is_cast_to_xml_or_to_a_role(statement: str) -> None:
    with pytest.raises(KnowledgeGuardError, match=r"no time limit stops its parser|who may log in"):
        check_read_only(statement, dialect="postgres")


@pytest.mark.parametrize("statement", LONG_PATTERNS.values(), ids=LONG_PATTERNS)
def test_no_long_text_is_a_pattern_of_like(statement: str) -> None:
    with pytest.raises(KnowledgeGuardError, match=r"of LIKE has to be written out, or short|gathered here"):
        check_read_only(statement, dialect="postgres")


@pytest.mark.parametrize("statement", BUILT_IN_A_ROW.values(), ids=BUILT_IN_A_ROW)
def test_one_row_builds_no_more_than_the_server_can_bear(statement: str) -> None:
    with pytest.raises(KnowledgeGuardError, match=r"characters|gather|written out, or short"):
        check_read_only(statement, dialect="postgres")


@pytest.mark.parametrize("case", SLOW_TO_PROVE)
def test_a_long_statement_is_proven_or_refused_soon(case: str) -> None:
    started = time.monotonic()
    with contextlib.suppress(KnowledgeGuardError):
        check_read_only(SLOW_TO_PROVE[case], dialect="postgres")
    assert time.monotonic() - started < HANG_SECONDS[case]


@pytest.mark.parametrize("view", ["routines", "triggers", "parameters", "enabled_roles", "table_privileges"])
def test_the_text_of_functions_and_who_may_do_what_is_not_read(view: str) -> None:
    with pytest.raises(KnowledgeGuardError, match="belongs to the engine"):
        check_read_only(f"SELECT * FROM information_schema.{view}", dialect="postgres")


@pytest.mark.parametrize("statement", HONEST.values(), ids=HONEST)
def test_what_is_small_or_stored_is_a_read(statement: str) -> None:
    check_read_only(statement, dialect="postgres")
