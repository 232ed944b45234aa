"""What goes over the pipe between this process and a child: frames of JSON, in which values of databases keep their types.

No pickle: a child that runs a model's statements is not trusted, and what it sends can become plain values and nothing else.
"""

from __future__ import annotations

import base64
import json
import os
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

MAX_REPLY_BYTES = 64_000_000
"""Largest frame that is taken from a child."""

_HEADER = struct.Struct("!Q")
_CHUNK_BYTES = 1 << 20
_PLAIN = frozenset([str, float, bool, type(None)])
_LARGEST_INT = 1 << 63


def send(descriptor: int, message: object) -> None:
    """Write a message to a pipe.

    Raises:
        TypeError: It holds a value that has no form here.
        RecursionError: It is nested too deeply.
        OSError: Nobody reads any more.
    """
    send_frame(descriptor, encoded(message))


def send_frame(descriptor: int, frame: bytes) -> None:
    """Write an encoded message to a pipe.

    Raises:
        OSError: Nobody reads any more.
    """
    left = memoryview(_HEADER.pack(len(frame)) + frame)
    while left:
        left = left[os.write(descriptor, left[:_CHUNK_BYTES]) :]


def receive(descriptor: int, most_bytes: int | None = None) -> Any:
    """Return the next message from a pipe.

    Args:
        descriptor: The pipe.
        most_bytes: Largest frame to take.

    Raises:
        EOFError: The other side has ended.
        ValueError: What it sent is no message, or too large.
    """
    (size,) = _HEADER.unpack(_exactly(descriptor, _HEADER.size))
    if most_bytes is not None and size > most_bytes:
        raise ValueError("a message is too large")
    frame = _exactly(descriptor, size)
    try:
        return json.loads(frame, object_hook=_value)
    except (ArithmeticError, LookupError, RecursionError, TypeError) as error:
        raise ValueError("a message cannot be read") from error


def _exactly(descriptor: int, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = os.read(descriptor, min(size - len(parts), _CHUNK_BYTES))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def encoded(message: object) -> bytes:
    """Return a message as it goes over the pipe.

    Raises:
        TypeError: It holds a value that has no form here.
        RecursionError: It is nested too deeply.
    """
    return json.dumps(_form(message), separators=(",", ":")).encode("ascii")


# A value is itself in JSON where JSON has it, lists included; any other is an object with one key, which names its type.


def _form(value: object) -> object:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is int:
        number = cast("int", value)
        return number if -_LARGEST_INT <= number < _LARGEST_INT else {"int": hex(number)}
    if kind is list:
        return [_form(item) for item in cast("list[object]", value)]
    for base, name, form in _FORMS:
        if isinstance(value, base):
            return {name: form(value)}
    raise TypeError(f"a value of the type {kind.__name__} cannot be handed over")


def _pairs(value: Mapping[object, object]) -> list[object]:
    return [[_form(key), _form(item)] for key, item in value.items()]


def _zone(zone: tzinfo | None, moment: datetime | time) -> object:
    """Return a time zone as its name, or as the seconds that it lies ahead of UTC."""
    key = getattr(zone, "key", None)
    offset = moment.utcoffset()
    return key if isinstance(key, str) else None if offset is None else offset.total_seconds()


def _datetime_form(value: datetime) -> list[object]:
    return [value.replace(tzinfo=None).isoformat(), _zone(value.tzinfo, value), value.fold]


def _time_form(value: time) -> list[object]:
    return [value.replace(tzinfo=None).isoformat(), _zone(value.tzinfo, value), value.fold]


# The more special type stands before the more general one.
_FORMS: tuple[tuple[type, str, Callable[[Any], object]], ...] = (
    (Mapping, "map", _pairs),
    (tuple, "tuple", lambda value: [_form(item) for item in value]),
    (list, "list", lambda value: [_form(item) for item in value]),
    (str, "str", str),
    (datetime, "datetime", _datetime_form),
    (date, "date", date.isoformat),
    (time, "time", _time_form),
    (timedelta, "timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    (Decimal, "decimal", str),
    (UUID, "uuid", str),
    ((bytes, bytearray, memoryview), "bytes", lambda value: base64.b64encode(value).decode("ascii")),  # pyright: ignore[reportAssignmentType] - isinstance takes a tuple too
    (float, "float", float),
    (int, "int", hex),
)


def _moment_zone(zone: object) -> tzinfo | None:
    if zone is None:
        return None
    if isinstance(zone, str):
        from zoneinfo import ZoneInfo

        return ZoneInfo(zone)
    seconds = float(cast("float", zone))
    return timezone(timedelta(seconds=seconds)) if seconds else UTC


def _to_datetime(form: list[Any]) -> datetime:
    text, zone, fold = form
    return datetime.fromisoformat(text).replace(tzinfo=_moment_zone(zone), fold=fold)


def _to_time(form: list[Any]) -> time:
    text, zone, fold = form
    return time.fromisoformat(text).replace(tzinfo=_moment_zone(zone), fold=fold)


_VALUES: dict[str, Callable[[Any], object]] = {
    "map": lambda pairs: dict(pairs),
    "tuple": tuple,
    "list": list,
    "str": str,
    "datetime": _to_datetime,
    "date": date.fromisoformat,
    "time": _to_time,
    "timedelta": lambda form: timedelta(days=form[0], seconds=form[1], microseconds=form[2]),
    "decimal": Decimal,
    "uuid": UUID,
    "bytes": base64.b64decode,
    "float": float,
    "int": lambda text: int(text, 16),
}


def _value(form: dict[str, Any]) -> object:
    ((name, inner),) = form.items()
    return _VALUES[name](inner)
