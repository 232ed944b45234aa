"""The guard alone on the corpora of PostgreSQL and Trino (X1, X20), whose engines are not here: all of it is proven by text."""

from __future__ import annotations

import re

import pytest
from corpora.runner import Item, load

from agentkernel_kb import KnowledgeGuardError
from agentkernel_kb.guard import check_read_only, fallback_limit

DIALECTS = ["postgres", "trino"]
FEWEST = 110
# Honest reads that are refused because the parser cannot read them. The documentation lists them.
FALSE_REFUSALS = {
    "postgres": [
        "SELECT name FROM customers ORDER BY lower(name) USING >",
        "SELECT JSON_QUERY(profile, '$.a' WITH WRAPPER) FROM customers",
        "SELECT JSON_ARRAY(1, 2 NULL ON NULL)",
        "SELECT box '((0,0),(2,2))'",
        "WITH t AS (SELECT 1) VALUES (1)",
    ],
    "trino": [
        "WITH t AS (SELECT 1) VALUES (1)",
        "SELECT * FROM (SELECT * FROM t LIMIT 9) MATCH_RECOGNIZE (PATTERN (A B) SUBSET U = (A, B) DEFINE B AS true)",
        "SELECT 1_000_000",
    ],
}


def _items(dialect: str, kind: str) -> list[Item]:
    return load(dialect, "attacks" if kind == "attacks" else "reads")


def _attacks() -> list[object]:
    return [
        pytest.param(dialect, item, id=f"{dialect}: {item.reason}")
        for dialect in DIALECTS
        for item in _items(dialect, "attacks")
    ]


def _reads() -> list[object]:
    items = [(dialect, item) for dialect in DIALECTS for item in _items(dialect, "reads")]
    return [
        pytest.param(dialect, item, id=f"{dialect}: {item.reason}")
        for dialect, item in items
        if item.statement not in FALSE_REFUSALS[dialect]
    ]


@pytest.mark.parametrize(("dialect", "item"), _attacks())
def test_an_attack_is_refused_for_the_part_that_makes_it_one(dialect: str, item: Item) -> None:
    part = re.search(r"`([^`]+)`", item.reason)
    assert part is not None
    with pytest.raises(KnowledgeGuardError) as refusal:
        check_read_only(item.statement, dialect=dialect)
    assert refusal.value.reason
    assert refusal.value.part == part[1]


@pytest.mark.parametrize(("dialect", "item"), _reads())
def test_an_honest_read_passes(dialect: str, item: Item) -> None:
    check_read_only(item.statement, dialect=dialect)


@pytest.mark.parametrize(("dialect", "item"), _reads())
def test_an_honest_read_passes_with_a_limit_too(dialect: str, item: Item) -> None:
    limited = fallback_limit(item.statement, dialect=dialect, limit=17)
    assert limited.replace(" LIMIT 17", "", 1) == item.statement
    check_read_only(limited, dialect=dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", ["attacks", "reads"])
def test_a_corpus_is_large_and_says_nothing_twice(dialect: str, kind: str) -> None:
    items = _items(dialect, kind)
    assert len(items) >= FEWEST
    assert len({item.statement.casefold() for item in items}) == len(items)
    assert len({item.reason for item in items}) == len(items)


@pytest.mark.parametrize(("dialect", "statement"), [(d, text) for d, texts in FALSE_REFUSALS.items() for text in texts])
def test_what_the_documentation_calls_a_false_refusal_is_one(dialect: str, statement: str) -> None:
    with pytest.raises(KnowledgeGuardError, match=r"cannot be (parsed|read)"):
        check_read_only(statement, dialect=dialect)
