"""Texts to terms and terms to ranks: names taken apart, stems, spelling, BM25 by hand (X13, A16)."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.lexical.bm25 import BM25Index
from agentkernel_kb.lexical.memo import Memo
from agentkernel_kb.lexical.spelling import Spelling
from agentkernel_kb.lexical.stems import stems_of
from agentkernel_kb.lexical.terms import Terms, grams


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("orderId", ["order", "id"]),
        ("HTTPServer", ["http", "server"]),
        ("order_id", ["order", "id"]),
        ("don't", ["dont"]),
        ("the client’s", ["the", "clients"]),
        ("l'homme d’État", ["l", "homme", "d", "etat"]),
        ("Café", ["cafe"]),
        ("C++", ["cplusplus"]),
    ],
)
def test_joined_names_are_words_of_their_own(text: str, words: list[str]):
    assert Terms(None).words(text) == words


def test_a_joined_name_is_found_as_a_whole_too():
    assert Terms(None).words("getOrderId of HTTPServer, as is", names=True)[-2:] == ["getorderid", "httpserver"]


def test_forms_of_a_word_are_one_term_in_each_language():
    assert len(set(Terms("english").stems("connect connected connection connecting"))) == 1
    assert len(set(Terms("german").stems("Rechnung Rechnungen"))) == 1


@pytest.mark.parametrize(
    ("language", "forms"),
    [("english", "книга книги книгу"), ("english", "δρόμος δρόμου"), ("nepali", "किताब किताबहरु"), ("german", "книга книги")],
    ids=["cyrillic", "greek", "nepali", "beside german"],
)
def test_a_script_of_one_language_has_its_stemmer_whatever_the_language(language: str, forms: str):
    assert len(set(Terms(language).stems(forms))) == 1


def test_several_threads_stem_as_one_does():
    words = [f"{start}{middle}{end}" for start in "bcdfg" for middle in "aeiou" for end in ("nding", "nders", "ndly", "ndness")]
    stemmed = stems_of("danish", "eval")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(stemmed.__getitem__, words * 20))
    stemmed.clear()
    assert found == [stemmed[word] for word in words] * 20


def test_what_is_remembered_is_bounded():
    asked: list[str] = []
    lengths = Memo(lambda text: asked.append(text) or len(text), 3)
    assert [lengths[text] for text in ("a", "bb", "a", "ccc", "dddd", "a" * 1_000)] == [1, 2, 1, 3, 4, 1_000]
    assert asked == ["a", "bb", "ccc", "dddd", "a" * 1_000]
    assert len(lengths) == 1


def test_an_unknown_language_is_told_with_the_nearest():
    with pytest.raises(AKConfigError, match="Did you mean 'english'"):
        Terms("englsh")


def test_most_pieces_of_a_word_survive_a_wrong_letter():
    right, wrong = set(grams("reservation")), set(grams("reservatoin"))
    assert len(right & wrong) > len(right) / 2
    assert grams("a") == [" a "]


def test_a_word_as_long_as_a_book_is_neither_stemmed_nor_cut_into_all_its_pieces():
    assert Terms().stems("running" * 1_000) == ["running" * 1_000]
    assert len(grams("x" * 100_000)) < 500


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("refudn", "refund"),  # two swapped
        ("refnd", "refund"),  # one left out
        ("reffund", "refund"),  # one added
        ("rexund", "refund"),  # one changed
        ("resevatoin", "reservation"),  # two edits in a long word
        ("refund", "refund"),
        ("zebra", "zebra"),
        ("lakes", "lake"),
        ("bake", "bake"),  # the first letter of a short word is right
        ("them", "them"),  # no mistake: a function word
    ],
)
def test_the_nearest_known_word_is_meant(word: str, meant: str):
    assert Spelling({"refund": 1, "reservation": 1, "lake": 1, "theme": 5}).meant(word) == meant


def test_of_equally_near_words_the_more_frequent_is_meant_and_then_the_first():
    assert Spelling({"charge": 1, "change": 2}).meant("chaage") == "change"
    assert Spelling({"charge": 1, "change": 1}).meant("chaage") == "change"


def test_scores_are_those_of_the_formula():
    index = BM25Index(k1=1.2, b=0.5)
    index.add("one", {"text": ["oil", "oil", "price"]})
    index.add("two", {"text": ["price"]})

    # Lengths 3 and 1, the average 2; "oil" in one of two texts, "price" in both.
    oil, price = math.log(1 + 1.5 / 1.5), math.log(1 + 0.5 / 2.5)
    of_one = 1.2 * (0.5 + 0.5 * 3 / 2)
    of_two = 1.2 * (0.5 + 0.5 * 1 / 2)
    assert index.rank(["oil", "price"]) == [
        ("one", pytest.approx((oil * 2 / (2 + of_one) + price / (1 + of_one)) / (oil + price))),
        ("two", pytest.approx(price / (1 + of_two) / (oil + price))),
    ]


def test_what_a_query_has_and_no_text_does_lowers_the_score_and_not_the_order():
    index = BM25Index()
    index.add("one", {"text": ["oil", "price"]})
    index.add("two", {"text": ["price"]})
    plain, more = index.rank(["price"]), index.rank(["price", "unheard"])
    assert [each.id for each in plain] == [each.id for each in more]
    assert all(less.score < score.score for less, score in zip(more, plain, strict=True))


def test_fields_count_by_their_weight_and_one_of_weight_zero_not_at_all():
    index = BM25Index(weights={"title": 3, "hidden": 0})
    index.add("body", {"text": ["oil"], "title": ["price"]})
    index.add("title", {"text": ["price"], "title": ["oil"]})
    index.add("hidden", {"text": ["price"], "hidden": ["oil"]})
    assert [each.id for each in index.rank(["oil"])] == ["title", "body"]


def test_a_term_of_every_text_still_finds_them():
    index = BM25Index()
    index.add("only", {"text": ["oil"]})
    assert index.rank(["oil"])[0].score > 0


@pytest.mark.parametrize("k", [0, -1])
def test_nothing_is_asked_for_nothing_is_found(k: int):
    index = BM25Index()
    assert index.rank(["oil"]) == []
    index.add("a", {"text": ["oil"]})
    assert index.rank(["oil"], k) == []
    assert index.rank([]) == []
    assert index.rank({"oil": 0.0}) == []


def test_an_id_that_is_taken_and_settings_out_of_range_are_refused():
    index = BM25Index()
    index.add("a", {"text": ["oil"]})
    with pytest.raises(AKConfigError, match="'a'"):
        index.add("a", {"text": ["gas"]})
    with pytest.raises(AKConfigError):
        BM25Index(b=1.5)
