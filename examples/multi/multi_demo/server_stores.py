"""The demo's stores on real servers: places in PostgreSQL, borders in Neo4j, trips in Trino, the handbook in a Chroma server.

Where the servers are comes from the environment; without it, it is where the scripts in `servers/` start them. What the demo
needs is written there each time anew: two tables, a label of a graph, a table in memory, a collection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import urlsplit

from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.neo4j import Neo4jManager
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.starburst import StarburstManager
from multi_demo.geonames import countries
from multi_demo.stores import (
    BORDERS_DESCRIPTION,
    BORDERS_SCHEMA,
    HANDBOOK_DESCRIPTION,
    PLACES_DESCRIPTION,
    PLACES_SCHEMA,
    TRIPS_DESCRIPTION,
    TRIPS_SCHEMA,
    Stores,
    borders,
    city_rows,
    country_rows,
    write_handbook,
)
from multi_demo.trips import Trip, make_trips

T = TypeVar("T")

_PLACES = """
DROP TABLE IF EXISTS geonames_cities, geonames_countries;
CREATE TABLE geonames_countries (
    code text PRIMARY KEY, name text NOT NULL, capital text, continent text NOT NULL,
    population bigint NOT NULL, area_km2 bigint NOT NULL, currency text
);
CREATE TABLE geonames_cities (
    id bigint PRIMARY KEY, name text NOT NULL, country_code text NOT NULL REFERENCES geonames_countries (code),
    population bigint NOT NULL, latitude double precision NOT NULL, longitude double precision NOT NULL, timezone text NOT NULL
);
CREATE INDEX city_names ON geonames_cities (name);
"""
_FORGET_BORDERS = "MATCH (old:Country) CALL (old) {DETACH DELETE old} IN TRANSACTIONS"
_KEY = "CREATE CONSTRAINT country_code IF NOT EXISTS FOR (country:Country) REQUIRE country.code IS UNIQUE"
_COUNTRY = "UNWIND $rows AS row CREATE (:Country {code: row.code, name: row.name})"
_BORDER = """
UNWIND $rows AS row MATCH (one:Country {code: row.one}), (other:Country {code: row.other}) CREATE (one)-[:NEIGHBOURS]->(other)
"""
_TRIPS = """
CREATE TABLE memory.default.trips (
    id integer, destination varchar, country varchar, department varchar, departed date, cost integer, days integer
)
"""
_TRIPS_IN_ONE_INSERT = 500
_COLLECTION = "kb_demo_handbook"


@dataclass(frozen=True)
class Addresses:
    """Where the servers are, with the logins of a user who may write."""

    postgres: str
    neo4j: str
    neo4j_password: str
    trino: str
    chroma: str

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Addresses:
        """Read `KB_DEMO_<NAME>_URL` of the four servers, and `KB_DEMO_NEO4J_PASSWORD`."""
        return cls(
            environment.get("KB_DEMO_POSTGRES_URL", "postgresql://kb:kb-test-password@127.0.0.1:15432/kb"),
            environment.get("KB_DEMO_NEO4J_URL", "bolt://127.0.0.1:17687"),
            environment.get("KB_DEMO_NEO4J_PASSWORD", "kb-test-password"),
            environment.get("KB_DEMO_TRINO_URL", "http://127.0.0.1:18080"),
            environment.get("KB_DEMO_CHROMA_URL", "http://127.0.0.1:18000"),
        )


def make_server_stores(addresses: Addresses) -> Stores:
    """Write what the demo needs to the servers and open them as an agent may use them: only the handbook takes writes."""
    load_places(addresses.postgres)
    load_borders(addresses.neo4j, addresses.neo4j_password)
    load_trips(addresses.trino, make_trips())
    return Stores(
        open_places(addresses.postgres),
        open_borders(addresses.neo4j, addresses.neo4j_password),
        open_trips(addresses.trino),
        open_handbook(addresses.chroma),
    )


def open_places(url: str) -> SQLManager:
    """Open PostgreSQL as the backend `places`, of which two tables may be read."""
    tables = ["geonames_countries", "geonames_cities"]
    places = SQLManager(url, name="places", description=PLACES_DESCRIPTION, tables=tables)
    places.add_schema(PLACES_SCHEMA)
    return places


def open_borders(url: str, password: str) -> Neo4jManager:
    """Open Neo4j as the backend `borders`."""
    graph = Neo4jManager(url, "neo4j", password, name="borders", description=BORDERS_DESCRIPTION)
    graph.add_schema(BORDERS_SCHEMA)
    return graph


def open_trips(url: str) -> StarburstManager:
    """Open a table of Trino as the backend `trips`, as a user who may only read."""
    address = urlsplit(url)
    trips = StarburstManager(
        address.hostname,
        address.port,
        "reader",
        catalog="memory",
        schema="default",
        table_name="trips",
        name="trips",
        description=TRIPS_DESCRIPTION,
        http_scheme="https" if address.scheme == "https" else "http",
    )
    trips.add_schema(TRIPS_SCHEMA)
    return trips


def open_handbook(url: str) -> ChromaManager:
    """Open a Chroma server as the backend `handbook` and write the handbook into a collection that is made anew."""
    import chromadb
    from chromadb.errors import NotFoundError

    address = urlsplit(url)
    host, port = address.hostname or "", address.port or 8000
    client: Any = chromadb.HttpClient(host=host, port=port)
    with suppress(NotFoundError):
        client.delete_collection(_COLLECTION)
    handbook = ChromaManager(
        host=host,
        port=port,
        collection_name=_COLLECTION,
        name="handbook",
        description=HANDBOOK_DESCRIPTION,
        embedding_function=HashEmbedder(),
    )
    write_handbook(handbook)
    return handbook


def load_places(url: str) -> None:
    """Write the countries and cities into PostgreSQL, all of it or nothing."""
    import psycopg

    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(_PLACES)
        for table, rows in (("geonames_countries", country_rows()), ("geonames_cities", city_rows())):
            with cursor.copy(f"COPY {table} FROM STDIN") as copy:  # pyright: ignore[reportArgumentType] - one of two names above
                for row in rows:
                    copy.write_row(row)
        cursor.execute("ANALYZE geonames_countries, geonames_cities")


def load_borders(url: str, password: str) -> None:
    """Write the countries and their borders into Neo4j, in place of what it has under these labels."""
    import neo4j

    sdk: Any = neo4j.GraphDatabase  # It types statements as literals, and its options not at all.
    nodes = [{"code": code, "name": country["name"]} for code, country in countries().items()]
    pairs = [{"one": one, "other": other} for one, other in borders()]
    with sdk.driver(url, auth=("neo4j", password)) as driver, driver.session() as session:
        for statement, rows in ((_FORGET_BORDERS, []), (_KEY, []), (_COUNTRY, nodes), (_BORDER, pairs)):
            session.run(statement, rows=rows).consume()


def load_trips(url: str, trips: Sequence[Trip]) -> None:
    """Write trips into the catalog `memory` of Trino."""
    import trino.dbapi

    address = urlsplit(url)
    sdk: Any = trino.dbapi  # It has no types.
    with closing(sdk.connect(host=address.hostname, port=address.port, user="kb-demo")) as connection:
        cursor = connection.cursor()
        for statement in ("DROP TABLE IF EXISTS memory.default.trips", _TRIPS, *map(_insert, _batches(trips))):
            cursor.execute(statement).fetchall()


def _insert(trips: Sequence[Trip]) -> str:
    return f"INSERT INTO memory.default.trips VALUES {', '.join(map(_values, trips))}"  # noqa: S608 - rows of this demo's own


def _values(trip: Trip) -> str:
    texts = ", ".join("'" + text.replace("'", "''") + "'" for text in (trip.destination, trip.country, trip.department))
    return f"({trip.id}, {texts}, DATE '{trip.departed}', {trip.cost}, {trip.days})"


def _batches(rows: Iterable[T]) -> Iterable[list[T]]:
    left = iter(rows)
    while batch := list(islice(left, _TRIPS_IN_ONE_INSERT)):
        yield batch
