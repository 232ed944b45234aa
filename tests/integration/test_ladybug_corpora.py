"""The Cypher corpora: what the guard refuses by itself, and what the engine keeps from writing by itself (X20, X1)."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from agentkernel_kb import KnowledgeError, KnowledgeGuardError
from agentkernel_kb.guard.cypher import check_read_only_cypher
from agentkernel_kb.ladybug.database import GraphDatabase
from agentkernel_kb.ladybug.runner import Runner

CORPORA = Path(__file__).parents[1] / "corpora"
BY_THE_GUARD_ALONE = ("Stalls", "Crashes")
BY_THE_TIME_LIMIT = "that the time limit has to stop."
BY_ITS_PROCESS = "its own process."


def load(kind: str) -> dict[str, str]:
    """Return the reasons of a corpus by statement."""
    entries = yaml.safe_load((CORPORA / f"ladybug.{kind}.yaml").read_text(encoding="utf-8"))
    corpus = {entry["statement"]: entry["reason"] for entry in entries}
    assert len(corpus) == len(entries), "a statement stands there twice"
    return corpus


ATTACKS, READS = load("attacks"), load("reads")


@pytest.fixture(scope="module")
def world() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ladybug_world", CORPORA / "ladybug_world.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_corpora_are_large_and_give_reasons() -> None:
    for kind, corpus in (("attacks", ATTACKS), ("reads", READS)):
        assert len(corpus) >= 110, kind
        assert all(len(reason.split()) >= 2 and reason.endswith((".", "?")) for reason in corpus.values())


def test_the_guard_alone_stops_every_attack_but_those_on_time_and_on_the_engine_itself() -> None:
    accepted = [statement for statement in ATTACKS if guard_accepts(statement)]
    assert {ATTACKS[statement].endswith((BY_THE_TIME_LIMIT, BY_ITS_PROCESS)) for statement in accepted} == {True}
    assert sum(ATTACKS[statement].endswith(BY_THE_TIME_LIMIT) for statement in accepted) == 2


def guard_accepts(statement: str) -> bool:
    try:
        check_read_only_cypher(statement, engine="ladybug")
    except KnowledgeGuardError:
        return False
    return True


@pytest.fixture(params=[False, True], ids=["read transaction", "read-only database"])
def unguarded(request: pytest.FixtureRequest, world: ModuleType, tmp_path: Path) -> Iterator[tuple[Path, Runner]]:
    """The engine past the guard, in both ways in which the backend opens it."""
    path = world.build(tmp_path)
    runner = Runner(GraphDatabase(path, "x", read_only=request.param, max_memory_bytes=256_000_000, threads=1), "x")
    yield path, runner
    runner.close()


def test_the_engine_alone_keeps_every_attack_from_writing(
    unguarded: tuple[Path, Runner], world: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past the guard, files are read and written; the graph itself stays as it is, and goes on answering."""
    path, runner = unguarded
    content = contents(runner)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "canary.csv").write_text("word\ncanary\n")
    before = world.fingerprint(path)
    for statement, reason in ATTACKS.items():
        if reason.startswith(BY_THE_GUARD_ALONE) or reason.endswith(BY_ITS_PROCESS):
            continue
        send(runner, statement.replace("{canary}", str(tmp_path / "canary.csv")).replace("{port}", "9"))
        assert world.fingerprint(path) == before, statement
        assert runner.fetch("MATCH (p:Person) RETURN count(*)", 2, 10).rows == [[5]], statement
    runner.close()
    again = Runner(GraphDatabase(path, "x", read_only=True, max_memory_bytes=256_000_000, threads=1), "x")
    assert contents(again) == content
    again.close()


def contents(runner: Runner) -> list[str]:
    """Return all data and the schema as text: the files themselves change whenever the database is closed."""
    statements = [
        "CALL show_tables() RETURN *",
        "CALL show_macros() RETURN *",
        "CALL show_sequences() RETURN *",
        "CALL show_indexes() RETURN *",
        "MATCH (n) RETURN n",
        "MATCH (a)-[r]->(b) RETURN a, r, b",
    ]
    statements += [
        f"CALL table_info('{row[0]}') RETURN *" for row in runner.fetch("CALL show_tables() RETURN name", 99, 5).rows
    ]
    return sorted(str(row) for statement in statements for row in runner.fetch(statement, 1_000, 5).rows)


def send(runner: Runner, statement: str) -> None:
    try:
        runner.fetch(statement, 10, 1.0)
    except KnowledgeError:
        return


def test_every_read_is_accepted_runs_and_is_shown(world: ModuleType, tmp_path: Path) -> None:
    graph = world.open_backend(world.build(tmp_path))
    for statement in READS:
        found = graph.query(statement, limit=50)
        assert found, statement
        assert graph.format_results(found).count("\n") >= 2
    graph.close()
