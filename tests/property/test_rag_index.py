"""The index of the local stores (P6, S5): numpy and plain loops rank alike, and what may not be found has no share in it."""

from __future__ import annotations

from typing import Any, cast, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag import SearchMode
from agentkernel_kb.rag.index import feedback
from agentkernel_kb.rag.index.analysis import Analysis
from agentkernel_kb.rag.index.arrays import Arithmetic, NumpyArithmetic, PlainArithmetic, unit
from agentkernel_kb.rag.index.index import Asked, ChunkIndex
from agentkernel_kb.rag.index.table import Metadata
from agentkernel_kb.rag.where import Filter, parse_where

ANALYSIS = Analysis()
EMBEDDER = HashEmbedder(24)
WORDS = ("refund", "refunds", "refnud", "train", "trains", "station", "stations", "cat", "reservation", "resrevation", "lamp")
MINE = parse_where({"tenant": "a"})

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
chunks = st.lists(st.tuples(st.sampled_from("ab"), texts, st.integers(0, 3)), min_size=1, max_size=25)
modes = st.sampled_from(get_args(SearchMode))


def built(held: list[tuple[str, str, int]], use: Arithmetic) -> ChunkIndex:
    index = ChunkIndex(use=use)
    for number, (tenant, text, kind) in enumerate(held):
        put(index, number, tenant, text, kind)
    return index


def put(index: ChunkIndex, number: int, tenant: str, text: str, kind: int) -> None:
    """Index a chunk; one of the last kind is taken out again."""
    counts, vector = ANALYSIS.counts(text), unit(EMBEDDER.embed_query(text))
    slot = index.put(f"{tenant}{number}", "d", None, Metadata.of({"tenant": tenant, "char_start": kind}), counts, vector)
    if kind == 3:
        index.drop(slot)


def found(index: ChunkIndex, question: str, mode: SearchMode, where: Filter, k: int = 5, share: float = 0.4) -> Any:
    asked = Asked(
        k=k,
        mode=mode,
        terms=lambda held: ANALYSIS.question(question, held),
        vector=EMBEDDER.embed_query(question),
        where=where,
        floor=0.0,
        vector_share=share,
    )
    return [(index.table.ids[slot], score) for slot, score in index.search(asked)]


@pytest.fixture(autouse=True)
def _small_corpora_are_widened_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feedback, "FEEDBACK_FROM", 4)


@settings(deadline=None, max_examples=60)
@given(chunks, texts, modes, st.sampled_from([parse_where(None), MINE, parse_where({"char_start": {"$lt": 2}})]))
def test_numpy_and_plain_loops_find_the_same_with_the_same_scores(
    held: list[tuple[str, str, int]], question: str, mode: SearchMode, where: Filter
):
    pytest.importorskip("numpy")
    fast, plain = (found(built(held, use), question, mode, where) for use in (NumpyArithmetic(), PlainArithmetic()))
    assert [name for name, _ in fast] == [name for name, _ in plain]
    assert [score for _, score in fast] == pytest.approx([score for _, score in plain], abs=2e-6)


@settings(deadline=None, max_examples=60)
@given(chunks, texts, modes)
def test_what_a_filter_leaves_out_has_no_share_in_scores_order_and_corrections(
    held: list[tuple[str, str, int]], question: str, mode: SearchMode
):
    together = found(built(held, PlainArithmetic()), question, mode, MINE, k=50)
    alone = built([], PlainArithmetic())
    for number, (tenant, text, kind) in enumerate(held):
        if tenant == "a":
            put(alone, number, tenant, text, kind)
    assert together == found(alone, question, mode, MINE, k=50)


@settings(deadline=None, max_examples=40)
@given(chunks, texts, modes, st.lists(st.integers(0, 24), max_size=6))
def test_a_cached_selection_follows_every_change(
    held: list[tuple[str, str, int]], question: str, mode: SearchMode, dropped: list[int]
):
    changed = built(held, PlainArithmetic())
    for place in dropped:
        found(changed, question, mode, MINE)
        if place < len(held) and (slot := changed.table.slot_of(f"{held[place][0]}{place}")) is not None:
            changed.drop(slot)
    left = [(tenant, text, 3 if number in dropped else kind) for number, (tenant, text, kind) in enumerate(held)]
    assert found(changed, question, mode, MINE) == found(built(left, PlainArithmetic()), question, mode, MINE)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.7, 1.0])
def test_the_best_of_both_kinds_are_the_best_of_all(share: float):
    held = [("a", f"{WORDS[number % 11]} {WORDS[number * 7 % 11]} {'lamp ' * (number % 5)}", 0) for number in range(200)]
    index = built(held, PlainArithmetic())
    every = found(index, "refund lamp", "hybrid", MINE, k=200, share=share)
    assert found(index, "refund lamp", "hybrid", MINE, k=7, share=share) == every[:7]


def test_a_word_of_somebody_else_is_no_correction():
    held = [("a", "The reservation is made.", 0), ("b", "The resrevation is made.", 0)]
    index = built(held, PlainArithmetic())
    assert [name for name, _ in found(index, "resrevation", "keyword", MINE)] == ["a0"]
    assert [name for name, _ in found(index, "resrevation", "keyword", parse_where({"tenant": "b"}))] == ["b1"]


def test_a_question_of_many_unknown_words_is_answered():
    index = built([("a", "The reservation is made.", 0)], PlainArithmetic())
    unknown = " ".join(f"xq{chr(97 + one)}{chr(97 + two)}" for one in range(26) for two in range(26))
    assert [name for name, _ in found(index, f"{unknown} reservation", "keyword", MINE)] == ["a0"]


def test_a_vector_of_another_length_is_refused_with_both_lengths():
    index = built([("a", "cat", 0)], PlainArithmetic())
    asked = Asked(5, "vector", lambda _: {}, cast("Any", [1.0]), MINE, 0.0, 0.5)
    with pytest.raises(AKConfigError, match="24 dimensions, and this one has 1"):
        index.search(asked)
