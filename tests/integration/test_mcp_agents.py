"""Several agents behind one MCP server: each is known by its token, and learns nothing of what is not its own (X11)."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from mcp_serving import FIRST_TOKEN, JSON_HEADERS, SECOND_TOKEN, connected, initialize, serving, session_of, tool_call

from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.router.access import Access
from agentkernel_kb.serve.mcp import HTTPSettings, ServedAgent, http_app
from agentkernel_kb.testing import FakeKnowledgeBase

SECRET = "vault"  # The name of a backend that the first agent may know nothing of.


@pytest.fixture
def url() -> Iterator[str]:
    """Two agents that share one backend; a further one is the second agent's alone."""
    shared = FakeKnowledgeBase("handbook", [{"text": "Refunds.", "metadata": {"id": "1"}}], fetch=True, writable=True)
    vault = FakeKnowledgeBase(SECRET, [{"text": "Codes.", "metadata": {"id": "1"}}], fetch=True)
    reads, all_of_it = frozenset(("search", "fetch")), frozenset(("search", "fetch", "write"))
    first = KnowledgeBuilder([shared, vault], access=Access("first", {"handbook": reads}))
    second = KnowledgeBuilder([shared, vault], access=Access("second", {"handbook": all_of_it, SECRET: reads}))
    agents = [ServedAgent("first", first, [FIRST_TOKEN, "another-token-of-it"]), ServedAgent("second", second, SECOND_TOKEN)]
    with first, second, serving(agents) as address:
        yield address


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_each_token_opens_what_is_its_agents(url: str, mode: str) -> None:
    shown: dict[str, set[str]] = {}
    for token in (FIRST_TOKEN, "another-token-of-it", SECOND_TOKEN):
        async with connected(url, token, mode=mode) as client:
            shown[token] = {resource.uri for resource in (await client.list_resources()).resources}
    assert shown[FIRST_TOKEN] == shown["another-token-of-it"] == {"kb://schemas/handbook"}
    assert shown[SECOND_TOKEN] == {"kb://schemas/handbook", f"kb://schemas/{SECRET}"}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_agent_cannot_learn_that_a_backend_exists(url: str, mode: str) -> None:
    said: list[str] = []
    async with connected(url, FIRST_TOKEN, mode=mode) as client:
        said.append(client.instructions or "")
        listed = [await client.list_tools(), await client.list_resources(), await client.list_resource_templates()]
        said += [page.model_dump_json() for page in listed]
        for name in ("get_schemas", "get_all_kb_descriptions"):
            said.append((await client.call_tool(name)).model_dump_json())
        for backend in (SECRET, "volta"):  # One that is there, and one that is not: the same answer.
            answers = [await client.call_tool("search_kb", {"backend": backend, "query": "x"})]
            answers += [await client.call_tool("fetch_kb", {"backend": backend, "ids": "1"})]
            answers += [await client.call_tool("write_kb", {"backend": backend, "text": "x"})]
            said += [answer.model_dump_json().replace(backend, "…") for answer in answers]
            for uri in (f"kb://{backend}/1", f"kb://schemas/{backend}"):
                with pytest.raises(MCPError) as caught:
                    await client.read_resource(uri)
                said.append(str(caught.value))
    assert [text for text in said if SECRET in text] == []
    assert said[-10:-5] == said[-5:]


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer wrong-token-of-nobody",
        f"Bearer {FIRST_TOKEN}x",
        f"Basic {FIRST_TOKEN}",
        "Bearer \xff",
    ],
)
async def test_without_a_token_of_an_agent_nothing_is_served(url: str, authorization: str | None) -> None:
    headers = JSON_HEADERS if authorization is None else {**JSON_HEADERS, "authorization": authorization}
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    async with httpx2.AsyncClient(timeout=30) as http:
        for method in ("POST", "GET", "DELETE"):
            answer = await http.request(method, url, headers=raw, content=json.dumps(initialize()))
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer ")
            assert "first" not in answer.text
            assert "mcp-session-id" not in answer.headers


async def test_a_session_of_another_agent_is_not_there(url: str) -> None:
    async with httpx2.AsyncClient(timeout=30) as http:
        http.headers["authorization"] = f"Bearer {SECOND_TOKEN}"
        headers = await session_of(http, url)
        call = tool_call("search_kb", {"backend": SECRET, "query": "codes"})
        assert "Codes." in (await http.post(url, json=call, headers=headers)).text
        http.headers["authorization"] = f"Bearer {FIRST_TOKEN}"
        stolen = await http.post(url, json=call, headers=headers)
        invented = await http.post(url, json=call, headers={**headers, "mcp-session-id": "0" * 32})
    assert stolen.status_code == invented.status_code == 404
    assert stolen.text == invented.text


async def test_no_token_is_logged_or_shown(url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("httpcore", "httpcore2", "httpx", "httpx2", "asyncio"):  # The client's own, which sends it.
        caplog.set_level(logging.CRITICAL, logger=name)
    async with connected(url, FIRST_TOKEN, mode="legacy") as client:
        await client.call_tool("get_schemas")
    async with httpx2.AsyncClient() as http:
        await http.post(url, headers={**JSON_HEADERS, "authorization": "Bearer some-wrong-token-1"}, json=initialize())
    assert FIRST_TOKEN not in caplog.text
    assert "some-wrong-token" not in caplog.text
    assert FIRST_TOKEN not in repr(ServedAgent("first", KnowledgeBuilder([FakeKnowledgeBase()]), FIRST_TOKEN))


def agent(name: str = "one", *tokens: str) -> ServedAgent:
    return ServedAgent(name, KnowledgeBuilder([FakeKnowledgeBase()]), tokens)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "kb.example.com"])
def test_what_others_can_reach_is_refused_without_a_token(host: str) -> None:
    settings = HTTPSettings(host=host, allowed_hosts=["kb.example.com"])
    with pytest.raises(AKConfigError, match="give each a token"):
        http_app(agent(), settings)
    http_app(agent("one", FIRST_TOKEN), settings)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
def test_on_loopback_one_agent_may_do_without(host: str) -> None:
    http_app(agent(), HTTPSettings(host=host))


@pytest.mark.parametrize(
    ("agents", "fault"),
    [
        ([], "There is no agent"),
        ([agent("one", FIRST_TOKEN), agent("two")], r"these have none: \['two'\]"),
        ([agent("one", FIRST_TOKEN), agent("one", SECOND_TOKEN)], "called 'one'"),
        ([agent("one", FIRST_TOKEN), agent("two", FIRST_TOKEN)], "'one' and 'two' have a token in common"),
        (["one"], "must be a ServedAgent, not str"),
        (7, "not int"),
    ],
)
def test_agents_that_cannot_be_told_apart_are_refused(agents: object, fault: str) -> None:
    with pytest.raises(AKConfigError, match=fault) as caught:
        http_app(agents)  # pyright: ignore[reportArgumentType] - What an untyped caller hands over.
    assert FIRST_TOKEN not in str(caught.value)


@pytest.mark.parametrize("token", ["", "short", "with space in the middle", "line\nbreak-of-a-token", "ümlaut-of-a-token", 7])
def test_what_cannot_be_a_bearer_token_is_refused_and_not_repeated(token: object) -> None:
    with pytest.raises(AKConfigError, match="A token of the agent 'one' is not one") as caught:
        ServedAgent("one", KnowledgeBuilder([FakeKnowledgeBase()]), [token])  # pyright: ignore[reportArgumentType]
    assert not token or str(token) not in str(caught.value)
