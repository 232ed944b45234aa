"""Between rows of an UNWIND Neo4j hardly looks at its limit: what an expression does for each of them is bounded (X1, A12)."""

from __future__ import annotations

import pytest

from agentkernel_kb import KnowledgeGuardError
from agentkernel_kb.guard.cypher import check_read_only_cypher

COLLECTED = "MATCH (n) WITH collect(n.name) AS l UNWIND range(1, 1000) AS r "
DAYS = "range(0, duration.inDays(date('2024-01-01'), date('2026-09-01')).days - 1)"
LONG_TEXT = f"WITH reduce(s = '', i IN range(1, 1000) | s + '{'a' * 900}') AS s UNWIND range(1, 1000) AS r "
FOR_EACH_ROW = {
    "walk": f"{COLLECTED}RETURN sum(size([x IN l WHERE x = r])) AS n",
    "filter": f"{COLLECTED}WITH l, r WHERE size([x IN l WHERE x = r]) > 9 RETURN r",
    "order": f"{COLLECTED}RETURN r ORDER BY size([x IN l WHERE x = r])",
    "other-name": f"{COLLECTED}WITH l AS m, r RETURN max(size([x IN m WHERE x = r])) AS n",
    "two-unwinds": "MATCH (n) WITH collect(n.name) AS l UNWIND [1, 2] AS q UNWIND l AS r RETURN size([x IN l WHERE x = r])",
    "in-a-call": "MATCH (n) WITH collect(n) AS l CALL (l) { UNWIND l AS r RETURN size([x IN l WHERE x = r]) AS n } RETURN n",
    "quantifier": f"{COLLECTED}RETURN count(CASE WHEN any(x IN l WHERE x = r) THEN 1 END) AS n",
    "many-with-many": "UNWIND range(1, 1000) AS r RETURN max(size([x IN range(1, 1000) WHERE x IN range(1, 990)])) AS n",
    "copies": f"UNWIND range(1, 1000) AS r RETURN max(size(reduce(s = '', i IN range(1, 1000) | s + '{'a' * 900}' + r))) AS n",
    "below-zero": f"UNWIND range(1, 999) AS r RETURN max(size(reduce(s = '', i IN range(-500, 499) | s + '{'a' * 900}'))) AS n",
    "days": f"UNWIND range(-500, 499) AS r RETURN max(size(reduce(s = '', i IN {DAYS} | s + '{'a' * 900}' + r))) AS n",
    "converted": f"{COLLECTED}RETURN max(size(toStringList(l))) AS n",
    "split": f"{LONG_TEXT}RETURN max(size(split(s, ''))) AS n",
    "upper": f"{LONG_TEXT}RETURN max(size(toUpper(s))) AS n",
    "matched": f"{LONG_TEXT}WITH r, s WHERE s =~ '.*b' RETURN max(r) AS n",
}
HONEST = {
    "its-own-group": "MATCH (n) UNWIND n.tags AS t WITH t, collect(n.name) AS l RETURN t, [x IN l WHERE x STARTS WITH 'a']",
    "first-ones": "MATCH (n) WITH collect(n.name)[..1000] AS l UNWIND l AS r RETURN r, size([x IN l WHERE x = r]) AS n",
    "few-rows": "MATCH (n) WITH collect(n.name) AS l UNWIND ['a', 'b'] AS r RETURN r, size([x IN l WHERE x STARTS WITH r])",
    "before": "MATCH (n) WITH [x IN collect(n.name) WHERE x > 'a'] AS l UNWIND l AS x RETURN x, toUpper(x) AS y",
    "words": "MATCH (n) WITH split(n.note, ' ') AS w UNWIND w AS x RETURN x, size([y IN w WHERE y = x]) AS n",
    "days": f"UNWIND {DAYS} AS d RETURN date('2024-01-01') + duration({{days: d}}) AS day",
    "numbers": "UNWIND range(1, 1000) AS r RETURN max(reduce(s = 0, i IN range(1, 1000) | s + i * r)) AS n",
    "from-the-graph": "MATCH (n) WITH collect(n) AS l MATCH (m) RETURN m, [x IN l WHERE x <> m | x.name] AS others",
    "found-in": "MATCH (n) WITH collect(n.name) AS l UNWIND ['a', 'b'] AS r RETURN r, r IN l AS known",
    "joined": "UNWIND [['a', 'b'], ['c']] AS l RETURN reduce(s = '', x IN l | s + x) AS t",
    "a-name": "MATCH (unwind) WITH collect(unwind.name) AS l RETURN [x IN l WHERE x > 'a'] AS n",
}


@pytest.mark.parametrize("statement", FOR_EACH_ROW.values(), ids=FOR_EACH_ROW)
def test_nothing_long_is_looked_at_for_each_row_of_an_unwind(statement: str) -> None:
    with pytest.raises(KnowledgeGuardError, match=r"each row of an UNWIND.*collect\(x\)\[\.\.1000\], or do it before"):
        check_read_only_cypher(statement, engine="neo4j")


@pytest.mark.parametrize("statement", HONEST.values(), ids=HONEST)
def test_what_is_short_or_made_for_the_row_is_a_read(statement: str) -> None:
    check_read_only_cypher(statement, engine="neo4j")


@pytest.mark.parametrize(
    "clause",
    [
        "UNWIND [[a{0}, a{0}]] AS a{1}",
        "UNWIND [a{0} + a{0}] AS a{1}",
        "UNWIND a{0} + a{0} AS a{1}",
        "UNWIND [{{a: a{0}, b: a{0}}}] AS a{1}",
        "LET a{1} = a{0} + a{0}",
        "CALL (a{0}) {{ UNWIND [[a{0}, a{0}]] AS b UNWIND [[b, b]] AS a{1} RETURN a{1} }}",
    ],
    ids=["lists", "texts", "bare", "maps", "let", "subqueries"],
)
def test_a_chain_of_clauses_that_double_a_value_is_refused(clause: str) -> None:
    def chain(length: int) -> str:
        return f"WITH 'ten chars!' AS a0 {' '.join(clause.format(i, i + 1) for i in range(length))} RETURN size(a{length}) AS n"

    check_read_only_cypher(chain(2), engine="neo4j")
    with pytest.raises(KnowledgeGuardError, match="values of any size"):
        check_read_only_cypher(chain(19), engine="neo4j")


def test_a_statement_has_a_bounded_number_of_unwinds() -> None:
    def chain(length: int) -> str:
        return f"{' '.join(f'UNWIND [1] AS a{i}' for i in range(length))} RETURN a0"

    check_read_only_cypher(chain(20), engine="neo4j")
    with pytest.raises(KnowledgeGuardError, match="at most 20 UNWIND"):
        check_read_only_cypher(chain(21), engine="neo4j")
