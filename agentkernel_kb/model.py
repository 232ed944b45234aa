"""The values of the contract: what a backend declares, what a record is, how a tool describes itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypedDict

from agentkernel_kb.errors import AKConfigError

_MAX_SHOWN = 60
_MAX_NAMES = 10

Record = Mapping[str, Any]
"""A plain mapping `{"text": str, "metadata": {...}}`. `KnowledgeRecord` documents it; nothing validates it at run time."""

Operation = Literal["search", "query", "fetch", "browse", "write"]
"""What a backend can be asked to do."""

Scalar = str | int | float | bool
"""A value that a filter compares a metadata key to."""


class KnowledgeMetadata(TypedDict, total=False):
    """The conventional keys of a record's metadata. A `Record` may have others."""

    id: str
    source: str
    title: str
    kind: str
    trust: str
    stale: bool
    links: list[str]
    score: float


class KnowledgeRecord(TypedDict):
    """The shape of a record."""

    text: str
    metadata: KnowledgeMetadata


@dataclass(frozen=True)
class KnowledgeCapabilities:
    """What a backend declares; the tools of an agent follow from it.

    Attributes:
        kinds: Open taxonomy of the store: `vector`, `structured`, `graph`, `document`, …
        search: `search()` is implemented.
        search_mode: How search ranks; advisory, does not imply `search`.
        query: `query()` is implemented.
        query_language: Language of its statements, for example `"cypher"` or `"sql"`.
        fetch: `fetch()` is implemented, and every record has a comma-free `metadata["id"]`.
        browse: `browse()` is implemented.
        writable: `write()` is implemented.
        derives_schema: `schema()` describes itself without `add_schema()`.
        filters: Operations that name `filters` in their signature keep to the records whose metadata has those values. A row
            scope can then be set for an agent; it is refused every operation that does not name `filters`.

    Raises:
        AKConfigError: A field has a value of the wrong type. Whether the fields agree is checked by
            `KnowledgeBase.validate_capabilities`.
    """

    kinds: list[str] = field(default_factory=list[str])
    search: bool = False
    search_mode: Literal["semantic", "lexical"] | None = None
    query: bool = False
    query_language: str | None = None
    fetch: bool = False
    browse: bool = False
    writable: bool = False
    derives_schema: bool = False
    filters: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.kinds, list | tuple) or not all(isinstance(kind, str) for kind in self.kinds):
            raise AKConfigError(f"KnowledgeCapabilities.kinds must be a list of strings, not {self.kinds!r}.")
        object.__setattr__(self, "kinds", list(self.kinds))
        for name in ("search", "query", "fetch", "browse", "writable", "derives_schema", "filters"):
            if not isinstance(getattr(self, name), bool):
                raise AKConfigError(f"KnowledgeCapabilities.{name} must be True or False, not {getattr(self, name)!r}.")
        if self.search_mode not in (None, "semantic", "lexical"):
            raise AKConfigError(
                f"KnowledgeCapabilities.search_mode must be 'semantic', 'lexical' or None, not {self.search_mode!r}."
            )
        if self.query_language is not None and not isinstance(self.query_language, str):
            raise AKConfigError(f"KnowledgeCapabilities.query_language must be a string or None, not {self.query_language!r}.")

    def model_dump(self) -> dict[str, Any]:
        """Return the declaration as a new mapping of plain values; `filters` stands in it only where it is declared."""
        dump = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "filters" or self.filters}
        dump["kinds"] = list(self.kinds)
        return dump

    def supports(self, operation: Operation) -> bool:
        """Tell whether `operation` is declared."""
        return self.writable if operation == "write" else bool(getattr(self, operation))


class RecordPage(list[Record]):
    """A list of records that also knows what it leaves out. Operations may return it in place of a plain list.

    Attributes:
        more: The store has more records than these.
        total: How many there are in all, when the store knows.
    """

    def __init__(self, records: Iterable[Record] = (), *, more: bool = False, total: int | None = None) -> None:
        super().__init__(records)
        self.more = more
        self.total = total


@dataclass(frozen=True)
class ToolDescription:
    """How a tool describes itself to adapters and protocol servers. `describe(tool)` returns it.

    Attributes:
        name: The tool's name.
        description: What the tool is for, as a model reads it.
        parameters: JSON schema of its arguments, in a portable subset: an object of strings and integers, with a description
            each and `enum` where the values are known; no `default`, `$ref`, `const`, union or list of types.
        read_only: The tool only reads.
        call: The tool as a plain function.
        acall: The same tool as a coroutine function.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    read_only: bool
    call: Callable[..., str] = field(repr=False, compare=False)
    acall: Callable[..., Awaitable[str]] = field(repr=False, compare=False)


def describe(tool: Callable[..., Any]) -> ToolDescription | None:
    """Return the description that a router's tool carries, or `None` for any other callable."""
    description = getattr(tool, "tool_description", None)
    return description if isinstance(description, ToolDescription) else None


def argument_fault(description: ToolDescription, arguments: Mapping[str, Any]) -> str | None:
    """Say which arguments a tool does not have and which it misses, or return `None`. Their values are the tool's business."""
    known: Mapping[str, Any] = description.parameters["properties"]
    unknown = [repr(name[:_MAX_SHOWN]) for name in arguments if name not in known]
    unknown = unknown if len(unknown) <= _MAX_NAMES else [*unknown[:_MAX_NAMES], f"and {len(unknown) - _MAX_NAMES} more"]
    missing = [name for name in description.parameters["required"] if name not in arguments]
    if not unknown and not missing:
        return None
    faults = [f"has no argument {', '.join(unknown)}"] if unknown else []
    faults += [f"needs {', '.join(missing)}"] if missing else []
    return f"{description.name} {' and '.join(faults)}. {arguments_of(description)}"


def arguments_of(description: ToolDescription) -> str:
    """Return a sentence that lists the arguments of a tool, for a message."""
    required: list[str] = description.parameters["required"]
    names = [name if name in required else f"{name} (optional)" for name in description.parameters["properties"]]
    return f"Its arguments: {', '.join(names)}." if names else "It takes no arguments."
