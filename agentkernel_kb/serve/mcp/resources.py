"""What an agent can read by address: the schema of each of its backends, and every document that it may fetch.

A document is fetched by the agent's own tool, so that its access, the bounds and the deadline are the same. A backend that the
agent may not use and one that is not there are one case.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, unquote

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, ReadResourceResult, Resource, ResourceTemplate, TextResourceContents

from agentkernel_kb.knowledgebuilder import KnowledgeBuilder
from agentkernel_kb.serve.mcp.tools import Told, Tools

_SCHEME = "kb://"
_SCHEMAS = "schemas"
_NOT_THERE = frozenset(("timeout", "unavailable", "closed", "identity"))


class Resources:
    """The resources of one agent.

    Args:
        builder: What the agent may use.
        tools: Its tools.
    """

    def __init__(self, builder: KnowledgeBuilder, tools: Tools) -> None:
        self._names = [backend.backend_name for backend in builder.backends]
        # A backend of this name would share its addresses with the schemas; `fetch_kb` reads its documents.
        self._fetchable = [name for name in tools.backends_of("fetch_kb") if name != _SCHEMAS]
        self._tools = tools

    def listed(self) -> list[Resource]:
        """Return a resource for each backend's schema."""
        return [
            Resource(
                name=f"schema of {name}",
                uri=f"{_SCHEME}{_SCHEMAS}/{_part(name)}",
                description=f"What '{name}' holds and can do, as JSON.",
                mime_type="application/json",
            )
            for name in self._names
        ]

    def templates(self) -> list[ResourceTemplate]:
        """Return a template for the documents of each backend that the agent may fetch from."""
        return [
            ResourceTemplate(
                name=f"document of {name}",
                uri_template=f"{_SCHEME}{_part(name)}/{{id}}",
                description=f"One document of '{name}', by the id that the tools show in [brackets].",
                mime_type="text/plain",
            )
            for name in self._fetchable
        ]

    async def read(self, uri: str) -> ReadResourceResult:
        """Return what stands at an address.

        Raises:
            MCPError: Nothing does, as far as the agent may know, or it can't be read now.
        """
        room, slash, rest = uri.removeprefix(_SCHEME).partition("/")
        name, rest = unquote(room), unquote(rest)
        if not uri.startswith(_SCHEME) or not slash or not rest:
            raise _not_found()
        if name == _SCHEMAS:
            return _contents(uri, "application/json", await self._schema(rest))
        return _contents(uri, "text/plain", await self._document(name, rest))

    async def _schema(self, name: str) -> str:
        if name not in self._names:
            raise _not_found()
        told = await self._tools.ask("get_schemas", {})
        if not told.answered:
            raise _unreadable(told)
        schema: Any = _parsed(told.text).get(name)
        if schema is None:
            raise MCPError(code=INTERNAL_ERROR, message="The schemas are too long for one answer.")
        return json.dumps(schema, ensure_ascii=False)

    async def _document(self, backend: str, identity: str) -> str:
        if backend not in self._fetchable:
            raise _not_found()
        told = await self._tools.ask("fetch_kb", {"backend": backend, "ids": [identity]})
        if told.answered and told.records:
            return told.text
        raise _unreadable(told)


def _part(name: str) -> str:
    return quote(name, safe="")


def _parsed(text: str) -> dict[str, Any]:
    try:
        return json.loads(text)
    except ValueError:  # Cut where even the shortest form did not fit.
        return {}


def _contents(uri: str, mime_type: str, text: str) -> ReadResourceResult:
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=mime_type, text=text)])


def _not_found() -> MCPError:
    return MCPError(code=INVALID_PARAMS, message="Resource not found.")


def _unreadable(told: Told) -> MCPError:
    """Say why a resource can't be read. A message of the protocol may end up in traces, so it repeats nothing that was sent."""
    if told.outcome in _NOT_THERE:
        return MCPError(code=INTERNAL_ERROR, message=told.text)
    if told.outcome == "error":
        return MCPError(code=INTERNAL_ERROR, message="The resource could not be read.")
    return _not_found()
