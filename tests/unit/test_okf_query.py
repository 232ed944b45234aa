"""The language of searches (A16): words, phrases, beginnings and filters; nothing in a text is syntax of the index."""

from __future__ import annotations

import pytest

from agentkernel_kb.okf.query import MAX_GROUPS, Group, parse


def forms(text: str) -> list[tuple[tuple[str, ...], ...]]:
    return [group.forms for group in parse(text).words]


@pytest.mark.parametrize("blank", ["", "  ", "\n\t", "???", "...", '""', '" "', "*", "()", "\ud800"])
def test_a16_a_text_without_any_word_asks_for_nothing(blank: str):
    assert parse(blank).is_blank


def test_a16_words_are_folded_and_come_in_both_numbers():
    assert forms("Refunds POLICY café") == [(("refunds",), ("refund",)), (("policy",), ("policies",)), (("cafe",), ("cafes",))]


def test_a16_function_words_count_only_where_there_is_nothing_else():
    assert forms("what is the refund") == [(("refund",), ("refunds",))]
    assert [form[0] for form in forms("to be or not to be")] == [("to",), ("be",), ("or",), ("not",)]


def test_a16_a_word_with_a_star_is_a_beginning():
    assert parse("refun*").words == (Group((("refun",),), prefix=True),)


def test_a16_a_quoted_phrase_is_required():
    query = parse('"net revenue" 2026')
    assert query.required == (Group((("net", "revenue"),)),)
    assert [group.forms for group in query.words] == [(("2026",),)]


def test_a16_parts_of_a_name_are_words_and_a_phrase():
    assert forms("order_id") == [(("order",), ("orders",)), (("id",),), (("order", "id"),)]


def test_a16_scripts_without_spaces_are_asked_for_in_pairs():
    assert forms("知識管理") == [(("知識",),), (("識管",),), (("管理",),), (("知識", "識管", "管理"),)]
    assert parse("知").words == (Group((("知",),), prefix=True),)


def test_a16_names_with_signs_are_words():
    assert [found[0] for found in forms("C++ C#")] == [("cplusplus",), ("csharp",)]


def test_a16_filters_are_taken_out_of_the_words():
    query = parse('type:Policy tag:"net revenue" Path:rules/ refund tags:b')
    assert (query.types, query.tags, query.paths) == (("Policy",), ("net revenue", "b"), ("rules/",))
    assert [group.forms[0] for group in query.words] == [("refund",)]


def test_a16_a_colon_without_a_value_is_no_filter():
    assert not parse("content type: json").types


@pytest.mark.parametrize(
    "text", ['a" OR "b', "a AND (b", "NEAR(a b, 2)", "title : x", "{a b} : c", "-a ^b", "a + b", "every : x", "a\x00b"]
)
def test_a16_what_would_be_syntax_of_the_index_is_quoted(text: str):
    for group in (*parse(text).words, *parse(text).required):
        for form in group.expression().removesuffix(" *").split(" OR "):
            assert form[0] == form[-1] == '"'
            assert '"' not in form[1:-1]


def test_a16_a_query_is_bounded():
    assert len(parse(" ".join(f"word{number}" for number in range(5_000))).words) == MAX_GROUPS
    assert len(parse("word " * 5_000).words) == 1
