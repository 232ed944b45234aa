"""What must hold of every BM25 ranking (X13)."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from agentkernel_kb.lexical.bm25 import BM25Index

TERMS = st.sampled_from("abcdef")
TEXTS = st.lists(st.lists(TERMS, min_size=1, max_size=8), min_size=1, max_size=8)
QUERIES = st.lists(TERMS, min_size=1, max_size=4)


def indexed(texts: list[tuple[str, list[str]]], b: float = 0.5) -> BM25Index:
    index = BM25Index(b=b)
    for identifier, terms in texts:
        index.add(identifier, {"text": terms})
    return index


@given(TEXTS, QUERIES, st.randoms(use_true_random=False))
def test_the_order_of_adding_changes_nothing(texts: list[list[str]], query: list[str], chance):
    named = [(str(number), terms) for number, terms in enumerate(texts)]
    shuffled = list(named)
    chance.shuffle(shuffled)
    assert indexed(named).rank(query) == indexed(shuffled).rank(query)


@given(TEXTS, TERMS)
def test_of_texts_of_one_length_the_one_that_has_the_term_more_often_is_no_worse(texts: list[list[str]], term: str):
    padded = [[*terms, *["pad"] * (8 - len(terms))] for terms in texts]
    ranked = indexed([(str(number), terms) for number, terms in enumerate(padded)]).rank([term], len(texts))
    counts = [padded[int(each.id)].count(term) for each in ranked]
    assert counts == sorted(counts, reverse=True)


@given(
    st.lists(TERMS, min_size=1, max_size=5),
    st.lists(st.text(st.characters(codec="ascii"), min_size=1), unique=True, min_size=2),
)
def test_equal_texts_are_ranked_by_their_ids(terms: list[str], ids: list[str]):
    ranked = indexed([(identifier, terms) for identifier in ids]).rank([terms[0]], len(ids))
    assert [each.id for each in ranked] == sorted(ids)


@given(TEXTS, QUERIES)
def test_scores_fall_and_lie_between_zero_and_one(texts: list[list[str]], query: list[str]):
    ranked = indexed([(str(number), terms) for number, terms in enumerate(texts)]).rank(query, 100)
    scores = [each.score for each in ranked]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score < 1 and math.isfinite(score) for score in scores)


@given(TEXTS, QUERIES)
def test_exactly_the_texts_that_share_a_term_are_found(texts: list[list[str]], query: list[str]):
    found = {each.id for each in indexed([(str(number), terms) for number, terms in enumerate(texts)]).rank(query, 100)}
    assert found == {str(number) for number, terms in enumerate(texts) if set(terms) & set(query)}
