"""One file says what each agent may do, and what it may not do is not there for it (X6, X10)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentkernel_kb.config import Configuration, ConfigurationError, load
from agentkernel_kb.model import describe
from agentkernel_kb.testing import FakeKnowledgeBase

SECRETIVE = "payroll"
CONCEPT = "---\ntype: Policy\ntitle: Refunds\n---\n\nRefunds take 30 days.\n"
READS = {"get_schemas", "get_all_kb_descriptions", "read_kb"}


class Scoped(FakeKnowledgeBase):
    """A backend of the application that keeps to row scopes."""

    def __init__(self, name: str = "scoped") -> None:
        records = [
            {"text": f"Orders of {tenant}.", "metadata": {"id": f"{tenant}-1", "tenant": tenant}}
            for tenant in ("acme", "other")
        ]
        super().__init__(name, records, fetch=True, writable=True, filters=True)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("AGENTKERNEL_KB_ENV", raising=False)
    for name in ("shop", SECRETIVE):
        with sqlite3.connect(tmp_path / f"{name}.db") as connection:
            connection.execute("CREATE TABLE facts (word TEXT)")
            connection.execute("INSERT INTO facts VALUES (?)", [name])
        connection.close()
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "refunds.md").write_text(CONCEPT)
    return tmp_path


def configuration(folder: Path, **sections: Any) -> Path:
    content: dict[str, Any] = {
        "backends": {
            "shop": {"type": "sql", "url": "sqlite:///shop.db", "description": "What we sell."},
            SECRETIVE: {"type": "sql", "url": f"sqlite:///{SECRETIVE}.db", "description": "Salaries."},
            "book": {"type": "okf", "uri": "./book", "description": "Policies."},
        },
        **sections,
    }
    path = folder / "kb.yaml"
    path.write_text(json.dumps(content))
    return path


def tools(loaded: Configuration, agent: str | None) -> dict[str, Callable[..., str]]:
    return {tool.__name__: tool for tool in loaded.tools(agent)}


AGENTS = {"Support": {"shop": "consumer", "book": "producer"}, "Auditor": {SECRETIVE: {"operations": ["query"]}}}


def test_x6_an_agent_has_the_tools_of_its_roles(folder: Path):
    with load(configuration(folder, agents=AGENTS)) as loaded:
        assert set(tools(loaded, "Support")) == READS | {"search_kb", "fetch_kb", "browse_kb", "write_kb"}
        assert set(tools(loaded, "Auditor")) == READS
        assert loaded.agents == ("Support", "Auditor")


@pytest.mark.parametrize("agent", [None, "Stranger", "", "support"])
def test_x6_where_agents_are_named_anybody_else_gets_nothing(folder: Path, agent: str | None):
    with load(configuration(folder, agents=AGENTS)) as loaded:
        assert (loaded.tools(agent), loaded.async_tools(agent), loaded.instructions(agent)) == ([], [], "")
        assert loaded.builder_for(agent) is None


def test_x6_where_no_agents_are_named_the_application_gets_everything(folder: Path):
    with load(configuration(folder)) as loaded:
        assert "shop" in tools(loaded, None)["read_kb"]("shop", "SELECT word FROM facts")
        assert set(json.loads(tools(loaded, None)["get_schemas"]())) == {"shop", SECRETIVE, "book"}
        assert SECRETIVE in loaded.instructions()


def calls(own: dict[str, Callable[..., str]], backend: str) -> list[str]:
    """Call every tool on a backend, and return the answers with its name taken out."""
    answers = [
        own["read_kb"](backend, "SELECT 1"),
        own["search_kb"](backend, "word"),
        own["fetch_kb"](backend, "a"),
        own["browse_kb"](backend, ""),
        own["write_kb"](backend, "text"),
        own["write_kb"](backend, "", query="DELETE FROM facts"),
        own["search_kb"](backend, "word", limit="many"),
        own["read_kb"](backend, "SELECT * FROM <NOTHING>"),
    ]
    return [answer.replace(backend, "?") for answer in answers]


def test_x6_a_forbidden_backend_and_one_that_does_not_exist_give_the_same_answers(folder: Path):
    with load(configuration(folder, agents=AGENTS)) as loaded:
        own = tools(loaded, "Support")
        assert calls(own, SECRETIVE) == calls(own, "numbers")


def test_x6_nothing_an_agent_sees_names_a_backend_in_which_it_has_no_role(folder: Path):
    with load(configuration(folder, agents=AGENTS)) as loaded:
        own = tools(loaded, "Support")
        seen = [loaded.instructions("Support"), own["get_schemas"](), own["get_all_kb_descriptions"]()]
        for tool in [*loaded.tools("Support"), *loaded.async_tools("Support")]:
            description = describe(tool)
            assert description is not None
            seen += [description.description, json.dumps(dict(description.parameters)), str(tool.__doc__)]
        seen += [own["read_kb"]("nothing", "x"), own["write_kb"]("shop", "x"), own["fetch_kb"]("shop", "x")]
        assert SECRETIVE not in "\n".join(seen)
        assert "Salaries" not in "\n".join(seen)


def test_x6_a_row_scope_holds_for_an_agent_that_has_one(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    path = folder / "kb.yaml"
    agents = {"Acme": {"orders": {"role": "consumer", "filters": {"tenant": "acme"}}}, "Owner": {"orders": "consumer"}}
    own_type = f"python:{Path(__file__).stem}:Scoped"
    path.write_text(json.dumps({"backends": {"orders": {"type": own_type}}, "agents": agents}))
    with load(path) as loaded:
        found = tools(loaded, "Acme")["search_kb"]("orders", "orders", limit=9)
        assert "acme-1" in found
        assert "other-1" not in found
        assert "other-1" in tools(loaded, "Owner")["search_kb"]("orders", "orders", limit=9)
        assert "other" not in tools(loaded, "Acme")["fetch_kb"]("orders", "other-1").replace("other-1", "")


def test_x6_a_row_scope_on_a_backend_that_keeps_to_none_names_both(folder: Path):
    agents = {"Acme": {"shop": {"filters": {"tenant": "acme"}}}}
    with pytest.raises(ConfigurationError, match=r"agents\.Acme\.shop\.filters: agent 'Acme' has filters on 'shop'"):
        load(configuration(folder, agents=agents))


def test_x6_a_row_scope_that_a_backend_can_not_filter_by_is_a_fault_of_the_file_and_opens_nothing(tmp_path: Path):
    (tmp_path / "kb.yaml").write_text(
        "backends:\n  notes: {type: chroma, persist_path: ./notes, embedding_function: hash}\n"
        "agents:\n  Acme:\n    notes:\n      filters: {'#embedding': qzx}\n"
    )
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path / "kb.yaml")
    assert f"{tmp_path}/kb.yaml:6: agents.Acme.notes.filters: 'notes' can't filter by '#embedding'" in str(caught.value)
    assert "qzx" not in str(caught.value)
    assert not (tmp_path / "notes").exists()


def test_x6_bundles_of_an_okf_block_keep_their_roles_in_the_same_router(folder: Path):
    okf = {"databases": {"wiki": {"type": "local", "uri": "./book", "consumer": ["Support"], "curator": ["Editor"]}}}
    with load(configuration(folder, agents=AGENTS, okf=okf)) as loaded:
        assert loaded.agents == ("Support", "Auditor", "Editor")
        assert set(json.loads(tools(loaded, "Support")["get_schemas"]())) == {"shop", "book", "wiki"}
        assert "Support' has read-only access to 'wiki'" in tools(loaded, "Support")["write_kb"]("wiki", "x")
        assert list(json.loads(tools(loaded, "Editor")["get_schemas"]())) == ["wiki"]


def test_x6_a_bundle_is_closed_to_agents_without_a_role_even_where_no_agents_are_named(folder: Path):
    okf = {"databases": {"wiki": {"type": "local", "uri": "./book", "consumer": ["Support"]}}}
    with load(configuration(folder, okf=okf)) as loaded:
        assert set(json.loads(tools(loaded, "Stranger")["get_schemas"]())) == {"shop", SECRETIVE, "book"}
        assert "wiki" in json.loads(tools(loaded, "Support")["get_schemas"]())


def test_x10_instructions_hold_what_the_file_says_and_what_the_role_asks(folder: Path):
    agents = {"Support": {**AGENTS["Support"], "instructions": "Answer in one sentence."}}
    with load(configuration(folder, agents=agents)) as loaded:
        prompt = loaded.instructions("Support")
        assert prompt.startswith("Answer in one sentence.\n\n")
        assert "What we sell." in prompt
        assert prompt.endswith("after a search shows that it is not there yet: book.")


async def test_x10_async_tools_work_and_the_configuration_closes_asynchronously(folder: Path):
    async with load(configuration(folder, agents=AGENTS)) as loaded:
        own = {tool.__name__: tool for tool in loaded.async_tools("Support")}
        assert "shop" in await own["read_kb"]("shop", "SELECT word FROM facts")
        assert "30 days" in await own["fetch_kb"]("book", "refunds.md")
    assert "closed" in await own["read_kb"]("shop", "SELECT word FROM facts")
