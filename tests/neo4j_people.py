"""The people whom several test files ask a Neo4j server about, under names that only this process uses."""

from __future__ import annotations

import uuid
from collections.abc import Generator
from contextlib import closing, contextmanager
from typing import Any

import neo4j

from agentkernel_kb import Record
from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.neo4j import Neo4jManager
from servers import PASSWORD, Server

RUN = uuid.uuid4().hex[:12]
PERSON, CITY, KNOWS = f"Person{RUN}", f"Lone City {RUN}", f"KNOWS{RUN}"
NOTES, FACES = f"notes{RUN}", f"faces{RUN}"
RUNAWAY = "UNWIND range(1, 1000) AS a UNWIND range(1, 1000) AS b UNWIND range(1, 1000) AS c RETURN sum(a * b * c)"
SECRET = "hunter2canary"
EMBED = HashEmbedder(64)
_PEOPLE = [("Ann", 41, "repairs bicycles"), ("Bob", 37, "sells bicycles and lamps"), ("Cem", 29, "paints houses")]


def record(statement: str, **parameters: Any) -> Record:
    """Return what makes `write` run a statement."""
    return {"text": "", "metadata": {"query": statement, "params": parameters}}


def rows(graph: Neo4jManager, statement: str, limit: int = 100) -> list[dict[str, Any]]:
    """Return the rows of a statement by column."""
    return [found["metadata"]["row"] for found in graph.query(statement, limit)]


@contextmanager
def people(server: Server) -> Generator[Neo4jManager]:
    """Make the people, their indexes and a lonely city, give a backend that is called `people`, and remove them in the end."""
    with closing(Neo4jManager(server.url, "neo4j", PASSWORD, name="people")) as graph:
        graph.write([*map(record, _INDEXES), *map(_person, _PEOPLE), *map(record, _OTHERS)])
        with neo4j.GraphDatabase.driver(server.url, auth=("neo4j", PASSWORD)) as driver:
            driver.execute_query("CALL db.awaitIndexes(60)")
        yield graph
        graph.write(list(map(record, _REMOVALS)))


def _person(person: tuple[str, int, str]) -> Record:
    name, age, note = person
    face = EMBED.embed_documents([note])[0]
    return record(
        f"CREATE (:{PERSON} {{name: $name, age: $age, note: $note, face: $face}})", name=name, age=age, note=note, face=face
    )


_INDEXES = [
    f"CREATE CONSTRAINT name{RUN} FOR (p:{PERSON}) REQUIRE p.name IS UNIQUE",
    f"CREATE FULLTEXT INDEX {NOTES} FOR (p:{PERSON}) ON EACH [p.note]",
    f"CREATE VECTOR INDEX {FACES} FOR (p:{PERSON}) ON (p.face) "
    "OPTIONS {indexConfig: {`vector.dimensions`: 64, `vector.similarity_function`: 'cosine'}}",
]
_OTHERS = [
    f"CREATE (:`{CITY}` {{name: 'Bern', `land area`: 51.6}})",
    f"MATCH (a:{PERSON} {{name: 'Ann'}}), (b:{PERSON} {{name: 'Bob'}}) CREATE (a)-[:{KNOWS} {{since: 2010}}]->(b)",
]
_REMOVALS = [
    f"DROP INDEX {NOTES}",
    f"DROP INDEX {FACES}",
    f"DROP CONSTRAINT name{RUN}",
    f"MATCH (n) WHERE n:{PERSON} OR n:`{CITY}` DETACH DELETE n",
]
