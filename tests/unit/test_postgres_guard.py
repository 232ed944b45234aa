"""What PostgreSQL does not stop, and what tells about people or functions, is refused before it is sent (X1, X16)."""

from __future__ import annotations

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
}
HONEST = {
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


@pytest.mark.parametrize("view", ["routines", "triggers"])
def test_the_text_of_functions_is_not_read(view: str) -> None:
    with pytest.raises(KnowledgeGuardError, match="belongs to the engine"):
        check_read_only(f"SELECT * FROM information_schema.{view}", dialect="postgres")


@pytest.mark.parametrize("statement", HONEST.values(), ids=HONEST)
def test_what_is_small_or_stored_is_a_read(statement: str) -> None:
    check_read_only(statement, dialect="postgres")
