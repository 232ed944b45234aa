"""Backends by name: one table of those that ship here, and an entry point group for those of other distributions.

Nothing is imported or scanned before it is asked for.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint
from typing import cast

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.errors import AKConfigError, KnowledgeDependencyError
from agentkernel_kb.near import nearest

ENTRY_POINT_GROUP = "agentkernel_kb.backends"
"""The group in which another distribution names its backends: `notes = "kb_notes_plugin:NotesBackend"`."""


@dataclass(frozen=True)
class BuiltInBackend:
    """Where a backend that ships here is found.

    Attributes:
        module: Its module.
        class_name: Its class in that module.
        extra: The extra that installs its SDK; `""` where the base install has all it needs.
    """

    module: str
    class_name: str
    extra: str


BUILT_IN = {
    "chroma": BuiltInBackend("agentkernel_kb.chroma", "ChromaManager", "chroma"),
    "knowledge": BuiltInBackend("agentkernel_kb.rag", "RAGManager", ""),
    "ladybug": BuiltInBackend("agentkernel_kb.ladybug", "LadybugManager", "ladybug"),
    "neo4j": BuiltInBackend("agentkernel_kb.neo4j", "Neo4jManager", "neo4j"),
    "okf": BuiltInBackend("agentkernel_kb.okf", "OKFManager", ""),
    "sql": BuiltInBackend("agentkernel_kb.sql", "SQLManager", "sql"),
    "starburst": BuiltInBackend("agentkernel_kb.starburst", "StarburstManager", "starburst"),
}


def backend_names() -> list[str]:
    """Return the names of all backends that can be asked for, sorted: those that ship here and those that are installed."""
    return sorted({*BUILT_IN, *(point.name for point in _entry_points())})


def backend_class(name: str) -> type[KnowledgeBase]:
    """Return the class of the backend called `name`, imported now.

    Raises:
        AKConfigError: No backend has the name, several have it, or it cannot be loaded or is no backend.
        KnowledgeDependencyError: A backend that ships here needs an extra at import that is not installed.
    """
    points = [point for point in _entry_points() if point.name == name]
    if len(points) + (name in BUILT_IN) > 1:
        raise AKConfigError(_ambiguous(name, points))
    if points:
        return _load_plugin(points[0])
    if name in BUILT_IN:
        return _load_built_in(name)
    raise AKConfigError(_unknown(name))


def _entry_points() -> Sequence[EntryPoint]:
    """Return what is installed; looked through again once the import path, or a folder of it, is another one."""
    return _entry_points_on(tuple((folder, _changed_at(folder)) for folder in sys.path))


@lru_cache(maxsize=8)
def _entry_points_on(_folders: tuple[tuple[str, int], ...]) -> Sequence[EntryPoint]:
    return tuple(importlib.metadata.entry_points(group=ENTRY_POINT_GROUP))


def _changed_at(folder: str) -> int:
    try:
        return os.stat(folder or ".").st_mtime_ns  # noqa: PTH116 - asked for each type of a long file: a Path costs more than this
    except OSError:
        return 0


def _load_built_in(name: str) -> type[KnowledgeBase]:
    home = BUILT_IN[name]
    try:
        module = importlib.import_module(home.module)
    except ImportError as error:
        raise KnowledgeDependencyError(home.extra, f"The backend '{name}'") from error
    return cast("type[KnowledgeBase]", getattr(module, home.class_name))


def _load_plugin(point: EntryPoint) -> type[KnowledgeBase]:
    origin = f"Backend '{point.name}' of the distribution {_distribution(point)} ({point.value})"
    try:
        loaded: object = point.load()
    except Exception as error:  # A plugin's import runs its own code, which may raise anything.
        raise AKConfigError(f"{origin} cannot be loaded: {type(error).__name__}: {error}") from error
    if not (isinstance(loaded, type) and issubclass(loaded, KnowledgeBase)):
        raise AKConfigError(f"{origin} is not a subclass of KnowledgeBase.")
    return loaded


def _distribution(point: EntryPoint) -> str:
    return f"'{point.dist.name}'" if point.dist else "of an unknown name"


def _ambiguous(name: str, points: Sequence[EntryPoint]) -> str:
    owners = ["'agentkernel-kb' itself"] if name in BUILT_IN else []
    owners += sorted(_distribution(point) for point in points)
    return f"Backend name {name!r} is given by several distributions: {', '.join(owners)}. Uninstall or rename all but one."


def _unknown(name: str) -> str:
    known = backend_names()
    near = nearest(name, known)
    hint = f" Did you mean {near!r}?" if near else ""
    return f"Unknown backend {name!r}. Available: {known}.{hint}"
