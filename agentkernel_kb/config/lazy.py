"""A backend that is opened when somebody first reaches for it, so that agents can be made before any store is there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from agentkernel_kb.base import KnowledgeBase, keywords_of, overrides
from agentkernel_kb.errors import AKConfigError, KnowledgeStateError
from agentkernel_kb.model import KnowledgeCapabilities, Record, Scalar

Filters = Mapping[str, Scalar]


class LazyKnowledgeBase(KnowledgeBase):
    """Stands for a backend until it is opened, and hands every call on to it then.

    One that cannot be opened fails that call, and is tried again at the next. Once it is open, what it declares holds.

    Args:
        name: Name of the backend.
        capabilities: What it will be able to do, as far as that is known before it is opened. Where they declare `filters`, a
            call with a row scope fails if the opened backend does not keep to it.
        open_backend: Opens it; called once, in the thread of the first call that needs it.
        description: What it holds, where that is known before it is opened.
    """

    def __init__(
        self,
        name: str,
        capabilities: KnowledgeCapabilities,
        open_backend: Callable[[], KnowledgeBase],
        description: str | None = None,
    ) -> None:
        super().__init__(capabilities, name)
        self._description = description
        self._open_backend = open_backend
        self._backend: KnowledgeBase | None = None
        self._lock = threading.Lock()
        self._closed = False

    @property
    def backend_name(self) -> str:
        """The name given at construction."""
        return self._given_name

    @property
    def is_open(self) -> bool:
        """Somebody has reached for it."""
        return self._backend is not None

    def connect(self, **kwargs: Any) -> None:
        """Open the backend now."""
        self._opened()

    def _opened(self) -> KnowledgeBase:
        with self._lock:
            if self._closed:
                raise KnowledgeStateError(f"'{self.backend_name}' is closed.")
            if self._backend is None:
                self._backend = self._open_backend()
                self.capabilities = self._backend.capabilities
                self.db_system = self._backend.db_system
            return self._backend

    async def aopened(self) -> KnowledgeBase:
        """Return the backend, opened without blocking the event loop."""
        return await self._kb_in_worker(self._opened)

    def search(self, query: str, limit: int = 3, *, filters: Filters | None = None, **kwargs: Any) -> list[Record]:
        """Search the opened backend."""
        return self._opened().search(query, limit, **kwargs, **self._scope("search", filters))

    def query(self, statement: str, limit: int = 3, *, filters: Filters | None = None, **kwargs: Any) -> list[Record]:
        """Query the opened backend."""
        return self._opened().query(statement, limit, **kwargs, **self._scope("query", filters))

    def fetch(self, ids: Sequence[str], *, filters: Filters | None = None, **kwargs: Any) -> list[Record]:
        """Fetch from the opened backend."""
        return self._opened().fetch(ids, **kwargs, **self._scope("fetch", filters))

    def browse(self, path: str = "", limit: int = 50, *, filters: Filters | None = None, **kwargs: Any) -> list[Record]:
        """Browse the opened backend."""
        return self._opened().browse(path, limit, **kwargs, **self._scope("browse", filters))

    def write(self, records: Iterable[Record], *, filters: Filters | None = None, **kwargs: Any) -> None:
        """Write to the opened backend."""
        self._opened().write(records, **kwargs, **self._scope("write", filters))

    def add(self, records: Iterable[Record], *, filters: Filters | None = None, **kwargs: Any) -> list[str]:
        """Write to the opened backend and return the ids."""
        member = "add" if overrides(self._opened(), "add") else "write"
        return self._opened().add(records, **kwargs, **self._scope(member, filters))

    def _scope(self, member: str, filters: Filters | None) -> dict[str, Filters]:
        """Return a row scope as a keyword argument, once it is certain that the opened backend keeps to it."""
        if not filters:
            return {}
        backend = self._opened()
        if not backend.capabilities.filters or "filters" not in keywords_of(getattr(backend, member)):
            raise AKConfigError(f"'{self.backend_name}' keeps to no row scope in {member}(), and an agent has one there.")
        return {"filters": filters}

    def check_read(self, statement: str, *, allow: Collection[str] = (), **kwargs: Any) -> None:
        """Let the opened backend prove that a statement reads."""
        self._opened().check_read(statement, allow=allow, **kwargs)

    def format_results(self, rows: Iterable[Record]) -> str:
        """Render as the backend does."""
        return self._opened().format_results(rows)

    def ping(self, *, timeout: float | None = None) -> str:
        """Reach the opened backend."""
        return self._opened().ping(timeout=timeout)

    def get_description(self) -> str:
        """Return the backend's description; the one given, as long as it is not open."""
        if self._description and self._backend is None:
            return f"{self.backend_name}: {self._description}"
        return self._opened().get_description()

    def get_diagnostics(self) -> Sequence[str]:
        """Return what the opened backend found wrong with its content."""
        return self._opened().get_diagnostics()

    def schema(self, *, filters: Filters | None = None) -> dict[str, Any]:
        """Return the opened backend's schema."""
        return self._opened().schema(**self._scope("schema", filters))

    def close(self) -> None:
        """Close the backend if it was opened. May be called twice; it is not opened again."""
        with self._lock:
            self._closed = True
            backend, self._backend = self._backend, None
        if backend is not None:
            backend.close()
