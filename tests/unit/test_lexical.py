"""Text analysis that corpora share (A16): folding, scripts without spaces, both numbers of a word, excerpts."""

from __future__ import annotations

import re
import unicodedata

import pytest

from agentkernel_kb.lexical.excerpt import excerpt
from agentkernel_kb.lexical.text import fold, index_text, words_of
from agentkernel_kb.lexical.words import variants

LATIN = [chr(code) for code in range(0x80, 0x2B0) if code != 0x140]  # ŀ is an l and a dot to Unicode.


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Café", "cafe"),
        ("Ｃａｆé", "cafe"),
        ("Straße", "strasse"),
        ("ЙОД", "йод"),
        ("Ἀθῆναι", "αθηναι"),
        ("ﬁx", "fix"),
        ("e\u0301", "e"),
        ("Łódź, Ørsted, Đorđe", "lodz, orsted, dorde"),
        ("Ærø, Œuvre, Þór, Ðalur", "aero, oeuvre, thor, dalur"),
        ("IŞIK ışık İstanbul", "isik isik istanbul"),
        ("Ħal Ŧ Ŋ ĸ ǿ ƙ ɓ", "hal t n q o k b"),
    ],
)
def test_case_accents_and_compatibility_forms_are_folded(text: str, folded: str):
    assert fold(text) == folded


def test_each_letter_of_latin_scripts_that_is_named_after_another_one_is_folded_to_that():
    named = {letter: re.fullmatch("LATIN SMALL LETTER ([A-Z]) WITH .+", unicodedata.name(letter, "")) for letter in LATIN}
    assert {letter: fold(letter) for letter, found in named.items() if found} == {
        letter: found[1].lower() for letter, found in named.items() if found
    }
    assert [letter for letter in named if fold(letter.upper()) != fold(letter)] == []


def test_an_excerpt_is_found_by_words_of_such_letters():
    assert "Łódź" in excerpt("x " * 500 + "The boat is a Łódź. " + "y " * 500, ["lodz"])


def test_ascii_is_left_to_the_index():
    assert index_text("Plain # text, as it IS\n") == "Plain # text, as it IS\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("知識管理", ["知識", "識管", "管理", "理"]),
        ("知", ["知"]),
        ("ภาษาไทย", ["ภา", "าษ", "ษา", "าไ", "ไท", "ทย", "ย"]),
        ("서울특별시", ["서울", "울특", "특별", "별시", "시"]),
        ("AI知識", ["ai", "知識", "識"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("Москва, Київ", ["москва", "київ"]),
        ("order_id C++ C# F#", ["order", "id", "cplusplus", "csharp", "fsharp"]),
        ("don't — stop", ["don", "t", "stop"]),
    ],
)
def test_words_of_any_script_are_terms(text: str, words: list[str]):
    assert [fold(word) for word in words_of(text)] == [fold(word) for word in words]


@pytest.mark.parametrize(
    ("word", "forms"),
    [
        *(("refunds", {"refund"}), ("refund", {"refunds"}), ("policy", {"policies"}), ("policies", {"policy"})),
        *(("boxes", {"box"}), ("class", set()), ("status", set()), ("id", set()), ("知識", set()), ("key", set())),
    ],
)
def test_a_word_may_stand_in_its_other_number(word: str, forms: set[str]):
    assert set(variants(word)) == {word, *forms}


def test_an_excerpt_shows_where_the_words_stand_together():
    text = "refund " + "filler " * 200 + "the refund of a parcel takes thirty days. " + "filler " * 200
    shown = excerpt(text, ["refund", "thirty", "days"])
    assert "refund of a parcel takes thirty days" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert len(shown) < 240


def test_an_excerpt_finds_folded_words_and_ideographs_and_nothing_where_there_is_nothing():
    assert "Café" in excerpt("Das Café am Markt", ["cafe"])
    assert "知識管理" in excerpt("会社の知識管理について", ["識管"])
    assert excerpt("nothing here", ["absent"]) == ""
    assert excerpt("prefund", ["refund"]) == ""


def test_an_excerpt_is_one_line():
    assert "\n" not in excerpt("one\ntwo\r\n\tthree refund\nfour", ["refund"])
