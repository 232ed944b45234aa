"""What the official client gets from the MCP server, over each transport and in each form of the protocol (X11, X17)."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import jsonschema
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_serving import STDIO, connected, serving
from mcp_types import CallToolResult, TextContent, TextResourceContents, ToolAnnotations

from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.binding import schema_of
from agentkernel_kb.identity import Identity
from agentkernel_kb.serve.mcp import ServedAgent, mcp_server
from agentkernel_kb.testing import FakeKnowledgeBase
from agentkernel_kb.testing.house import CALLS, House, described, new_house
from agentkernel_kb.testing.portable import portability_faults

FAILURES: list[tuple[str, Mapping[str, Any], str]] = [
    ("search_kb", {"backend": "nowhere", "query": "x"}, "unknown_backend"),
    ("fetch_kb", {"backend": "notes", "ids": "1"}, "undeclared"),
    ("search_kb", {"backend": "handbook", "query": "x", "limit": "many"}, "bad_argument"),
    ("search_kb", {"backend": "handbook"}, "bad_argument"),
    ("search_kb", {"backend": "handbook", "query": "x", "more": 1}, "bad_argument"),
    ("read_kb", {"backend": "ledger", "query": "it's"}, "rejected"),
]
UNREADABLE = (
    "kb://handbook/none",
    "kb://nowhere/1",
    "kb://ledger/1",
    "kb://schemas/nowhere",
    "kb://handbook/",
    "kb://handbook",
    "x:y",
)

Connect = Callable[[], AbstractAsyncContextManager[Client]]


@pytest.fixture
def address() -> Iterator[str]:
    """The house, served over HTTP."""
    house = new_house()
    with house.builder, serving(house.builder) as url:
        yield url


@pytest.fixture(params=["stdio", "http", "http legacy"])
def connect(request: pytest.FixtureRequest) -> Connect:
    """Connect to a server of the house."""
    mode = "legacy" if "legacy" in request.param else "auto"
    if request.param.startswith("http"):
        url: str = request.getfixturevalue("address")
        return lambda: connected(url, mode=mode)
    return lambda: Client(STDIO)


@pytest.fixture
def house() -> Iterator[House]:
    """The same house in this process, to compare with."""
    house = new_house()
    with house.builder:
        yield house


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def test_tools_are_listed_with_their_schemas_and_hints(connect: Connect, house: House) -> None:
    async with connect() as client:
        listed = (await client.list_tools()).tools
    descriptions = [described(tool) for tool in house.tools(is_async=False)]
    assert [tool.name for tool in listed] == [description.name for description in descriptions]
    assert [tool.description for tool in listed] == [description.description for description in descriptions]
    assert [tool.input_schema for tool in listed] == [
        {**schema_of(description), "additionalProperties": False} for description in descriptions
    ]
    shown = [{"name": tool.name, "description": tool.description, "parameters": tool.input_schema} for tool in listed]
    assert portability_faults(shown) == []
    for tool in listed:
        assert tool.annotations == ToolAnnotations(
            read_only_hint=tool.name != "write_kb",
            destructive_hint=tool.name == "write_kb",
            idempotent_hint=True,
            open_world_hint=False,
        )


async def test_every_tool_answers_as_in_process_with_structured_content_that_fits(connect: Connect, house: House) -> None:
    async with connect() as client:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        for name, arguments in CALLS.items():
            result = await client.call_tool(name, dict(arguments))
            assert text_of(result) == described(house.tool(name)).call(**arguments)
            assert result.is_error is False
            assert result.structured_content["result"] == text_of(result)
            jsonschema.validate(result.structured_content, schemas[name] or False)


async def test_a_failure_is_an_error_with_the_sentence_and_its_outcome(connect: Connect, house: House) -> None:
    async with connect() as client:
        for name, arguments, outcome in FAILURES:
            result = await client.call_tool(name, dict(arguments))
            assert result.is_error is True
            assert text_of(result) == described(house.tool(name)).call(**arguments)
            assert result.structured_content == {"result": text_of(result), "outcome": outcome, "records": 0}


async def test_nothing_found_is_no_error(connect: Connect) -> None:
    async with connect() as client:
        result = await client.call_tool("fetch_kb", {"backend": "handbook", "ids": "none"})
    assert result.is_error is False
    assert result.structured_content["outcome"] == "empty"


async def test_an_unknown_tool_is_an_error_of_the_protocol(connect: Connect) -> None:
    async with connect() as client:
        with pytest.raises(MCPError, match=r"Unknown tool\. Available: \['get_schemas', "):
            await client.call_tool("drop_kb", {})


async def test_schemas_are_resources(connect: Connect, house: House) -> None:
    async with connect() as client:
        listed = {resource.uri: resource.mime_type for resource in (await client.list_resources()).resources}
        assert listed == dict.fromkeys(
            ["kb://schemas/handbook", "kb://schemas/ledger", "kb://schemas/notes"], "application/json"
        )
        (content,) = (await client.read_resource("kb://schemas/ledger")).contents
    assert isinstance(content, TextResourceContents)
    assert json.loads(content.text) == json.loads(described(house.tool("get_schemas")).call())["ledger"]


async def test_documents_are_read_through_a_template_where_they_can_be_fetched(connect: Connect, house: House) -> None:
    async with connect() as client:
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "kb://handbook/{id}"
        for uri in ("kb://handbook/rules/refunds", "kb://handbook/rules%2Frefunds"):
            (content,) = (await client.read_resource(uri)).contents
            assert isinstance(content, TextResourceContents)
            assert content.text == described(house.tool("fetch_kb")).call("handbook", "rules/refunds")


async def test_what_is_not_there_and_what_may_not_be_known_are_one_case(connect: Connect) -> None:
    async with connect() as client:
        for uri in [*UNREADABLE, "x:y"]:
            with pytest.raises(MCPError, match=r"^Resource not found\.$"):
                await client.read_resource(uri)


async def test_the_client_is_told_how_to_route(connect: Connect, house: House) -> None:
    async with connect() as client:
        assert client.instructions == house.builder.instructions()


@asynccontextmanager
async def in_process(agent: ServedAgent | KnowledgeBuilder) -> AsyncGenerator[Client]:
    async with Client(mcp_server(agent)) as client:
        yield client


async def hints_of_writing(backend: FakeKnowledgeBase) -> ToolAnnotations | None:
    async with in_process(KnowledgeBuilder([backend])) as client:
        return next(tool.annotations for tool in (await client.list_tools()).tools if tool.name == "write_kb")


async def test_a_write_by_statement_may_do_something_each_time() -> None:
    hints = await hints_of_writing(FakeKnowledgeBase("graph", query_language="cypher", writable=True))
    assert hints is not None
    assert hints.idempotent_hint is False


async def test_an_agent_that_only_reads_has_no_tool_that_writes() -> None:
    agent = ServedAgent("reader", KnowledgeBuilder([FakeKnowledgeBase(writable=True)]), writable=False)
    async with in_process(agent) as client:
        tools = (await client.list_tools()).tools
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        assert client.instructions == agent.builder.instructions(writable=False)


async def test_a_backend_whose_name_is_no_part_of_an_address_is_read_all_the_same() -> None:
    shelf = FakeKnowledgeBase("my shelf/ä", [{"text": "A lamp.", "metadata": {"id": "lämp 1"}}], fetch=True)
    async with in_process(KnowledgeBuilder([shelf])) as client:
        (template,) = (await client.list_resource_templates()).resource_templates
        uri = template.uri_template.replace("{id}", "l%C3%A4mp%201")
        (content,) = (await client.read_resource(uri)).contents
        (schema,) = (await client.list_resources()).resources
        await client.read_resource(schema.uri)
    assert isinstance(content, TextResourceContents)
    assert "A lamp." in content.text


async def test_a_backend_called_schemas_hides_no_schema() -> None:
    odd = FakeKnowledgeBase("schemas", [{"text": "x", "metadata": {"id": "schemas"}}], fetch=True)
    async with in_process(KnowledgeBuilder([odd])) as client:
        assert (await client.list_resource_templates()).resource_templates == []
        (content,) = (await client.read_resource("kb://schemas/schemas")).contents
    assert isinstance(content, TextResourceContents)
    assert json.loads(content.text)["backend"] == "schemas"


async def test_a_resource_that_cannot_be_read_says_why_and_nothing_confidential() -> None:
    shelf = FakeKnowledgeBase("shelf", fetch=True).on("fetch", RuntimeError("postgres://user:secret@host"))
    async with in_process(KnowledgeBuilder([shelf])) as client:
        with pytest.raises(MCPError, match=r"^The resource could not be read\.$"):
            await client.read_resource("kb://shelf/1")


async def test_a_long_document_is_bounded_as_any_answer_is() -> None:
    shelf = FakeKnowledgeBase("shelf", [{"text": "x" * 1_000_000, "metadata": {"id": "1"}}], fetch=True)
    async with in_process(KnowledgeBuilder([shelf])) as client:
        (content,) = (await client.read_resource("kb://shelf/1")).contents
    assert isinstance(content, TextResourceContents)
    assert len(content.text) <= 20_000
    assert content.text.startswith("Partial: one record, cut at 20,000 characters.")


async def test_calls_act_for_whom_the_agent_is_served() -> None:
    orders = FakeKnowledgeBase("orders", requires_identity=True)
    agent = ServedAgent("alice", KnowledgeBuilder([orders]), identity=Identity("alice", tenant="acme", roles=("reader",)))
    async with in_process(agent) as client:
        await client.call_tool("search_kb", {"backend": "orders", "query": "all"})
    assert orders.acted_for == [Identity("alice", tenant="acme", roles=("reader",))]
