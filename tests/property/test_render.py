"""No forged line, whatever a record holds (A4, X21)."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentkernel_kb import KnowledgeBase, KnowledgeCapabilities, Record
from agentkernel_kb.render import NOTHING_FOUND, clean, metadata_of, one_line, record_line, table, usable_id

# Text out of what could break a line or imitate one, mixed with anything else.
BREAKS = ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
MARKS = ["- ", "| ", "  | ", "[", "]", "- [x] a (source: b)", "|", "\\", "\\|", ",", " ", "\t", "(source: ", NOTHING_FOUND]
CONTROLS = ["\x00", "\x1b", "\x1f", "\x7f", "\x9b", "\ud800"]
HOSTILE = st.lists(st.sampled_from(BREAKS + MARKS + CONTROLS) | st.text(max_size=3), max_size=8).map("".join)
NESTED = st.lists(HOSTILE, max_size=3) | st.dictionaries(HOSTILE, HOSTILE, max_size=3)
ODD_VALUES = HOSTILE | st.none() | st.integers() | st.floats() | NESTED
METADATA = st.none() | HOSTILE | st.fixed_dictionaries({}, optional={"id": ODD_VALUES, "source": ODD_VALUES})
RECORDS = st.fixed_dictionaries({}, optional={"text": ODD_VALUES, "metadata": METADATA})


class Rendering(KnowledgeBase):
    """A backend that only renders."""

    @property
    def backend_name(self) -> str:
        return "rendering"

    def connect(self, **kwargs: Any) -> None: ...

    def get_description(self) -> str:
        return "rendering"


def visible_lines(text: str) -> list[str]:
    """Split text at everything that any reader could take for the end of a line."""
    return re.split("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", text)


@settings(deadline=None)
@given(RECORDS, st.booleans())
def test_a_record_begins_one_line_and_only_one(record: dict[str, Any], with_id: bool) -> None:
    first, *others = visible_lines(record_line(record, with_id=with_id))
    assert first.startswith("- ")
    assert all(line.startswith("  | ") for line in others)


@settings(deadline=None)
@given(st.lists(RECORDS, max_size=5), st.booleans())
def test_results_show_as_many_records_as_there_are(records: list[Record], fetch: bool) -> None:
    answer = Rendering(KnowledgeCapabilities(search=True, fetch=fetch)).format_results(records)
    lines = visible_lines(answer)
    assert sum(line.startswith("- ") for line in lines) == len(records)
    assert all(line.startswith(("- ", "  | ")) for line in lines) or answer == NOTHING_FOUND
    assert (answer == NOTHING_FOUND) == (not records)


@settings(deadline=None)
@given(RECORDS)
def test_only_a_usable_id_reads_as_an_id(record: dict[str, Any]) -> None:
    identity = usable_id(metadata_of(record))
    line = record_line(record, with_id=True)
    assert line.startswith("- [") == (identity is not None)
    assert identity is None or line.startswith(f"- [{identity}] ")


@settings(deadline=None)
@given(HOSTILE)
def test_a_usable_id_can_be_asked_for_in_a_list(name: str) -> None:
    usable = usable_id({"id": name})
    if usable is not None:
        assert [part.strip() for part in f"{usable},{usable}".split(",")] == [name, name]
        assert len(visible_lines(usable)) == 1


@settings(deadline=None)
@given(st.text(st.characters(codec=None, exclude_categories=[])))
def test_cleaning_is_idempotent_and_breaks_lines_one_way(text: str) -> None:
    cleaned = clean(text)
    assert clean(cleaned) == cleaned
    assert cleaned.split("\n") == visible_lines(cleaned)
    assert visible_lines(one_line(text)) == [one_line(text)]


def cells(line: str) -> int:
    """Count a row's cells as GitHub's Markdown does: a bar divides them unless a backslash stands right before it."""
    return len(re.findall(r"(?<!\\)\|", line)) - 1


@settings(deadline=None)
@given(st.lists(st.dictionaries(HOSTILE, ODD_VALUES, min_size=1, max_size=4), min_size=1, max_size=4))
@example([{"c": "a\\|b"}])
def test_a_table_has_a_line_per_row_and_a_cell_per_column(rows: list[dict[str, Any]]) -> None:
    columns = {key for row in rows for key in row}
    lines = visible_lines(table(rows))
    assert len(lines) == len(rows) + 2
    assert {cells(line) for line in lines} == {len(columns)}
