"""The buffer of an index's vectors holds what was added, in order, whatever size it grows to."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from agentkernel_kb.rag.index.vectors import VectorBuffer

NUMBERS = st.lists(st.floats(width=32, allow_nan=False), max_size=50)


@given(st.lists(st.one_of(NUMBERS, st.integers(0, 6_000)), max_size=12))
def test_p6_what_was_added_is_there_in_order(parts: list[list[float] | int]):
    buffer, expected = VectorBuffer(), array("f")
    for part in parts:
        if isinstance(part, int):
            buffer.extend_zeros(part)
            expected.extend([0.0] * part)
        else:
            buffer.extend(array("f", part))
            expected.extend(part)
        assert len(buffer) == len(expected)
    assert buffer.numbers == memoryview(expected)
    assert buffer.part(3, len(buffer)) == expected[3:]


def test_p6_a_buffer_of_many_pages_keeps_what_it_had():
    buffer = VectorBuffer()
    for number in range(3_000):
        buffer.extend(array("f", [number]) * 1_000)
    assert [buffer.part(place * 1_000, place * 1_000 + 1)[0] for place in (0, 1_048, 2_999)] == [0.0, 1_048.0, 2_999.0]
    assert len(buffer.numbers) == 3_000_000
