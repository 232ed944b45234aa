"""An agent's tools as MCP describes and calls them: schemas, truthful hints, an answer as text and as structured content."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, get_args

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, TextContent, Tool, ToolAnnotations

from agentkernel_kb.binding import aanswer, schema_of
from agentkernel_kb.identity import Identity, acting_as
from agentkernel_kb.knowledgebuilder import KnowledgeBuilder
from agentkernel_kb.model import ToolDescription, describe
from agentkernel_kb.router.events import Outcome, heard
from agentkernel_kb.serve.mcp.agent import ServedAgent

_ANSWERED: frozenset[Outcome] = frozenset(("ok", "empty", "partial", "stale"))
_OUTPUT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "result": {"type": "string", "description": "The answer, or a sentence that says why there is none."},
        "outcome": {"type": "string", "description": "How the call ended.", "enum": list(get_args(Outcome))},
        "records": {"type": "integer", "description": "How many records the answer holds.", "minimum": 0},
    },
    "required": ["result", "outcome", "records"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Told:
    """What a tool answered.

    Attributes:
        text: What the model reads.
        outcome: How the call ended.
        records: Records in the answer.
    """

    text: str
    outcome: Outcome
    records: int

    @property
    def answered(self) -> bool:
        """It is an answer, and not a sentence on why there is none."""
        return self.outcome in _ANSWERED


class Tools:
    """The tools of one agent.

    Args:
        agent: The agent. What it is offered is settled here, once.
    """

    def __init__(self, agent: ServedAgent) -> None:
        described = [describe(tool) for tool in agent.builder.build_async(writable=agent.writable)]
        self._descriptions = {tool.name: tool for tool in described if tool is not None}
        self._identity = agent.identity
        self._listed = [_as_tool(tool, agent.builder) for tool in self._descriptions.values()]

    def listed(self) -> list[Tool]:
        """Return the tools as a client sees them."""
        return list(self._listed)

    def input_schema(self, name: str) -> dict[str, Any] | None:
        """Return the JSON schema of a tool's arguments; `None` where there is no such tool."""
        description = self._descriptions.get(name)
        return None if description is None else schema_of(description)

    def backends_of(self, name: str) -> list[str]:
        """Return the backends that can serve a tool; none where there is no such tool."""
        description = self._descriptions.get(name)
        return [] if description is None else list(description.parameters["properties"]["backend"]["enum"])

    async def call(self, name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Call a tool as a client asks for it.

        Raises:
            MCPError: There is no such tool.
        """
        if name not in self._descriptions:
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown tool. Available: {list(self._descriptions)}.")
        told = await self.ask(name, arguments)
        return CallToolResult(
            content=[TextContent(text=told.text)],
            structured_content={"result": told.text, "outcome": told.outcome, "records": told.records},
            is_error=not told.answered,
        )

    async def ask(self, name: str, arguments: Mapping[str, Any]) -> Told:
        """Call a tool that there is, for whom the agent acts."""
        with self._acting(), heard() as events:
            text = await aanswer(self._descriptions[name], arguments)
        if not events:  # The tool failed before the router could tell of it.
            return Told(text, "error", 0)
        return Told(text, events[-1].outcome, events[-1].rows)

    def _acting(self) -> AbstractContextManager[Identity | None]:
        if self._identity is None:
            return nullcontext()
        return acting_as(self._identity.principal, tenant=self._identity.tenant, roles=self._identity.roles)


def _as_tool(description: ToolDescription, builder: KnowledgeBuilder) -> Tool:
    return Tool(
        name=description.name,
        description=description.description,
        input_schema={**schema_of(description), "additionalProperties": False},
        output_schema=dict(_OUTPUT_SCHEMA),
        annotations=_annotations(description, builder),
    )


def _annotations(description: ToolDescription, builder: KnowledgeBuilder) -> ToolAnnotations:
    """Return hints that hold for every call.

    A write may replace a record of the same id, and a statement may do whatever its store lets it. Text stored again changes
    nothing, as the contract asks for; a statement may. What is asked are the deployment's own stores: a closed world.
    """
    statements = any(each.capabilities.writable and each.capabilities.query_language for each in builder.backends)
    return ToolAnnotations(
        read_only_hint=description.read_only,
        destructive_hint=not description.read_only,
        idempotent_hint=description.read_only or not statements,
        open_world_hint=False,
    )
