"""The filter language (P6): every operator, every type, every fault, and that a scope is never widened (S5)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag.where import OPERATORS, parse_where

METADATA = {
    "department": "finance",
    "year": 2026,
    "ratio": 0.5,
    "current": True,
    "owner": None,
    "tags": ["a", 1],
    "revision": {"year": 2026, "by": {"name": "Ann"}},
    "a.b": "as written",
    "a": {"b": "nested"},
}


def meets(where: Any, **chunk: str) -> bool:
    return parse_where(where).matches(METADATA, **chunk)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (None, True),
        ({}, True),
        ({"department": "finance"}, True),
        ({"department": "Finance"}, False),
        ({"department": "finance", "year": 2025}, False),
        ({"year": {"$gte": 2026, "$lt": 2027}}, True),
        ({"year": {"$gte": 2026, "$lt": 2026}}, False),
        ({"year": 2026.0}, True),
        ({"year": "2026"}, False),
        ({"current": 1}, False),
        ({"current": True}, True),
        ({"year": {"$gt": "2000"}}, False),
        ({"department": {"$gt": "audit"}}, True),
        ({"current": {"$gte": 0}}, False),
        ({"department": {"$in": ["finance", "legal"]}}, True),
        ({"year": {"$in": ["2026"]}}, False),
        ({"current": {"$in": [1]}}, False),
        ({"department": {"$in": []}}, False),
        ({"department": {"$nin": []}}, True),
        ({"department": {"$ne": "finance"}}, False),
        ({"revision.year": {"$gte": 2026}}, True),
        ({"revision.by.name": "Ann"}, True),
        ({"revision": {"year": 2026, "by": {"name": "Ann"}}}, True),
        ({"revision": {"year": 2026}}, False),
        ({"a.b": "as written"}, True),
        ({"a.b": "nested"}, False),
        ({"owner": None}, True),
        ({"tags": {"$contains": "a"}}, True),
        ({"tags": {"$contains": "1"}}, False),
        ({"tags": ["a", 1]}, True),
        ({"tags": ["a", True]}, False),
        ({"department": {"$contains": "nan"}}, True),
        ({"department": {"$contains": 5}}, False),
        ({"revision": {"$contains": "year"}}, True),
        ({"year": {"$contains": 2}}, False),
    ],
)
def test_a_filter_holds_or_does_not(where, expected) -> None:
    assert meets(where) is expected


@pytest.mark.parametrize("key", ["nothing", "department.deeper", "revision.nothing"])
def test_a_key_that_is_missing_meets_only_what_denies(key) -> None:
    operand = {"$in": ["x"], "$nin": ["x"]}
    met = {operator for operator in OPERATORS if meets({key: {operator: operand.get(operator, "x")}})}
    assert met == {"$ne", "$nin"}
    assert not meets({key: None})


def test_the_chunk_itself_is_named_by_keys_that_metadata_cannot_stand_in_for() -> None:
    where = parse_where({"source": "a.md", "document_id": "d", "id": "c", "chunk_id": {"$ne": "x"}})
    assert where.matches({"source": "b.md"}, source="a.md", document_id="d", chunk_id="c")
    assert not where.matches({"source": "a.md"}, source="b.md", document_id="d", chunk_id="c")


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ([], "must be a mapping"),
        ({1: 2}, "keys are names of metadata"),
        ({"": 2}, "keys are names of metadata"),
        ({"$or": [{"a": 1}]}, "in place of a key"),
        ({"a": {}}, "has no operator for 'a'"),
        ({"a": {"$gr": 1}}, r"Did you mean '\$gt'"),
        ({"a": {"$gt": 1, "b": 2}}, "unknown operator 'b'"),
        ({"a": {"$in": "finance"}}, "takes a list of values, not text"),
        ({"a": {"$nin": 5}}, "takes a list of values, not number"),
        ({"a": {"$gt": True}}, "takes a number or a text, not boolean"),
        ({"a": {"$lt": None}}, "takes a number or a text, not null"),
        ({"a": math.nan}, "finite numbers"),
        ({"a": {"$in": [math.inf]}}, "finite numbers"),
        ({"a": object()}, "JSON values, not object"),
        ({"a": {"$eq": b"x"}}, "JSON values, not bytes"),
        ({f"k{n}": n for n in range(101)}, "at most 100"),
        ({"a": {"$in": list(range(10_001))}}, "at most 10000"),
    ],
)
def test_a_faulty_filter_is_refused_with_what_would_be_right(where, message) -> None:
    with pytest.raises(AKConfigError, match=message):
        parse_where(where)


def test_a_filter_nested_without_end_is_refused() -> None:
    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(AKConfigError, match="nested deeper"):
        parse_where({"a": deep})


def test_a_filter_does_not_change_with_the_mapping_that_it_was_made_of() -> None:
    operand = ["finance"]
    where = parse_where({"tags": operand})
    operand.append("legal")
    assert where.matches({"tags": ["finance"]})


KEYS = st.sampled_from(["tenant", "a", "b", "source", "id", "nested.key"])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(-2, 2), st.sampled_from(["", "a", "b", "1", "true"])
)
LEAVES = st.one_of(
    SCALARS,
    st.dictionaries(st.sampled_from(["$eq", "$ne"]), SCALARS, min_size=1),
    st.dictionaries(st.sampled_from(["$in", "$nin"]), st.lists(SCALARS, max_size=3), min_size=1),
    st.dictionaries(st.sampled_from(["$contains"]), SCALARS, min_size=1),
)
FILTERS = st.dictionaries(KEYS, LEAVES, max_size=3)
METADATAS = st.dictionaries(
    st.sampled_from(["tenant", "a", "b", "nested"]), st.one_of(SCALARS, st.lists(SCALARS, max_size=2)), max_size=4
)


@given(FILTERS, FILTERS, METADATAS)
def test_a_scope_is_refined_and_never_widened(scope, asked, metadata) -> None:
    both = parse_where(scope) & parse_where(asked)
    assert both.matches(metadata) == (parse_where(scope).matches(metadata) and parse_where(asked).matches(metadata))


@given(FILTERS, METADATAS)
def test_what_is_denied_is_exactly_what_is_not_met(where, metadata) -> None:
    for key, leaf in where.items():
        value = leaf["$eq"] if isinstance(leaf, dict) and "$eq" in leaf else None
        if isinstance(leaf, dict) and "$eq" in leaf:
            assert parse_where({key: {"$ne": value}}).matches(metadata) is not parse_where({key: value}).matches(metadata)
