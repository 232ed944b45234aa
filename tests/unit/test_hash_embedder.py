"""HashEmbedder (row P4): deterministic lexical vectors without a model."""

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.embed.words import features
from agentkernel_kb.errors import AKConfigError

EMBEDDER = HashEmbedder()


# "Refunds within 30 days, café" in eight dimensions: whoever changes it changes the version in the fingerprint as well.
FIXED = [-0.92582, 0.0, -0.154303, 0.154303, -0.308607, 0.0, 0.0, 0.0]


def likeness(first: str, second: str) -> float:
    return math.fsum(a * b for a, b in zip(*EMBEDDER([first, second]), strict=True))


def best(query: str, texts: list[str]) -> str:
    return max(texts, key=lambda text: likeness(query, text))


@given(st.text())
def test_every_text_gives_a_unit_vector_and_blank_text_gives_zeros(text: str):
    vector = EMBEDDER.embed_query(text)

    assert len(vector) == 384
    assert math.isclose(math.hypot(*vector), 1.0 if text.strip() else 0.0, abs_tol=1e-9)


@given(st.text(), st.integers(1, 5))
def test_small_dimensions_give_unit_vectors_too(text: str, dimensions: int):
    vector = HashEmbedder(dimensions).embed_query(text)

    assert math.isclose(math.hypot(*vector), 1.0 if text.strip() else 0.0, abs_tol=1e-9)


@given(st.lists(st.text(), max_size=4))
def test_the_three_ways_to_call_it_agree(texts: list[str]):
    assert EMBEDDER(texts) == EMBEDDER.embed_documents(texts) == [EMBEDDER.embed_query(text) for text in texts]


def test_vectors_do_not_change_between_processes_and_releases():
    code = "from agentkernel_kb.embed import HashEmbedder; print(HashEmbedder(8).embed_query('Refunds within 30 days, café'))"
    elsewhere = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7", **_python_path()}
    )

    assert elsewhere.stdout.strip() == repr(HashEmbedder(8).embed_query("Refunds within 30 days, café"))
    assert [round(value, 6) for value in HashEmbedder(8).embed_query("Refunds within 30 days, café")] == FIXED


def _python_path() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(filter(None, sys.path))}


def test_the_fingerprint_names_the_method_and_the_dimensions():
    assert (EMBEDDER.name, EMBEDDER.dimensions) == ("hash-384-v2", 384)
    assert (HashEmbedder(64).name, HashEmbedder(64).dimensions) == ("hash-64-v2", 64)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Refund", "refunds"),
        ("policies", "policy"),
        ("boxes", "box"),
        ("CAFÉ", "cafe"),
        ("cafe\u0301", "café"),
        ("ＦＵＬＬ width", "full width"),
        ("Straße", "STRASSE"),
        ("Łódź, Ærø", "lodz, aero"),
        ("the client's order", "the client’s order"),
        ("ВОЗВРАТ", "возврат"),
        ("ещё", "еще"),
        ("ﬁle", "file"),
    ],
)
def test_spellings_of_one_word_give_one_vector(one: str, other: str):
    assert EMBEDDER.embed_query(one) == EMBEDDER.embed_query(other)


@pytest.mark.parametrize(("one", "other"), [("C++", "C"), ("C#", "C"), ("C++", "C#"), ("мой", "мои"), ("class", "clas")])
def test_different_words_stay_different(one: str, other: str):
    assert likeness(one, other) < 0.5


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("how do I get a refund", "Refunds are granted within 30 days of delivery."),
        ("возврат денег", "Возврат денег возможен в течение тридцати дней."),
        ("C++ compiler", "The C++ compiler needs 4 GB of memory."),
        ("東京の天気", "東京の天気は晴れです。"),
        ("水", "水は大切です"),
        ("환불 정책", "환불 정책은 30일입니다"),
        ("क्षमा", "क्षमा करें, दुकान बंद है"),
        ("ราคา", "ราคาสินค้าถูกมาก"),
    ],
)
def test_the_text_that_shares_the_words_is_the_most_alike(query: str, expected: str):
    texts = [
        "Refunds are granted within 30 days of delivery.",
        "How do I do it if it is to be as it was?",
        "Возврат денег возможен в течение тридцати дней.",
        "Магазин закрыт по воскресеньям.",
        "The C++ compiler needs 4 GB of memory.",
        "The C compiler needs 2 GB of memory.",
        "東京の天気は晴れです。",
        "大阪の株価",
        "水は大切です",
        "환불 정책은 30일입니다",
        "क्षमा करें, दुकान बंद है",
        "ราคาสินค้าถูกมาก",
    ]

    assert best(query, texts) == expected


def test_word_order_counts_a_little():
    assert likeness("dog bites man", "dog bites man today") > likeness("dog bites man", "man today bites dog")


def test_function_words_weigh_less_than_other_words():
    weights = features("the refund")

    assert weights["the"] < weights["the refund"] + 0.2 < weights["refund"]


def test_repetition_counts_sublinearly():
    assert features("tax " * 9)["tax"] == 3.0


def test_a_word_of_a_million_letters_is_cut():
    assert EMBEDDER.embed_query("a" * 1_000_000) == EMBEDDER.embed_query("a" * 64)


@pytest.mark.parametrize("dimensions", [0, -1, 65_537, 1.5, True, "384", None])
def test_wrong_dimensions_are_refused(dimensions: object):
    with pytest.raises(AKConfigError, match="dimensions must be a whole number from 1 to 65536"):
        HashEmbedder(dimensions)  # pyright: ignore[reportArgumentType] - the wrong type is the case under test


def test_one_text_in_place_of_a_list_is_refused():
    with pytest.raises(AKConfigError, match="takes a list of texts"):
        EMBEDDER("text")


def test_something_else_than_text_is_refused():
    with pytest.raises(AKConfigError, match="takes text, not int"):
        EMBEDDER([1])  # pyright: ignore[reportArgumentType] - the wrong type is the case under test
