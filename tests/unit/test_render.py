"""Text for a model: the line of a record, the table, and the one encoder, case by case (A4, X21)."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import itertools
import json
import math
import pathlib
import uuid
from typing import Any

import pytest

from agentkernel_kb.render import NOTHING_FOUND, clean, encode, one_line, record_line, table, to_text, usable_id


class Colour(enum.Enum):
    RED = "red"
    DEEP = (1, 2)


@dataclasses.dataclass
class Point:
    x: int
    when: datetime.date


class Opaque:
    """Has no text of its own: its default representation is only an address."""


class Spoken:
    def __str__(self) -> str:
        return "spoken\x1b[2J"


class Broken:
    def __str__(self) -> str:
        raise ValueError("password=hunter2")


class ArrayLike:
    """What the encoder knows of numpy's arrays."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values
        self.size = len(values)

    def tolist(self) -> list[Any]:
        return self._values


class DriverTime:
    def iso_format(self) -> str:
        return "2024-05-01T00:00:00Z"


UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (2**63 - 1, 2**63 - 1),
        (2**63, "9223372036854775808"),
        (-(2**63) - 1, "-9223372036854775809"),
        (1 << 5_000, "<integer of 5001 bits>"),
        (1.5, 1.5),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        ("text", "text"),
        ("\ud800", "\ufffd"),
        ("a\x00b", "ab"),
        (b"\x01\xff", "0x01ff"),
        (bytearray(b""), "0x"),
        (memoryview(b"abc"), "0x616263"),
        (bytes(33), "<33 bytes>"),
        (datetime.date(2024, 5, 1), "2024-05-01"),
        (datetime.time(1, 2), "01:02:00"),
        (datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC), "2024-05-01T00:00:00+00:00"),
        (datetime.timedelta(hours=1), "1:00:00"),
        (decimal.Decimal("1.10"), "1.10"),
        (UUID, str(UUID)),
        (pathlib.PurePosixPath("a/b"), "a/b"),
        (Colour.RED, "red"),
        (Colour.DEEP, [1, 2]),
        ((1, "a"), [1, "a"]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({"a": {"b": None}}, {"a": {"b": None}}),
        ({2: "a", None: "b", True: "c"}, {"2": "a", "null": "b", "true": "c"}),
        ({1: "a", "1": "b"}, {"1": "a", "1 (1)": "b"}),
        (Point(1, datetime.date(2024, 5, 1)), {"x": 1, "when": "2024-05-01"}),
        (ArrayLike([1, 2]), [1, 2]),
        (ArrayLike([0.5] * 768), "[768 numbers]"),
        ([0.5] * 31, [0.5] * 31),
        ([0.5] * 32, "[32 numbers]"),
        ([True] * 40, [True] * 40),
        (range(1_000_000), "[1000000 numbers]"),
        (DriverTime(), "2024-05-01T00:00:00Z"),
        (Opaque(), "<Opaque>"),
        (Opaque, "<type>"),
        (Spoken(), "spoken[2J"),
        (Broken(), "<Broken>"),
        (ValueError("password=hunter2"), "<ValueError>"),
        (print, "<builtin_function_or_method>"),
    ],
    ids=itertools.count(),
)
def test_a_value_is_encoded(value: object, encoded: object) -> None:
    assert (encode(value), type(encode(value))) == (encoded, type(encoded))
    json.dumps(encode(value), allow_nan=False)


def test_a_cycle_is_a_word() -> None:
    cycle: dict[str, object] = {"name": "a"}
    cycle["self"] = [cycle]
    assert encode(cycle) == {"name": "a", "self": ["<cycle>"]}


def test_the_same_value_twice_is_no_cycle() -> None:
    shared = ["x"]
    assert encode([shared, shared]) == [["x"], ["x"]]


def test_depth_ends_somewhere() -> None:
    deep: object = "bottom"
    for _ in range(100):
        deep = [deep]
    assert "<nested too deeply>" in json.dumps(encode(deep))


def test_width_ends_somewhere() -> None:
    wide = encode([str(number) for number in range(60_000)])
    assert len(wide) <= 50_001
    assert wide[-1] == "<too many items>"


def test_a_wide_mapping_ends_somewhere() -> None:
    wide = encode(dict.fromkeys(range(60000), "x"))
    assert len(wide) <= 50_001
    assert wide["…"] == "<too many items>"


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("tab\tstays", "tab\tstays"),
        ("a\r\nb\rc\x0bd\x0ce\x85f\u2028g\u2029h", "a\nb\nc\nd\ne\nf\ng\nh"),
        ("\x1b[31mred\x1b[0m", "[31mred[0m"),
        ("a\x7fb\x9fc", "abc"),
        ("\udc80", "\ufffd"),
        ("naïve 知識 🙂", "naïve 知識 🙂"),
    ],
)
def test_text_is_cleaned(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned
    assert one_line(text) == cleaned.replace("\n", " ")


def test_anything_but_text_becomes_json() -> None:
    assert to_text({"a": [1, "é"]}) == '{"a": [1, "é"]}'


@pytest.mark.parametrize(
    ("name", "usable"),
    [
        ("a.md", "a.md"),
        ("a b", "a b"),
        ("", None),
        (" a", None),
        ("a ", None),
        ("a,b", None),
        ("a\nb", None),
        ("a\u2028b", None),
        ("a\x1bb", None),
        (7, "7"),
        (True, None),
        (None, None),
        (["a"], None),
        ("x" * 1_024, "x" * 1_024),
        ("x" * 1_025, None),
    ],
)
def test_an_id_is_usable_where_fetch_could_be_asked_for_it(name: object, usable: str | None) -> None:
    assert usable_id({"id": name}) == usable


def test_no_id_is_not_usable() -> None:
    assert usable_id({}) is None


@pytest.mark.parametrize(
    ("record", "line"),
    [
        ({"text": "a", "metadata": {"source": "s"}}, "- a (source: s)"),
        ({"text": "a", "metadata": {}}, "- a (source: N/A)"),
        ({"text": "a", "metadata": {"source": ""}}, "- a (source: N/A)"),
        ({"text": "a", "metadata": {"source": None}}, "- a (source: N/A)"),
        ({"text": "a"}, "- a (source: N/A)"),
        ({"metadata": {"source": "s"}}, "-  (source: s)"),
        ({"text": None, "metadata": None}, "-  (source: N/A)"),
        ({"text": "a\n- b\r\n[c]"}, "- a\n  | - b\n  | [c] (source: N/A)"),
        ({"text": "\n\na\n\n"}, "- a (source: N/A)"),
        ({"text": "a", "metadata": {"source": "s)\n- b (source: t"}}, "- a (source: s) - b (source: t)"),
        ({"text": {"k": 1}, "metadata": {"source": ["x"]}}, '- {"k": 1} (source: ["x"])'),
        ({"text": "[x] a", "metadata": {"id": "1"}}, "- [x] a (source: N/A)"),
    ],
)
def test_a_record_is_one_item(record: dict[str, Any], line: str) -> None:
    assert record_line(record, with_id=False) == line


@pytest.mark.parametrize(
    ("record", "line"),
    [
        ({"text": "a", "metadata": {"id": "x.md", "source": "s"}}, "- [x.md] a (source: s)"),
        ({"text": "a", "metadata": {"id": 7}}, "- [7] a (source: N/A)"),
        ({"text": "a", "metadata": {"id": "x, y"}}, "- a (source: N/A)"),
        ({"text": "[y] a", "metadata": {"id": "x"}}, "- [x] [y] a (source: N/A)"),
        ({"text": "[y] a", "metadata": {}}, "- \\[y] a (source: N/A)"),
        ({"text": "  [y] a"}, "- \\[y] a (source: N/A)"),
    ],
)
def test_a_usable_id_leads_the_line(record: dict[str, Any], line: str) -> None:
    assert record_line(record, with_id=True) == line


def test_a_table_has_the_columns_in_order_of_appearance() -> None:
    rows = [{"b": 1, "a": None}, {"a": "x", "c": 2.5}]
    assert table(rows) == "| b | a | c |\n| --- | --- | --- |\n| 1 | NULL | NULL |\n| NULL | x | 2.5 |"


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("a|b", "a\\|b"),
        ("a\nb", "a b"),
        ("", ""),
        (None, "NULL"),
        (True, "true"),
        ([1, 2], "[1, 2]"),
        (f"[{','.join(['0.25'] * 100)}]", "[100 numbers]"),
        (f"[{','.join(['word'] * 100)}]", f"[{','.join(['word'] * 100)}]"),
        ("x" * 4_001, f"{'x' * 4_000}… (4,001 characters)"),
    ],
    ids=range(9),
)
def test_a_cell_stands_on_one_line(value: object, cell: str) -> None:
    assert table([{"c": value}]).split("\n")[2] == f"| {cell} |"


def test_the_sentinel_is_the_seeds() -> None:
    assert NOTHING_FOUND == "No relevant knowledge found."


# Faults found while these tests were written. Each is strict: the mark goes with the fault.


def test_a_set_is_bounded_as_any_container() -> None:
    assert len(encode(set(range(60_000)))) <= 50_001


def test_a_type_that_hides_its_name_becomes_a_word() -> None:
    class Nameless(type):
        def __getattribute__(cls, name: str) -> Any:
            if name == "__name__":
                raise RuntimeError
            return super().__getattribute__(name)

    class Odd(metaclass=Nameless):
        def __str__(self) -> str:
            raise ValueError

    assert isinstance(encode(Odd()), str)


def test_the_unit_separator_is_a_control_character_too() -> None:
    assert clean("a\x1fb") == "ab"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (datetime.date(2024, 5, 1), "2024-05-01"),
        (decimal.Decimal("1.10"), "1.10"),
        (UUID, str(UUID)),
        ([0.25] * 100, "[100 numbers]"),
    ],
    ids=range(4),
)
def test_a_value_with_a_text_of_its_own_is_shown_without_quotes(value: object, text: str) -> None:
    assert to_text(value) == text
    assert table([{"c": value}]).split("\n")[2] == f"| {text} |"


@pytest.mark.parametrize(
    ("identity", "is_usable"),
    [("[slug].md", True), ("a[0]", True), ("a] forged (source: x) [b", False), ("a]", False), ("[a", False), ("[a]]", False)],
)
def test_an_id_whose_brackets_do_not_pair_could_imitate_another_and_is_not_shown(identity: str, is_usable: bool) -> None:
    assert (usable_id({"id": identity}) is not None) == is_usable
