"""Calls to the server: each under a deadline, for whom the application bound, with every failure as an error of ours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import KnowledgeError, KnowledgeStateError
from agentkernel_kb.neo4j.arguments import Scope, Scoping, Target
from agentkernel_kb.neo4j.failures import translated
from agentkernel_kb.neo4j.link import Link

if TYPE_CHECKING:
    from neo4j import AsyncDriver

T = TypeVar("T")
Manner = Callable[["AsyncDriver", Scope, Deadline], Awaitable[T]]
"""A piece of work: with the driver, as the scope says, until the deadline."""


class Calls:
    """Opens the link to a server and runs pieces of work over it.

    Args:
        target: The server.
        scoping: For whom calls run.

    Raises:
        KnowledgeDependencyError: The extra `neo4j` is missing.
    """

    def __init__(self, target: Target, scoping: Scoping) -> None:
        self._target, self._scoping = target, scoping
        self._link: Link | None = Link(target, scoping.backend)

    @property
    def is_open(self) -> bool:
        """Calls can be made; whether the server answers is another matter."""
        return self._link is not None

    def reopen(self) -> None:
        """Let calls be made again after `close`."""
        if self._link is None:
            self._link = Link(self._target, self._scoping.backend)

    def close(self) -> None:
        """Cancel what runs and close the connections. May be called twice."""
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def scope(self) -> Scope:
        """Return for whom a call made now runs.

        Raises:
            KnowledgeIdentityError: It acts for nobody, or for a tenant without a database, where that is demanded.
        """
        return self._scoping.scope()

    def link(self) -> Link:
        """Return the way to the server.

        Raises:
            KnowledgeStateError: It is closed.
        """
        if self._link is None:
            raise KnowledgeStateError(f"Neo4jManager '{self._scoping.backend}' is closed.")
        return self._link

    def run(self, manner: Manner[T], deadline: Deadline, bound: Mapping[str, Any] | None = None) -> T:
        """Return what `manner` makes of the driver.

        Args:
            manner: The work.
            deadline: When it has to be over.
            bound: Parameters of the statement, whose values no error may hold.

        Raises:
            KnowledgeError: What its failure means.
        """
        link, scope = self.link(), self.scope()
        try:
            return link.run(lambda driver: manner(driver, scope, deadline), deadline)
        except KnowledgeError:
            raise
        except Exception as error:  # noqa: BLE001 - the driver has errors of three families, and Python's own
            # The text of the cause may hold a value that was bound.
            raise translated(error, self._target, scope, bound) from (None if bound else error)

    async def arun(self, manner: Manner[T], deadline: Deadline) -> T:
        """`run` for a task of any event loop, without parameters."""
        link, scope = self.link(), self.scope()
        try:
            return await link.arun(lambda driver: manner(driver, scope, deadline), deadline)
        except KnowledgeError:
            raise
        except Exception as error:
            raise translated(error, self._target, scope) from error
