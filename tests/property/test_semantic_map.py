"""Placeholders, for any map and any text (X2)."""

from hypothesis import given
from hypothesis import strategies as st

from agentkernel_kb.router.redaction import holds_credentials
from agentkernel_kb.router.semantic_map import SemanticMap

TOKENS = st.one_of(
    st.from_regex(r"<[A-C]{1,3}>", fullmatch=True),
    st.from_regex(r"[A-C_]{1,3}", fullmatch=True),
    st.text(alphabet="<>AB $", min_size=1, max_size=4).filter(str.strip),
)
MAPS = st.dictionaries(
    TOKENS, st.text(alphabet="<>AB c.", max_size=8).filter(lambda value: not holds_credentials(value)), max_size=8
)
TEXTS = st.text(alphabet="<>ABC_ $x'", max_size=60)


def word(character):
    return character.isalnum() or character == "_"


def naive(tokens, text):
    """What resolving means, written without any regard for cost."""
    result, position = "", 0
    while position < len(text):
        fitting = [
            token
            for token in tokens
            if text.startswith(token, position)
            and not (position and word(token[0]) and word(text[position - 1]))
            and not (word(token[-1]) and word(text[position + len(token) : position + len(token) + 1] or " "))
        ]
        longest = max(fitting, key=len, default=None)
        result += text[position] if longest is None else tokens[longest]
        position += 1 if longest is None else len(longest)
    return result


@given(MAPS, TEXTS)
def test_x2_resolving_is_one_pass_from_left_to_right_longest_token_first(tokens, text):
    assert SemanticMap(tokens).resolve(text)[0] == naive(tokens, text)


@given(MAPS, TEXTS, st.randoms())
def test_x2_the_order_of_the_tokens_does_not_matter(tokens, text, random):
    shuffled = list(tokens.items())
    random.shuffle(shuffled)
    assert SemanticMap(dict(shuffled)).resolve(text) == SemanticMap(tokens).resolve(text)


@given(MAPS.filter(bool), st.data())
def test_x2_values_are_never_read_again(tokens, data):
    token = data.draw(st.sampled_from(sorted(tokens)))
    assert SemanticMap(tokens).resolve(token)[0] == tokens[token]


@given(
    st.dictionaries(st.from_regex(r"[A-Z]{2,4}", fullmatch=True), st.just("t"), max_size=5),
    st.from_regex(r"[A-Z_]{1,8}", fullmatch=True),
)
def test_x2_no_part_of_a_word_is_replaced(tokens, text):
    assert SemanticMap(tokens).resolve(text)[0] == tokens.get(text, text)
