"""The application's scope: what every route of a corpus is bound to, whatever a model asks for (S5)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag.chunk import Chunk
from agentkernel_kb.rag.content import digest
from agentkernel_kb.rag.values import SearchHit
from agentkernel_kb.rag.where import CHUNK_KEYS, Filter, parse_where


class Scope:
    """Mandatory filters.

    Args:
        where: What the application set; `None` for no bounds.

    Raises:
        AKConfigError: It is no filter.
    """

    def __init__(self, where: Mapping[str, Any] | None) -> None:
        self.filter = parse_where(where, subject="The scope")
        self.name = digest("scope", json.dumps(dict(where or {}), sort_keys=True, default=sorted)) if self.filter else ""
        self._stamped = {each.key: each.operand for each in self.filter.conditions if each.operator == "$eq"}
        for key in self._stamped.keys() & set(CHUNK_KEYS):
            raise AKConfigError(f"The scope names '{key}', which is a chunk's own; scope by metadata.")

    def __bool__(self) -> bool:
        return bool(self.filter)

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


def as_mapping(where: Filter) -> dict[str, Any]:
    """Return a filter as a mapping for a store; a condition that a mapping has no second place for is left to `only`."""
    mapping: dict[str, dict[str, Any]] = {}
    for condition in where.conditions:
        operand: Any = list(condition.operand) if condition.operator in ("$in", "$nin") else condition.operand
        mapping.setdefault(condition.key, {}).setdefault(condition.operator, operand)
    return mapping


def is_whole(where: Filter) -> bool:
    """Tell whether `as_mapping` says all of a filter."""
    return len({(each.key, each.operator) for each in where.conditions}) == len(where.conditions)


def only(hits: Iterable[SearchHit], where: Filter) -> list[SearchHit]:
    """Return the hits that meet a filter, whatever their store did with it."""
    return [
        hit
        for hit in hits
        if where.matches(hit.metadata, chunk_id=hit.chunk_id or "", document_id=hit.document_id or "", source=hit.source)
    ]
