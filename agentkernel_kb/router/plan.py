"""What a call is going to do: the registered backend, the operation and its arguments, understood and resolved."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

from agentkernel_kb.base import KnowledgeBase, keywords_of, overrides
from agentkernel_kb.model import KnowledgeCapabilities, Operation, Scalar
from agentkernel_kb.render import one_line
from agentkernel_kb.router import arguments as understood
from agentkernel_kb.router.access import Access
from agentkernel_kb.router.breaker import PASS, Ticket
from agentkernel_kb.router.failures import Refusal, not_implemented, undeclared, unknown_backend
from agentkernel_kb.router.limits import Limits
from agentkernel_kb.router.semantic_map import SemanticMap
from agentkernel_kb.router.statement import outer_limit

DEFAULT_LIMIT = 3
DEFAULT_BROWSE_LIMIT = 50
ALL = "*"
"""What stands for every backend that can rank, in `search_kb`."""

_DEPTH = 10
"""How many hits each of several backends is asked for at least, so that one record's ranks can add up."""

Bound = Literal["limit", "rows", "statement"]
_OPTIONS = frozenset(("timeout", "allow", "max_rows"))
_SCOPED_OPTIONS = _OPTIONS | {"filters"}


@dataclass(frozen=True, slots=True)
class Request:
    """A tool call as it arrived: nothing in it has been looked at but whether it is one.

    Attributes:
        tool: Name of the tool.
        backend: What was given for the name of the backend.
        arguments: The further arguments.
        fault: What is wrong with the call where the arguments are not the tool's; else empty.
    """

    tool: str
    backend: object = None
    arguments: Mapping[str, object] = field(default_factory=dict[str, object])
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """How one operation of a backend is called.

    Attributes:
        method: Name of the plain method; its twin is called `a` and that.
        options: Which of `timeout`, `allow`, `max_rows` and, for an agent with a row scope, `filters` the plain method names.
        async_options: The same of its twin; a twin that is not overridden takes what the plain method takes.
        implemented: The backend has the operation, and not just the contract's default.
        native: The backend has a twin of its own.
    """

    method: str
    options: frozenset[str]
    async_options: frozenset[str]
    implemented: bool
    native: bool

    @property
    def keeps_scope(self) -> bool:
        """Both forms take the row scope of the agent."""
        return "filters" in self.options & self.async_options


@dataclass(frozen=True, slots=True)
class Registered:
    """A backend as the router knows it.

    Attributes:
        name: Its name.
        backend: The backend.
        capabilities: What it declares, as far as the agent may use it.
        ways: How each operation is called.
        guards: It proves statements with a `check_read` of its own.
        guard_options: Which options that takes; `timeout` means that it gives up by itself.
        filters: The row scope of the agent, which every operation is given; empty for none.
    """

    name: str
    backend: KnowledgeBase
    capabilities: KnowledgeCapabilities
    ways: Mapping[Operation, Way]
    guards: bool
    guard_options: frozenset[str]
    filters: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar], repr=False)


@dataclass(slots=True)
class Plan:
    """One call that is ready to run.

    Attributes:
        target: The backend.
        operation: What it is asked to do.
        way: How it is called.
        positional: The operation's arguments.
        limit: Most records to ask the backend for.
        bounded_by: What that comes from: `limit`, the cap on `rows`, or the `statement`.
        allow: Table functions that the semantic map brought into the statement.
        deadline: When it has to be over, by `time.monotonic()`.
        ticket: How it went through to its backend, see `Breaker`.
        attempts: How often it was made.
        as_hits: Its records are to be fused with those of others, and not to be read as they are.
    """

    target: Registered
    operation: Operation
    way: Way
    positional: tuple[Any, ...]
    limit: int
    bounded_by: Bound
    allow: tuple[str, ...]
    deadline: float
    ticket: Ticket = PASS
    attempts: int = 0
    as_hits: bool = False

    def seconds_left(self) -> float:
        """Return the time left, never negative."""
        return max(0.0, self.deadline - time.monotonic())

    def options(self, names: frozenset[str], max_rows: int) -> dict[str, Any]:
        """Return the keyword arguments for an operation that names `names`."""
        if not names:
            return {}
        values: dict[str, Any] = {"timeout": self.seconds_left(), "allow": self.allow, "max_rows": max_rows}
        if "filters" in names:
            values["filters"] = dict(self.target.filters)
        return {name: values[name] for name in names}


def register(backend: KnowledgeBase, name: str, access: Access | None = None) -> Registered:
    """Look a backend over once, so that no call has to.

    Args:
        backend: The backend.
        name: Its name.
        access: What the agent may do, if that is less than everything.
    """
    operations: tuple[Operation, ...] = get_args(Operation)
    none: Mapping[str, Scalar] = {}
    filters = none if access is None else access.filters.get(name, none)
    options = _SCOPED_OPTIONS if filters else _OPTIONS
    ways: dict[Operation, Way] = {operation: _way(backend, operation, options) for operation in operations}
    kept: list[Operation] = [operation for operation in operations if not filters or ways[operation].keeps_scope]
    return Registered(
        name=name,
        backend=backend,
        capabilities=backend.capabilities if access is None else access.granted(name, backend.capabilities, kept),
        ways=ways,
        guards=overrides(backend, "check_read"),
        guard_options=keywords_of(backend.check_read) & _OPTIONS,
        filters=filters,
    )


def _way(backend: KnowledgeBase, operation: Operation, options: frozenset[str]) -> Way:
    adds = operation == "write" and (overrides(backend, "add") or overrides(backend, "aadd"))
    source = "add" if adds else operation
    plain = keywords_of(getattr(backend, source)) & options
    native = overrides(backend, f"a{source}")
    return Way(
        method="add" if operation == "write" else operation,
        options=plain,
        async_options=keywords_of(getattr(backend, f"a{source}")) & options if native else plain,
        implemented=native or overrides(backend, source),
        native=native,
    )


class Planner:
    """Steps 1 to 3 of a call: find the backend, check what it declares and the agent may do, resolve the semantic map."""

    def __init__(
        self, registered: Mapping[str, Registered], semantic_map: SemanticMap, limits: Limits, access: Access | None = None
    ) -> None:
        self._registered = registered
        self._access = access
        self._maps = {name: semantic_map.of(name) for name in registered}
        self._limits = limits
        self.offers_all = len(self.names_supporting("search")) > 1
        """More than one backend can rank, so that all may be asked at once."""
        self._planners: dict[str, Callable[[Registered, Mapping[str, object]], Plan]] = {
            "read_kb": self._read,
            "search_kb": self._search,
            "fetch_kb": self._fetch,
            "browse_kb": self._browse,
            "write_kb": self._write,
        }

    def plan(self, request: Request) -> Plan:
        """Return what the call is going to do.

        Raises:
            Refusal: It can't be done; the refusal says why.
            UnknownTokenError: A placeholder is not known.
        """
        if request.fault:
            raise Refusal("bad_argument", request.fault)
        return self._planners[request.tool](self.find(request.backend), request.arguments)

    def asks_all(self, request: Request) -> bool:
        """Tell whether a call is one to every backend that can rank."""
        return request.tool == "search_kb" and understood.as_name(request.backend) == ALL and self.offers_all

    def plan_all(self, request: Request) -> list[Plan]:
        """Return what a call to every backend that can rank is going to do: one search of each, all within one deadline.

        Raises:
            Refusal: It can't be done; the refusal says why.
            UnknownTokenError: A placeholder is not known.
        """
        if request.fault:
            raise Refusal("bad_argument", request.fault)
        limit = min(self._limits.rows, max(_DEPTH, self.limit_of(request)))
        deadline = time.monotonic() + self._limits.seconds
        targets = [self._registered[name] for name in self.names_supporting("search")]
        texts = [self._searched(each, request.arguments) for each in targets]
        return [
            Plan(each, "search", each.ways["search"], (text, limit), limit, self._bound(limit), (), deadline, as_hits=True)
            for each, text in zip(targets, texts, strict=True)
        ]

    def limit_of(self, request: Request) -> int:
        """Return how many records a search may answer with.

        Raises:
            Refusal: What was given is no number.
        """
        return self._limit(request.arguments, DEFAULT_LIMIT)

    def find(self, name: object) -> Registered:
        """Return the backend of that name.

        Raises:
            Refusal: There is none.
        """
        target = self._registered.get(name) if isinstance(name, str) else None
        if target is None:
            target = self._registered.get(understood.as_name(name))
        if target is None and self.offers_all and understood.as_name(name) == ALL:
            raise Refusal("bad_argument", f"'{ALL}' is for search_kb. This takes one of {list(self._registered)}.")
        if target is None:
            raise unknown_backend(understood.shown(understood.as_name(name)), self._registered)
        return target

    def names_supporting(self, operation: str) -> list[str]:
        """Return the names of the backends that declare an operation."""
        known = cast("Operation", operation) if operation in get_args(Operation) else None
        return [name for name, other in self._registered.items() if known and other.capabilities.supports(known)]

    def names_taking(self, plan: Plan) -> list[str]:
        """Return the names of the writable backends that take statements in the language of a refused one."""
        language = plan.target.capabilities.query_language
        return [
            name
            for name, other in self._registered.items()
            if other.capabilities.writable and other.capabilities.query_language == language
        ]

    def known_name(self, name: object) -> str:
        """Return the name if it is registered, else `""`: what a model sent is not for an event."""
        try:
            return self.find(name).name
        except Exception:  # noqa: BLE001 - an argument may be anything, and this is told of a call that has failed already
            return ""

    def _read(self, target: Registered, given: Mapping[str, object]) -> Plan:
        if not target.capabilities.query:
            return self._search(target, given)
        language = target.capabilities.query_language
        way = self._way(target, "query")
        written = understood.as_required_text(given["query"], "query", f"a {one_line(language or '')} statement")
        self._maps[target.name].check_statement(written, language)
        statement, functions = self._maps[target.name].resolve(written)
        limit, bounded_by = self._statement_limit(statement, language, way, self._limit(given, DEFAULT_LIMIT))
        return self._plan(target, "query", way, (statement, limit), limit, functions, bounded_by)

    def _statement_limit(self, statement: str, language: str | None, way: Way, limit: int) -> tuple[int, Bound]:
        """Let a statement's own outer limit win, for a backend that doesn't read its own dialect."""
        own = None if "max_rows" in way.options | way.async_options else outer_limit(statement, language)
        if not own:
            return limit, self._bound(limit)
        return (own, "statement") if own <= self._limits.rows else (self._limits.rows, "rows")

    def _search(self, target: Registered, given: Mapping[str, object]) -> Plan:
        way = self._way(target, "search")
        text = self._searched(target, given)
        limit = self._limit(given, DEFAULT_LIMIT)
        return self._plan(target, "search", way, (text, limit), limit)

    def _searched(self, target: Registered, given: Mapping[str, object]) -> str:
        words = understood.as_required_text(given["query"], "query", "what to look for, in plain words")
        return self._maps[target.name].resolve(words)[0]

    def _fetch(self, target: Registered, given: Mapping[str, object]) -> Plan:
        way = self._way(target, "fetch")
        given_ids = understood.as_ids(given["ids"], self._limits.rows)
        if self.offers_all:  # As a search of all shows them: with the name of the backend in the brackets.
            given_ids = list(dict.fromkeys(identity.removeprefix(f"{target.name}: ") for identity in given_ids))
        ids = [self._resolved_name(target, identity) for identity in given_ids]
        return self._plan(target, "fetch", way, (ids,), len(ids))

    def _browse(self, target: Registered, given: Mapping[str, object]) -> Plan:
        way = self._way(target, "browse")
        path = self._resolved_name(target, understood.unquoted(understood.as_text(given["path"], "path")))
        limit = self._limit(given, DEFAULT_BROWSE_LIMIT)
        return self._plan(target, "browse", way, (path, limit), limit)

    def _write(self, target: Registered, given: Mapping[str, object]) -> Plan:
        way = self._way(target, "write")
        text = understood.as_text(given["text"], "text", understood.MAX_WRITTEN_CHARS)
        written = understood.as_text(given["query"], "query")
        params = understood.as_params(given["params_json"])
        if not text.strip() and not written.strip():
            raise Refusal("bad_argument", "There is nothing to write: text and query are both empty.")
        if not text.strip() and not target.capabilities.query_language:
            raise Refusal("bad_argument", f"Backend '{target.name}' takes no statements. Give what to store in text.")
        metadata: dict[str, Any] = {"source": understood.as_text(given["source"], "source").strip() or "agent"}
        if written.strip():
            self._maps[target.name].check_statement(written, target.capabilities.query_language)
            metadata |= {"query": self._maps[target.name].resolve(written)[0], "params": params}
        elif params:
            raise Refusal("bad_argument", "params_json is for the statement in query, which is empty.")
        return self._plan(target, "write", way, ([{"text": text, "metadata": metadata}],), 1)

    def _way(self, target: Registered, operation: Operation) -> Way:
        if not target.capabilities.supports(operation):
            if self._access and target.backend.capabilities.supports(operation):
                raise self._access.refusal(target.name, operation, self.names_supporting(operation))
            raise undeclared(target.name, operation, self.names_supporting(operation), target.capabilities)
        way = target.ways[operation]
        if not way.implemented:
            raise not_implemented(target.name, operation)
        return way

    def _limit(self, given: Mapping[str, object], default: int) -> int:
        return understood.as_limit(given["limit"], min(default, self._limits.rows), self._limits.rows)

    def _resolved_name(self, target: Registered, name: str) -> str:
        self._maps[target.name].check_name(name)
        return self._maps[target.name].resolve(name)[0]

    def _plan(
        self,
        target: Registered,
        operation: Operation,
        way: Way,
        positional: tuple[Any, ...],
        limit: int,
        allow: tuple[str, ...] = (),
        bounded_by: Bound | None = None,
    ) -> Plan:
        deadline = time.monotonic() + self._limits.seconds
        return Plan(target, operation, way, positional, limit, bounded_by or self._bound(limit), allow, deadline)

    def _bound(self, limit: int) -> Bound:
        return "rows" if limit >= self._limits.rows else "limit"
