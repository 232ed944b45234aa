"""The corpora (X20) are large and explained, and their runner sees what goes wrong; their engines: `test_corpora_of_*.py`."""

from __future__ import annotations

import socket
import sqlite3
import threading
from collections import Counter
from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from corpora import runner
from corpora.runner import (
    Item,
    dialects,
    load,
    prove_attacks,
    prove_reads,
    run_attacks,
    run_reads,
    run_unguarded,
    unguarded_of,
    world_of,
)

from agentkernel_kb import KnowledgeBase, KnowledgeCapabilities, KnowledgeGuardError, KnowledgeTimeoutError, Record

FEWEST = 100
STOP = threading.Event()


@pytest.mark.parametrize("dialect", dialects())
def test_the_corpora_are_large_distinct_and_explained(dialect: str) -> None:
    attacks, reads = load(dialect, "attacks"), load(dialect, "reads")
    assert min(len(attacks), len(reads)) >= FEWEST
    repeated = [text for text, count in Counter(item.statement.strip() for item in attacks + reads).items() if count > 1]
    assert repeated == []
    assert [item for item in attacks + reads if not item.reason.strip()] == []


def test_all_but_the_embedded_graph_are_run_without_the_guard_too() -> None:
    assert {each for each in dialects() if unguarded_of(world_of(each)) is None} == {"ladybug"}


# The runner itself, on a store without any lock.


class Careless(KnowledgeBase):
    """Does whatever it is told."""

    def __init__(self, path: Path) -> None:
        super().__init__(KnowledgeCapabilities(query=True, query_language="sql"))
        self._path = path

    @property
    def backend_name(self) -> str:
        return "careless"

    def connect(self, **kwargs: Any) -> None:
        """There is nothing to connect to."""

    def get_description(self) -> str:
        return "careless does whatever it is told"

    def check_read(self, statement: str, *, allow: Collection[str] = ()) -> None:
        if statement == "no":
            raise KnowledgeGuardError("No")

    def query(self, statement: str, limit: int = 3, *, timeout: float = 30.0, **kwargs: Any) -> list[Record]:
        return [{"text": act(self._path, statement), "metadata": {}}]


def act(path: Path, command: str) -> str:
    verb, _, argument = command.partition(" ")
    match verb:
        case "sql":
            with closing(sqlite3.connect(path)) as connection:
                connection.execute(argument)
                connection.commit()
        case "read":
            return Path(argument).read_text()
        case "write":
            Path(argument).write_text("x")
        case "call":
            socket.create_connection(("127.0.0.1", int(argument))).close()
        case "spin":
            threading.Thread(target=spin, daemon=True).start()
            raise KnowledgeTimeoutError("time is out")
        case "wait":
            raise KnowledgeTimeoutError("time is out")
        case "refuse":
            raise KnowledgeGuardError("This statement is refused by the store itself")
        case _:
            raise RuntimeError(argument)
    return "done"


def spin() -> None:
    while not STOP.is_set():
        pass


class CarelessWorld:
    def build(self, folder: Path) -> Path:
        path = folder / "careless.db"
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
        return path

    def open_backend(self, path: Path) -> KnowledgeBase:
        return Careless(path)

    def fingerprint(self, path: Path) -> str:
        with closing(sqlite3.connect(path)) as connection:
            return "".join(connection.iterdump())

    def run_unguarded(self, path: Path, statement: str) -> str:
        return act(path, statement)


@pytest.mark.parametrize(
    ("attack", "expected"),
    [
        ("sql SELECT 1", ["accepted"]),
        ("sql DELETE FROM t", ["changed", "accepted"]),
        ("sql CREATE TABLE u (a)", ["changed", "accepted"]),
        ("read {canary}", ["leaked", "accepted"]),
        ("write {canary}", ["changed", "accepted"]),
        ("write new.txt", ["changed", "accepted"]),
        ("write store/new.txt", ["changed", "accepted"]),
        ("call {port}", ["connected", "accepted"]),
        ("wait", []),
        ("refuse this", []),
        ("no", ["unexplained"]),
        ("fail", ["broken"]),
    ],
)
def test_the_runner_sees_what_an_attack_does(tmp_path: Path, attack: str, expected: list[str]) -> None:
    report = run_attacks(CarelessWorld(), [Item(attack, "a test")], tmp_path)
    assert [fault.kind for fault in report.faults] == expected


def test_the_runner_sees_work_that_goes_on_after_a_time_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "GROSS_SECONDS", 1.0)
    monkeypatch.setattr(runner, "PATIENCE_SECONDS", 0.0)
    STOP.clear()
    try:
        report = run_attacks(CarelessWorld(), [Item("spin", "a test")], tmp_path)
    finally:
        STOP.set()
    assert [fault.kind for fault in report.faults] == ["overran"]


def test_past_the_guard_the_runner_tells_what_was_answered_and_what_it_did(tmp_path: Path) -> None:
    attacks = ["sql DELETE FROM t", "sql SELECT 1", "refuse this", "fail"]
    report = run_unguarded(CarelessWorld(), [Item(attack, "a test") for attack in attacks], tmp_path)
    assert report.answered == attacks[:2]
    assert [(fault.kind, fault.statement) for fault in report.faults] == [("changed", attacks[0])]


def test_a_read_that_is_not_answered_counts(tmp_path: Path) -> None:
    report = run_reads(CarelessWorld(), [Item("sql SELECT 1", ""), Item("no", ""), Item("fail", "")], tmp_path)
    assert ([statement for statement, _ in report.refused], report.reads) == (["no", "fail"], 3)


def test_where_there_is_no_engine_the_guard_alone_decides() -> None:
    both = [Item("SELECT 1", ""), Item("DELETE FROM t", "")]
    assert [(fault.kind, fault.statement) for fault in prove_attacks("sqlite", both).faults] == [("accepted", "SELECT 1")]
    assert [statement for statement, _ in prove_reads("sqlite", both).refused] == ["DELETE FROM t"]
