"""Moments of Neo4j that the driver has no value for, as ISO 8601 (A12)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from agentkernel_kb.neo4j.moments import shown_as_sent

DAYS = range(date(1, 1, 1).toordinal(), date(9999, 12, 31).toordinal(), 9_973)
FIRST = date(1970, 1, 1).toordinal()


def test_days_are_told_as_python_tells_those_that_it_knows() -> None:
    for ordinal in DAYS:
        assert shown_as_sent(b"D", [ordinal - FIRST]) == date.fromordinal(ordinal).isoformat()


def test_moments_are_told_as_python_tells_those_that_it_knows() -> None:
    for ordinal in DAYS:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=ordinal - FIRST, seconds=ordinal % 86_400)
        assert shown_as_sent(b"d", [round(moment.timestamp()), 0]) == moment.replace(tzinfo=None).isoformat()


@pytest.mark.parametrize(
    ("tag", "fields", "written"),
    [
        (b"D", [-719_529], "-0001-12-31"),
        (b"d", [-63_549_316_800, 500_000_000], "-0044-03-15T12:00:00.5"),
        (b"I", [-63_549_320_400, 1, 3_600], "-0044-03-15T12:00:00.000000001+01:00"),
        (b"I", [-63_549_320_400, 0, -12_630], "-0044-03-15T07:29:30-03:30:30"),
        (b"i", [0, 0, "Moon/Tranquility"], "1970-01-01T00:00:00+00:00[Moon/Tranquility]"),
    ],
)
def test_offsets_and_years_without_a_place_in_python_are_told(tag: bytes, fields: list[object], written: str) -> None:
    assert shown_as_sent(tag, fields) == written


def test_what_is_no_moment_is_none() -> None:
    assert shown_as_sent(b"X", [1]) is None
    assert shown_as_sent(b"D", []) is None
