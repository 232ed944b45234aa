"""What one agent may do: which operations on which knowledge bases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from agentkernel_kb.model import KnowledgeCapabilities, Operation
from agentkernel_kb.router.failures import Refusal


@dataclass(frozen=True)
class Access:
    """The grants of one agent. What is not granted is refused, whatever a backend declares.

    Attributes:
        agent: Name of the agent.
        operations: Knowledge base to the operations that the agent may use there.
    """

    agent: str
    operations: Mapping[str, frozenset[Operation]]

    def allows(self, backend: str, operation: Operation) -> bool:
        """Tell whether the agent may use an operation of a knowledge base."""
        return operation in self.operations.get(backend, frozenset())

    def granted(self, backend: str, capabilities: KnowledgeCapabilities) -> KnowledgeCapabilities:
        """Return what is left of a declaration for this agent."""
        may = self.operations.get(backend, frozenset())
        return replace(
            capabilities,
            search=capabilities.search and "search" in may,
            query=capabilities.query and "query" in may,
            query_language=capabilities.query_language if "query" in may else None,
            fetch=capabilities.fetch and "fetch" in may,
            browse=capabilities.browse and "browse" in may,
            writable=capabilities.writable and "write" in may,
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
