"""The guard's own work: it grows with a statement's length and no faster, whatever the parser tries in two ways (X1)."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from types import FrameType

import pytest

from agentkernel_kb import KnowledgeGuardError
from agentkernel_kb.guard import check_read_only, supported_dialects
from agentkernel_kb.guard.cypher import check_read_only_cypher, supported_engines
from agentkernel_kb.guard.sqlite_effort import COMPUTED_CHARS, MAX_CALCULATIONS, MAX_COMPUTED_FORMATS, MAX_PATTERN_CHARS

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


# Regular expressions that give a repetition back take a quarter of a minute for each of these, and minutes for longer ones.
MOST_SECONDS = 5
LONG = 20_000
NEVER_A_NUMBER = [
    "1" * LONG + "a",
    "1_1" * (LONG // 3) + "_",
    "1." + "1" * LONG + "a",
    "1e" + "1" * LONG + "a",
    "0x" + "1" * LONG + "g",
]
SHAPES = ["digits", "underscores", "fractions", "exponents", "hexadecimals"]


@pytest.mark.parametrize("number", NEVER_A_NUMBER, ids=SHAPES)
@pytest.mark.parametrize("dialect", supported_dialects())
def test_a_long_number_that_ends_in_a_letter_is_refused_at_once(dialect: str, number: str) -> None:
    started = time.process_time()
    with pytest.raises(KnowledgeGuardError):
        check_read_only(f"SELECT {number}", dialect=dialect)
    assert time.process_time() - started < MOST_SECONDS


@pytest.mark.parametrize("number", NEVER_A_NUMBER, ids=SHAPES)
@pytest.mark.parametrize("engine", supported_engines())
def test_so_it_is_in_cypher(engine: str, number: str) -> None:
    started = time.process_time()
    with suppress(KnowledgeGuardError):  # Neo4j's rules take underscores anywhere in a number.
        check_read_only_cypher(f"RETURN {number}", engine=engine)
    assert time.process_time() - started < MOST_SECONDS


def test_a_count_that_never_ends_costs_its_length() -> None:
    started = time.process_time()
    with pytest.raises(KnowledgeGuardError, match="too large"):
        check_read_only(f"SELECT regexp_matches('a', '{{{'1' * 4 * LONG}')", dialect="duckdb")
    assert time.process_time() - started < MOST_SECONDS


@pytest.mark.parametrize("names", ["E'\\\\'", "a ", "a.b c "], ids=["strings", "names", "fields"])
def test_names_behind_each_other_cost_their_number(names: str) -> None:
    check_read_only("SELECT 1", dialect="trino")
    assert calls_of_proof(f"SELECT {names * 700}", "trino") < MOST_CALLS


# On SQLite no clock is looked at between patterns that stand side by side.


@pytest.mark.parametrize(
    ("pattern", "chars"),
    [
        pytest.param("name LIKE '%{}'", 100, id="like"),
        pytest.param("name NOT LIKE '%{}' ESCAPE '!'", 100, id="escape"),
        pytest.param("name GLOB '*{}'", 100, id="glob"),
        pytest.param("name LIKE ('%{}')", 100, id="brackets"),
        pytest.param("like('%{}', name)", 100, id="function"),
        pytest.param("\"like\"('%{}', name)", 100, id="quoted function"),
        pytest.param("[glob]('*{}', name)", 100, id="function in brackets"),
        pytest.param("name LIKE name", COMPUTED_CHARS, id="column"),
        pytest.param("name LIKE '%' || name", COMPUTED_CHARS, id="put together"),
        pytest.param("name LIKE ('%') || name", COMPUTED_CHARS, id="put together behind a bracket"),
        pytest.param("name LIKE (SELECT '%')", COMPUTED_CHARS, id="subquery"),
        pytest.param("name LIKE '%{}'", 5_000, id="longer than the engine takes"),
    ],
)
def test_patterns_of_sqlite_are_bounded_together(pattern: str, chars: int) -> None:
    most = MAX_PATTERN_CHARS // min(chars, COMPUTED_CHARS)
    written = pattern.format("a" * (chars - 1))
    check_read_only("SELECT 1 FROM cities WHERE " + " OR ".join([written] * most), dialect="sqlite")
    with pytest.raises(KnowledgeGuardError, match="more than 1,000 characters together"):
        check_read_only("SELECT 1 FROM cities WHERE " + " OR ".join([written] * (most + 1)), dialect="sqlite")


def test_formats_of_sqlite_that_are_not_written_out_are_few() -> None:
    written = ", ".join(["strftime('%Y-%m', day)"] * 100)
    computed = ", ".join(["strftime(form, day)"] * MAX_COMPUTED_FORMATS)
    check_read_only(f"SELECT {written}, {computed} FROM events", dialect="sqlite")
    with pytest.raises(KnowledgeGuardError, match="format that is not written out"):
        check_read_only(f"SELECT {computed}, strftime(form || '', day) FROM events", dialect="sqlite")


@pytest.mark.parametrize(
    "calculation", ["-name", "name + 1", "name || 'a'", "upper(name)", '"upper"(name)', "CAST(name AS REAL)"]
)
def test_what_sqlite_calculates_side_by_side_is_bounded(calculation: str) -> None:
    check_read_only(f"SELECT {', '.join([calculation] * MAX_CALCULATIONS)} FROM cities", dialect="sqlite")
    with pytest.raises(KnowledgeGuardError, match="calculations and calls stand side by side"):
        check_read_only(f"SELECT {', '.join([calculation] * (MAX_CALCULATIONS + 1))} FROM cities", dialect="sqlite")


def test_signs_of_numbers_and_conditions_in_brackets_are_no_calculations() -> None:
    signs, conditions = ", ".join(["-1"] * 1_000), " OR ".join(["(id = 1)"] * 700)
    check_read_only(f"SELECT name FROM cities WHERE id IN ({signs}) AND ({conditions})", dialect="sqlite")
