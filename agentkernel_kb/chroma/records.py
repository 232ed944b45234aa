"""What a record is in Chroma: its id, its document, and metadata flattened to what Chroma holds and restored on reading."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, Literal, cast

from agentkernel_kb.errors import AKConfigError, KnowledgeQueryError
from agentkernel_kb.model import Record, Scalar
from agentkernel_kb.render import encode, usable_id

Distance = Literal["cosine", "l2", "ip"]

OVERFLOW_KEY = "agentkernel_kb:json"
"""The metadata key under which everything stands that Chroma cannot hold natively, as one JSON object."""

_OWN_PREFIX = "agentkernel_kb:"
_RESERVED_PREFIXES = ("chroma:", "#", "$", _OWN_PREFIX)
_INTEGER = 2**63
_UNSOUND = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True)
class Prepared:
    """A record as it is sent to Chroma."""

    id: str
    text: str
    metadata: dict[str, Any]


def prepare(records: Iterable[Record], subject: str, filters: Mapping[str, Scalar] | None = None) -> list[Prepared]:
    """Check records and return them as Chroma takes them; of several with one id the last is kept, in the place of the first.

    Args:
        records: The records.
        subject: Name of the backend, for messages.
        filters: Metadata that each of them gets over its own, and that counts for its id where it brings none.

    Raises:
        KnowledgeQueryError: A record is no mapping, its text is blank or no text, or its metadata is no mapping.
    """
    supplied, kind = cast("object", records), type(cast("object", records)).__name__
    if isinstance(supplied, Mapping | str) or not isinstance(supplied, Iterable):
        raise KnowledgeQueryError(f"'{subject}' stores a list of records, not a {kind}; nothing was written.")
    scope = filters or {}
    given = enumerate(cast("Iterable[object]", supplied), 1)
    prepared = (_prepare_one(record, number, subject, scope) for number, record in given)
    return list({one.id: one for one in prepared}.values())


def _prepare_one(record: object, number: int, subject: str, scope: Mapping[str, Scalar]) -> Prepared:
    def refuse(what: str) -> KnowledgeQueryError:
        return KnowledgeQueryError(f"'{subject}' can't store record {number}: {what}. Nothing was written.")

    if not isinstance(record, Mapping):
        raise refuse(f"it must be a mapping {{'text': …, 'metadata': {{…}}}}, not {type(record).__name__}")
    fields = cast("Mapping[str, object]", record)
    text, raw_metadata = fields.get("text"), fields.get("metadata")
    if not isinstance(text, str):
        raise refuse(f"its 'text' must be a string, not {type(text).__name__}")
    text = sound(text)
    if not text.strip():
        raise refuse("its 'text' is blank")
    if raw_metadata is not None and not isinstance(raw_metadata, Mapping):
        raise refuse(f"its 'metadata' must be a mapping, not {type(raw_metadata).__name__}")
    metadata: Mapping[object, object] = {**cast("Mapping[object, object]", raw_metadata or {}), **scope}
    own_id = usable_id(cast("Mapping[str, Any]", metadata))
    identity = digest(metadata.get("source"), text, scope) if own_id is None else own_id
    return Prepared(identity, text, flatten(metadata))


def sound(text: str) -> str:
    """Return `text` without the characters that Chroma's full-text index or UTF-8 cannot hold: NUL and lone surrogates."""
    return _UNSOUND.sub(lambda match: "" if match[0] == "\x00" else "\ufffd", text)


def digest(source: object, text: str, scope: Mapping[str, Scalar] | None = None) -> str:
    """Return the id of a record that brings none: 128 bits over source and text, in a form that says where one ends.

    A row scope counts too, so that two agents who write the same do not share a record.
    """
    # Text is taken as it is: the encoder cleans it, and two sources would become one.
    content: list[object] = [source if isinstance(source, str) else encode(source), text]
    canonical = json.dumps([*content, sorted(scope.items())] if scope else content)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()[:32]


def flatten(metadata: Mapping[object, object]) -> dict[str, Any]:
    """Return `metadata` as Chroma holds it: plain values natively, so that its filters work, all others in one JSON string.

    The id is left out, because Chroma keeps it by itself. A key that is no text becomes text: 1 becomes "1", or "1 (2)" where
    "1" is a key as well.
    """
    native: dict[str, Any] = {}
    overflow: dict[str, object] = {}
    for key, value in _by_text(metadata).items():
        if key == "id":
            continue
        if _is_native_key(key) and _is_native(value):
            native[key] = value
        else:
            overflow[key] = value
    if overflow:
        native[OVERFLOW_KEY] = _to_json(overflow)
    return native


def restore(stored: Mapping[str, Any] | None, identity: str) -> dict[str, Any]:
    """Return metadata as it was written, with the record's id."""
    metadata = dict(stored or {})
    overflow = metadata.pop(OVERFLOW_KEY, None)
    if isinstance(overflow, str):
        metadata.update(_from_json(overflow))
    metadata["id"] = identity
    return metadata


def where_within(
    filters: Mapping[str, Scalar] | None, where: Mapping[str, Any] | None, subject: str
) -> Mapping[str, Any] | None:
    """Return Chroma's filter for what is in a row scope, and besides passes a filter of the caller's.

    Raises:
        AKConfigError: Chroma does not filter by such a key or value.
    """
    if not filters:
        return where
    for key, value in filters.items():
        # Of decimal numbers, Chroma 1.5.9 takes the whole ones that are nearest for equal.
        if not _is_native_key(key) or not _is_native_scalar(value) or isinstance(value, float):
            raise AKConfigError(
                f"'{subject}' can't filter by {key!r}: Chroma filters by keys of its own kind, and by texts, truth values and "
                "whole numbers of 64 bits."
            )
    conditions: list[Mapping[str, Any]] = [{key: {"$eq": value}} for key, value in filters.items()]
    conditions += [where] if where else []
    return conditions[0] if len(conditions) == 1 else {"$and": conditions}


def is_within(stored: Mapping[str, Any] | None, filters: Mapping[str, Scalar]) -> bool:
    """Tell whether metadata as Chroma holds it is in a row scope: the same values, of the same types, as `True == 1`."""
    held = stored or {}
    return all(type(held.get(key)) is type(value) and held[key] == value for key, value in filters.items())


def score(distance: float, space: Distance) -> float:
    """Return how alike two vectors are, the greater the more, from Chroma's distance between them.

    Cosine gives the cosine similarity in [-1, 1], `ip` the inner product, and `l2` 1 / (1 + squared distance) in (0, 1].
    """
    if not math.isfinite(distance):
        return -1.0 if space == "cosine" else 0.0
    if space == "l2":
        return 1.0 / (1.0 + max(0.0, distance))
    return max(-1.0, min(1.0, 1.0 - distance)) if space == "cosine" else 1.0 - distance


def _by_text(metadata: Mapping[object, object]) -> dict[str, object]:
    """Return `metadata` with keys that are text; one that was not gets a number where another key is that text."""
    keyed = {key: value for key, value in metadata.items() if isinstance(key, str)}
    for key, value in metadata.items():
        if not isinstance(key, str):
            text = str(encode(key))
            names = chain((text,), (f"{text} ({number})" for number in count(2)))
            keyed[next(name for name in names if name not in keyed and name != "id")] = value
    return keyed


def _is_native_key(key: str) -> bool:
    return bool(key) and not key.startswith(_RESERVED_PREFIXES) and not _UNSOUND.search(key)


def _is_native(value: object) -> bool:
    if type(value) is list:
        items = cast("list[object]", value)
        return bool(items) and all(type(item) is type(items[0]) and _is_native_scalar(item) for item in items)
    return _is_native_scalar(value)


def _is_native_scalar(value: object) -> bool:
    # The exact type, because a subclass (an enumeration, a NumPy number) would not come back as what it was.
    if type(value) is str:
        return not _UNSOUND.search(value)
    if type(value) is int:
        return -_INTEGER <= value < _INTEGER
    return type(value) is bool or (type(value) is float and math.isfinite(value))


def _to_json(values: Mapping[str, object]) -> str:
    """Return JSON that keeps what JSON can express, and the encoder's text for the rest."""
    try:
        return json.dumps(values, default=encode)
    except (TypeError, ValueError, RecursionError):  # A key that is no text, a cycle, a number too long, deep nesting.
        return json.dumps(encode(values))


def _from_json(text: str) -> dict[str, Any]:
    try:
        restored = json.loads(text)
    except (ValueError, RecursionError):
        restored = None
    return cast("dict[str, Any]", restored) if isinstance(restored, dict) else {OVERFLOW_KEY: text}
