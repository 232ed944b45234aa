"""Arguments as models send them (A8, X3): each has a deliberate meaning or a sentence."""

import math

import pytest

from agentkernel_kb.router.arguments import as_ids, as_limit, as_name, as_params, as_text
from agentkernel_kb.router.failures import Refusal


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (5, 5),
        ("5", 5),
        (" 5 ", 5),
        ('"5"', 5),
        (2.5, 2),
        ("2.9", 2),
        (None, 3),
        ("", 3),
        (0, 3),
        (-1, 3),
        ("-7", 3),
        (0.5, 3),
        (math.nan, 3),
        (math.inf, 200),
        (-math.inf, 3),
        ("1e3", 200),
        (10**30, 200),
        ("9" * 5_000, 200),
        (200, 200),
        (201, 200),
    ],
)
def test_x3_a_limit_is_understood(given, expected):
    assert as_limit(given, 3, 200) == expected


@pytest.mark.parametrize("given", ["many", "all", True, False, [5], {"limit": 5}, object(), "5 rows"])
def test_x3_a_limit_that_is_no_number_is_refused_in_words(given):
    with pytest.raises(Refusal) as caught:
        as_limit(given, 3, 200)
    assert caught.value.outcome == "bad_argument"
    assert caught.value.sentence.startswith("limit must be a whole number from 1 to 200, not ")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a", ["a"]),
        ("a,b", ["a", "b"]),
        (" a , b ,", ["a", "b"]),
        (["a", "b"], ["a", "b"]),
        (("a", "b"), ["a", "b"]),
        (["a,b", "c"], ["a", "b", "c"]),
        ('["a", "b"]', ["a", "b"]),
        ("['a', 'b']", ["a", "b"]),
        ("[a]", ["a"]),
        ("[a, b]", ["a", "b"]),
        ("[a], [b]", ["a", "b"]),
        ("[[a]]", ["[a]"]),
        ('"a"', ["a"]),
        ("'a', \"b\"", ["a", "b"]),
        ("`a`", ["a"]),
        ("a,a,b,a", ["a", "b"]),
        ("my file.md", ["my file.md"]),
        ("docs/[draft].md", ["docs/[draft].md"]),
        (5, ["5"]),
        ([5, "a"], ["5", "a"]),
        ({"id": "a"}, ["a"]),
        ([{"id": "a"}, {"id": "b"}], ["a", "b"]),
        ('[{"id": "a"}]', ["a"]),
        ([["a"], ["b"]], ["a", "b"]),
        (["", None, "a"], ["a"]),
        ("[" * 10_000, ["[" * 10_000]),
    ],
)
def test_a8_ids_are_understood(given, expected):
    assert as_ids(given, 200) == expected


@pytest.mark.parametrize("given", ["", " , ,", "[]", [], None, {}, True, [None], "''"])
def test_a8_no_id_is_refused_in_words(given):
    with pytest.raises(Refusal, match="ids is empty"):
        as_ids(given, 200)


def test_x3_more_ids_than_an_answer_has_rows_are_refused():
    with pytest.raises(Refusal, match="201 ids are more than the 200"):
        as_ids([str(number) for number in range(201)], 200)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("{}", {}),
        ("", {}),
        (None, {}),
        ("null", {}),
        ('{"a": 1}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        (' {"a": [1, {"b": null}]} ', {"a": [1, {"b": None}]}),
    ],
)
def test_a8_params_are_understood(given, expected):
    assert as_params(given) == expected


@pytest.mark.parametrize("given", ["{", "[1]", [1], "3", 3, "text", "{'a': 1}", "[" * 100_000, '{"a": ' + "9" * 5_000 + "}"])
def test_a8_params_that_are_no_object_are_refused_in_words(given):
    with pytest.raises(Refusal, match="params_json"):
        as_params(given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [("a", "a"), (None, ""), (5, "5"), ({"a": 1}, '{"a": 1}'), (["a"], '["a"]'), (True, "true"), ("\ud800x", "?x")],
)
def test_a8_text_is_understood(given, expected):
    assert as_text(given, "query") == expected


def test_a8_a_nul_character_is_refused_in_words():
    with pytest.raises(Refusal, match="query holds a NUL character"):
        as_text("a\x00b", "query")


@pytest.mark.parametrize(
    ("given", "expected"), [("lake", "lake"), (" lake\n", "lake"), ("'lake'", "lake"), (["lake"], "lake"), (None, "null")]
)
def test_a8_a_name_is_understood(given, expected):
    assert as_name(given) == expected


def test_a8_ids_that_are_nested_without_end_are_refused_in_words():
    nested: list[object] = ["a"]
    for _ in range(900):
        nested = [nested]
    with pytest.raises(Refusal, match="nested too deeply"):
        as_ids(nested, 200)


def test_a8_a_huge_number_as_id_is_no_exception():
    assert len(as_ids(10**5_000, 200)) == 1
