"""The checks of the demo let no wrong answer pass (A20)."""

from __future__ import annotations

import pytest
from multi_demo.checks import QUESTIONS, Told
from multi_demo.stores import Stores, make_stores

_RIGHT = {
    "Which trip cost the most in each department?": "Engineering: Alexandria, 4,663; Marketing: Tokyo, 5,474; "
    "Research: New York City, 4,069; Sales: Dhaka, 6,098.",
    "Which countries border Austria?": "Czechia, Germany, Hungary, Italy, Liechtenstein, Slovakia, Slovenia and Switzerland.",
    "What is the daily allowance for a trip to Lilliput?": "The handbook says nothing of Lilliput.",
}
_WRONG = [
    ("Which trip cost the most in each department?", "4,663", "5,474"),
    ("Which trip cost the most in each department?", "Tokyo", "Kyoto"),
    ("Which countries border Austria?", "Italy", "Italy, France"),
    ("Which countries border Austria?", "Italy, ", ""),
    (
        "What is the daily allowance for a trip to Lilliput?",
        "says nothing of Lilliput",
        "gives 40 euros for Lilliput, not more",
    ),
]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return make_stores(tmp_path_factory.mktemp("stores"))


def _passes(question: str, answer: str, stores: Stores) -> bool:
    check = next(each.check for each in QUESTIONS if each.text == question)
    return check is not None and check(Told(answer, [], stores)).passed


@pytest.mark.parametrize("question", _RIGHT)
def test_a_right_answer_passes(question: str, stores: Stores) -> None:
    assert _passes(question, _RIGHT[question], stores)


@pytest.mark.parametrize(("question", "right", "wrong"), _WRONG)
def test_a_wrong_answer_does_not(question: str, right: str, wrong: str, stores: Stores) -> None:
    assert not _passes(question, _RIGHT[question].replace(right, wrong), stores)
