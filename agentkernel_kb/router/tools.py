"""The tool table: what each tool is called, takes and promises, and how it is made into plain and coroutine functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentkernel_kb.model import KnowledgeCapabilities, Operation, ToolDescription, argument_fault, arguments_of
from agentkernel_kb.router.plan import ALL, DEFAULT_BROWSE_LIMIT, DEFAULT_LIMIT, Request

Serve = Callable[[Request], str]
ServeAsync = Callable[[Request], Coroutine[Any, Any, str]]

# Annotation to run-time and JSON type; this module's annotations are text, as their evaluation is postponed.
_TYPES: dict[str, tuple[type, str]] = {"str": (str, "string"), "int": (int, "integer")}


# Each of these only names the arguments of a tool; calling it makes the request that the router serves.


def _get_schemas() -> Request:
    return Request("get_schemas")


def _read_kb(backend: str, query: str, limit: int = DEFAULT_LIMIT) -> Request:
    return Request("read_kb", backend, {"query": query, "limit": limit})


def _write_kb(backend: str, text: str = "", source: str = "agent", query: str = "", params_json: str = "{}") -> Request:
    return Request("write_kb", backend, {"text": text, "source": source, "query": query, "params_json": params_json})


def _get_all_kb_descriptions() -> Request:
    return Request("get_all_kb_descriptions")


def _search_kb(backend: str, query: str, limit: int = DEFAULT_LIMIT) -> Request:
    return Request("search_kb", backend, {"query": query, "limit": limit})


def _fetch_kb(backend: str, ids: str) -> Request:
    return Request("fetch_kb", backend, {"ids": ids})


def _browse_kb(backend: str, path: str = "", limit: int = DEFAULT_BROWSE_LIMIT) -> Request:
    return Request("browse_kb", backend, {"path": path, "limit": limit})


@dataclass(frozen=True)
class ToolSpec:
    """One row of the tool table.

    Attributes:
        request: Makes a request out of the tool's arguments; its signature is the tool's.
        summary: What the tool is for and when to use another one.
        parameters: What each argument is, with an example.
        serves: Operations that a backend must declare one of to be named in the tool; none: every backend is named.
        gated: The tool only exists where some backend is named in it.
        read_only: The tool changes nothing.
        asks_all: The tool asks every backend and takes no arguments.
        asks_any: The tool can be asked of one backend, or of all that can serve it.
    """

    request: Callable[..., Request]
    summary: str
    parameters: Mapping[str, str]
    serves: tuple[Operation, ...] = ()
    gated: bool = False
    read_only: bool = True
    asks_all: bool = False
    asks_any: bool = False

    @property
    def name(self) -> str:
        """Name of the tool."""
        return self.request.__name__.removeprefix("_")


_BACKEND = "Name of the knowledge base."
_LIMIT = f"Most records to return, for example {DEFAULT_LIMIT}."
TOOLS = (
    ToolSpec(
        _get_schemas,
        "Return every knowledge base with its schema and what it can do, as JSON. Call it before the first read.",
        {},
        asks_all=True,
    ),
    ToolSpec(
        _read_kb,
        "Read from one knowledge base: by a statement where it has a query language, else by meaning, as search_kb does. "
        "Only reads pass. Keep placeholders such as <CLIENTS> as they are.",
        {
            "backend": _BACKEND,
            "query": "A statement in the backend's language, for example SELECT name FROM <CLIENTS> LIMIT 5; or plain words.",
            "limit": f"Most records where the statement has no LIMIT of its own, for example {DEFAULT_LIMIT}.",
        },
        serves=("query", "search"),
    ),
    ToolSpec(
        _write_kb,
        "Store something in one knowledge base that accepts writes. Give text, or a writing statement with its parameters.",
        {
            "backend": _BACKEND,
            "text": "What to store, for example Acme moved to Oslo. Empty if a statement says it all.",
            "source": "Where it comes from, for example meeting-2026-05-04.",
            "query": "A writing statement in the backend's language, with parameters in place of values; else empty.",
            "params_json": 'Parameters of the statement as a JSON object, for example {"name": "Acme"}; else {}.',
        },
        read_only=False,
    ),
    ToolSpec(
        _get_all_kb_descriptions,
        "Return one line on each knowledge base: what it holds, and what is wrong with it. Cheaper than get_schemas.",
        {},
        asks_all=True,
    ),
    ToolSpec(
        _search_kb,
        "Return the records of one knowledge base that are most like the query, best first. Not for statements.",
        {"backend": _BACKEND, "query": "What to look for in plain words, for example refund period.", "limit": _LIMIT},
        serves=("search",),
        gated=True,
        asks_any=True,
    ),
    ToolSpec(
        _fetch_kb,
        "Return whole records by the ids that other tools show in [brackets].",
        {"backend": _BACKEND, "ids": "One id or several separated by commas, for example policies/refunds.md,faq/returns.md."},
        serves=("fetch",),
        gated=True,
    ),
    ToolSpec(
        _browse_kb,
        "List what stands at a path of one knowledge base. Use it to find ids when you don't know what to search for.",
        {"backend": _BACKEND, "path": "A path, for example policies; empty for the root.", "limit": "Most entries to return."},
        serves=("browse",),
        gated=True,
    ),
)


_BY_ALL = "Name of the knowledge base, or * for all at once: records then stand under [name: id]."


def emitted(capabilities: Mapping[str, KnowledgeCapabilities], *, writable: bool) -> list[tuple[ToolSpec, list[str]]]:
    """Return the tools that these backends can serve, each with the names of those that can, and `*` where all can be asked."""
    chosen: list[tuple[ToolSpec, list[str]]] = []
    for spec in TOOLS:
        names = [name for name, own in capabilities.items() if not spec.serves or any(map(own.supports, spec.serves))]
        if spec.asks_any and len(names) > 1:
            spec, names = replace(spec, parameters={**spec.parameters, "backend": _BY_ALL}), [*names, ALL]
        if (names or not spec.gated) and (writable or spec.read_only):
            chosen.append((spec, names or list(capabilities)))
    return chosen


def make_tool(spec: ToolSpec, names: Sequence[str], serve: Serve, aserve: ServeAsync) -> ToolDescription:
    """Make a tool's plain and coroutine function, each carrying the description of both."""
    signature = inspect.signature(spec.request)

    def request(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Request:
        try:
            return spec.request(*args, **kwargs)
        except TypeError:
            return Request(spec.name, kwargs.get("backend", args[0] if args else None), fault=_fault(description, args, kwargs))

    def call(*args: Any, **kwargs: Any) -> str:
        return serve(request(args, kwargs))

    async def acall(*args: Any, **kwargs: Any) -> str:
        return await aserve(request(args, kwargs))

    schema = _parameters(spec, signature, names)
    description = ToolDescription(spec.name, spec.summary, schema, spec.read_only, call, acall)
    for function in (call, acall):
        _dress(function, spec, signature, description)
    return description


def _dress(function: Any, spec: ToolSpec, signature: inspect.Signature, description: ToolDescription) -> None:
    """Give a function the name, signature, annotations and docstring of its tool, for frameworks that read those."""
    types = {name: _TYPES[parameter.annotation][0] for name, parameter in signature.parameters.items()}
    parameters = [parameter.replace(annotation=types[name]) for name, parameter in signature.parameters.items()]
    function.__name__ = function.__qualname__ = spec.name
    function.__signature__ = inspect.Signature(parameters, return_annotation=str)
    function.__annotations__ = {**types, "return": str}
    function.__doc__ = _docstring(spec)
    function.tool_description = description


def _docstring(spec: ToolSpec) -> str:
    if not spec.parameters:
        return spec.summary
    lines = "\n".join(f"    {name}: {text}" for name, text in spec.parameters.items())
    return f"{spec.summary}\n\nArgs:\n{lines}"


def _parameters(spec: ToolSpec, signature: inspect.Signature, names: Sequence[str]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        properties[name] = {"type": _TYPES[parameter.annotation][1], "description": spec.parameters[name]}
        if name == "backend" and names:
            properties[name]["enum"] = list(names)
    required = [name for name, parameter in signature.parameters.items() if parameter.default is inspect.Parameter.empty]
    return {"type": "object", "properties": properties, "required": required}


def _fault(description: ToolDescription, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    names = list(description.parameters["properties"])
    doubled = [name for name in names[: len(args)] if name in kwargs]
    fault = argument_fault(description, {**dict(zip(names, args, strict=False)), **kwargs})
    if fault is not None:
        return fault
    what = f"was given {', '.join(doubled)} twice" if doubled else f"takes at most {len(names)} arguments, not {len(args)}"
    return f"{description.name} {what}. {arguments_of(description)}"
