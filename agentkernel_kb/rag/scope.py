"""The application's scope: what every route of a corpus is bound to, whatever a model asks for (S5)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag.chunk import Chunk
from agentkernel_kb.rag.content import digest
from agentkernel_kb.rag.values import SearchHit
from agentkernel_kb.rag.where import CHUNK_KEYS, MISSING, Condition, Filter, kind_of, lookup, parse_where, same

_LISTS = ("$in", "$nin")
_STRICTER: Mapping[str, Callable[[Any, Any], Any]] = {"$gt": max, "$gte": max, "$lt": min, "$lte": min}


class Scope:
    """Mandatory filters.

    Args:
        where: What the application set; `None` for no bounds.

    Raises:
        AKConfigError: It is no filter.
    """

    def __init__(self, where: Mapping[str, Any] | None) -> None:
        self.filter = parse_where(where, subject="The scope")
        self.name = digest("scope", _canonical(self.filter)) if self.filter else ""
        self.written = _written(self.filter) if self.filter else ""
        self._stamped = {each.key: each.operand for each in self.filter.conditions if each.operator == "$eq"}
        for key in self._stamped.keys() & set(CHUNK_KEYS):
            raise AKConfigError(f"The scope names '{key}', which is a chunk's own; scope by metadata.")

    def __bool__(self) -> bool:
        return bool(self.filter)

    def covers(self, name: str, written: str) -> bool:
        """Tell whether another scope is this one or lies within it, as far as what is written of it shows.

        Args:
            name: Its name.
            written: What `written` is of it; empty where nobody noted that.
        """
        return not self or name == self.name or set(_parts(self.written)) <= set(_parts(written))

    def refined(self, where: Mapping[str, Any] | None) -> Filter:
        """Return the scope and what was asked for; both have to hold.

        Raises:
            AKConfigError: What was asked for is no filter.
        """
        return self.filter & parse_where(where)

    def added(self, where: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Return the scope and what was asked for as one mapping, for a retriever that has a filter language of its own.

        Raises:
            AKConfigError: What was asked for names what the scope has set, or is more than plain keys.
        """
        asked, own = dict(where or {}), as_mapping(self.filter)
        if own and (taken := sorted(key for key in asked if key in own or str(key).startswith("$"))):
            raise AKConfigError(f"where may not name {taken}: the application has bound this knowledge.")
        plain = {key: each["$eq"] if set(each) == {"$eq"} else each for key, each in own.items()}
        return {**asked, **plain} or None

    def kept(self, hits: Iterable[SearchHit]) -> list[SearchHit]:
        """Return the hits of a retriever with a filter language of its own that do not say themselves that they are outside."""
        return [hit for hit in hits if all(self._may(hit, each) for each in self.filter.conditions)]

    def _may(self, hit: SearchHit, condition: Condition) -> bool:
        value = lookup(hit.metadata, condition.key)
        return value is MISSING or condition.holds(value)

    def stamped(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Return metadata with the scope's own values in place of any others."""
        return {**metadata, **self._stamped}

    def bind(self, chunk: Chunk) -> Chunk:
        """Put a chunk into the scope: its metadata says so, and its id differs from that of the same chunk in another.

        Raises:
            AKConfigError: It is outside of what the scope allows, and no value can be set that makes it inside.
        """
        if not self:
            return chunk
        chunk.metadata = self.stamped(chunk.metadata)
        chunk.id = digest("scoped", self.name, chunk.id)
        if not self.filter.matches(chunk.metadata, chunk_id=chunk.id, document_id=chunk.document_id, source=chunk.source):
            raise AKConfigError("is outside of the scope that the application set")
        return chunk

    def __repr__(self) -> str:
        return f"Scope({sorted({each.key for each in self.filter.conditions})})"


def filter_of(written: str) -> Filter:
    """Return the filter of a scope of which `Scope.written` is noted; of any other text that of nothing in particular."""
    conditions = [json.loads(part) for part in _parts(written)]
    filters = [parse_where({key: {operator: operand}}, subject="The scope") for key, operator, operand in conditions]
    return Filter(tuple(condition for each in filters for condition in each.conditions))


def asked_of(store: object, where: Filter) -> Filter | dict[str, Any] | None:
    """Return a filter as a store takes it: as it is where the store can, else as a mapping, `None` for no bounds."""
    return where if getattr(store, "takes_filters", False) else as_mapping(where) or None


def as_mapping(where: Filter) -> dict[str, Any]:
    """Return a filter as a mapping for a store. Two texts that have to be contained are one too many: see `is_whole`."""
    mapping: dict[str, dict[str, Any]] = {}
    for condition in where.conditions:
        _join(mapping.setdefault(condition.key, {}), condition)
    return mapping


def is_whole(where: Filter) -> bool:
    """Tell whether `as_mapping` says all of a filter."""
    contained = {(each.key, repr(each.operand)) for each in where.conditions if each.operator == "$contains"}
    return len(contained) == len({key for key, _ in contained})


def only(hits: Iterable[SearchHit], where: Filter) -> list[SearchHit]:
    """Return the hits that meet a filter, whatever their store did with it."""
    return [
        hit
        for hit in hits
        if where.matches(hit.metadata, chunk_id=hit.chunk_id or "", document_id=hit.document_id or "", source=hit.source)
    ]


def _canonical(where: Filter) -> str:
    """Return a filter as a text that is the same however it was spelt."""
    parts = [
        [each.key, each.operator, sorted(map(_json, each.operand)) if each.operator in _LISTS else each.operand]
        for each in where.conditions
    ]
    return json.dumps(sorted(map(_json, parts)))


def _written(where: Filter) -> str:
    """Return a filter as a list of its conditions, each a text that is the same however it was spelt."""
    parts = [
        [each.key, each.operator, sorted(each.operand, key=_json) if each.operator in _LISTS else each.operand]
        for each in where.conditions
    ]
    return json.dumps(sorted(set(map(_json, parts))))


def _parts(written: str) -> list[str]:
    return json.loads(written) if written else []


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _join(operators: dict[str, Any], condition: Condition) -> None:
    """Add a condition to those of its key, so that both hold where one operator stands there twice."""
    operator, operand = condition.operator, condition.operand
    if operator in _LISTS or (operator in ("$eq", "$ne") and operator in operators):
        values: list[Any] = list(operand) if operator in _LISTS else [operand]
        _narrow(operators, "$in" if operator in ("$in", "$eq") else "$nin", values)
    elif operator in _STRICTER and operator in operators:
        _tighten(operators, operator, operand)
    else:
        operators.setdefault(operator, operand)


def _narrow(operators: dict[str, Any], operator: str, values: list[Any]) -> None:
    there: list[Any] | None = operators.get(operator)
    if there is None:
        operators[operator] = values
    elif operator == "$nin":
        operators[operator] = [*there, *values]
    else:
        operators[operator] = [value for value in there if any(same(value, each) for each in values)]


def _tighten(operators: dict[str, Any], operator: str, operand: Any) -> None:
    there = operators[operator]
    if kind_of(there) == kind_of(operand):
        operators[operator] = _STRICTER[operator](there, operand)
    else:
        _narrow(operators, "$in", [])  # Nothing is a number and a text.
