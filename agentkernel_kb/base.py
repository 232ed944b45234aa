"""The contract: what a backend is. Subclass `KnowledgeBase`, declare what it can do, implement exactly that."""

from __future__ import annotations

import inspect
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar, get_args

from agentkernel_kb.errors import AKConfigError, KnowledgeCapabilityError
from agentkernel_kb.model import KnowledgeCapabilities, Operation, Record, Scalar
from agentkernel_kb.render import NOTHING_FOUND, record_line
from agentkernel_kb.workers import WorkerPool

T = TypeVar("T")

_POOL_LOCK = threading.Lock()


class KnowledgeBase(ABC):
    """A named store and what it can do.

    A subclass passes its declaration to `super().__init__`, implements `backend_name`, `connect` and `get_description`, and
    the operations that it declares. Any other operation raises `KnowledgeCapabilityError`. There is no `read()`: the
    `read_kb` tool calls `query()` on a backend that declares a query language and `search()` on every other one.

    An operation may name the keyword arguments `timeout` (seconds left for this call), `allow` and `max_rows` (both for
    `query`) and `filters` (the row scope of the agent) in its signature; the router passes those that are named and no others.
    An operation that names `timeout` promises to give up by itself in time; any other runs in a worker thread of this backend,
    which the caller stops waiting for.

    Every operation has an async twin whose default runs the plain one in that pool. A backend with an async driver overrides
    the twin.

    Args:
        capabilities: What the backend can do.
        name: Its name, for messages until `backend_name` can be read.

    Raises:
        ValueError: The declaration contradicts itself; the message names the backend.
    """

    max_workers: ClassVar[int] = 32
    """Most threads in which blocking operations of one backend run at a time."""

    requires_identity: bool = False
    """Every call has to act for somebody (`agentkernel_kb.identity`); an instance may set it when it is constructed."""

    db_system: str = ""
    """The product behind it, as OpenTelemetry names it in `db.system.name` (`postgresql`, `neo4j`, …); `""` for other ones."""

    def __init__(self, capabilities: KnowledgeCapabilities, name: str | None = None) -> None:
        self._given_name = name or ""
        self.validate_capabilities(capabilities, self._kb_subject())
        self.capabilities = capabilities
        self._dynamic_schema: dict[str, Any] = {}
        self._kb_schema_added = False
        self._kb_worker_pool: WorkerPool | None = None

    # What every backend implements.

    @property
    @abstractmethod
    def backend_name(self) -> str:
        """The name by which tools and schemas refer to this backend; unique among those registered together."""

    @abstractmethod
    def connect(self, **kwargs: Any) -> None:
        """Open what the backend needs. The router never calls it; a backend does, usually when it is constructed."""

    @abstractmethod
    def get_description(self) -> str:
        """Return what the backend holds, for whoever chooses between backends."""

    # What a backend implements as it declares.

    def search(self, query: str, limit: int = 3, **kwargs: Any) -> list[Record]:
        """Return the records most like `query`, best first.

        Args:
            query: Natural-language text; blank text finds nothing.
            limit: Most records to return, at least 1.
            kwargs: Unknown arguments are ignored.

        Raises:
            KnowledgeCapabilityError: Search is not declared.
        """
        raise KnowledgeCapabilityError(self._kb_subject(), "search")

    def query(self, statement: str, limit: int = 3, **kwargs: Any) -> list[Record]:
        """Return what a reading statement in the declared query language selects.

        Args:
            statement: One statement.
            limit: Most records to return where the statement has no limit of its own, at least 1.
            kwargs: Unknown arguments are ignored.

        Raises:
            KnowledgeCapabilityError: Query is not declared.
            KnowledgeGuardError: The statement is not provably a read.
            KnowledgeQueryError: The store rejected the statement.
        """
        raise KnowledgeCapabilityError(self._kb_subject(), "query")

    def fetch(self, ids: Sequence[str], **kwargs: Any) -> list[Record]:
        """Return the records with these ids, in the order asked for; unknown ids are left out.

        Raises:
            KnowledgeCapabilityError: Fetch is not declared.
        """
        raise KnowledgeCapabilityError(self._kb_subject(), "fetch")

    def browse(self, path: str = "", limit: int = 50, **kwargs: Any) -> list[Record]:
        """Return what stands at `path` of the backend's namespace, `""` being its root.

        Raises:
            KnowledgeCapabilityError: Browse is not declared.
        """
        raise KnowledgeCapabilityError(self._kb_subject(), "browse")

    def write(self, records: Iterable[Record], **kwargs: Any) -> None:
        """Store records.

        Raises:
            KnowledgeCapabilityError: The backend is not writable.
        """
        raise KnowledgeCapabilityError(self._kb_subject(), "write")

    def add(self, records: Iterable[Record], **kwargs: Any) -> list[str]:
        """Store records and return the ids of what was written, or `[]` where the store has none to report.

        Override it together with `write` where ids are known; the router prefers it.
        """
        self.write(records, **kwargs)
        return []

    # The async twins.

    async def asearch(self, query: str, limit: int = 3, **kwargs: Any) -> list[Record]:
        """`search` without blocking the event loop."""
        return await self._kb_in_worker(self.search, query, limit, **kwargs)

    async def aquery(self, statement: str, limit: int = 3, **kwargs: Any) -> list[Record]:
        """`query` without blocking the event loop."""
        return await self._kb_in_worker(self.query, statement, limit, **kwargs)

    async def afetch(self, ids: Sequence[str], **kwargs: Any) -> list[Record]:
        """`fetch` without blocking the event loop."""
        return await self._kb_in_worker(self.fetch, ids, **kwargs)

    async def abrowse(self, path: str = "", limit: int = 50, **kwargs: Any) -> list[Record]:
        """`browse` without blocking the event loop."""
        return await self._kb_in_worker(self.browse, path, limit, **kwargs)

    async def awrite(self, records: Iterable[Record], **kwargs: Any) -> None:
        """`write` without blocking the event loop."""
        await self._kb_in_worker(self.write, records, **kwargs)

    async def aadd(self, records: Iterable[Record], **kwargs: Any) -> list[str]:
        """`add` without blocking the event loop; an overridden `awrite` is used where `add` itself is not overridden."""
        if overrides(self, "add") or not overrides(self, "awrite"):
            return await self._kb_in_worker(self.add, records, **kwargs)
        await self.awrite(records, **kwargs)
        return []

    # Optional overrides.

    def check_read(self, statement: str, *, allow: Collection[str] = ()) -> None:  # noqa: B027 - the default accepts
        """Prove that `statement` only reads. The default accepts everything, and `schema()` then says `guarded: false`.

        A backend that implements it calls it inside `query()` as well, so that a direct call is guarded too.

        Args:
            statement: The statement, placeholders resolved.
            allow: Names of table functions that this call may use, taken from the semantic map of the deployment.

        Raises:
            KnowledgeGuardError: The statement cannot be proven to be a read.
        """

    def check_filters(self, filters: Mapping[str, Scalar]) -> None:  # noqa: B027 - the default accepts
        """Say of a row scope, before anybody is held to it, that this backend can't keep to it. The default accepts everything.

        It connects to nothing, and is asked when an agent's router is built.

        Args:
            filters: Metadata keys and the value that each has to have.

        Raises:
            AKConfigError: There is a key or a value that it can't filter by. The message holds no value.
        """

    def format_results(self, rows: Iterable[Record]) -> str:
        """Return records as text for a model: one line each, led by the id where the backend can fetch by it."""
        lines = [self._kb_line(row) for row in rows]
        return "\n".join(lines) if lines else NOTHING_FOUND

    def _kb_line(self, row: Record) -> str:
        try:
            return record_line(row, with_id=self.capabilities.fetch)
        except Exception as error:  # noqa: BLE001 - one record that can't be read must not take the others with it
            return f"- (a record that cannot be shown: {type(error).__name__})"

    def ping(self, *, timeout: float | None = None) -> str:
        """Reach the store and return its version, `""` where it has none to tell. The default reaches for nothing.

        Args:
            timeout: Seconds within which to answer.

        Raises:
            KnowledgeConnectionError: It cannot be used; `state` says why.
            KnowledgeTimeoutError: No answer in time.
            KnowledgeStateError: The backend is closed.
        """
        return ""

    def get_diagnostics(self) -> Sequence[str]:
        """Return what the backend found wrong with its own content, a sentence each; shown with its description."""
        return ()

    def close(self) -> None:  # noqa: B027 - most backends have nothing to release
        """Release what `connect` opened. May be called twice."""

    async def aclose(self) -> None:
        """`close` without blocking the event loop."""
        await self._kb_in_worker(self.close)

    def _derived_schema(self) -> Mapping[str, Any]:
        """Return what the backend can say about itself. Declare `derives_schema` alongside."""
        return {}

    # What the base provides.

    def add_schema(self, config: Mapping[str, Any]) -> Self:
        """Merge `config` into the schema shown to agents; later calls win key by key.

        Returns:
            This backend, so that calls can be chained.

        Raises:
            AKConfigError: `config` is not a mapping.
        """
        if not hasattr(self, "_dynamic_schema"):
            raise AKConfigError(f"{type(self).__name__} has no capabilities: call super().__init__(capabilities=…) in it.")
        if not isinstance(config, Mapping):
            raise AKConfigError(f"add_schema of '{self._kb_subject()}' takes a mapping, not {type(config).__name__}.")
        self._dynamic_schema.update(config)
        self._kb_schema_added = True
        return self

    def schema(self, *, filters: Mapping[str, Scalar] | None = None) -> dict[str, Any]:
        """Return the schema shown to agents: name, derived part, added part, and last the declaration, which nothing overrides.

        Args:
            filters: The row scope of the agent that asks. The derived part is left out then, unless `_derived_schema` names
                `filters` and so keeps to it.

        Raises:
            ValueError: There is nothing to tell: no `add_schema()` call, and the backend does not derive its own.
        """
        if not (self._kb_schema_added or self.capabilities.derives_schema):
            raise AKConfigError(
                f"Backend '{self._kb_subject()}' has no schema: call add_schema({{...}}), "
                "or declare derives_schema=True and override _derived_schema()."
            )
        schema = {"backend": self.backend_name, **self._derived_for(filters), **self._dynamic_schema}
        if self.capabilities.query:
            schema["guarded"] = overrides(self, "check_read")
        schema.pop("capabilities", None)  # So that it stands last even where a key of that name was added.
        schema["capabilities"] = self.capabilities.model_dump()
        return schema

    def _derived_for(self, filters: Mapping[str, Scalar] | None) -> Mapping[str, Any]:
        derive: Callable[..., Mapping[str, Any]] = self._derived_schema
        if not filters:
            return dict(derive())
        return dict(derive(filters=dict(filters))) if "filters" in keywords_of(derive) else {}

    @staticmethod
    def validate_capabilities(capabilities: KnowledgeCapabilities, subject: str) -> None:
        """Check that a declaration agrees with itself.

        Args:
            capabilities: The declaration.
            subject: Name of the backend, for the message.

        Raises:
            ValueError: No operation is declared, or a query without a language, or a language without a query.
        """
        if not isinstance(capabilities, KnowledgeCapabilities):
            raise AKConfigError(f"Backend '{subject}' needs KnowledgeCapabilities, not {type(capabilities).__name__}.")
        if not any(capabilities.supports(operation) for operation in get_args(Operation)):
            raise AKConfigError(
                f"Backend '{subject}' declares nothing it can do: "
                "at least one of search, query, fetch, browse, writable must be True."
            )
        if capabilities.query and not capabilities.query_language:
            raise AKConfigError(f"Backend '{subject}' declares query=True, which requires a query_language.")
        if capabilities.query_language is not None and not capabilities.query:
            raise AKConfigError(
                f"Backend '{subject}' declares query_language={capabilities.query_language!r}, which requires query=True."
            )

    def _kb_workers(self) -> WorkerPool:
        if self._kb_worker_pool is None:
            with _POOL_LOCK:
                if self._kb_worker_pool is None:
                    pool = WorkerPool(self.max_workers, f"kb-{self._kb_subject()}")
                    weakref.finalize(self, pool.release)
                    self._kb_worker_pool = pool
        return self._kb_worker_pool

    async def _kb_in_worker(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        import asyncio  # Half of the contract's import time, and of no use to who calls the plain operations.

        return await asyncio.wrap_future(self._kb_workers().submit(function, *args, **kwargs))

    def _kb_subject(self) -> str:
        """Name the backend even while it is half constructed, when its `backend_name` may not be readable yet."""
        try:
            return self.backend_name or self._given_name or type(self).__name__
        except AttributeError:
            return self._given_name or type(self).__name__


def overrides(backend: KnowledgeBase, member: str) -> bool:
    """Tell whether a backend has its own `member` in place of the contract's default."""
    own = getattr(getattr(backend, member), "__func__", None)
    return own is not getattr(KnowledgeBase, member)


def keywords_of(method: Callable[..., Any]) -> frozenset[str]:
    """Return the names of the keyword arguments that a method names in its signature; `**kwargs` names none."""
    try:
        parameters = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):  # A callable of an extension module without a signature.
        return frozenset()
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return frozenset(parameter.name for parameter in parameters if parameter.kind in named)


def worker_pool(backend: KnowledgeBase) -> WorkerPool:
    """Return the threads in which a backend's blocking operations run; made on first use, released when it is collected."""
    return backend._kb_workers()  # pyright: ignore[reportPrivateUsage] - a function here leaves the name to subclasses
