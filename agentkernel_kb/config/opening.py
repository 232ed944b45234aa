"""Makes the backends of a configuration: constructed without connecting where their class can be, else opened at first use."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.config.backends import Entry
from agentkernel_kb.config.lazy import LazyKnowledgeBase
from agentkernel_kb.config.source import did_you_mean
from agentkernel_kb.config.standing import standing_for
from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError
from agentkernel_kb.model import KnowledgeCapabilities
from agentkernel_kb.store.uri import SCHEMES, s3_place

if TYPE_CHECKING:
    from agentkernel_kb.store.base import DocumentStore

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


class NotKnownYetError(Exception):
    """What a backend can do is known once it is open, and it is not to be opened."""


def made(entry: Entry, folder: Path, *, may_open: bool) -> KnowledgeBase:
    """Return the backend of an entry.

    Args:
        entry: The entry.
        folder: What relative paths are relative to.
        may_open: A class that connects when it is constructed, and does not say before what it can do, may do so.

    Raises:
        NotKnownYetError: It would have to be opened for that.
        KnowledgeError: It can't be made.
    """
    kind = entry.type
    if kind.name == "okf":
        _check_uri(entry.arguments["uri"])
    if not kind.connects(entry.arguments):
        return _constructed(entry, folder)
    if kind.declares is not None:
        backend = stand_in(entry, folder)
        backend.requires_identity = bool(entry.arguments.get("requires_identity"))
        return backend
    if not may_open:
        raise NotKnownYetError
    return _constructed(entry, folder)


def stand_in(entry: Entry, folder: Path) -> LazyKnowledgeBase:
    """Return what stands for a backend that can't be made now: each call tries again, and says why it can't be made."""
    kind = entry.type
    declared = kind.declares(entry.arguments) if kind.declares else KnowledgeCapabilities(search=True)
    return standing_for(kind.make)(
        entry.name, declared, partial(_constructed, entry, folder), entry.arguments.get("description")
    )


def is_outage(error: Exception) -> bool:
    """Tell whether an error says that a store can't be used, and not that its configuration is wrong."""
    return isinstance(error, KnowledgeBackendError)


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


def _check_uri(uri: str) -> None:
    found = _SCHEME.match(uri)
    if found and found[1].lower() not in SCHEMES:
        known = "a folder, file:///…, s3://bucket/prefix or python:package.module.Class"
        raise AKConfigError(f"its uri is {known}, and starts with {found[1]}:.{did_you_mean(found[1], SCHEMES)}")
    if found and found[1].lower() == "s3":
        s3_place(uri)


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
