"""Whatever is laid over whatever, and whatever a variable holds: the result is the one that the rules give (X10)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentkernel_kb.config.overlay import laid_over, origin
from agentkernel_kb.config.source import Source, read
from agentkernel_kb.config.variables import Variables

NAMES = st.sampled_from(["a", "b", "c", "d"])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4), st.lists(st.integers(), max_size=2))
TREES = st.recursive(
    st.dictionaries(NAMES, SCALARS, max_size=4),
    lambda inner: st.dictionaries(NAMES, st.one_of(SCALARS, inner), max_size=4),
    max_leaves=12,
)
PLAIN = st.text(st.characters(exclude_characters="$", exclude_categories=["Cs"]), max_size=12)
VALUES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
AT = ("environments", "prod")


def leaves(tree: Mapping[str, Any], key: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Return all that is no mapping, by its key; an empty mapping is one too."""
    found: dict[tuple[str, ...], Any] = {}
    for name, value in tree.items():
        found |= leaves(value, (*key, name)) if isinstance(value, dict) and value else {(*key, name): value}
    return found


@given(TREES)
def test_x10_an_empty_overlay_changes_nothing(base: dict[str, Any]):
    assert laid_over(base, {}, AT) == (base, {})


@given(TREES, TREES)
def test_x10_what_the_overlay_says_holds_and_what_it_does_not_name_stays(base: dict[str, Any], overlay: dict[str, Any]):
    before = json.dumps([base, overlay])
    merged, _ = laid_over(base, overlay, AT)
    assert json.dumps([base, overlay]) == before
    told, result = leaves(overlay), leaves(merged)
    for key, value in told.items():
        if value is None:
            assert key not in result
        elif value != {}:
            assert result[key] == value
    for key, value in leaves(base).items():
        if all(key[:length] not in told for length in range(1, len(key) + 1)) and value != {}:
            replaced = any(isinstance(told_under, tuple) and told_under[: len(key)] == key for told_under in told)
            assert replaced or result[key] == value


@given(TREES, TREES)
def test_x10_laying_over_twice_is_laying_over_once(base: dict[str, Any], overlay: dict[str, Any]):
    once, _ = laid_over(base, overlay, AT)
    assert laid_over(once, overlay, AT)[0] == once


@given(TREES, TREES)
def test_x10_each_part_knows_where_it_was_written(base: dict[str, Any], overlay: dict[str, Any]):
    merged, origins = laid_over(base, overlay, AT)
    whole = Source({}, "configuration", Path(), written={**base, "environments": {"prod": overlay}})
    for key, value in leaves(merged).items():
        if value != {}:
            assert whole.written_at(origin(key, origins)) == value


@given(st.lists(st.tuples(PLAIN, VALUES, st.booleans(), st.booleans()), max_size=4))
def test_x10_variables_are_put_in_once_and_in_their_places(parts: list[tuple[str, str, bool, bool]]):
    environment = {f"V{number}": value for number, (_, value, is_set, _) in enumerate(parts) if is_set}
    text, expected, missing = "", "", 0
    for number, (before, value, is_set, has_default) in enumerate(parts):
        text += f"{before}${{V{number}{':-other' if has_default else ''}}}"
        missing += not (is_set or has_default)
        expected += before + (value if is_set else "other" if has_default else f"${{V{number}}}")
    variables = Variables(environment)
    assert variables.put_in({"key": [text]}) == {"key": [expected]}
    assert len(variables.findings) == missing
    assert variables.used == environment


@given(VALUES)
def test_x10_a_doubled_dollar_is_one_and_begins_nothing(text: str):
    assert read({"key": text.replace("$", "$$")}, {}).data == {"key": text}


@given(VALUES.filter(lambda value: len(value) >= 4), PLAIN, PLAIN)
def test_x10_no_message_holds_what_a_variable_held(value: str, before: str, after: str):
    variables = Variables({"SECRET": value})
    variables.put_in("${SECRET}")
    if value not in "${SECRET}" and value not in before + "${SECRET}" + after:
        assert value not in variables.masked(f"{before}{value}{after}")
