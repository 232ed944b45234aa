"""The shipped suite run on a real Neo4j server, with labels of its own (A12, A21)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from agentkernel_kb import KnowledgeBase, Record
from agentkernel_kb.neo4j import Neo4jManager
from agentkernel_kb.testing import KnowledgeBaseContract
from servers import PASSWORD, Server

pytestmark = pytest.mark.server("neo4j")
PERSON = f"Person{uuid.uuid4().hex[:12]}"
INDEX = f"of_{PERSON}"
PEOPLE = (
    f"CREATE (:{PERSON} {{name: 'Ann', age: 41, note: 'repairs bicycles and lamps'}})",
    f"CREATE (:{PERSON} {{name: 'Bob', age: 37, note: 'sells bicycles'}})",
    f"CREATE (:{PERSON} {{name: 'Cem', age: 29, note: 'paints houses'}})",
    f"CREATE (:{PERSON} {{name: 'Dee', age: 53, note: 'rides bicycles'}})",
    f"MATCH (a:{PERSON} {{name: 'Ann'}}), (b:{PERSON} {{name: 'Bob'}}) CREATE (a)-[:KNOWS {{since: 2019}}]->(b)",
)


def write(graph: Neo4jManager, *statements: str) -> None:
    graph.write([{"text": "", "metadata": {"query": statement}} for statement in statements])


@pytest.fixture(scope="module", autouse=True)
def people(neo4j_server: Server) -> Iterator[None]:
    GraphContract.url = neo4j_server.url
    graph = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD)
    write(graph, f"CREATE FULLTEXT INDEX {INDEX} FOR (p:{PERSON}) ON EACH [p.note]")
    yield
    write(graph, f"DROP INDEX {INDEX}", f"MATCH (p:{PERSON}) DETACH DELETE p")
    graph.close()


class GraphContract(KnowledgeBaseContract):
    url: ClassVar[str]
    index: ClassVar[str | None] = None
    read_statement, read_expects = f"MATCH (p:{PERSON}) RETURN p.name AS name, p.age AS age ORDER BY name", "Ann"
    empty_statement = f"MATCH (p:{PERSON}) WHERE p.age > 200 RETURN p"
    bad_statement = f"MATCH (p:{PERSON}) RETURN q"
    write_statements: ClassVar[Sequence[str]] = (
        f"CREATE (:{PERSON} {{name: 'Eve'}})",
        f"MATCH (p:{PERSON}) SET p.age = 0 RETURN p",
        f"MATCH (p:{PERSON}) DETACH DELETE p",
        f"MATCH (p:{PERSON}) RETURN p; CREATE INDEX FOR (p:{PERSON}) ON (p.age)",
        f"MATCH (p:{PERSON}) CALL (p) {{ SET p.age = 1 }} IN TRANSACTIONS",
        f"EXPLAIN MERGE (:{PERSON} {{name: 'Eve'}})",
        "CALL dbms.components()",
        "SHOW USERS",
    )
    new_record: ClassVar[Record] = {
        "text": "Eve joined the graph.",
        "metadata": {
            "query": f"MERGE (p:{PERSON} {{name: $name}}) SET p.age = $age",
            "params": {"name": "Eve", "age": 61},
        },
    }

    def make_backend(self, tmp_path: Path) -> KnowledgeBase:
        graph = Neo4jManager(self.url, "neo4j", PASSWORD, name="people", search_index=self.index)
        write(graph, f"MATCH (p:{PERSON}) DETACH DELETE p", *PEOPLE)
        return graph

    def find_written(self, backend: KnowledgeBase) -> Sequence[Record]:
        return backend.query(f"MATCH (p:{PERSON} {{age: 61}}) RETURN p.name")

    def count_records(self, answer: str) -> int:
        """Rows are a table with two lines above them; records without rows are listed."""
        lines = answer.split("\n")
        return len(lines) - 2 if lines[0].startswith("| ") else super().count_records(answer)


class TestNeo4jManager(GraphContract):
    declares = frozenset({"query", "guard", "write"})


class TestSearchedNeo4jManager(GraphContract):
    """With a full-text index; what is written by statement is found by statement, as such an index follows later."""

    declares = frozenset({"query", "guard", "write", "search"})
    index = INDEX
    search_query, search_expects = "repairs lamps", "repairs bicycles and lamps"
