"""Makes the backends of a configuration: constructed without connecting where their class can be, else opened at first use."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.config.backends import Entry
from agentkernel_kb.config.lazy import LazyKnowledgeBase
from agentkernel_kb.config.standing import standing_for
from agentkernel_kb.errors import AKConfigError, KnowledgeDependencyError
from agentkernel_kb.model import KnowledgeCapabilities

if TYPE_CHECKING:
    from agentkernel_kb.store.base import DocumentStore

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


class NotKnownYet(Exception):  # noqa: N818 - says that there is nothing to tell, which is no fault
    """What a backend can do is known once it is open, and it is not to be opened."""


def made(entry: Entry, folder: Path, *, may_open: bool) -> KnowledgeBase:
    """Return the backend of an entry.

    Args:
        entry: The entry.
        folder: What relative paths are relative to.
        may_open: A class that connects when it is constructed, and does not say before what it can do, may do so.

    Raises:
        NotKnownYet: It would have to be opened for that.
        KnowledgeError: It can't be made.
    """
    kind = entry.type
    if not kind.connects(entry.arguments):
        return _constructed(entry, folder)
    if kind.declares is not None:
        stand_in = standing_for(kind.make)(entry.name, kind.declares(entry.arguments), partial(_constructed, entry, folder))
        stand_in.requires_identity = bool(entry.arguments.get("requires_identity"))
        return stand_in
    if not may_open:
        raise NotKnownYet
    return _constructed(entry, folder)


def not_installed(entry: Entry, error: KnowledgeDependencyError) -> KnowledgeBase:
    """Return what stands for a backend whose extra is missing: every call of it says so."""

    def fail() -> KnowledgeBase:
        raise KnowledgeDependencyError(error.extra, error.purpose)

    return LazyKnowledgeBase(entry.name, KnowledgeCapabilities(search=True), fail)


def _arguments(entry: Entry, folder: Path) -> dict[str, Any]:
    """Return the constructor's arguments; the `uri` of a bundle becomes its store."""
    arguments = dict(entry.arguments)
    if entry.type.named:
        arguments["name"] = entry.name
    if entry.type.lazy:
        arguments["connect"] = "lazy"
    if entry.type.name == "okf":
        arguments["store"] = _store(arguments.pop("uri"), folder)
    return arguments


def _store(uri: str, folder: Path) -> DocumentStore:
    from agentkernel_kb.store.base import DocumentStore

    return DocumentStore.from_uri(uri if _SCHEME.match(uri) else folder / Path(uri).expanduser())


def _constructed(entry: Entry, folder: Path) -> KnowledgeBase:
    kind = entry.type
    backend = kind.make(**_arguments(entry, folder))
    if backend.backend_name != entry.name:
        own = backend.backend_name
        backend.close()
        raise AKConfigError(f"a backend of type {kind.name} calls itself '{own}': declare it under that name.")
    if entry.schema or not backend.capabilities.derives_schema:
        backend.add_schema(entry.schema)
    return backend
