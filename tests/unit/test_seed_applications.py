"""Applications written for seed 002, with the import prefix mapped: own backend, router, agent (A20, A21)."""

import types
from typing import Any

import pytest
from agentkernel_kb_langgraph import LangGraphToolBuilder
from agentkernel_kb_openai import OpenAIToolBuilder
from agents import Agent, FunctionTool

from agentkernel_kb import AKConfigError, KnowledgeBase, KnowledgeCapabilities, KnowledgeCapabilityError, Record
from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.knowledgebuilder import KnowledgeBuilder
from agentkernel_kb.testing import FakeKnowledgeBase


class Store:
    """A third party's storage client."""

    def __init__(self):
        self.kept = []

    def store(self, text, metadata):
        self.kept.append(types.SimpleNamespace(text=text, meta=metadata))

    def search(self, query, top_k):
        return [kept for kept in self.kept if query in kept.text][:top_k]


class MyBackend(KnowledgeBase):
    """The seed's minimal backend: three members, the declared operations, nothing else; connected by its owner."""

    def __init__(self):
        super().__init__(
            capabilities=KnowledgeCapabilities(kinds=["vector"], search=True, search_mode="semantic", writable=True),
        )

    @property
    def backend_name(self):
        return "MyBackend"

    def connect(self, **kwargs):
        self._client = Store()

    def write(self, records, **kwargs):
        for record in records:
            self._client.store(record["text"], record.get("metadata", {}))

    def search(self, query, limit=3, **kwargs) -> list[Record]:
        return [{"text": found.text, "metadata": found.meta} for found in self._client.search(query, top_k=limit)]

    def get_description(self):
        return "MyBackend stores domain-specific knowledge."


def my_backend():
    backend = MyBackend().add_schema({"description": "Domain knowledge store", "usage": "Call read_kb with plain words."})
    backend.connect()
    return backend


def test_a21_an_own_backend_is_exposed_through_the_same_tools():
    tools = {tool.__name__: tool for tool in KnowledgeBuilder([my_backend()]).build()}
    assert list(tools) == ["get_schemas", "read_kb", "write_kb", "get_all_kb_descriptions", "search_kb"]
    assert tools["write_kb"]("MyBackend", text="Acme moved to Oslo.", source="mail") == "Written to 'MyBackend'."
    assert tools["read_kb"]("MyBackend", "Acme") == "- Acme moved to Oslo. (source: mail)"
    assert tools["search_kb"]("MyBackend", "nobody") == "No relevant knowledge found."


def test_a21_a_backend_that_was_never_connected_fails_in_words():
    tools = KnowledgeBuilder([MyBackend()]).build()
    assert "'MyBackend' failed on search (AttributeError)" in tools[1]("MyBackend", "Acme")


def test_a21_what_an_own_backend_does_not_declare_raises():
    with pytest.raises(KnowledgeCapabilityError, match="'MyBackend' does not support fetch"):
        my_backend().fetch(["x"])


def test_a3_a_schema_that_is_no_mapping_is_an_error():
    ellipsis: Any = {...}
    with pytest.raises(AKConfigError, match="takes a mapping, not set"):
        MyBackend().add_schema(ellipsis)


@pytest.fixture
def router(tmp_path):
    vectors = ChromaManager(str(tmp_path), "ChromaDB", embedding_function=HashEmbedder()).add_schema(
        {"description": "Vector store"}
    )
    lake = FakeKnowledgeBase("StarburstDB-mongo", search=False, query_language="sql").add_schema({"description": "Lake"})
    lake.on("query", lambda statement, **kwargs: [{"text": statement, "metadata": {}}])
    semantic_map = {
        "<SHEETS_SOURCE>": "TABLE(kb_sheets.system.sheet(id => 'SHEET_ID'))",
        "<MONGO_SOURCE>": "catalog.schema.clients",
    }
    with KnowledgeBuilder([vectors, lake], semantic_map=semantic_map) as builder:
        yield builder


def test_a10_the_statement_that_reaches_the_backend_is_the_seeds_own_replacement(router):
    query = "SELECT client_name, status FROM <MONGO_SOURCE> WHERE status = 'active' LIMIT 5"
    resolved = query.replace("<MONGO_SOURCE>", "catalog.schema.clients")
    assert router.build()[1]("StarburstDB-mongo", query) == f"- {resolved} (source: N/A)"


def test_a20_the_tools_are_wired_into_an_agent(router):
    agent = Agent(name="KB_Router_Agent", instructions=router.instructions(), tools=OpenAIToolBuilder.bind(router.build()))
    assert [tool.name for tool in agent.tools] == ["get_schemas", "read_kb", "write_kb", "get_all_kb_descriptions", "search_kb"]
    assert all(isinstance(tool, FunctionTool) for tool in agent.tools)
    assert [tool.name for tool in LangGraphToolBuilder.bind(router.build())] == [tool.name for tool in agent.tools]


def test_a20_the_prompt_says_what_the_seeds_prompt_says(router):
    prompt = router.instructions()
    for words in ("get_schemas", "read_kb", "write_kb", "StarburstDB-mongo can only be read", "<MONGO_SOURCE>"):
        assert words in prompt
