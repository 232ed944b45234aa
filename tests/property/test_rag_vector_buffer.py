"""The buffer of an index's vectors holds what was added, in order, whatever size it grows to."""

from __future__ import annotations

import subprocess
import sys
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkernel_kb.rag.index.vectors import VectorBuffer

IN_A_PROCESS = """
from array import array
from agentkernel_kb.rag.index.vectors import VectorBuffer

def most() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))

buffer, before = VectorBuffer(), most()
for number in range(17_000):
    buffer.extend(array("f", [number]) * 1_000)
print(most() - before)
"""
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


@pytest.mark.skipif(sys.platform != "linux", reason="what a process took at most stands in /proc")
def test_p6_a_buffer_takes_its_memory_once_while_it_grows():
    taken = subprocess.run([sys.executable, "-c", IN_A_PROCESS], capture_output=True, text=True, check=True).stdout
    assert int(taken) < 100  # 68 MB of vectors, and those it had before it grew, which are 67 MB.
