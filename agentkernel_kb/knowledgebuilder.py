"""The router's public face: composes backends and emits the tools that some backend can serve."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from inspect import iscoroutinefunction as is_coroutine_function
from types import TracebackType
from typing import Any, Self, cast

from agentkernel_kb.base import KnowledgeBase, worker_pool
from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.identity import Identity, acting_as
from agentkernel_kb.model import KnowledgeCapabilities, ToolDescription
from agentkernel_kb.render import is_name
from agentkernel_kb.router import health, instructions
from agentkernel_kb.router.access import Access
from agentkernel_kb.router.call import Caller
from agentkernel_kb.router.events import ToolEvent
from agentkernel_kb.router.health import BackendHealth
from agentkernel_kb.router.limits import Limits
from agentkernel_kb.router.overview import Overview
from agentkernel_kb.router.plan import ALL, Planner, Registered, register
from agentkernel_kb.router.resilience import Resilience, Shield, checked_resilience
from agentkernel_kb.router.semantic_map import SemanticMap
from agentkernel_kb.router.telemetry import Telemetry, telemetry_of
from agentkernel_kb.router.tools import Serve, ServeAsync, emitted, make_tool

_LOG = logging.getLogger("agentkernel_kb.router")
_RESERVED_NAMES = (ALL,)

Tool = Callable[..., str]
AsyncTool = Callable[..., Coroutine[Any, Any, str]]


class KnowledgeBuilder:
    """Composes knowledge bases into one set of tools for an agent.

    It never connects anything: backends do that themselves. It closes them, though: use it as a context manager, plain or
    async, or call `close()` or `aclose()`. Backends that several builders share are closed by the first that is closed.

    Args:
        backends: The knowledge bases, each under a name of its own.
        semantic_map: Placeholders such as `<CLIENTS>` and what they stand for in this environment, see `SemanticMap`.
        limits: Bounds of every call: rows, characters, seconds.
        resilience: What to do about a backend that cannot be reached.
        access: What the agent may do, where that is less than everything that the backends declare. Backends on which it may
            do nothing are not there for it.
        on_event: Called with a `ToolEvent` after each call, in the thread or on the event loop of that call: keep it quick.
            What it raises is logged and goes no further.
        telemetry: Tell OpenTelemetry of each call, by the tracer and the meter that the application has set up.

    Raises:
        AKConfigError: A backend is no `KnowledgeBase`, two share a name, the map is faulty, a row scope is set for a backend
            that does not declare `filters` or can't filter by it, or another argument is of the wrong type.
        KnowledgeDependencyError: Telemetry is wanted, and the API of OpenTelemetry is not installed.
    """

    def __init__(
        self,
        backends: Iterable[KnowledgeBase],
        semantic_map: SemanticMap | Mapping[str, str | Mapping[str, str]] | None = None,
        *,
        limits: Limits | None = None,
        resilience: Resilience | None = None,
        access: Access | None = None,
        on_event: Callable[[ToolEvent], object] | None = None,
        telemetry: bool = False,
    ) -> None:
        self._given = _checked_backends(backends)
        self._registered = _registered(self._given, access)
        self._map = _own_map(semantic_map, self._registered, hidden=len(self._registered) < len(self._given))
        self._limits = _checked_limits(limits)
        if on_event is not None and (not callable(on_event) or is_coroutine_function(on_event)):
            raise AKConfigError("on_event must be a plain callable that takes a ToolEvent: nobody awaits a coroutine there.")
        self._shield = Shield(checked_resilience(resilience), self._registered.values(), self._limits)
        planner = Planner(self._registered, self._map, self._limits, access)
        self._caller = Caller(planner, self._limits, self._shield, on_event, _telemetry(telemetry))
        self._overview = Overview(list(self._registered.values()), self._caller)

    @property
    def backends(self) -> list[KnowledgeBase]:
        """The knowledge bases that the agent may use, in the order in which they were given."""
        return [each.backend for each in self._registered.values()]

    def build(self, writable: bool = True) -> list[Tool]:
        """Return the tools as plain functions.

        `get_schemas`, `read_kb`, `write_kb` and `get_all_kb_descriptions` are always there; `search_kb`, `fetch_kb` and
        `browse_kb` where some backend declares what they need. They return text and never raise.

        Args:
            writable: Emit `write_kb`.
        """
        return [description.call for description in self._descriptions(writable)]

    def build_async(self, writable: bool = True) -> list[AsyncTool]:
        """Return the same tools as coroutine functions, which never block the event loop.

        Args:
            writable: Emit `write_kb`.
        """
        return [cast("AsyncTool", description.acall) for description in self._descriptions(writable)]

    def instructions(self, max_tokens: int = 1_000, *, writable: bool = True) -> str:
        """Return the prompt of an agent that routes between these backends.

        Args:
            max_tokens: Budget, reckoned at four characters a token: descriptions are shortened first, then placeholders.
            writable: The agent gets `write_kb`, as of `build(writable=…)`.
        """
        tools = [spec.name for spec, _ in emitted(self._capabilities(), writable=writable)]
        return instructions.compose(list(self._registered.values()), tools, self._map.named, max_tokens, self._limits.seconds)

    def acting_as(
        self, principal: str, *, tenant: str | None = None, roles: Iterable[str] = ()
    ) -> AbstractContextManager[Identity]:
        """Bind an identity to every call made inside the block, in this task or thread: `with builder.acting_as("alice"): …`.

        For the application, around a request; no tool can do it. See `agentkernel_kb.identity`.

        Args:
            principal: The user that calls act for, as the stores know them.
            tenant: Whose data they may see, where one store serves several.
            roles: What they may be, as the stores name it.

        Raises:
            AKConfigError: A name is empty, too long, or holds control characters.
        """
        return acting_as(principal, tenant=tenant, roles=roles)

    def health(self, timeout: float = 5.0) -> dict[str, BackendHealth]:
        """Ask every backend at once whether it can be used, and return what each answered, by name.

        One that answers a ping is no longer left alone by the calls; a ping that fails does not count as a call that does.

        Args:
            timeout: Seconds within which to answer, however many backends hang.
        """
        return health.check(self._registered.values(), self._shield, timeout, closed=self._caller.closed)

    async def ahealth(self, timeout: float = 5.0) -> dict[str, BackendHealth]:
        """`health` without blocking the event loop."""
        return await health.acheck(self._registered.values(), self._shield, timeout, closed=self._caller.closed)

    def close(self) -> None:
        """Close every backend. May be called twice; a backend that fails to close is logged and the others are closed."""
        if not self._caller.closed:
            self._caller.close()
            self._shield.forget()
            for name, backend in self._given.items():
                try:
                    backend.close()
                except Exception as error:  # noqa: BLE001 - one backend's fault must not keep the others open
                    _log_close(name, error)
                worker_pool(backend).release()

    async def aclose(self) -> None:
        """Close every backend without blocking the event loop."""
        if not self._caller.closed:
            self._caller.close()
            self._shield.forget()
            for name, backend in self._given.items():
                try:
                    await backend.aclose()
                except Exception as error:  # noqa: BLE001 - one backend's fault must not keep the others open
                    _log_close(name, error)
                worker_pool(backend).release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"KnowledgeBuilder({list(self._registered)})"

    def _capabilities(self) -> dict[str, KnowledgeCapabilities]:
        return {name: each.capabilities for name, each in self._registered.items()}

    def _descriptions(self, writable: bool) -> list[ToolDescription]:
        return [
            make_tool(spec, names, self._overview.call, self._overview.acall)
            if spec.asks_all
            else make_tool(spec, names, *self._served(writable))
            for spec, names in emitted(self._capabilities(), writable=writable)
        ]

    def _served(self, writable: bool) -> tuple[Serve, ServeAsync]:
        return partial(self._caller.call, offers_write=writable), partial(self._caller.acall, offers_write=writable)


def _log_close(name: str, error: Exception) -> None:
    _LOG.warning("closing '%s' failed: %s", name, type(error).__name__)


def _registered(backends: Mapping[str, KnowledgeBase], access: Access | None) -> dict[str, Registered]:
    """Return what the agent may use. What it may not use at all is left out, so that it and an unknown name are one case."""
    supplied: object = access
    if supplied is not None and not isinstance(supplied, Access):
        raise AKConfigError(f"access must be Access(agent, operations, …), not {type(supplied).__name__}.")
    if access is not None:
        access.check_filters({name: backend.capabilities for name, backend in backends.items()})
        for name, scope in access.filters.items():
            backends[name].check_filters(dict(scope))
    return {name: register(backend, name, access) for name, backend in backends.items() if access is None or access.knows(name)}


def _checked_backends(backends: Iterable[KnowledgeBase]) -> dict[str, KnowledgeBase]:
    supplied: object = backends
    if isinstance(supplied, KnowledgeBase) or not isinstance(supplied, Iterable):
        raise AKConfigError(f"KnowledgeBuilder takes a list of knowledge bases, not {type(supplied).__name__}.")
    checked: dict[str, KnowledgeBase] = {}
    for backend in cast("Iterable[object]", supplied):
        if not isinstance(backend, KnowledgeBase):
            raise AKConfigError(f"KnowledgeBuilder takes KnowledgeBase objects, not {type(backend).__name__}.")
        if not isinstance(getattr(backend, "capabilities", None), KnowledgeCapabilities):
            raise AKConfigError(f"{type(backend).__name__} has no capabilities: call super().__init__(capabilities=…) in it.")
        name = _checked_name(backend)
        if name in checked:
            raise AKConfigError(f"Two knowledge bases are called '{name}'. Give one of them another name.")
        checked[name] = backend
    return checked


def _own_map(
    given: SemanticMap | Mapping[str, str | Mapping[str, str]] | None, backends: Collection[str], *, hidden: bool
) -> SemanticMap:
    """Return the placeholders of who may use these backends; with `hidden`, there are others."""
    whole = given if isinstance(given, SemanticMap) else SemanticMap(given)
    return whole.within(backends, hidden=hidden) if hidden or whole.owners else whole


def _telemetry(wanted: bool) -> Telemetry:
    if not isinstance(wanted, bool):
        raise AKConfigError(f"telemetry must be True or False, not {type(wanted).__name__}.")
    return telemetry_of(wanted)


def _checked_limits(limits: Limits | None) -> Limits:
    if limits is None:
        return Limits()
    if not isinstance(limits, Limits):
        raise AKConfigError(f"limits must be Limits(rows=…, characters=…, seconds=…), not {type(limits).__name__}.")
    return limits


def _checked_name(backend: KnowledgeBase) -> str:
    name: object = backend.backend_name
    if not isinstance(name, str) or not is_name(name) or name in _RESERVED_NAMES:
        raise AKConfigError(f"{type(backend).__name__}.backend_name must be one line of text and not '*', not {name!r}.")
    return name
