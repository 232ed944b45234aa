"""Bundles and roles from configuration alone: which tools an agent gets, and what it is told to do with them (A18)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.config.builtin_types import bundle_declares
from agentkernel_kb.config.faults import Finding
from agentkernel_kb.config.instructions import compose
from agentkernel_kb.config.lazy import LazyKnowledgeBase
from agentkernel_kb.config.okf_block import Database, OKFBlock, Role, parse_okf_block
from agentkernel_kb.config.source import Source, read
from agentkernel_kb.knowledgebuilder import AsyncTool, KnowledgeBuilder, Tool
from agentkernel_kb.model import Operation
from agentkernel_kb.router.access import Access

if TYPE_CHECKING:
    from agentkernel_kb.store.base import DocumentStore

T = TypeVar("T", bound=Callable[..., Any])

_LOG = logging.getLogger("agentkernel_kb.config")
_READS: frozenset[Operation] = frozenset(("search", "fetch", "browse"))
_READS_AND_WRITES: frozenset[Operation] = frozenset(("search", "fetch", "browse", "write"))


class OKFConfiguration:
    """The bundles of one `okf:` block, and what each agent may do with them.

    Making agents opens nothing: a bundle is opened when an agent first reaches for it, once for all agents.

    Args:
        block: The checked block.
        folder: What relative paths in it are relative to.
    """

    def __init__(self, block: OKFBlock, folder: Path) -> None:
        self._block = block
        self._databases: dict[str, LazyKnowledgeBase] = {
            name: LazyKnowledgeBase(name, bundle_declares(), partial(_opened, name, database, folder), database.description)
            for name, database in block.databases.items()
        }

    @property
    def backends(self) -> Mapping[str, KnowledgeBase]:
        """The bundles by name, in the order of the block; each is opened at its first use."""
        return self._databases

    def roles_of(self, agent: str) -> dict[str, Role]:
        """Return the databases in which an agent has a role, in the order of the block, each with that role."""
        roles: dict[str, Role] = {}
        for name, database in self._block.databases.items():
            if role := database.role_of(agent):
                roles[name] = role
        return roles

    def tools_for(self, agent: str, existing: Iterable[str | Callable[..., Any]] = ()) -> list[Tool]:
        """Return the tools of an agent, as plain functions; none where no database names it.

        Args:
            agent: Its name.
            existing: Tools that it has already, or their names; those of the same name are warned about.
        """
        return self._built(agent, existing, KnowledgeBuilder.build)

    def async_tools_for(self, agent: str, existing: Iterable[str | Callable[..., Any]] = ()) -> list[AsyncTool]:
        """Return the same tools as coroutine functions."""
        return self._built(agent, existing, KnowledgeBuilder.build_async)

    def _built(
        self, agent: str, existing: Iterable[str | Callable[..., Any]], build: Callable[[KnowledgeBuilder, bool], list[T]]
    ) -> list[T]:
        builder = self.builder_for(agent)
        if builder is None:
            return []
        tools = build(builder, any(role != "consumer" for role in self.roles_of(agent).values()))
        _warn_of_collisions(agent, [tool.__name__ for tool in tools], existing)
        return tools

    def instructions_for(self, agent: str) -> str:
        """Return what to append to an agent's prompt, composed from the configuration alone; nothing where it has no role."""
        roles = self.roles_of(agent)
        return compose({name: (role, self._block.databases[name].description) for name, role in roles.items()})

    def builder_for(self, agent: str) -> KnowledgeBuilder | None:
        """Return the router of an agent, over the databases in which it has a role; `None` where it has none."""
        roles = self.roles_of(agent)
        if not roles:
            return None
        granted = {name: _READS if role == "consumer" else _READS_AND_WRITES for name, role in roles.items()}
        return KnowledgeBuilder([self._databases[name] for name in roles], access=Access(agent, granted))

    def close(self) -> None:
        """Close every bundle that was opened. May be called twice."""
        for database in self._databases.values():
            database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def load_okf(source: str | Path | Mapping[str, Any]) -> OKFConfiguration:
    """Read an `okf:` block.

    Args:
        source: Path of a YAML file, or its content as a mapping: with the block under `okf`, or the block itself. Relative
            paths in a file are relative to its folder, those in a mapping to the working directory.

    Raises:
        AKConfigError: The file cannot be read, there is no block in it, or it has faults: all are listed with their lines.
    """
    return okf_configuration(read(source))


def okf_configuration(source: Source) -> OKFConfiguration:
    """Make the configuration out of a source that was read.

    Raises:
        AKConfigError: There is no block in it, or it has faults.
    """
    if "okf" in source.data:
        return OKFConfiguration(parse_okf_block(source, ("okf",)), source.folder)
    if "databases" in source.data:
        return OKFConfiguration(parse_okf_block(source, ()), source.folder)
    raise source.error([Finding((), "there is no okf: block in it.")])


def _opened(name: str, database: Database, folder: Path) -> KnowledgeBase:
    from agentkernel_kb.okf.manager import OKFManager

    store = _store(database, folder)
    if not store.writable and (writers := database.writers()):
        _LOG.warning("the store of '%s' is read-only, and its configuration lets these agents write to it: %s", name, writers)
    return OKFManager(
        store,
        name=name,
        description=database.description,
        refresh_seconds=database.refresh_seconds,
        max_concepts=database.max_concepts,
        write_actor=database.write_actor,
        write_prefix=database.write_prefix,
    )


def _store(database: Database, folder: Path) -> DocumentStore:
    """Open the store of a database: the built-in one of its type, or the application's own class on its uri."""
    from agentkernel_kb.store.base import DocumentStore
    from agentkernel_kb.store.uri import store_class

    if database.type == "s3" or database.uri.lower().startswith("file:"):
        return DocumentStore.from_uri(database.uri)
    if database.type == "local":
        return DocumentStore.from_uri(folder / Path(database.uri).expanduser())
    make: Any = store_class(database.type)  # Its constructor is the application's, and takes the uri.
    return make(database.uri)


def _warn_of_collisions(agent: str, names: Iterable[str], existing: Iterable[str | Callable[..., Any]]) -> None:
    taken = {tool if isinstance(tool, str) else str(getattr(tool, "name", getattr(tool, "__name__", ""))) for tool in existing}
    if doubled := [name for name in names if name in taken]:
        _LOG.warning("agent '%s' has tools of these names already, and gets them again from the okf block: %s", agent, doubled)
