"""Moments of Neo4j as ISO 8601, those included that Python and the driver have no value for, such as years before Christ."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any

_ZEROS = re.compile(r"(:\d\d(?:\.\d*[1-9])?)\.?0*(?=[+\-Z]|$)")
_DAY = 86_400
_DAYS_OF_400_YEARS = 146_097
_FIRST_ORDINAL = date(1970, 1, 1).toordinal()


def shown(value: Any) -> str:
    """Return a date, time, moment or duration of the driver; the name of its time zone in brackets behind.

    The offset is written here: the driver writes `-03:30` for the offset -02:30 of a named zone (6.4.1, `DateTime.iso_format`).
    """
    from neo4j import time

    match value:
        case time.Date():
            return _day(value)
        case time.DateTime():
            return f"{_day(value.date())}T{_clock(value.time())}{_offset(value.utc_offset())}{_zone(value.tzinfo)}"
        case time.Time():
            return f"{_clock(value)}{_offset(value.utc_offset())}"
        case _:
            return short(str(value.iso_format()))


def _day(value: Any) -> str:
    # To the driver, the last day before the year 1 is `0000-00-00`.
    return _date(value.to_ordinal() - _FIRST_ORDINAL)


def _clock(value: Any) -> str:
    return short(f"{value.hour:02d}:{value.minute:02d}:{value.second:02d}.{value.nanosecond:09d}")


def short(written: str) -> str:
    """Return a moment without the zeros that the driver writes for nanoseconds."""
    return _ZEROS.sub(r"\1", written)


def _offset(offset: timedelta | None) -> str:
    if offset is None:
        return ""
    seconds = round(offset.total_seconds())
    minutes, odd = divmod(abs(seconds), 60)
    written = f"{'-' if seconds < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{written}:{odd:02d}" if odd else written


def _zone(zone: Any) -> str:
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    return f"[{name}]" if name and name != "UTC" else ""


def shown_as_sent(tag: bytes, fields: list[Any]) -> str | None:
    """Return a moment that the driver cannot read, for its year or its time zone, from what the server sent.

    Args:
        tag: Which structure it is. Source: Bolt protocol, "Structure semantics".
        fields: What stands in it.

    Returns:
        Where the offset at a named zone is not known, the moment is in UTC. `None` for what is no moment.
    """
    match tag, fields:
        case b"D", [days]:
            return _date(days)
        case b"d", [seconds, nanoseconds]:
            return _moment(seconds, nanoseconds)
        case b"I", [seconds, nanoseconds, int(offset)]:
            return _moment(seconds + offset, nanoseconds) + _offset(timedelta(seconds=offset))
        case b"i", [seconds, nanoseconds, str(zone)]:
            return f"{_moment(seconds, nanoseconds)}+00:00[{zone}]"
        case _:
            return None


def _moment(seconds: int, nanoseconds: int) -> str:
    days, of_day = divmod(seconds, _DAY)
    minutes, second = divmod(of_day, 60)
    return short(f"{_date(days)}T{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}.{nanoseconds:09d}")


def _date(days: int) -> str:
    """Return a day of the Gregorian calendar, which repeats itself every 400 years, by its number from 1970 on."""
    times, day = divmod(days + _FIRST_ORDINAL - 1, _DAYS_OF_400_YEARS)
    within = date.fromordinal(day + 1)
    year = within.year + 400 * times
    return f"{_year(year)}-{within.month:02d}-{within.day:02d}"


def _year(year: int) -> str:
    return f"{year:04d}" if 0 <= year <= 9999 else f"{'-' if year < 0 else '+'}{abs(year):04d}"
