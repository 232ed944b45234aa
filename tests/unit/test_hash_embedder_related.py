"""HashEmbedder (row P4) tells which texts share a word with a query, which no score of its vectors could."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.embed.words import FUNCTION_WORDS, features

EMBEDDER = HashEmbedder()
TEXTS = st.text(max_size=30) | st.text("abs' ’yieé東京のกข?., \n\u0301", max_size=30)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("refund", "Refunds are granted."),
        ("Which policies are there?", "The policy of the house"),
        ("policy", "Our POLICIES"),
        ("the boxes", "a box"),
        ("café", "CAFE\u0301"),
        ("the client’s orders", "the order of a client"),
        ("O'Neil", "o’neil was here"),
        ("C++", "The C++ compiler"),
        ("30 days", "30"),
        ("возврат", "ВОЗВРАТ денег"),
        ("東京の天気", "東京は晴れ"),
        ("水", "水は大切です"),
        ("환불", "환불 정책은"),
        ("how do I", "Do it as I do"),
        ("の", "東京の天気"),
        ("???", "???"),
    ],
)
def test_texts_that_share_a_telling_word_are_related(query: str, text: str):
    assert EMBEDDER.related(query, [text]) == [True]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("refund", "We ship on Mondays."),
        ("What is the capital of Peru?", "What is the price of the box?"),
        ("C", "The C++ compiler"),
        ("art", "The party starts"),
        ("東京の天気", "大阪の株価"),
        ("refund", ""),
        ("", "refund"),
        (" ", " "),
        ("???", "!!!"),
    ],
)
def test_texts_that_share_none_are_not(query: str, text: str):
    assert EMBEDDER.related(query, [text]) == [False]


def test_it_answers_for_each_text_in_order():
    assert EMBEDDER.related("ship", ["We ship.", "We pay.", "Ships"]) == [True, False, True]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TEXTS, TEXTS, TEXTS)
def test_it_compares_the_words_that_the_vectors_count(query: str, before: str, after: str):
    for text in (before, f"{before} {query} {after}", before + query):
        common = features(query).keys() & features(text).keys()
        (related,) = EMBEDDER.related(query, [text])
        assert not (related and not common)
        assert related or not any(word.isascii() and word not in FUNCTION_WORDS and " " not in word for word in common)
