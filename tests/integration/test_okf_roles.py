"""Agents get their role on each bundle from configuration alone (A18, X6)."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentkernel_kb import LocalDocumentStore
from agentkernel_kb.config import OKFConfiguration, load_okf
from agentkernel_kb.errors import AKConfigError

CONCEPT = "---\ntype: Policy\ntitle: {title}\ndescription: What {title} is.\n---\n\nThe whole text of {title}.\n"


class OwnStore(LocalDocumentStore):
    """A store of the application: its uri is a folder with `own:` in front."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri.removeprefix("own:"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for bundle in ("warehouse", "policies"):
        (tmp_path / bundle).mkdir()
        (tmp_path / bundle / "refunds.md").write_text(CONCEPT.format(title=f"Refunds of {bundle}"))
    return tmp_path


def written(folder: Path, **databases: Any) -> Path:
    path = folder / "config.yaml"
    path.write_text(json.dumps({"okf": {"databases": databases}}))
    return path


@pytest.fixture
def configuration(folder: Path):
    path = written(
        folder,
        warehouse={
            "type": "local",
            "uri": "./warehouse",
            "producer": ["Ingest"],
            "consumer": ["Support"],
            "description": "Tables.",
        },
        policies={"type": "local", "uri": "./policies", "consumer": ["Ingest"], "curator": ["Steward"]},
    )
    with load_okf(path) as loaded:
        yield loaded


def tools(configuration: OKFConfiguration, agent: str) -> dict[str, Callable[..., str]]:
    return {tool.__name__: tool for tool in configuration.tools_for(agent)}


READS = {"get_schemas", "get_all_kb_descriptions", "read_kb", "search_kb", "fetch_kb", "browse_kb"}


@pytest.mark.parametrize(
    ("agent", "names"), [("Support", READS), ("Ingest", READS | {"write_kb"}), ("Steward", READS | {"write_kb"})]
)
def test_a18_each_role_gets_its_tools(configuration: OKFConfiguration, agent: str, names: set[str]):
    assert set(tools(configuration, agent)) == names


def test_a18_an_agent_in_no_database_gets_no_tools_and_no_prompt(configuration: OKFConfiguration):
    assert configuration.tools_for("Stranger") == []
    assert configuration.async_tools_for("Stranger") == []
    assert configuration.instructions_for("Stranger") == ""


def test_a18_a_write_where_the_agent_only_reads_names_where_it_may_write(configuration: OKFConfiguration):
    answer = tools(configuration, "Ingest")["write_kb"]("policies", "A new rule")
    assert answer == "Agent 'Ingest' has read-only access to 'policies'. Knowledge bases it may write to: ['warehouse']."


def test_a18_a_write_where_the_agent_may_is_there_at_the_next_call(configuration: OKFConfiguration, folder: Path):
    ingest = tools(configuration, "Ingest")
    assert ingest["write_kb"]("warehouse", "Orders of 2026\n\nOne row per order.").startswith("Written to 'warehouse'.")
    assert "Orders of 2026" in ingest["search_kb"]("warehouse", "orders")
    assert list((folder / "warehouse" / "generated").glob("*.md"))


def test_a18_a_database_without_a_role_is_not_there(configuration: OKFConfiguration):
    support = tools(configuration, "Support")
    assert support["read_kb"]("policies", "refunds").startswith("Unknown backend 'policies'. Available: ['warehouse'].")
    assert list(json.loads(support["get_schemas"]())) == ["warehouse"]
    assert "policies" not in support["get_all_kb_descriptions"]()
    assert "policies" not in configuration.instructions_for("Support")


def test_x6_an_agent_sees_in_the_schema_what_it_may_do(configuration: OKFConfiguration):
    schemas = json.loads(tools(configuration, "Ingest")["get_schemas"]())
    assert [schemas[name]["capabilities"]["writable"] for name in ("warehouse", "policies")] == [True, False]


def test_a18_making_agents_opens_nothing(folder: Path):
    path = written(folder, later={"type": "local", "uri": "./later", "producer": ["A"]})
    with load_okf(path) as configuration:
        assert "write_kb" in tools(configuration, "A")
        assert "later" in configuration.instructions_for("A")
        (folder / "later").mkdir()
        (folder / "later" / "x.md").write_text(CONCEPT.format(title="Later"))
        assert "[x.md]" in tools(configuration, "A")["search_kb"]("later", "later")


def test_a18_a_bundle_that_cannot_be_opened_is_a_sentence_and_is_tried_again(folder: Path):
    with load_okf(written(folder, gone={"type": "local", "uri": "./gone", "consumer": ["A"]})) as configuration:
        search = tools(configuration, "A")["search_kb"]
        assert "gone" in search("gone", "anything")
        (folder / "gone").mkdir()
        (folder / "gone" / "x.md").write_text(CONCEPT.format(title="Found"))
        assert "[x.md]" in search("gone", "found")


def test_a18_agents_share_one_manager_per_database(configuration: OKFConfiguration):
    first, second = (configuration.builder_for(agent) for agent in ("Support", "Ingest"))
    assert first is not None
    assert second is not None
    assert first.backends[0] is second.backends[0]


def test_a18_roles_differ_in_what_they_are_told(configuration: OKFConfiguration):
    told = {agent: configuration.instructions_for(agent) for agent in ("Support", "Ingest", "Steward")}
    assert "can't change" in told["Support"]
    assert "add what you learn" in told["Ingest"]
    assert "can't change" in told["Ingest"]
    assert "stale, wrong" in told["Steward"]
    assert "- warehouse: Tables." in told["Support"]


def test_a18_a_read_only_store_with_a_writer_is_a_warning_when_it_is_opened(folder: Path, caplog: pytest.LogCaptureFixture):
    path = written(
        folder, locked={"type": f"{__name__}.ReadOnlyStore", "uri": str(folder / "policies"), "producer": ["Ingest"]}
    )
    with load_okf(path) as configuration, caplog.at_level(logging.WARNING, "agentkernel_kb"):
        ingest = tools(configuration, "Ingest")
        assert not caplog.records
        assert "[refunds.md]" in ingest["search_kb"]("locked", "refunds")
        (record,) = caplog.records
        assert "'locked'" in record.getMessage()
        assert "Ingest" in record.getMessage()
        assert ingest["write_kb"]("locked", "New").startswith("Backend 'locked' does not support write.")


class ReadOnlyStore(LocalDocumentStore):
    """A folder that is not written to."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri, writable=False)


def test_a18_a_type_may_be_a_store_class_of_the_application(folder: Path):
    path = written(folder, own={"type": f"{__name__}.OwnStore", "uri": f"own:{folder / 'policies'}", "consumer": ["A"]})
    with load_okf(path) as configuration:
        assert "[refunds.md]" in tools(configuration, "A")["browse_kb"]("own")


def test_a18_a_store_class_that_is_not_there_is_told_at_first_use(folder: Path):
    path = written(folder, own={"type": "no.such.Store", "uri": "x", "consumer": ["A"]})
    with load_okf(path) as configuration:
        assert "no.such.Store" in tools(configuration, "A")["browse_kb"]("own")


def test_a18_tools_of_the_same_names_are_warned_about(configuration: OKFConfiguration, caplog: pytest.LogCaptureFixture):
    def read_kb() -> str:
        return ""

    with caplog.at_level(logging.WARNING, "agentkernel_kb"):
        given = configuration.tools_for("Support", existing=[read_kb, "fetch_kb", "other"])
    assert len(given) == len(READS)
    assert "['read_kb', 'fetch_kb']" in caplog.text


async def test_a18_the_tools_come_as_coroutines_too(configuration: OKFConfiguration):
    (search,) = [tool for tool in configuration.async_tools_for("Support") if tool.__name__ == "search_kb"]
    assert "[refunds.md]" in await search("warehouse", "refunds")


def test_a18_a_file_without_a_block_is_an_error(tmp_path: Path):
    (tmp_path / "config.yaml").write_text("thread: {}\n")
    with pytest.raises(AKConfigError, match="no okf: block"):
        load_okf(tmp_path / "config.yaml")


def test_a18_closing_closes_the_bundles(configuration: OKFConfiguration):
    search = tools(configuration, "Support")["search_kb"]
    search("warehouse", "refunds")
    configuration.close()
    configuration.close()
    assert "closed" in search("warehouse", "refunds")
