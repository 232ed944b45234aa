"""Fusion by reciprocal rank: whatever the order of the rankings, each record once, and what all rank first is first (X5)."""

from __future__ import annotations

import math
import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from agentkernel_kb.router.fusion import Fused, Hit, fuse, keys_of

NAMES = "abcde"


def hit(backend: str, text: str) -> Hit:
    identity = f"{backend}-{text}"
    return Hit(backend, identity, keys_of(identity, "", text), text)


@st.composite
def rankings(draw: st.DrawFn) -> list[list[Hit]]:
    texts = st.lists(st.sampled_from("rstuvwxyz"), unique=True, max_size=7)
    return [[hit(name, text) for text in draw(texts)] for name in NAMES[: draw(st.integers(1, len(NAMES)))]]


@given(rankings(), st.randoms(use_true_random=False))
def test_x5_the_order_of_the_rankings_does_not_count(lists: list[list[Hit]], chance: random.Random) -> None:
    shuffled = list(lists)
    chance.shuffle(shuffled)
    assert fuse(shuffled) == fuse(lists)


@given(rankings())
def test_x5_every_record_stands_once_and_none_is_lost(lists: list[list[Hit]]) -> None:
    fused = fuse(lists)
    shown = [each for one in fused for each in (one.first, *one.others)]
    assert Counter(shown) == Counter(each for ranking in lists for each in ranking)
    assert len({one.first.line for one in fused}) == len(fused)


@given(rankings())
def test_x5_scores_are_the_sums_of_the_paper_and_fall(lists: list[list[Hit]]) -> None:
    def expected(one: Fused) -> float:
        ranks = [rank for ranking in lists for rank, each in enumerate(ranking, 1) if each.line == one.first.line]
        return math.fsum(1 / (60 + rank) for rank in ranks)

    fused = fuse(lists)
    assert [one.score for one in fused] == [expected(one) for one in fused]
    assert [one.score for one in fused] == sorted((one.score for one in fused), reverse=True)


@given(rankings())
def test_x5_what_every_backend_ranks_first_is_first(lists: list[list[Hit]]) -> None:
    led = [[hit(name, "leader"), *ranking] for name, ranking in zip(NAMES, lists, strict=False)]
    assert fuse(led)[0].first.line == "leader"


@given(rankings())
def test_x5_one_ranking_alone_keeps_its_order(lists: list[list[Hit]]) -> None:
    assert [one.first for one in fuse(lists[:1])] == lists[0]


@given(rankings(), st.integers(0, 4))
def test_x5_records_of_which_one_is_better_everywhere_keep_their_order(lists: list[list[Hit]], gap: int) -> None:
    fillers = [[hit(name, f"{name} filler {n}") for n in range(gap)] for name in NAMES]
    led = [
        [hit(name, "better"), *filler, hit(name, "worse"), *ranking]
        for name, filler, ranking in zip(NAMES, fillers, lists, strict=False)
    ]
    order = [one.first.line for one in fuse(led)]
    assert order.index("better") < order.index("worse")


@given(st.text(max_size=40), st.text(max_size=40))
def test_x5_an_id_and_a_source_cannot_be_taken_for_others(first: str, second: str) -> None:
    assert keys_of(first, second, "") & keys_of(f"{first}{second[:1]}", second[1:], "") == frozenset() or not second[:1]
