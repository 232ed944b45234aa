"""Which hits a search of Chroma returns (row A11): how far it looks, what it leaves out and how it cuts ties."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from agentkernel_kb.chroma.ranking import WIDEST, Hit, best

SCORES = st.lists(st.integers(0, 5), max_size=40)


class Index:
    """Records with these scores, returned nearest first and equal ones against the order of their ids; notes its looks."""

    def __init__(self, scores: Sequence[float]) -> None:
        numbered = [Hit(f"{number:05}", str(number), None, score) for number, score in enumerate(scores)]
        self.hits = sorted(numbered, key=lambda hit: (hit.score, hit.id), reverse=True)
        self.asked: list[int] = []

    def look(self, number: int) -> list[Hit]:
        self.asked.append(number)
        return self.hits[:number]


def only(*texts: str) -> Callable[[Sequence[str]], list[bool]]:
    return lambda asked: [text in texts for text in asked]


def test_one_look_is_enough_where_nothing_ties_and_nothing_is_left_out():
    index = Index(range(100))

    assert [hit.score for hit in best(index.look, 3, None, None)] == [99, 98, 97]
    assert index.asked == [4]


def test_a_tie_at_the_limit_is_looked_into():
    index = Index([1.0] * 50)

    assert [hit.id for hit in best(index.look, 3, None, None)] == ["00000", "00001", "00002"]
    assert index.asked == [4, 64]


def test_a_tie_beyond_what_is_looked_at_ends():
    index = Index([1.0] * 5_000)

    assert len(best(index.look, 3, None, None)) == 3
    assert index.asked == [4, 64, 512, WIDEST]


def test_it_does_not_look_beyond_min_score():
    index = Index(range(100))

    assert [hit.score for hit in best(index.look, 3, 98, None)] == [99, 98]
    assert best(index.look, 3, 100, None) == []
    assert index.asked == [4, 4]


def test_it_looks_further_for_what_is_related():
    index = Index(range(2_000))

    assert [hit.text for hit in best(index.look, 3, None, only("1700", "1600", "5"))] == ["1700", "1600"]
    assert index.asked == [4, 64, 512, WIDEST]


def test_a_limit_beyond_the_widest_look_is_one_look():
    index = Index(range(2_000))

    assert len(best(index.look, 1_500, None, None)) == 1_500
    assert index.asked == [1_501]


@settings(deadline=None)
@given(SCORES, st.integers(1, 50), st.none() | st.integers(-1, 6), st.none() | st.sets(st.integers(0, 40)))
def test_the_result_is_that_of_looking_at_everything(
    scores: list[float], limit: int, min_score: float | None, related: set[int] | None
):
    index = Index(scores)
    ask = None if related is None else only(*map(str, related))
    expected = [
        hit
        for hit in sorted(index.hits, key=lambda hit: (-hit.score, hit.id))
        if (min_score is None or hit.score >= min_score) and (related is None or int(hit.text or "") in related)
    ]

    assert best(index.look, limit, min_score, ask) == expected[:limit]
