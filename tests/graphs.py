"""People and cities in the embedded graph, for the tests of it in more than one file."""

from __future__ import annotations

from typing import Any

from agentkernel_kb import Record
from agentkernel_kb.ladybug import LadybugManager

RUNAWAY = "UNWIND range(1, 1000) AS a UNWIND range(1, 1000) AS b UNWIND range(1, 1000) AS c RETURN sum(a * b * c)"
SCHEMA = (
    "CREATE NODE TABLE Person(name STRING PRIMARY KEY, age INT64, born DATE, wage DECIMAL(10, 2), badge UUID, leave INTERVAL, "
    "face FLOAT[40], tags STRING[], place STRUCT(street STRING, zip INT64), scores MAP(STRING, INT64), seen TIMESTAMP)",
    "CREATE NODE TABLE City(name STRING PRIMARY KEY, `land area` DOUBLE)",
    "CREATE REL TABLE KNOWS(FROM Person TO Person, since INT64)",
    "CREATE REL TABLE LIVES_IN(FROM Person TO City)",
)
CONTENT = (
    "CREATE (:Person {name: 'Ann', age: 41, born: date('1983-02-11'), wage: 5200.50, tags: ['a', 'b'], "
    "badge: uuid('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), leave: interval('25 days'), scores: map(['go'], [3]), "
    "place: {street: 'High Street', zip: 8001}, seen: timestamp('2024-05-01 10:00:00'), "
    f"face: [{', '.join(['0.5'] * 40)}]}})",
    "CREATE (:Person {name: 'Bob', age: 37})",
    "CREATE (:Person {name: 'Cem', age: 29})",
    "CREATE (:City {name: 'Bern', `land area`: 51.6})",
    "MATCH (a:Person {name: 'Ann'}), (b:Person {name: 'Bob'}) CREATE (a)-[:KNOWS {since: 2010}]->(b)",
    "MATCH (a:Person {name: 'Cem'}), (b:Person {name: 'Bob'}) CREATE (a)-[:KNOWS {since: 2018}]->(b)",
    "MATCH (a:Person {name: 'Ann'}), (c:City) CREATE (a)-[:LIVES_IN]->(c)",
)


def record(statement: str, **parameters: Any) -> Record:
    return {"text": "", "metadata": {"query": statement, "params": parameters}}


def fill(graph: LadybugManager) -> LadybugManager:
    graph.write([record(statement) for statement in SCHEMA + CONTENT])
    return graph


def rows(graph: LadybugManager, statement: str, limit: int = 100) -> list[dict[str, Any]]:
    return [found["metadata"]["row"] for found in graph.query(statement, limit=limit)]
