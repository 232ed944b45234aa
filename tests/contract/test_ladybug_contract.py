"""The shipped suite run on an embedded graph, in a file and read-only (X15, X1, A21)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from agentkernel_kb import KnowledgeBase, Record
from agentkernel_kb.ladybug import LadybugManager
from agentkernel_kb.testing import KnowledgeBaseContract

STATEMENTS = (
    "CREATE NODE TABLE Person(name STRING PRIMARY KEY, age INT64)",
    "CREATE REL TABLE KNOWS(FROM Person TO Person, since INT64)",
    "CREATE (:Person {name: 'Ann', age: 41})",
    "CREATE (:Person {name: 'Bob', age: 37})",
    "CREATE (:Person {name: 'Cem', age: 29})",
    "CREATE (:Person {name: 'Dee', age: 53})",
    "MATCH (a:Person {name: 'Ann'}), (b:Person {name: 'Bob'}) CREATE (a)-[:KNOWS {since: 2019}]->(b)",
)


def make_graph(path: Path) -> LadybugManager:
    graph = LadybugManager(path, name="people", threads=1)
    graph.write([{"text": "", "metadata": {"query": statement}} for statement in STATEMENTS])
    return graph


class GraphContract(KnowledgeBaseContract):
    read_statement = "MATCH (p:Person) RETURN p.name AS name, p.age AS age ORDER BY name"
    read_expects = "Ann"
    empty_statement = "MATCH (p:Person) WHERE p.age > 200 RETURN p"
    bad_statement = "MATCH (p:Person) RETURN p.nmae"
    write_statements: ClassVar[Sequence[str]] = (
        "CREATE (:Person {name: 'Eve'})",
        "MATCH (p:Person) SET p.age = 0 RETURN p",
        "MATCH (p:Person) DETACH DELETE p",
        "MATCH (p:Person) RETURN p; DROP TABLE KNOWS",
        "COPY (MATCH (p:Person) RETURN p) TO 'people.csv'",
    )

    def count_records(self, answer: str) -> int:
        """Rows are a table with two lines above them; records without rows are listed."""
        lines = answer.split("\n")
        return len(lines) - 2 if lines[0].startswith("| ") else super().count_records(answer)


class TestLadybugManager(GraphContract):
    declares = frozenset({"query", "guard", "write"})
    new_record: ClassVar[Record] = {
        "text": "Eve joined the graph.",
        "metadata": {"query": "MERGE (p:Person {name: $name}) SET p.age = $age", "params": {"name": "Eve", "age": 61}},
    }

    def make_backend(self, tmp_path: Path) -> KnowledgeBase:
        return make_graph(tmp_path / "people.lbug")

    def find_written(self, backend: KnowledgeBase) -> Sequence[Record]:
        return backend.query("MATCH (p:Person {age: 61}) RETURN p.name")


class TestReadOnlyLadybugManager(GraphContract):
    declares = frozenset({"query", "guard"})

    def make_backend(self, tmp_path: Path) -> KnowledgeBase:
        make_graph(tmp_path / "people.lbug").close()
        return LadybugManager(tmp_path / "people.lbug", name="people", read_only=True, threads=1)
