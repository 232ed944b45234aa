"""The filter language of `where`: one typed tree for every store, so that no store reads a caller's mapping by itself.

Keys name metadata, dotted where it is nested; `id` (or `chunk_id`), `document_id` and `source` name the chunk itself. Several
keys, and several operators of a key, all have to hold. Types never mix: the text `"1"`, the number 1 and `True` differ, and
only numbers are compared with numbers and texts with texts. A key that is missing meets only `$ne` and `$nin`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.near import nearest

Operator = Literal["$eq", "$ne", "$in", "$nin", "$gt", "$gte", "$lt", "$lte", "$contains"]
OPERATORS: tuple[Operator, ...] = get_args(Operator)
CHUNK_KEYS = ("id", "chunk_id", "document_id", "source")

MAX_CONDITIONS = 100
MAX_VALUES = 10_000
MAX_DEPTH = 16
"""Bounds of a filter, since a model may write it."""

MISSING = object()
"""What `lookup` returns for a key that is not there."""

_ORDERED: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda value, operand: value > operand,
    "$gte": lambda value, operand: value >= operand,
    "$lt": lambda value, operand: value < operand,
    "$lte": lambda value, operand: value <= operand,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One operator on one key.

    Attributes:
        key: Name of the metadata, dotted where nested.
        operator: What has to hold.
        operand: The value that it is compared with; a tuple for `$in` and `$nin`.
    """

    key: str
    operator: Operator
    operand: Any

    def holds(self, value: object) -> bool:
        """Tell whether a value meets the condition; `MISSING` stands for none."""
        if self.operator in ("$ne", "$nin"):
            return value is MISSING or not self._equals(value)
        if value is MISSING:
            return False
        if self.operator in ("$eq", "$in"):
            return self._equals(value)
        if self.operator == "$contains":
            return _contains(value, self.operand)
        return _comparable(value, self.operand) and _ORDERED[self.operator](value, self.operand)

    def _equals(self, value: object) -> bool:
        if self.operator in ("$in", "$nin"):
            return any(same(value, each) for each in self.operand)
        return same(value, self.operand)


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions that all have to hold; none of them means that everything does.

    Attributes:
        conditions: The conditions, in the order in which they were written.
    """

    conditions: tuple[Condition, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.conditions)

    def __and__(self, other: Filter) -> Filter:
        """Return the filter that lets through only what both do. So a scope is refined and can never be widened."""
        return Filter(self.conditions + other.conditions)

    def matches(
        self, metadata: Mapping[str, Any], *, chunk_id: str = "", document_id: str = "", source: str | None = None
    ) -> bool:
        """Tell whether a chunk meets the filter.

        Args:
            metadata: Its metadata.
            chunk_id: Its identifier.
            document_id: Identifier of its document.
            source: Where it is from.
        """
        chunk = {"id": chunk_id, "chunk_id": chunk_id, "document_id": document_id, "source": source}
        return all(
            condition.holds(chunk[condition.key] if condition.key in chunk else lookup(metadata, condition.key))
            for condition in self.conditions
        )


EVERYTHING = Filter()


def parse_where(where: Mapping[str, Any] | None, *, subject: str = "where") -> Filter:
    """Read a filter.

    Args:
        where: Keys to values, or to mappings of operators to values; `None` and `{}` filter nothing.
        subject: What the filter is called in a message.

    Raises:
        AKConfigError: It is no such mapping, an operator is unknown, a value does not go with its operator, or there is too
            much of it. The message names the key and what would be right.
    """
    if where is None:
        return EVERYTHING
    supplied: object = where
    if not isinstance(supplied, Mapping):
        raise AKConfigError(f"{subject} must be a mapping such as {{'department': 'finance'}}, not {type(supplied).__name__}.")
    conditions = tuple(
        condition
        for key, value in cast("Mapping[object, object]", supplied).items()
        for condition in _conditions(subject, key, value)
    )
    if len(conditions) > MAX_CONDITIONS:
        raise AKConfigError(f"{subject} has {len(conditions)} conditions; at most {MAX_CONDITIONS} are allowed.")
    return Filter(conditions)


def lookup(metadata: Mapping[str, Any], key: str) -> Any:
    """Return what a key names, or `MISSING`; a key that stands there as it is written goes before a path."""
    if key in metadata:
        return metadata[key]
    value: Any = metadata
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return MISSING
        value = cast("Mapping[str, Any]", value)[part]
    return value


def same(value: object, operand: object) -> bool:
    """Tell whether two values are equal and of one type, whole and broken numbers being one type."""
    if kind_of(value) != kind_of(operand):
        return False
    if isinstance(value, Mapping) and isinstance(operand, Mapping):
        left, right = cast("Mapping[Any, Any]", value), cast("Mapping[Any, Any]", operand)
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(value, list | tuple) and isinstance(operand, list | tuple):
        lefts, rights = cast("list[Any]", value), cast("list[Any]", operand)
        return len(lefts) == len(rights) and all(map(same, lefts, rights))
    return value == operand


def kind_of(value: object) -> str:
    """Return the type of a JSON value: null, boolean, number, text, list, mapping; or the name of another type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, list | tuple):
        return "list"
    return "mapping" if isinstance(value, Mapping) else type(value).__name__


def _conditions(subject: str, key: object, value: object) -> Iterable[Condition]:
    if not isinstance(key, str) or not key:
        raise AKConfigError(f"{subject} has the key {key!r}; keys are names of metadata.")
    if key.startswith("$"):
        raise AKConfigError(f"{subject} has the operator '{key}' in place of a key. Write {{'key': {{'$eq': value}}}}.")
    if not isinstance(value, Mapping):
        yield Condition(key, "$eq", _operand(subject, key, "$eq", value))
        return
    operators = cast("Mapping[object, object]", value)
    if operators and not any(isinstance(each, str) and each.startswith("$") for each in operators):
        yield Condition(key, "$eq", _operand(subject, key, "$eq", operators))
        return
    if not operators:
        raise AKConfigError(f"{subject} has no operator for '{key}'. Operators: {', '.join(OPERATORS)}.")
    for operator, operand in operators.items():
        if operator not in OPERATORS:
            raise AKConfigError(
                f"{subject} has the unknown operator {str(operator)[:60]!r} for '{key}'.{_near(str(operator)[:60])} "
                f"Operators: {', '.join(OPERATORS)}."
            )
        yield Condition(key, operator, _operand(subject, key, operator, operand))


def _near(operator: str) -> str:
    near = nearest(operator, OPERATORS)
    return f" Did you mean '{near}'?" if near else ""


def _operand(subject: str, key: str, operator: Operator, value: object) -> Any:
    where = f"{subject}: {operator} of '{key}'"
    if operator in ("$in", "$nin"):
        if not isinstance(value, list | tuple | set | frozenset):
            raise AKConfigError(f"{where} takes a list of values, not {kind_of(value)}.")
        values = tuple(cast("Iterable[object]", value))
        if len(values) > MAX_VALUES:
            raise AKConfigError(f"{where} has {len(values)} values; at most {MAX_VALUES} are allowed.")
        return tuple(_json_value(where, each) for each in values)
    if operator in _ORDERED and kind_of(value) not in ("number", "text"):
        raise AKConfigError(f"{where} takes a number or a text, not {kind_of(value)}.")
    return _json_value(where, value)


def _json_value(where: str, value: object, depth: int = 0) -> Any:
    """Return a copy of a JSON value, so that a caller's change does not reach a filter that was checked."""
    kind = kind_of(value)
    if depth > MAX_DEPTH:
        raise AKConfigError(f"{where} is nested deeper than {MAX_DEPTH}.")
    if kind == "number" and isinstance(value, float) and not math.isfinite(value):
        raise AKConfigError(f"{where} takes finite numbers, not {value}.")
    if kind == "list":
        return [_json_value(where, each, depth + 1) for each in cast("Iterable[object]", value)]
    if kind == "mapping":
        return {str(key): _json_value(where, each, depth + 1) for key, each in cast("Mapping[object, object]", value).items()}
    if kind not in ("null", "boolean", "number", "text"):
        raise AKConfigError(f"{where} takes JSON values, not {kind}.")
    return value


def _comparable(value: object, operand: object) -> bool:
    return kind_of(value) == kind_of(operand)


def _contains(value: object, operand: object) -> bool:
    if isinstance(value, str):
        return isinstance(operand, str) and operand in value
    if isinstance(value, list | tuple):
        return any(same(each, operand) for each in cast("Iterable[object]", value))
    return isinstance(value, Mapping) and isinstance(operand, str) and operand in value
