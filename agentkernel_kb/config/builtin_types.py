"""The types that a backend can have: what their constructors say, and for those that ship here what YAML needs beyond."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.config.backend_types import BackendType, Check, Declares, placed_paths
from agentkernel_kb.config.faults import Severity
from agentkernel_kb.config.kinds import Kind, Parameter, parameters_of
from agentkernel_kb.config.objects import REFERENCE, named_object
from agentkernel_kb.errors import AKConfigError, KnowledgeDependencyError
from agentkernel_kb.model import KnowledgeCapabilities
from agentkernel_kb.near import hint
from agentkernel_kb.registry import backend_class

_FILE_URL = re.compile(r"(?P<engine>(?:sqlite|duckdb)(?:\+\w+)?:///)(?P<path>[^/:?][^?]*)(?P<rest>\?.*)?")
_TEXT = Kind(str)
_NOT_OPTIONS = ("name", "connect")


@dataclass(frozen=True)
class _Row:
    parameters: Mapping[str, Parameter] = field(default_factory=dict[str, Parameter])
    left_out: tuple[str, ...] = ()
    placers: Mapping[str, Callable[[Any, Path], Any]] = field(default_factory=dict[str, Callable[[Any, Path], Any]])
    declares: Declares | None = None
    opens: Callable[[Mapping[str, Any]], bool] | None = None
    checks: Mapping[str, Check] = field(default_factory=dict[str, Check])


@lru_cache(maxsize=64)
def backend_type(name: str) -> BackendType:
    """Return the type of a name; its class is imported now.

    Raises:
        AKConfigError: There is none of the name, or it can't be loaded.
        KnowledgeDependencyError: It needs an extra that is not installed.
    """
    make = _own_class(name) if name.startswith(REFERENCE) else backend_class(name)
    parameters = parameters_of(make)
    named, lazy = "name" in parameters, "connect" in parameters
    options = {option: parameter for option, parameter in parameters.items() if option not in _NOT_OPTIONS}
    return _adapted(BackendType(name, make, options, named, lazy))


def _own_class(name: str) -> type[KnowledgeBase]:
    found = named_object(name)
    if not (isinstance(found, type) and issubclass(found, KnowledgeBase)):
        raise AKConfigError(f"{name} is not a subclass of KnowledgeBase.")
    return found


def _adapted(kind: BackendType) -> BackendType:
    """Return a type with what its row says beyond its constructor; any other type as it is."""
    row = _ROWS.get(kind.name)
    if row is None:
        return kind
    parameters = {name: parameter for name, parameter in kind.parameters.items() if name not in row.left_out}
    own = {**row.parameters, **parameters}
    return replace(kind, parameters=own, placers=row.placers, declares=row.declares, opens=row.opens, checks=row.checks)


def _embedder(value: Any, folder: Path) -> Any:
    from agentkernel_kb.embed import HashEmbedder

    return HashEmbedder() if value == "hash" else value


def _file_url(value: Any, folder: Path) -> Any:
    """Return a URL of SQLAlchemy with the path of its file made whole."""
    found = _FILE_URL.fullmatch(value)
    return value if found is None else f"{found['engine']}{folder / found['path']}{found['rest'] or ''}"


def _graph_path(value: Any, folder: Path) -> Any:
    return value if value == ":memory:" else placed_paths(value, folder)


def _sources(value: Any, folder: Path) -> Any:
    """Return sources with the paths among them made whole, as paths, which have to exist; addresses and texts stay."""
    return [source if re.search(r"://|\s", source) else Path(placed_paths(source, folder)) for source in value]


def _model(value: Any, folder: Path) -> Any:
    """Return an embedder's name, such as `onnx:models/minilm`, with the path of its model made whole."""
    from agentkernel_kb.embed.named import KINDS

    kind, _, path = str(value).partition(":")
    return f"{kind}:{placed_paths(path, folder)}" if kind in KINDS and path else value


def _embedder_fault(value: Any) -> tuple[str, Severity] | None:
    """Say what is wrong with an embedder's name. A model that is not there yet may be there when it is used."""
    from agentkernel_kb.embed.named import KINDS, named_embedder

    kind, _, path = str(value).partition(":")
    try:
        named_embedder(value)
    except AKConfigError as error:
        return f"{error}", "warning" if kind in KINDS and path and not Path(path).exists() else "error"
    return None


def _function_fault(value: Any) -> tuple[str, Severity] | None:
    if not isinstance(value, str):
        return None
    return f"must be hash, or name a function as {REFERENCE}package.module:name.{hint(value, ['hash'])}", "error"


def _scope_fault(value: Any) -> tuple[str, Severity] | None:
    from agentkernel_kb.rag.scope import Scope

    try:
        Scope(value)
    except AKConfigError as error:
        return f"{error}", "error"
    return None


def _language_fault(value: Any) -> tuple[str, Severity] | None:
    from agentkernel_kb.rag.index.analysis import Analysis

    try:
        Analysis(value)
    except KnowledgeDependencyError as error:
        return f"{error}.", "warning"
    except AKConfigError as error:
        return f"{error}", "error"
    return None


def _okf_index(value: Any, folder: Path) -> Any:
    return value if value in ("auto", None, ":memory:") else placed_paths(value, folder)


def _graph_declares(arguments: Mapping[str, Any]) -> KnowledgeCapabilities:
    return KnowledgeCapabilities(
        kinds=["graph", "structured"],
        query=True,
        query_language="cypher",
        writable=not arguments.get("read_only", False),
        derives_schema=True,
    )


def _sql_declares(_: Mapping[str, Any]) -> KnowledgeCapabilities:
    return KnowledgeCapabilities(kinds=["structured"], query=True, query_language="sql", derives_schema=True)


def _is_file(arguments: Mapping[str, Any]) -> bool:
    return re.match(r"(?:sqlite|duckdb)\b", str(arguments.get("url"))) is not None


def bundle_declares(_: Mapping[str, Any] | None = None) -> KnowledgeCapabilities:
    """Return what a bundle can do for those who may; whether its store takes writes is known once it is open."""
    return KnowledgeCapabilities(
        kinds=["document"], search=True, search_mode="lexical", fetch=True, browse=True, writable=True, derives_schema=True
    )


def knowledge_declares(arguments: Mapping[str, Any]) -> KnowledgeCapabilities:
    """Return what a corpus can do that is managed here."""
    return KnowledgeCapabilities(
        kinds=["vector", "document"],
        search=True,
        search_mode="lexical" if arguments.get("embedder") in (None, "hash") else "semantic",
        fetch=True,
        browse=True,
        writable=not arguments.get("read_only", False),
        derives_schema=True,
        filters=True,
    )


_EMBEDDER = Parameter("embedding_function", Kind(_TEXT.type, takes_object=True), required=False)
_ROWS = {
    "chroma": _Row(
        {"embedding_function": _EMBEDDER},
        ("client", "embedding_function"),
        {"embedding_function": _embedder},
        checks={"embedding_function": _function_fault},
    ),
    "knowledge": _Row(
        {"path": Parameter("path", _TEXT, required=False)},
        ("knowledge",),
        {"path": placed_paths, "sources": _sources, "embedder": _model},
        knowledge_declares,
        checks={"embedder": _embedder_fault, "where": _scope_fault, "language": _language_fault},
    ),
    "ladybug": _Row(placers={"path": _graph_path}, declares=_graph_declares),
    "neo4j": _Row(
        {"embedding_function": _EMBEDDER},
        ("embedding_function",),
        {"embedding_function": _embedder},
        checks={"embedding_function": _function_fault},
    ),
    "okf": _Row({"uri": Parameter("uri", _TEXT, required=True)}, ("store",), {"index": _okf_index}, bundle_declares),
    "sql": _Row(placers={"url": _file_url}, declares=_sql_declares, opens=_is_file),
}
