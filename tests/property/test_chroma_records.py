"""Records for Chroma (row A11): metadata comes back as it was, ids tell records apart, any input is stored or refused."""

from __future__ import annotations

import math
from typing import Any, cast

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentkernel_kb.chroma.records import OVERFLOW_KEY, digest, flatten, prepare, restore, score
from agentkernel_kb.errors import KnowledgeQueryError

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)
METADATA = st.dictionaries(st.text() | st.sampled_from([OVERFLOW_KEY, "chroma:document", "#a", "$and"]), JSON)
ANYTHING = st.recursive(
    SCALARS | st.binary() | st.decimals() | st.dates() | st.complex_numbers(),
    lambda inner: st.lists(inner) | st.dictionaries(SCALARS, inner) | st.frozensets(SCALARS),
    max_leaves=12,
)


on_any_machine = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""No example fails because the machine is busy."""


def is_held_by_chroma(value: object) -> bool:
    if isinstance(value, list):
        items = cast("list[object]", value)
        return bool(items) and len({type(item) for item in items}) == 1 and all(map(is_held_by_chroma, items))
    if isinstance(value, str):
        return "\x00" not in value and value.encode("utf-8", "replace").decode() == value
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, bool) or (isinstance(value, int) and -(2**63) <= value < 2**63)


@on_any_machine
@given(METADATA)
def test_whatever_json_can_say_comes_back_as_it_was(metadata: dict[str, Any]):
    assert restore(flatten(cast("dict[object, object]", metadata)), "x") == {**metadata, "id": "x"}


@on_any_machine
@given(st.dictionaries(SCALARS, ANYTHING))
def test_chroma_is_only_given_what_it_can_hold(metadata: dict[object, object]):
    flat = flatten(metadata)

    assert all(key and (key == OVERFLOW_KEY or not key.startswith(("#", "$", "chroma:", "agentkernel_kb:"))) for key in flat)
    assert [value for value in flat.values() if not is_held_by_chroma(value)] == []


@on_any_machine
@given(st.dictionaries(st.integers(-3, 3) | st.text("-0123", max_size=2), st.integers()))
def test_no_key_of_metadata_takes_the_place_of_another(metadata: dict[object, int]):
    restored = restore(flatten(cast("dict[object, object]", metadata)), "x")
    del restored["id"]

    assert sorted(restored.values()) == sorted(metadata.values())
    assert all(restored[key] == value for key, value in metadata.items() if isinstance(key, str))


@on_any_machine
@given(st.tuples(st.none() | st.text(), st.text()), st.tuples(st.none() | st.text(), st.text()))
def test_different_records_have_different_digests(one: tuple[str | None, str], other: tuple[str | None, str]):
    assert (digest(*one) == digest(*other)) == (one == other)


@on_any_machine
@given(ANYTHING)
def test_any_input_is_prepared_or_refused_in_words(records: Any):
    try:
        prepared = prepare(records, "docs")
    except KnowledgeQueryError:
        return
    assert all(one.id and one.text.strip() for one in prepared)


@on_any_machine
@given(st.floats(), st.floats())
def test_a_smaller_distance_never_scores_less_and_scores_stay_in_range(one: float, other: float):
    for space, low, high in (("cosine", -1.0, 1.0), ("l2", 0.0, 1.0)):
        scores = [score(distance, cast("Any", space)) for distance in (one, other)]
        assert all(low <= value <= high for value in scores)
        if math.isfinite(one) and math.isfinite(other) and one <= other:
            assert scores[0] >= scores[1]
