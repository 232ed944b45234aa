"""Values of Trino as plain data that JSON can hold.

The server sends decimals, dates, times, intervals and the like as text of full precision. It is kept: Python's own types know
neither picoseconds nor the year -2024.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from agentkernel_kb.render import encode
from agentkernel_kb.rows import distinct_names

Decoder = Callable[[Any], Any]

# Sketches and the like, which only functions of the server can read.
_OPAQUE = frozenset(["HyperLogLog", "P4HyperLogLog", "KHyperLogLog", "SetDigest", "qdigest", "tdigest"])
_CONTAINERS = frozenset(["array", "map", "row"])
_MAX_DEPTH = 24


def decoder(signature: Mapping[str, Any], depth: int = 0) -> Decoder:
    """Return what turns the values of a column into plain data.

    Args:
        signature: The column's `typeSignature`, as the server sends it.
        depth: How many types it stands in; beyond 24 values are encoded as they come.
    """
    kind, arguments = str(signature.get("rawType", "")), cast("list[dict[str, Any]]", signature.get("arguments") or [])
    if depth >= _MAX_DEPTH:
        return encode
    if kind == "array":
        return _nullable(_array(decoder(arguments[0]["value"], depth + 1)))
    if kind == "map":
        key, value = arguments[0]["value"], arguments[1]["value"]
        # Keys of a JSON object are text: rows, arrays and maps are written out in them.
        decode_key = str if key.get("rawType") in _CONTAINERS else decoder(key, depth + 1)
        return _nullable(_map(decode_key, decoder(value, depth + 1)))
    if kind == "row":
        return _nullable(_row([argument["value"] for argument in arguments], depth))
    if kind == "varbinary":
        return _nullable(_binary)
    if kind in _OPAQUE:
        return _nullable(lambda value: f"<{kind} of {_size(value):,} bytes>")
    return _scalar


def _nullable(decode: Decoder) -> Decoder:
    return lambda value: None if value is None else decode(value)


def _scalar(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return encode(value)
    return value if value is None or isinstance(value, str | int | float) else encode(value)


def _array(decode: Decoder) -> Decoder:
    return lambda values: [decode(value) for value in values]


def _map(decode_key: Decoder, decode: Decoder) -> Decoder:
    return lambda entries: {str(decode_key(key)): decode(value) for key, value in entries.items()}


def _row(fields: Sequence[Mapping[str, Any]], depth: int) -> Decoder:
    names = distinct_names([_field_name(field) or f"field{index}" for index, field in enumerate(fields)])
    decoders = [decoder(field["typeSignature"], depth + 1) for field in fields]
    return lambda values: {name: each(value) for name, each, value in zip(names, decoders, values, strict=True)}


def _field_name(field: Mapping[str, Any]) -> str:
    named: dict[str, Any] = field.get("fieldName") or {}
    return str(named.get("name") or "")


def _binary(value: str) -> str:
    try:
        return str(encode(base64.b64decode(value, validate=True)))
    except (binascii.Error, ValueError, TypeError):  # Some version may write it in another way.
        return str(value)


def _size(value: object) -> int:
    """Return how many bytes base64 text stands for."""
    text = str(value)
    return len(text) * 3 // 4 - text[-2:].count("=")


def weight(value: object) -> int:
    """Return about how many bytes a value takes, those inside of it included."""
    if isinstance(value, dict):
        return sum(weight(key) + weight(inner) for key, inner in cast("dict[object, object]", value).items())
    if isinstance(value, list):
        return sum(map(weight, cast("list[object]", value)))
    return len(value) if isinstance(value, str) else 16
