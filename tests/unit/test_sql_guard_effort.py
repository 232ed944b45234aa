"""The guard's own work: it grows with a statement's length and no faster, whatever the parser tries in two ways (X1)."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from agentkernel_kb import KnowledgeGuardError
from agentkernel_kb.guard import check_read_only, supported_dialects

# A chain of 200 takes up to 140,000 calls of functions where each link costs the same, a million where it costs all before it;
# 14 levels take up to 70,000, and millions where each level is parsed twice.
MOST_CALLS = 300_000

NESTED = {
    "arrays": ("ARRAY[", "]"),
    "rows": ("ROW(", ")"),
    "maps": ("MAP(ARRAY[1], ARRAY[", "])"),
    "lists": ("[", "]"),
    "structs": ("{'a': ", "}"),
    "types of a size": ("DECIMAL(", ")"),
    "types of text": ("CHAR(", ")"),
    "types of time": ("TIMESTAMP(", ")"),
    "cases": ("CASE WHEN ", " THEN 1 END"),
    "casts": ("CAST(", " AS INT)"),
    "arrays in casts": ("CAST(ARRAY[", "] AS VARCHAR)"),
    "subqueries": ("(SELECT ", ")"),
    "arrays in subqueries": ("(SELECT ARRAY[", "])"),
    "conditions": ("1 IN (SELECT ", ")"),
}
CHAINED = {
    "positions": "[1]",
    "casts": "::INT",
    "fields": ".a",
    "additions": " + 1",
    "arrows": " -> 'a'",
    "conditions": " AND 1 = 1",
    "texts": " || 'a'",
    "branches": " UNION ALL SELECT x",
}


def calls_of_proof(statement: str, dialect: str) -> int:
    """Return how many functions of Python the proof calls, whatever it ends with."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        check_read_only(statement, dialect=dialect)
    except KnowledgeGuardError:
        pass
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("shape", NESTED)
@pytest.mark.parametrize("dialect", supported_dialects())
def test_what_is_nested_costs_no_power_of_its_depth(dialect: str, shape: str) -> None:
    opening, closing = NESTED[shape]
    statement = f"SELECT {opening * 14}1{closing * 14} FROM cities"
    check_read_only("SELECT 1", dialect=dialect)  # What is imported and compiled at first is not the statement's.
    assert calls_of_proof(statement, dialect) < MOST_CALLS


@pytest.mark.parametrize("shape", CHAINED)
@pytest.mark.parametrize("dialect", supported_dialects())
def test_a_chain_costs_no_power_of_its_length(dialect: str, shape: str) -> None:
    check_read_only("SELECT 1", dialect=dialect)
    assert calls_of_proof(f"SELECT x{CHAINED[shape] * 200} FROM cities", dialect) < MOST_CALLS


def test_what_can_be_read_in_too_many_ways_is_refused_and_says_so() -> None:
    with pytest.raises(KnowledgeGuardError, match="too many ways to be proven; nest it less deeply"):
        check_read_only(f"SELECT {'ARRAY[' * 20}1{']' * 20}", dialect="duckdb")


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "trino"])
def test_arrays_in_arrays_are_no_attack(dialect: str) -> None:
    check_read_only(f"SELECT {'ARRAY[' * 6}1{']' * 6}, x{'[1]' * 6} FROM cities", dialect=dialect)
