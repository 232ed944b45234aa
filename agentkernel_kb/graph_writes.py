"""What a record asks a graph to write, and what is said of those that were not stored, for every backend that holds a graph."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from agentkernel_kb.errors import KnowledgeError, KnowledgeQueryError
from agentkernel_kb.model import Record
from agentkernel_kb.render import metadata_of, one_line

_FAILURES_SHOWN = 5


class Statement(NamedTuple):
    """A statement and its parameters."""

    text: str
    parameters: dict[str, Any]


def statement_of(record: Record) -> Statement:
    """Return what a record asks to be run: `query` and `params` of its metadata, else `cypher_query` and `cypher_params`.

    Raises:
        KnowledgeError: It has no statement.
        KnowledgeQueryError: Its parameters are no mapping.
    """
    metadata = metadata_of(record)
    text: object = metadata.get("query") or metadata.get("cypher_query")
    parameters: object = metadata.get("params")
    if parameters is None or parameters == {}:
        parameters = metadata.get("cypher_params", parameters)
    if not isinstance(text, str) or not text.strip():
        raise KnowledgeError(
            "a graph stores what a Cypher statement says: give one in query, and its values in params_json "
            "(in a record, metadata 'query' and 'params')"
        )
    if parameters is not None and not isinstance(parameters, Mapping):
        raise KnowledgeQueryError(f"'params' has to be a mapping of names to values, not {type(parameters).__name__}.")
    named = cast("Mapping[object, Any]", parameters or {})
    return Statement(text, {str(key): value for key, value in named.items()})


def not_stored(failures: Mapping[int, KnowledgeError], total: int) -> KnowledgeError:
    """Return one error for all records that were not stored; its type is that of what the writer can mend best.

    Args:
        failures: Why, by the record's number from 1 on; at least one.
        total: How many records there were.
    """
    if total == 1 and isinstance(failures[1], KnowledgeQueryError):
        return failures[1]
    shown = [f"record {number}: {error}" for number, error in list(failures.items())[:_FAILURES_SHOWN]]
    more = ["…"] if len(failures) > _FAILURES_SHOWN else []
    rejected = any(isinstance(error, KnowledgeQueryError) for error in failures.values())
    kind = KnowledgeQueryError if rejected else KnowledgeError
    return kind(f"{len(failures)} of {total} records were not stored. {'; '.join([*shown, *more])}")


def without_values(text: str, parameters: Mapping[str, Any]) -> str:
    """Return a message in which the values of parameters are replaced by the parameters' names."""
    values = sorted(_scalars("", parameters), key=lambda pair: -len(pair[1]))
    for name, value in values:
        text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", lambda _, name=name: f"${name}", text)
    return text


def _scalars(name: str, value: object) -> list[tuple[str, str]]:
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return [pair for key, item in items for pair in _scalars(name or str(key), item)]
    if isinstance(value, list | tuple):
        return [pair for item in cast("list[object]", value) for pair in _scalars(name, item)]
    text = one_line(str(value))
    return [(name, text)] if text and value is not None else []
