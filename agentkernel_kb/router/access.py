"""What one agent may do: which operations on which knowledge bases, and on which of their records."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import cast, get_args

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.model import KnowledgeCapabilities, Operation, Scalar
from agentkernel_kb.near import nearest
from agentkernel_kb.render import clean
from agentkernel_kb.router.failures import Refusal


@dataclass(frozen=True)
class Access:
    """The grants of one agent. What is not granted is refused, whatever a backend declares.

    Attributes:
        agent: Name of the agent.
        operations: Knowledge base to the operations that the agent may use there. One without any is not there for the agent.
        filters: Knowledge base to the row scope of the agent there: metadata keys and the value that each has to have. It is
            part of every operation, and no argument of a tool can widen it. The values are confidential, and shown nowhere.

    Raises:
        AKConfigError: A filter is empty, has a key that is no text, or a value that is no text, number or truth value.
    """

    agent: str
    operations: Mapping[str, frozenset[Operation]]
    filters: Mapping[str, Mapping[str, Scalar]] = field(default_factory=dict[str, Mapping[str, Scalar]], repr=False)

    def __post_init__(self) -> None:
        given: object = self.filters
        if not isinstance(given, Mapping):
            raise AKConfigError(f"Access.filters must map knowledge bases to filters, not be {type(given).__name__}.")
        checked = {name: _checked(name, scope) for name, scope in cast("Mapping[str, object]", given).items()}
        object.__setattr__(self, "filters", MappingProxyType(checked))

    def allows(self, backend: str, operation: Operation) -> bool:
        """Tell whether the agent may use an operation of a knowledge base."""
        return operation in self.operations.get(backend, frozenset())

    def knows(self, backend: str) -> bool:
        """Tell whether the agent may use anything of a knowledge base, so that it is there for it."""
        return any(self.allows(backend, operation) for operation in get_args(Operation))

    def granted(
        self, backend: str, capabilities: KnowledgeCapabilities, possible: Collection[Operation] = get_args(Operation)
    ) -> KnowledgeCapabilities:
        """Return what is left of a declaration for this agent.

        Args:
            backend: The knowledge base.
            capabilities: What it declares.
            possible: The operations that keep to the agent's row scope, if it has one there.
        """
        may = self.operations.get(backend, frozenset()) & frozenset(possible)
        return replace(
            capabilities,
            search=capabilities.search and "search" in may,
            query=capabilities.query and "query" in may,
            query_language=capabilities.query_language if "query" in may else None,
            fetch=capabilities.fetch and "fetch" in may,
            browse=capabilities.browse and "browse" in may,
            writable=capabilities.writable and "write" in may,
        )

    def check_filters(self, declared: Mapping[str, KnowledgeCapabilities]) -> None:
        """Check that every row scope is one that its knowledge base keeps to.

        Args:
            declared: What each knowledge base declares, those included that the agent has no grant for.

        Raises:
            AKConfigError: There is no knowledge base of that name, or it does not declare `filters`.
        """
        for name in self.filters:
            if name not in declared:
                near = nearest(name, declared)
                hint = f" Did you mean '{near}'?" if near else ""
                raise AKConfigError(
                    f"Agent '{self.agent}' has filters for '{name}', and there is no such knowledge base.{hint}"
                )
            if not declared[name].filters:
                raise AKConfigError(
                    f"Agent '{self.agent}' has filters for '{name}', which does not declare filters: it can't be held to a row "
                    "scope. Use a backend that declares them, or leave the agent no operation of this one."
                )

    def refusal(self, backend: str, operation: Operation, capable: list[str]) -> Refusal:
        """Say that the agent may not, and where it may.

        Args:
            backend: The knowledge base that was asked.
            operation: What was asked of it.
            capable: The knowledge bases on which the agent may do so.
        """
        if operation == "write":
            sentence = f"Agent '{self.agent}' has read-only access to '{backend}'. Knowledge bases it may write to: {capable}."
        else:
            sentence = f"Agent '{self.agent}' may not {operation} '{backend}'. Knowledge bases it may {operation}: {capable}."
        return Refusal("refused", sentence)


def _checked(name: str, scope: object) -> Mapping[str, Scalar]:
    """Return a copy of a row scope. An empty one is an error: whoever forgot the filter must not get everything."""
    if not isinstance(scope, Mapping) or not scope:
        raise AKConfigError(f"Access.filters of '{name}' must map at least one metadata key to a value.")
    pairs = cast("Mapping[object, object]", scope)
    for key in pairs:
        if not isinstance(key, str) or not key.strip() or clean(key) != key or key == "id":
            raise AKConfigError(f"Access.filters of '{name}' has the key {key!r}, which names no metadata key to filter by.")
    if wrong := [key for key, value in pairs.items() if not _is_scalar(value)]:
        raise AKConfigError(
            f"Access.filters of '{name}': {_listed(wrong)} must be a text, a finite number or a truth value each, nothing else."
        )
    return MappingProxyType(cast("dict[str, Scalar]", dict(pairs)))


def _is_scalar(value: object) -> bool:
    if isinstance(value, str):
        return clean(value) == value
    return isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value))


def _listed(names: Iterable[object]) -> str:
    return ", ".join(map(repr, names))
