"""A `kb.yaml` is loaded for one environment, opens what is used when it is used, and shows no secret (X10)."""

from __future__ import annotations

import inspect
import json
import logging
import os
import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentkernel_kb.config import Configuration, ConfigurationError, check, load
from agentkernel_kb.config.standing import standing_for
from agentkernel_kb.errors import AKConfigError, KnowledgeConnectionError
from agentkernel_kb.registry import BUILT_IN, backend_class
from agentkernel_kb.testing import FakeKnowledgeBase

PASSWORD = "correct-horse-battery"


class Down(FakeKnowledgeBase):
    """A backend of the application whose store is not there when it is made."""

    def __init__(self, name: str = "down") -> None:
        super().__init__(name)
        if not os.environ.get("KB_TEST_IS_UP"):
            raise KnowledgeConnectionError("The store of 'down' is not there.")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.delenv("AGENTKERNEL_KB_ENV", raising=False)
    for name in ("one", "two"):
        with sqlite3.connect(tmp_path / f"{name}.db") as connection:
            connection.execute("CREATE TABLE facts (word TEXT)")
            connection.execute("INSERT INTO facts VALUES (?)", [name])
        connection.close()
    return tmp_path


def written(folder: Path, content: dict[str, Any]) -> Path:
    path = folder / "kb.yaml"
    path.write_text(json.dumps(content))
    return path


def ask(loaded: Configuration, backend: str, statement: str = "SELECT word FROM <FACTS>") -> str:
    tools: dict[str, Callable[..., str]] = {tool.__name__: tool for tool in loaded.tools()}
    return tools["read_kb"](backend, statement)


TWO = {
    "backends": {"shop": {"type": "sql", "url": "sqlite:///one.db"}},
    "semantic_map": {"<FACTS>": "facts"},
    "environments": {"prod": {"backends": {"shop": {"url": "sqlite:///two.db"}}, "limits": {"seconds": 5}}},
}


def test_x10_the_base_is_loaded_where_no_environment_is_named(folder: Path):
    with load(written(folder, TWO)) as loaded:
        assert "one" in ask(loaded, "shop")
        assert (loaded.env, loaded.environments) == (None, ("prod",))


def test_x10_an_environment_is_laid_over_the_base(folder: Path):
    with load(written(folder, TWO), env="prod") as loaded:
        assert "two" in ask(loaded, "shop")


def test_x10_a_variable_names_the_environment_and_code_counts_more(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AGENTKERNEL_KB_ENV", "prod")
    with load(written(folder, TWO)) as loaded:
        assert loaded.env == "prod"
    monkeypatch.setenv("AGENTKERNEL_KB_ENV", "elsewhere")
    with load(written(folder, TWO), env="prod") as loaded:
        assert loaded.env == "prod"


def test_x10_an_unknown_environment_names_the_nearest(folder: Path):
    with pytest.raises(AKConfigError, match=r"there is no environment 'prd'\. Did you mean 'prod'\? Declared: prod\."):
        load(written(folder, TWO), env="prd")


def test_x10_relative_paths_are_relative_to_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir("/")
    with load(written(folder, TWO)) as loaded:
        assert "one" in ask(loaded, "shop")


def test_x10_a_mapping_is_loaded_as_a_file_is(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder)
    with load(TWO, env="prod") as loaded:
        assert loaded.file == "configuration"
        assert "two" in ask(loaded, "shop")


def test_x10_what_is_not_there_yet_is_opened_when_it_is_used(folder: Path):
    with load(written(folder, {"backends": {"shop": {"type": "sql", "url": "sqlite:///later.db"}}})) as loaded:
        assert "no SQLite database" in ask(loaded, "shop", "SELECT word FROM facts")
        (folder / "one.db").rename(folder / "later.db")
        assert "one" in ask(loaded, "shop", "SELECT word FROM facts")


def test_x10_eager_is_opened_when_it_is_loaded_unless_all_is_to_be_lazy(folder: Path):
    path = written(folder, {"backends": {"shop": {"type": "sql", "url": "sqlite:///later.db", "connect": "eager"}}})
    with pytest.raises(AKConfigError, match=r"There is no SQLite database"):
        load(path)
    load(path, lazy=True).close()


def test_x10_check_opens_nothing(folder: Path):
    backends = {
        "graph": {"type": "ladybug", "path": "./graph.lbug"},
        "notes": {"type": "chroma", "persist_path": "./notes", "connect": "eager"},
        "down": {"type": f"python:{Path(__file__).stem}:Down"},
    }
    path = written(folder, {"backends": backends})
    assert check(path) == []
    assert sorted(each.name for each in folder.iterdir()) == ["kb.yaml", "one.db", "two.db"]


def test_x10_a_backend_that_cannot_be_made_has_a_stand_in_where_all_is_lazy(folder: Path, monkeypatch: pytest.MonkeyPatch):
    path = written(folder, {"backends": {"down": {"type": f"python:{Path(__file__).stem}:Down"}}})
    with pytest.raises(ConfigurationError, match=r"kb\.yaml:1: backends\.down: The store of 'down' is not there\."):
        load(path)
    with load(path, lazy=True) as loaded:
        assert [str(fault.severity) for fault in loaded.warnings] == ["warning"]
        search = {tool.__name__: tool for tool in loaded.tools()}["search_kb"]
        assert "down" in search("down", "x")
        monkeypatch.setenv("KB_TEST_IS_UP", "1")
        assert "Nothing" in search("down", "x") or "No " in search("down", "x")


@pytest.mark.parametrize(
    "options",
    [
        {"type": "neo4j", "uri": "neo4j://localhost:1", "user": "neo4j", "password": "${KB_TEST_PASSWORD}"},
        {"type": "neo4j", "uri": "neo4j://localhost:1", "user": "neo4j", "password": PASSWORD},
        {"type": "sql", "url": f"postgresql+psycopg://shop:{PASSWORD}@localhost:1/shop"},
        {"type": "sql", "url": "postgresql+psycopg://shop:${KB_TEST_PASSWORD}@localhost:1/shop"},
        {"type": "chroma", "host": "localhost", "port": 1, "headers": {"Authorization": f"Bearer {PASSWORD}"}},
        {"type": "sql", "url": f"nonsense://shop:{PASSWORD}@localhost:1/shop"},
        {"type": "sql", "url": "nonsense://shop:${KB_TEST_PASSWORD}@localhost:1/shop"},
        {"type": "neo4j", "uri": "neo4j://localhost:1", "password": "${KB_TEST_PASSWORD}", "described": PASSWORD},
        {"type": "chroma", "distance": "${KB_TEST_PASSWORD}"},
        {"type": "${KB_TEST_PASSWORD}"},
    ],
)
def test_x10_no_secret_is_shown_anywhere(
    folder: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setenv("KB_TEST_PASSWORD", PASSWORD)
    path = written(folder, {"backends": {"store": options}, "on_failure": {"attempts": 1}, "limits": {"seconds": 3}})
    shown: list[object] = [check(path)]
    with caplog.at_level(logging.INFO):
        try:
            with load(path) as loaded:
                shown += [loaded, loaded.backends, loaded.warnings, loaded.instructions(), ask(loaded, "store", "SELECT 1")]
                shown += [loaded.builder, vars(loaded)]
        except AKConfigError as error:
            shown.append(error)
    assert PASSWORD not in f"{shown!r} {shown} {caplog.text}"


def test_x10_what_is_declared_is_shown_as_it_was_written(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KB_TEST_FILE", "one.db")
    backends = {"shop": {"type": "sql", "url": "sqlite:///${KB_TEST_FILE}", "description": "Facts."}}
    with load(written(folder, {"backends": backends})) as loaded:
        shop = loaded.backends["shop"]
        assert (shop.type, dict(shop.options), shop.description) == ("sql", {"url": "sqlite:///${KB_TEST_FILE}"}, "Facts.")


def test_x10_a_variable_that_only_another_environment_needs_is_a_warning_there(folder: Path):
    prod = {"backends": {"shop": {"url": "${KB_TEST_NOT_SET}"}}}
    path = written(folder, {**TWO, "environments": {"prod": prod}})
    assert [(fault.severity, fault.key) for fault in check(path)] == [("warning", "environments.prod.backends.shop.url")]
    assert [fault.severity for fault in check(path, env="prod")] == ["error"]
    load(path).close()


def test_x10_numbers_and_truth_values_come_from_variables_too(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KB_TEST_ROWS", "1")
    content = {
        **TWO,
        "limits": {"rows": "${KB_TEST_ROWS}", "seconds": "${KB_TEST_SECONDS:-4.5}"},
        "telemetry": "${KB_T:-false}",
    }
    with load(written(folder, content)) as loaded:
        assert "Partial: 1 of more than 1 row" in ask(loaded, "shop", "SELECT word FROM facts UNION ALL SELECT 'b'")


def test_x10_errors_travel_between_processes(folder: Path):
    with pytest.raises(ConfigurationError) as caught:
        load(written(folder, {"backends": {"shop": {"type": "sqll"}}}))
    copied = pickle.loads(pickle.dumps(caught.value))
    assert (str(copied), copied.faults) == (str(caught.value), caught.value.faults)


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_x10_a_stand_in_takes_the_arguments_of_what_it_stands_for(name: str):
    kind = backend_class(name)
    stand_in = standing_for(kind)
    for member in ("search", "query", "fetch", "browse", "write", "add", "check_read", "aquery", "asearch"):
        assert inspect.signature(getattr(stand_in, member)) == inspect.signature(getattr(kind, member)), member


@pytest.mark.parametrize(
    "options",
    [
        {"type": "ladybug", "path": ":memory:", "isolate": False},
        {"type": "sql", "url": "sqlite:///one.db", "isolate": False},
        {"type": "okf", "uri": "./book", "index": ":memory:"},
        {"type": "chroma", "persist_path": "./notes", "embedding_function": "hash"},
    ],
    ids=lambda options: options["type"],
)
def test_x10_what_is_declared_before_a_backend_is_open_holds_when_it_is(folder: Path, options: dict[str, Any]):
    (folder / "book").mkdir()
    with load(written(folder, {"backends": {"store": options}})) as loaded:
        (backend,) = loaded.builder.backends
        before = backend.capabilities
        backend.connect()
        assert backend.capabilities == before


def test_x10_closed_is_closed_for_every_agent(folder: Path):
    agents = {"One": {"shop": "consumer"}, "Two": {"shop": "consumer"}}
    with load(written(folder, {**TWO, "agents": agents})) as loaded:
        tools = [tool for agent in agents for tool in loaded.tools(agent) if tool.__name__ == "read_kb"]
        assert all("one" in tool("shop", "SELECT word FROM <FACTS>") for tool in tools)
    assert all("closed" in tool("shop", "SELECT word FROM <FACTS>") for tool in tools)
    loaded.close()


def test_x10_a_language_that_nothing_stems_is_a_fault(tmp_path: Path):
    (tmp_path / "kb.yaml").write_text("backends:\n  handbook:\n    type: knowledge\n    language: englsh\n", "utf-8")
    (fault,) = check(tmp_path / "kb.yaml")
    assert (fault.severity, fault.line, fault.key) == ("error", 4, "backends.handbook.language")
    assert "Did you mean 'english'?" in fault.message


def test_x10_a_model_that_is_not_there_is_a_warning_since_it_may_be_when_it_is_used(tmp_path: Path):
    (tmp_path / "kb.yaml").write_text("backends:\n  handbook:\n    type: knowledge\n    embedder: onnx:models\n", "utf-8")
    (fault,) = check(tmp_path / "kb.yaml")
    assert (fault.severity, fault.line, fault.key) == ("warning", 4, "backends.handbook.embedder")
    assert f"there is no model at {tmp_path / 'models'}" in fault.message
    with load(tmp_path / "kb.yaml") as loaded:
        assert list(loaded.backends) == ["handbook"]
