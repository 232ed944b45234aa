"""FakeKnowledgeBase: a scriptable backend in memory for tests of what stands above backends, never for a store to be tested."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Self, cast, get_args

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.errors import (
    AKConfigError,
    KnowledgeCapabilityError,
    KnowledgeGuardError,
    KnowledgeQueryError,
    KnowledgeStateError,
)
from agentkernel_kb.identity import Identity, current_identity
from agentkernel_kb.model import KnowledgeCapabilities, Operation, Record, Scalar

Filters = Mapping[str, Scalar]
Behaviour = Callable[..., Any] | BaseException | float | Sequence[Record]
"""What an operation does instead of answering from the records; see `FakeKnowledgeBase.on`."""


class FakeKnowledgeBase(KnowledgeBase):
    """A backend with given records, whose operations can be scripted and which remembers how it was called.

    Unscripted, it works. `search` ranks by the number of distinct words in common, then by the order of adding. `query` takes
    a statement as literal text and returns the records that contain it, letter case ignored, in the order of adding; an odd
    number of single quotes is a syntax error. `fetch` goes by `metadata["id"]`. `browse` lists the records at and below a path
    of ids whose parts are separated by slashes. `write` and `add` replace by id; a record without one is named by its content.

    Args:
        name: The backend's name.
        records: What it holds.
        search, fetch, browse, writable: Declare these.
        query_language: Declare query in this language.
        derives_schema: Describe itself; without it `schema()` needs `add_schema()`, as for any backend.
        refused_words: Guard statements: one that holds any of these words, letter case ignored, is refused. `None`: no guard.
        description: Its description; the default contains the name.
        version: What `ping` answers. `None`: it has no ping of its own.
        requires_identity: Every call has to act for somebody.
        filters: Declare `filters`: every operation keeps to the records that have the values of a row scope, and what is
            written gets them.

    Attributes:
        calls: Every operation asked for, in order: `(operation, argument, keyword arguments)`, `limit` being one of the latter.
        acted_for: Whom each of those calls acted for, in the same order.
        down: An error that every operation, `ping` and the derived schema raise while it is set, as those of a store do that
            is not there.
    """

    def __init__(
        self,
        name: str = "fake",
        records: Iterable[Record] = (),
        *,
        search: bool = True,
        query_language: str | None = None,
        fetch: bool = False,
        browse: bool = False,
        writable: bool = False,
        derives_schema: bool = True,
        refused_words: Collection[str] | None = None,
        description: str | None = None,
        version: str | None = None,
        requires_identity: bool = False,
        filters: bool = False,
    ) -> None:
        self._name = name
        super().__init__(
            KnowledgeCapabilities(
                kinds=["fake"],
                search=search,
                search_mode="lexical" if search else None,
                query=query_language is not None,
                query_language=query_language,
                fetch=fetch,
                browse=browse,
                writable=writable,
                derives_schema=derives_schema,
                filters=filters,
            )
        )
        self._description = f"{name} holds records in memory." if description is None else description
        self._refused_words = {word.casefold() for word in refused_words or ()}
        self._behaviours: dict[str, Behaviour] = {}
        self._records: dict[str, Record] = {}
        self._lock = threading.Lock()
        self.calls: list[tuple[Operation, Any, dict[str, Any]]] = []
        self.acted_for: list[Identity | None] = []
        self.down: Exception | None = None
        self.requires_identity = requires_identity
        self._version = version or ""
        self._closed = False
        inherited = {"check_read": refused_words is None, "_derived_schema": not derives_schema, "ping": version is None}
        for member, left in inherited.items():
            if left and getattr(type(self), member) is getattr(FakeKnowledgeBase, member):
                # The contract's own, so that `overrides` tells the truth about this instance.
                vars(self)[member] = getattr(KnowledgeBase, member).__get__(self)
        self._store(records)

    @property
    def backend_name(self) -> str:
        """The name given."""
        return self._name

    def connect(self, **kwargs: Any) -> None:
        """Do nothing: there is nothing to open."""

    def get_description(self) -> str:
        """Return the description given."""
        return self._description

    def ping(self, *, timeout: float | None = None) -> str:
        """Return the version given.

        Raises:
            KnowledgeStateError: The backend is closed. Its operations still work, as nothing was released.
        """
        if self._closed:
            raise KnowledgeStateError(f"'{self._name}' is closed.")
        self._fail_if_down()
        return self._version

    def close(self) -> None:
        """Remember it, for `ping`."""
        self._closed = True

    def _derived_schema(self, *, filters: Filters | None = None) -> Mapping[str, Any]:
        self._fail_if_down()
        return {"records": len(self._within(filters))}

    def on(self, operation: Operation, behaviour: Behaviour) -> Self:
        """Script an operation, `write` standing for `add` as well.

        Args:
            operation: Which one.
            behaviour: A callable is called with the operation's argument and keyword arguments, and its result returned. An
                exception is raised. A number is a delay in seconds before the honest answer. Rows are returned as they are,
                whatever the limit.

        Raises:
            AKConfigError: There is no such operation.
        """
        if operation not in get_args(Operation):
            raise AKConfigError(f"Unknown operation {operation!r}. Available: {list(get_args(Operation))}.")
        self._behaviours[operation] = behaviour
        return self

    def search(self, query: str, limit: int = 3, *, filters: Filters | None = None, **kwargs: Any) -> list[Record]:
        """Return the records that share most words with `query`; `metadata["score"]` is how many they share."""
        given = {"limit": limit, **kwargs}
        return self._answer("search", query, given, filters, lambda: self._ranked(query, filters)[:limit])

    def query(self, statement: str, limit: int = 3, *, filters: Filters | None = None, **kwargs: Any) -> list[Record]:
        """Return the records that contain `statement`."""
        given = {"limit": limit, **kwargs}
        return self._answer("query", statement, given, filters, lambda: self._containing(statement, filters)[:limit])

    def fetch(self, ids: Sequence[str], *, filters: Filters | None = None, **kwargs: Any) -> list[Record]:
        """Return the records with these ids, in the order asked for."""
        return self._answer("fetch", ids, kwargs, filters, lambda: self._of_ids(ids, filters))

    def browse(self, path: str = "", limit: int = 50, *, filters: Filters | None = None, **kwargs: Any) -> list[Record]:
        """Return the records at or below `path`, sorted by id."""
        given = {"limit": limit, **kwargs}
        return self._answer("browse", path, given, filters, lambda: self._below(path, filters)[:limit])

    def write(self, records: Iterable[Record], *, filters: Filters | None = None, **kwargs: Any) -> None:
        """Store records."""
        self.add(records, filters=filters, **kwargs)

    def add(self, records: Iterable[Record], *, filters: Filters | None = None, **kwargs: Any) -> list[str]:
        """Store records and return their ids."""
        given = list(records)
        return self._answer("write", given, kwargs, filters, lambda: self._store(given, filters))

    def check_read(self, statement: str, *, allow: Collection[str] = ()) -> None:
        """Refuse a statement that holds one of the refused words."""
        for word in re.finditer(r"\w+", statement):
            if word[0].casefold() in self._refused_words:
                raise KnowledgeGuardError("The statement is not a read", part=word[0], position=word.start())

    def _answer(
        self,
        operation: Operation,
        argument: Any,
        kwargs: dict[str, Any],
        filters: Filters | None,
        honest: Callable[[], list[Any]],
    ) -> Any:
        if not self.capabilities.supports(operation):
            raise KnowledgeCapabilityError(self._name, operation)
        if filters:
            kwargs = {**kwargs, "filters": filters}
        with self._lock:
            self.calls.append((operation, argument, kwargs))
            self.acted_for.append(current_identity())
        self._fail_if_down()
        if operation == "query":
            self.check_read(argument)
        behaviour = self._behaviours.get(operation)
        if behaviour is None:
            return honest()
        if isinstance(behaviour, BaseException):
            raise behaviour
        if isinstance(behaviour, int | float):
            time.sleep(behaviour)
            return honest()
        return behaviour(argument, **kwargs) if callable(behaviour) else behaviour

    def _fail_if_down(self) -> None:
        if self.down is not None:
            raise self.down

    def _ranked(self, query: str, filters: Filters | None = None) -> list[Record]:
        asked = _words(query)
        scored = [(len(asked & _words(record["text"])), record) for record in self._within(filters)]
        found = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])
        return [{**record, "metadata": {**record["metadata"], "score": score}} for score, record in found]

    def _containing(self, statement: str, filters: Filters | None = None) -> list[Record]:
        if statement.count("'") % 2:
            raise KnowledgeQueryError("Syntax error: a single quote is not closed.")
        wanted = statement.strip().casefold()
        return [record for record in self._within(filters) if wanted and wanted in record["text"].casefold()]

    def _of_ids(self, ids: Sequence[str], filters: Filters | None) -> list[Record]:
        return [self._records[i] for i in ids if i in self._records and _is_within(self._records[i], filters)]

    def _below(self, path: str, filters: Filters | None) -> list[Record]:
        parent = path.strip("/")
        with self._lock:
            held = sorted((name, record) for name, record in self._records.items() if _is_within(record, filters))
        return [record for name, record in held if not parent or name == parent or name.startswith(f"{parent}/")]

    def held(self) -> list[Record]:
        """Return all records, in the order of adding."""
        with self._lock:
            return list(self._records.values())

    def _within(self, filters: Filters | None) -> list[Record]:
        return [record for record in self.held() if _is_within(record, filters)]

    def _store(self, records: Iterable[Record], filters: Filters | None = None) -> list[str]:
        named = [_with_id(record, filters) for record in records]
        with self._lock:
            if any(name in self._records and not _is_within(self._records[name], filters) for name, _ in named):
                raise KnowledgeQueryError(f"'{self._name}' can't store under an id that is in use; nothing was written.")
            self._records.update(named)
        return [name for name, _ in named]


def _is_within(record: Record, filters: Filters | None) -> bool:
    """Tell whether a record has the values of a row scope: the same value of the same type, as `True == 1`."""
    metadata: Mapping[str, object] = record["metadata"]
    return all((type(metadata.get(key)), metadata.get(key)) == (type(value), value) for key, value in (filters or {}).items())


def _with_id(record: Record, filters: Filters | None) -> tuple[str, Record]:
    text = record["text"]
    metadata: dict[str, Any] = {**cast("Mapping[str, Any]", record.get("metadata") or {}), **(filters or {})}
    content = [text, metadata.get("source"), *([filters] if filters else [])]
    name: str = metadata.get("id") or hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
    return name, {"text": text, "metadata": {**metadata, "id": name}}


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))
