"""The demo's stores from one file: who may do what, and the same file on servers (X10, X6)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import build_stores
import pytest

from agentkernel_kb.config import Configuration, check, load

FILE = Path(build_stores.__file__).parent / "kb.yaml"
SERVERS = {
    "KB_DEMO_POSTGRES_URL": "postgresql+psycopg://reader@localhost:15432/kb",
    "KB_DEMO_NEO4J_URL": "neo4j://localhost:17687",
    "KB_DEMO_NEO4J_PASSWORD": "not-used-here",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stores") / "data"
    assert build_stores.build(folder)
    return folder


@pytest.fixture
def configuration(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Configuration]:
    monkeypatch.setenv("KB_DEMO_DATA", str(folder))
    monkeypatch.delenv("AGENTKERNEL_KB_ENV", raising=False)
    with load(FILE) as configuration:
        yield configuration


def tools(configuration: Configuration, agent: str) -> dict[str, Callable[..., str]]:
    return {tool.__name__: tool for tool in configuration.tools(agent)}


def test_x10_the_file_has_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SERVERS.items():
        monkeypatch.setenv(name, value)
    assert check(FILE) == []
    assert check(FILE, env="servers") == []


def test_x10_every_store_answers_the_agent_that_may_read_all(configuration: Configuration) -> None:
    own = tools(configuration, "Travel_Agent")
    assert "Norway" in own["read_kb"]("places", "SELECT name FROM <COUNTRIES> WHERE capital = 'Oslo'")
    assert "Sweden" in own["read_kb"](
        "borders", "MATCH (:Country {name: 'Norway'})-[:NEIGHBOURS]-(c:Country) RETURN c.name AS name"
    )
    assert "2000" in own["read_kb"]("trips", "SELECT count(*) AS trips FROM trips").replace(",", "")
    assert "handbook" in own["search_kb"]("handbook", "Who approves a trip?") or "rov" in own["search_kb"](
        "handbook", "approve"
    )
    assert "write_kb" not in own


def test_x6_an_agent_sees_its_own_stores_alone(configuration: Configuration) -> None:
    own = tools(configuration, "Controller")
    assert list(json.loads(own["get_schemas"]())) == ["trips"]
    assert "search_kb" not in own
    assert own["read_kb"]("handbook", "SELECT 1") == own["read_kb"]("nothing", "SELECT 1").replace("nothing", "handbook")


def test_x6_the_editor_writes_to_the_handbook_and_nowhere_else(configuration: Configuration) -> None:
    own = tools(configuration, "Handbook_Editor")
    assert own["write_kb"]("handbook", "Umbrellas\n\nAn umbrella is paid for.").startswith("Written to 'handbook'.")
    assert "mbrella" in own["search_kb"]("handbook", "umbrella")
    assert "Backends that do: ['handbook']" in own["write_kb"]("places", "Atlantis")


def test_building_again_changes_nothing(folder: Path) -> None:
    assert not build_stores.build(folder)
