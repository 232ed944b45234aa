"""The SDK's server of one agent: its tools and resources, and nothing of any other agent's."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from mcp.server import Server, ServerRequestContext
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
)

from agentkernel_kb.serve.mcp.agent import ServedAgent
from agentkernel_kb.serve.mcp.leaving import while_there
from agentkernel_kb.serve.mcp.resources import Resources
from agentkernel_kb.serve.mcp.tools import Tools

_Context = ServerRequestContext[Any, Any]
_NAME = "agentkernel-kb"


def make_server(agent: ServedAgent) -> Server[Any]:
    """Return a server that offers what the agent may use."""
    tools = Tools(agent)
    resources = Resources(agent.builder, tools)

    async def list_tools(_context: _Context, _page: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=tools.listed())

    async def call_tool(context: _Context, call: CallToolRequestParams) -> CallToolResult:
        return await while_there(context.request, lambda: tools.call(call.name, call.arguments or {}))

    async def list_resources(_context: _Context, _page: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(resources=resources.listed())

    async def list_templates(_context: _Context, _page: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=resources.templates())

    async def read_resource(context: _Context, wanted: ReadResourceRequestParams) -> ReadResourceResult:
        return await while_there(context.request, lambda: resources.read(wanted.uri))

    return Server(
        _NAME,
        version=_version(),
        title="Knowledge bases",
        instructions=agent.builder.instructions(writable=agent.writable),
        get_tool_input_schema=tools.input_schema,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


def _version() -> str:
    try:
        return version(_NAME)
    except PackageNotFoundError:  # A checkout that is not installed.
        return ""
