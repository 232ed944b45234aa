"""Measures of a ranking, against figures worked out by hand (X13)."""

from __future__ import annotations

import math

import pytest

from agentkernel_kb.evaluation.measures import ndcg, precision, recall


def test_ndcg_is_the_gain_at_each_rank_over_that_of_the_best_order():
    grades = {"a": 3, "b": 2, "c": 1}
    gain = 2 / math.log2(2) + 0 + 3 / math.log2(4)  # b, a stranger, a
    best = 3 / math.log2(2) + 2 / math.log2(3) + 1 / math.log2(4)

    assert ndcg(["b", "x", "a"], grades) == pytest.approx(gain / best)
    assert ndcg(["b", "x", "a"], grades) == pytest.approx(0.7350, abs=5e-5)


def test_ndcg_of_the_best_order_is_one_and_of_none_found_zero():
    assert ndcg(["a", "b"], {"a": 2, "b": 1}) == 1
    assert ndcg(["x", "y"], {"a": 2, "b": 1}) == 0
    assert ndcg([], {"a": 1}) == 0


def test_ndcg_counts_only_the_first_places_in_the_best_order_too():
    assert ndcg(["a", "b"], {"a": 1, "b": 1, "c": 1}, k=2) == 1
    assert ndcg(["x", "a"], {"a": 1}, k=1) == 0


def test_grades_of_zero_and_less_are_no_gain():
    assert ndcg(["bad", "a"], {"bad": -1, "nil": 0, "a": 1}) == pytest.approx(1 / math.log2(3))
    assert ndcg(["bad"], {"bad": -1}) == 0


def test_recall_is_the_share_of_what_is_relevant():
    assert recall(["a", "x", "b", "y"], {"a", "b", "c"}) == pytest.approx(2 / 3)
    assert recall(["a", "x", "b", "y"], {"a", "b", "c"}, k=2) == pytest.approx(1 / 3)
    assert recall(["a"], set()) == 0


def test_precision_is_the_share_of_the_places_asked_for():
    assert precision(["a", "x", "b", "y"], {"a", "b"}, k=4) == 0.5
    assert precision(["a"], {"a"}, k=4) == 0.25


@pytest.mark.parametrize("k", [0, -1])
def test_no_places_have_nothing(k: int):
    assert ndcg(["a"], {"a": 1}, k=k) == recall(["a"], {"a"}, k=k) == precision(["a"], {"a"}, k=k) == 0


def test_an_id_named_twice_counts_once():
    assert recall(["a", "a", "b"], {"a", "b"}, k=2) == 1
    assert precision(["a", "a"], {"a"}, k=2) == 0.5
    assert ndcg(["a", "a"], {"a": 1, "b": 1}) < 1
