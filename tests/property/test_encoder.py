"""The encoder is total: whatever a driver returns becomes something that JSON holds (X21)."""

from __future__ import annotations

import datetime
import decimal
import fractions
import json
from collections import OrderedDict, UserDict, UserList, defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkernel_kb.render import MAX_ITEMS, encode, to_text

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=[]))


class Raises:
    """Every question about it fails."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __str__(self) -> str:
        raise RuntimeError("str")


class SaysYes:
    """Has every attribute, as mocks and some proxies of drivers do."""

    def __getattr__(self, name: str) -> Any:
        return SaysYes()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return SaysYes()


class Liar(Sequence[Any]):
    """A sequence whose length is not its own, and which never ends."""

    def __len__(self) -> int:
        return -1

    def __getitem__(self, index: Any) -> Any:
        return self


class Endless(Sequence[Any]):
    """A sequence that never ends."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: Any) -> Any:
        return "x"


class ItemsFail(UserDict[str, Any]):
    """A mapping that breaks while it is read."""

    def __iter__(self) -> Iterator[str]:
        yield "first"
        raise KeyError("lost connection")


class Text(str):
    """A string of a driver's own kind."""

    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("str")


class Number(int):
    """An integer of a driver's own kind."""

    def __str__(self) -> str:
        raise RuntimeError("str")

    __repr__ = __str__


class FakeArray:
    """An array that hands out itself."""

    size = 2

    def tolist(self) -> Any:
        return [self, self]


ODD: list[object] = [
    SaysYes(),
    Liar(),
    ItemsFail(),
    Text("a\x1b"),
    Number(7),
    Number(1 << 70),
    FakeArray(),
    object(),
    type,
    ...,
    NotImplemented,
    lambda: None,
    (number for number in range(3)),
    range(10**30),
    memoryview(b"abcd").cast("I"),
    decimal.Decimal("sNaN"),
    fractions.Fraction(1, 3),
    datetime.datetime.max,
    1j,
    deque([1, 2]),
    OrderedDict(a=1),
    defaultdict(list, a=[1]),
    UserList([1]),
    slice(1, 2),
]

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=10**300),
    st.floats(),
    st.decimals(),
    st.fractions(),
    st.complex_numbers(),
    ANY_TEXT,
    st.binary(max_size=80),
    st.dates(),
    st.times(),
    st.datetimes(timezones=st.none() | st.just(datetime.UTC)),
    st.timedeltas(),
    st.uuids(),
    st.integers(0, len(ODD) - 1).map(lambda place: ODD[place]),  # Drawn by place, as some have no representation.
)
hashable = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), ANY_TEXT, st.tuples(st.integers(), ANY_TEXT))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.tuples(inner, inner),
        st.dictionaries(hashable, inner, max_size=5),
        st.sets(hashable, max_size=5),
        st.frozensets(hashable, max_size=5),
    ),
    max_leaves=15,
)


@settings(deadline=None)  # The time of one example says more about the machine than about the encoder.
@given(values)
def test_anything_becomes_json(value: object) -> None:
    text = json.dumps(encode(value), allow_nan=False, ensure_ascii=False)
    text.encode()  # No lone surrogate is left.
    assert json.loads(text) == encode(value)


@settings(deadline=None)
@given(values)
def test_anything_becomes_clean_text(value: object) -> None:
    text = to_text(value)
    text.encode()
    assert all(character == "\n" or character == "\t" or character >= " " for character in text.replace("\x1f", ""))


@settings(deadline=None)
@given(values)
def test_encoding_twice_changes_nothing(value: object) -> None:
    once = encode(value)
    assert encode(once) == once


@settings(deadline=None)
@given(st.lists(values, min_size=1, max_size=4), st.data())
def test_a_cycle_anywhere_ends(parts: list[Any], data: st.DataObject) -> None:
    cycle: list[Any] = list(parts)
    cycle.insert(data.draw(st.integers(0, len(cycle))), {"back": cycle})
    assert "<cycle>" in json.dumps(encode(cycle), allow_nan=False)


@settings(deadline=None)
@given(st.integers(32, 5_000), st.sampled_from([0, 0.5, float("nan"), 10**400]))
def test_a_vector_is_shown_by_its_length(length: int, number: float) -> None:
    assert encode([number] * length) == f"[{length} numbers]"


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
def test_odd_objects_become_json(value: object) -> None:
    json.dumps(encode({"a": [value]}), allow_nan=False)


def test_a_sequence_without_an_end_is_bounded() -> None:
    assert len(encode(Endless())) <= MAX_ITEMS + 1


def test_an_object_that_answers_no_question_becomes_its_type() -> None:
    assert encode([Raises(), {"a": Raises()}]) == ["<Raises>", {"a": "<Raises>"}]


@pytest.mark.parametrize("container", [list, tuple, deque])
def test_a_container_is_bounded(container: Any) -> None:
    assert len(encode(container(map(str, range(60_000))))) <= MAX_ITEMS + 1
