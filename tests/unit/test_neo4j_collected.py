"""What was collected may be as long as the graph is large: loops over it look at each item alone, or are refused (X1, A12)."""

from __future__ import annotations

import pytest

from agentkernel_kb import KnowledgeGuardError
from agentkernel_kb.guard.cypher import check_read_only_cypher, check_write_cypher

EACH_WITH_ALL = [
    "MATCH (n) WITH collect(n.name) AS l RETURN [x IN l WHERE x IN l]",
    "MATCH (n) WITH collect(n.name) AS l RETURN reduce(s = '', x IN l | s + x)",
    "MATCH (n) WITH collect(n.name) AS l RETURN reduce(s = 0, x IN l | s + x)",
    "MATCH (n) WITH collect(n.name) AS l RETURN reduce(s = [], x IN l | s + [x])",
    "MATCH (n) WITH collect(n.name) AS l WITH l AS m RETURN any(x IN m WHERE x IN m)",
    "MATCH (n) WITH collect(n.name) AS `a b` RETURN size([x IN `a b` WHERE x IN `a b`])",
    "MATCH (n) WITH {a: collect(n.name)} AS m RETURN [x IN m.a WHERE x IN m.a]",
    "MATCH (n) WITH collect(n) AS l UNWIND [1,2] AS i WITH collect(l) AS k RETURN [x IN k[0] WHERE x IN k[1]]",
    "MATCH (n) WITH COLLECT { MATCH (m) RETURN m.name } AS l RETURN [x IN l WHERE x IN l]",
    "MATCH (n) WITH [(n)--(m) | m.name] AS l RETURN [x IN l WHERE x IN l]",
    "MATCH (n) WITH split(n.text, '') AS l RETURN [x IN l WHERE x IN l]",
    "MATCH (n) WITH collect(n.name) AS l RETURN [x IN l WHERE x IN l[..100000]]",
    "MATCH (n) WITH collect(n.name) AS l RETURN [x IN l WHERE x IN l[5..]]",
    "MATCH (n) WITH collect(n.name) AS l RETURN [x IN l WHERE l = l]",
    "MATCH (n) WITH collect(n.name) AS l RETURN [x IN l WHERE toString(reverse(l)[0]) = x]",
    "MATCH (n) WITH collect(n.name) AS l RETURN [i IN range(0, size(l)) WHERE i IN l]",
    "CALL { MATCH (n) RETURN collect(n.name) AS l } RETURN [x IN l WHERE NOT x IN l]",
    "MATCH (n) WITH collect(n.name) AS l WITH [x IN l | x] AS m RETURN none(x IN m WHERE x IN m)",
    "MATCH (n) WITH collect(n.name) AS l UNWIND [l, l] AS k RETURN [x IN k WHERE x IN k]",
    "MATCH (n) RETURN [x IN collect(n.name) WHERE x IN collect(n.name)]",
    "MATCH (n) WITH collect(n.name) AS l RETURN size([x IN coalesce(l, []) WHERE x IN coalesce(l, [])])",
    "MATCH (n) WITH collect(n.name) AS l RETURN reduce(s = '', x IN l | CASE WHEN s = '' THEN x ELSE s + ',' + x END)",
    *(
        f"MATCH (n) WITH collect(n.name) AS {word} WITH {word} AS l RETURN [x IN l WHERE x IN l]"
        for word in ("as", "call", "let", "return", "unwind", "with", "yield")
    ),
    "MATCH (n) WITH collect(n.name) AS with WITH with + [] AS l RETURN [x IN l WHERE x IN l]",
    "MATCH (n) WITH n, collect(n.name) AS k WITH k + n.return AS l RETURN [x IN l WHERE x IN l]",
    "MATCH (n) WITH collect(n.name) AS k WITH CASE WHEN 1 = 1 THEN k WHEN 'a' STARTS WITH 'a' THEN [] END AS l"
    " RETURN [x IN l WHERE x IN l]",
    "MATCH (n) WITH collect(n.name) AS k WITH CASE WHEN 1 = 1 THEN k WHEN k IS :: TIME WITH TIME ZONE THEN [] END AS l"
    " RETURN [x IN l WHERE x IN l]",
]
EACH_WITH_SOMETHING_LONG = [
    "MATCH (n) WITH collect(n.name) AS l RETURN [x IN l WHERE size(toStringList(l)) = 3]",
    "MATCH (n) WITH collect(n.name) AS l RETURN [x IN l WHERE head(reverse(l)) = x]",
    "MATCH (n) WITH collect(n.name) AS l RETURN [x IN l WHERE last(l + [x]) = x]",
    "MATCH (n) WITH {a: collect(n.name)} AS m RETURN [x IN m['a'] WHERE x IN tail(m['a'])]",
    "MATCH (n) WITH {a: collect(n.name)} AS m, 'a' AS k RETURN [x IN m[k] WHERE x IN m[k]]",
    "MATCH (n) WITH {a: collect(n.name)} AS m UNWIND m AS k RETURN [x IN k.a WHERE x IN k.a]",
    "MATCH (n) WITH collect(n.name) AS l MATCH (b) WITH b {.*, l} AS m RETURN [x IN m['l'] WHERE x IN m['l']]",
    "MATCH (n) WITH collect(n.name) AS l MATCH (b) WITH collect(l + [b.id])[..1000] AS k RETURN [x IN k WHERE x IN k]",
    "MATCH (n) WITH collect(n.name) AS where RETURN [x IN where WHERE x IN where]",
    "MATCH (n) LET l = COLLECT { MATCH (m) RETURN m.name } RETURN [x IN l WHERE x IN l]",
    "MATCH (n) WITH collect(n.name) AS l RETURN reduce(s = [], x IN l | s + 1)",
    "MATCH (n) WITH collect(n.name) AS l RETURN reduce(s = '', x IN l | s + size(x))",
    "MATCH (n) WITH collect(n.name) AS l RETURN reduce(s = 0, x IN l | s + x + size(x))",
    "MATCH (n) WITH collect(n.name) AS l RETURN [i IN range(1, 1000) WHERE l = l]",
    "MATCH (n) WITH collect(n.name) AS l RETURN [i IN range(1, 1000) WHERE size(toStringList(l)) = i]",
    "MATCH (n) WITH collect(n.name) AS l RETURN [x IN l[..1000] WHERE x IN tail(l)]",
    "WITH reduce(s = [], i IN range(1, 1000) | s + range(1, 200)) AS l RETURN [x IN l WHERE l = l]",
    "MATCH (n) WITH reduce(s = [], i IN range(1, 1000) | s + n.tags) AS l RETURN [x IN l WHERE x IN tail(l)]",
    "WITH [i IN range(1, 1000) | range(1, 999) + [i]] AS k RETURN [x IN k WHERE x IN k]",
    f"WITH {' + '.join(['range(1, 1000)'] * 50)} AS l RETURN [x IN l WHERE x IN tail(l)]",
    f"WITH reduce(s = '', i IN range(1, 1000) | s + '{'ab' * 200}') AS s RETURN [x IN split(s, '') WHERE s CONTAINS x + 'zz']",
    f"WITH reduce(s = '', i IN range(1, 1000) | s + '{'ab' * 200}') AS s RETURN [i IN range(1, 1000) WHERE normalize(s) = 'x']",
]
EACH_ALONE = [
    "MATCH (n) WITH collect(n.name) AS l RETURN [x IN l WHERE x STARTS WITH 'a']",
    "MATCH (n) WITH collect(n.name)[..100] AS l RETURN reduce(s = '', x IN l | s + x)",
    "MATCH (n) WITH collect(n.name)[0..1000] AS l RETURN [x IN l WHERE x IN l]",
    "MATCH (n) WITH collect(n.name) AS l MATCH (m) WHERE m.name IN l RETURN m",
    "MATCH (n) WITH collect(n) AS l MATCH (m) RETURN m, [x IN l WHERE x <> m | x.name]",
    "MATCH (n) WITH collect(n.age) AS l RETURN [i IN range(0, size(l) - 2) | l[i+1] - l[i]]",
    "MATCH (n) WITH collect(n.age) AS l RETURN reduce(t = 0, x IN l | t + toInteger(x))",
    "MATCH (n) WITH collect(n) AS l UNWIND l AS x RETURN [t IN x.tags WHERE t IN ['a','b']]",
    "MATCH (n) WITH collect(n.tag) AS wanted MATCH (m) WHERE any(t IN m.tags WHERE t IN wanted) RETURN m",
    "MATCH p=(a)-[:R*1..3]->(b) WITH collect(p) AS ps UNWIND ps AS p RETURN reduce(t = 0, r IN relationships(p) | t + r.w)",
    "MATCH (n) WITH n, split(n.name, ' ') AS w RETURN [x IN w WHERE size(x) > 2 | toUpper(x)]",
    "MATCH (n) WITH collect({a: n.name, b: n.age}) AS l RETURN [x IN l WHERE x.b > 3 | x.a]",
    "MATCH (n) WITH collect(n.age) AS l, avg(n.age) AS m RETURN [x IN l WHERE x > m]",
    "MATCH (n) WITH collect(n.age) AS l RETURN [x IN l WHERE x = last(l)]",
    "MATCH (n) WITH collect(n.age) AS l RETURN reduce(t = 0, x IN l | t + x * 2)",
    "MATCH (n) WITH collect(n.age) AS l RETURN reduce(c = 0, x IN l | c + CASE WHEN x > 3 THEN 1 ELSE 0 END)",
    "MATCH (n) WITH collect(n.age) AS l RETURN [i IN range(0, size(l) - 1, 100) | l[i..i+3]]",
    "MATCH p=(a)-[:R*1..3]->(b) RETURN reduce(w = 0, r IN relationships(p) | w + r.w)",
    "MATCH (n)--(m) WITH n, collect(m.name) AS l, count(*) AS c WITH collect({n: n.name, l: l, c: c}) AS rows"
    " RETURN [r IN rows WHERE r.c > 3 | {n: r.n, size: size(r.l), first: r.l[0]}]",
    "MATCH (n) WITH {a: collect(n.name)} AS m RETURN [x IN m['a'][..1000] WHERE x IN m.a[..1000]]",
    "WITH range(1, 1000) AS l RETURN [x IN l WHERE x * 2 IN l]",
    "MATCH (n) WITH collect(n.age) AS l WITH DISTINCT l, 1 AS one UNWIND [1] AS m RETURN [x IN [m] WHERE x IN l]",
    "MATCH (n) WITH n, n.tags AS t WITH n, collect(n.age) AS l ORDER BY n DESC WITH n, t RETURN [x IN t WHERE x IN t]",
]


@pytest.mark.parametrize("statement", EACH_WITH_ALL + EACH_WITH_SOMETHING_LONG)
def test_a_loop_over_what_was_collected_looks_at_no_list_for_each_item(statement: str) -> None:
    for check in (check_read_only_cypher, check_write_cypher):
        with pytest.raises(KnowledgeGuardError, match=r"was collected.*collect\(x\)\[\.\.1000\]"):
            check(statement, engine="neo4j")


@pytest.mark.parametrize("statement", EACH_ALONE)
def test_a_loop_that_looks_at_each_item_alone_or_at_a_few_is_a_read(statement: str) -> None:
    check_read_only_cypher(statement, engine="neo4j")


def test_a_list_that_is_added_to_itself_again_and_again_is_refused_without_a_loop() -> None:
    doubled = f"WITH {' + '.join(['l'] * 10)} AS l "
    for statement in (
        f"WITH range(1, 1000) AS l {doubled * 5}RETURN 0 IN l",
        f"MATCH (n) WITH collect(n.name) AS l {doubled * 2}RETURN 'q' IN l",
    ):
        with pytest.raises(KnowledgeGuardError, match="too long for what looks at all of it"):
            check_read_only_cypher(statement, engine="neo4j")


LONG_TEXTS = [
    f"WITH reduce(s = '', i IN range(1, 1000) | s + '{'a' * 30}') AS s RETURN s =~ 'a*a*b'",
    f"WITH reduce(s = '', i IN range(1, 1000) | s + '{'a' * 30}') AS s RETURN split(s, 'q')[0] =~ '(aa)+a*b'",
    f"WITH reduce(s = '', i IN range(1, 1000) | s + '{'a' * 30}') AS s WITH {{t: [s]}} AS m RETURN toUpper(m.t[0]) =~ 'A*A*B'",
    f"RETURN '{'a' * 20_000}' =~ 'a*a*b'",
    f"WITH '{'a' * 5_000}' AS and RETURN and + and + and =~ 'a*a*b'",
]


@pytest.mark.parametrize("statement", LONG_TEXTS, ids=["reduce", "items", "map", "written", "added"])
def test_a_regular_expression_that_repeats_twice_matches_no_long_text(statement: str) -> None:
    with pytest.raises(KnowledgeGuardError, match=r"repeats twice"):
        check_read_only_cypher(statement, engine="neo4j")


@pytest.mark.parametrize(
    "search",
    [
        "s CONTAINS substring(s, 1, 400000) + 'q'",
        "size(replace(s, left(s, 400000) + 'q', 'x'))",
        "split(s, left(s, 400000) + 'q')",
    ],
)
def test_a_long_text_is_not_looked_for_in_a_long_one(search: str) -> None:
    with pytest.raises(KnowledgeGuardError, match="long text is looked for"):
        check_read_only_cypher(
            f"WITH reduce(s = '', i IN range(1, 1000) | s + '{'ab' * 450}') AS s RETURN {search}", engine="neo4j"
        )
    check_read_only_cypher(
        "MATCH (n) WITH collect(n) AS l MATCH (m) WHERE size(l) > 3 AND m.name CONTAINS 'a' RETURN l", engine="neo4j"
    )


def test_a_regular_expression_that_repeats_twice_matches_what_is_short() -> None:
    for statement in (
        "MATCH (n) WITH collect(n.name) AS l MATCH (m) WHERE NOT m.name IN l AND m.name =~ '(?i).*foo.*' RETURN m",
        "MATCH (n) WITH collect(n.name) AS l RETURN [x IN l WHERE x =~ '.*a.*']",
        f"WITH reduce(s = '', i IN range(1, 1000) | s + '{'a' * 30}') AS s RETURN s =~ 'a*b'",
        "MATCH p=(a)-[:R*1..3]->(b) RETURN reduce(s = '', n IN nodes(p) | s + n.name) =~ '.*foo.*'",
    ):
        check_read_only_cypher(statement, engine="neo4j")


def test_a_text_that_was_put_together_long_is_not_read_as_a_number() -> None:
    digits = "1" * 900
    for function in ("toInteger", "toFloat"):
        with pytest.raises(KnowledgeGuardError, match="not read as a number"):
            check_read_only_cypher(f"RETURN {function}(reduce(s = '', i IN range(1, 1000) | s + '{digits}'))", engine="neo4j")
        check_read_only_cypher(f"MATCH (n) WITH collect(n.age) AS l RETURN [x IN l | {function}(x)]", engine="neo4j")


def test_subqueries_with_union_multiply_the_rows_a_bounded_number_of_times() -> None:
    def chain(length: int) -> str:
        parts = (f"CALL (a{i}) {{ RETURN a{i} AS a{i + 1} UNION ALL RETURN a{i} AS a{i + 1} }}" for i in range(length))
        return f"UNWIND [1] AS a0 {' '.join(parts)} RETURN count(*)"

    check_read_only_cypher(chain(8), engine="neo4j")
    with pytest.raises(KnowledgeGuardError, match="Subqueries with UNION"):
        check_read_only_cypher(chain(9), engine="neo4j")
