"""The four stores of the demo: places in SQLite, borders in a graph, a year of trips in DuckDB, a travel handbook in Chroma."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from agentkernel_kb import KnowledgeBase
from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.ladybug import LadybugManager
from agentkernel_kb.sql import SQLManager
from multi_demo.geonames import cities, continents, countries
from multi_demo.trips import YEAR, Trip, make_trips

HANDBOOK = Path(__file__).parent.parent / "handbook"
PLACEHOLDERS = {"<COUNTRIES>": "geonames_countries", "<CITIES>": "geonames_cities"}
"""The names that an agent writes, and the tables that they stand for here."""

PLACES_DESCRIPTION = (
    "Countries and cities of the world: population, capital, continent, area, currency, time zone. From GeoNames."
)
PLACES_SCHEMA = {
    "placeholders": PLACEHOLDERS,
    "meaning": {
        "population": "people who live there, inhabitants",
        "area_km2": "area of the surface in square kilometres",
        "currency": "money that is used",
        "timezone": "time zone, by its IANA name",
        "continent": "Africa, Antarctica, Asia, Europe, North America, Oceania or South America",
    },
}
BORDERS_DESCRIPTION = "Which countries border each other by land: neighbours, ways from one to another. From GeoNames."
BORDERS_SCHEMA = {
    "meaning": {"NEIGHBOURS": "the border by land of two bordering countries"},
    "directions": "Each border is stored once: match it without a direction.",
}
TRIPS_DESCRIPTION = f"All business trips of the company in {YEAR}: where to, of which department, what they cost. Made-up data."
TRIPS_SCHEMA = {
    "meaning": {
        "destination": "the city",
        "departed": "first day away",
        "cost": "price of the whole trip in euros, as in expensive",
        "days": "how long it took, as in the longest and the shortest",
    },
}
HANDBOOK_DESCRIPTION = "The travel handbook of the company: what a business trip needs, what is paid, and who decides."

_PLACES = """
CREATE TABLE geonames_countries (
    code TEXT PRIMARY KEY, name TEXT NOT NULL, capital TEXT, continent TEXT NOT NULL,
    population INTEGER NOT NULL, area_km2 INTEGER NOT NULL, currency TEXT
);
CREATE TABLE geonames_cities (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, country_code TEXT NOT NULL REFERENCES geonames_countries (code),
    population INTEGER NOT NULL, latitude REAL NOT NULL, longitude REAL NOT NULL, timezone TEXT NOT NULL
);
CREATE INDEX city_names ON geonames_cities (name);
"""
_BORDERS = (
    "CREATE NODE TABLE Country(code STRING PRIMARY KEY, name STRING)",
    "CREATE REL TABLE NEIGHBOURS(FROM Country TO Country)",
)
_COUNTRY = "UNWIND $rows AS row CREATE (:Country {code: row.code, name: row.name})"
_BORDER = """
UNWIND $rows AS row MATCH (one:Country {code: row.one}), (other:Country {code: row.other}) CREATE (one)-[:NEIGHBOURS]->(other)
"""
_TRIPS = """
CREATE TABLE trips (
    id INTEGER PRIMARY KEY, destination VARCHAR NOT NULL, country VARCHAR NOT NULL, department VARCHAR NOT NULL,
    departed DATE NOT NULL, cost INTEGER NOT NULL, days INTEGER NOT NULL
)
"""


@dataclass(frozen=True)
class Stores:
    """The stores of one run, open."""

    places: KnowledgeBase
    borders: KnowledgeBase
    trips: KnowledgeBase
    handbook: KnowledgeBase

    def backends(self) -> Sequence[KnowledgeBase]:
        """Return them in the order in which they are shown."""
        return [self.places, self.borders, self.trips, self.handbook]


def make_stores(folder: Path) -> Stores:
    """Build the stores in an empty folder and open them as an agent may use them: only the handbook takes writes."""
    build_places(folder / "places.sqlite")
    build_borders(folder / "borders.lbug")
    build_trips(folder / "trips.duckdb", make_trips())
    return Stores(
        open_places(folder / "places.sqlite"),
        open_borders(folder / "borders.lbug"),
        open_trips(folder / "trips.duckdb"),
        open_handbook(folder / "handbook"),
    )


def country_rows() -> list[tuple[Any, ...]]:
    """Return the countries that GeoNames knows, in the order of the table's columns."""
    return [
        (
            code,
            country["name"],
            country["capital"] or None,
            continents()[country["continentcode"]],
            country["population"],
            country["areakm2"],
            country["currencyname"] or None,
        )
        for code, country in countries().items()
    ]


def city_rows() -> list[tuple[Any, ...]]:
    """Return the cities of more than 15,000 people that GeoNames knows, in the order of the table's columns."""
    keys = ("geonameid", "name", "countrycode", "population", "latitude", "longitude", "timezone")
    return [tuple(city[key] for key in keys) for city in cities()]


def build_places(path: Path) -> None:
    """Write the countries and the cities into a new SQLite file."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(_PLACES)
        connection.executemany("INSERT INTO geonames_countries VALUES (?, ?, ?, ?, ?, ?, ?)", country_rows())
        connection.executemany("INSERT INTO geonames_cities VALUES (?, ?, ?, ?, ?, ?, ?)", city_rows())


def open_places(database: Path) -> SQLManager:
    """Open the database as the backend `places`; whatever is asked of it, it only reads."""
    places = SQLManager(f"sqlite:///{database}", name="places", description=PLACES_DESCRIPTION)
    places.add_schema(PLACES_SCHEMA)
    return places


def borders() -> list[tuple[str, str]]:
    """Return each border that GeoNames lists at both of its countries as a pair of their codes, once and in order.

    A border that only one side lists is that of a state which is no more, such as the Netherlands Antilles.
    """
    listed = {code: set(country["neighbours"].split(",")) for code, country in countries().items()}
    return sorted((one, other) for one in listed for other in listed[one] if one < other and one in listed.get(other, ()))


def build_borders(path: Path) -> None:
    """Write the countries and their borders into a new graph."""
    nodes = [{"code": code, "name": country["name"]} for code, country in countries().items()]
    pairs = [{"one": one, "other": other} for one, other in borders()]
    statements: list[dict[str, Any]] = [{"query": statement} for statement in _BORDERS]
    statements += [{"query": _COUNTRY, "params": {"rows": nodes}}, {"query": _BORDER, "params": {"rows": pairs}}]
    with contextlib.closing(LadybugManager(path)) as graph:
        graph.write({"text": "", "metadata": statement} for statement in statements)


def open_borders(path: Path) -> LadybugManager:
    """Open the graph as the backend `borders`, which only reads."""
    graph = LadybugManager(path, "borders", BORDERS_DESCRIPTION, read_only=True)
    graph.add_schema(BORDERS_SCHEMA)
    return graph


def build_trips(path: Path, trips: Sequence[Trip]) -> None:
    """Write trips into a new DuckDB file."""
    with contextlib.closing(duckdb.connect(str(path))) as connection:
        connection.execute(_TRIPS)
        columns = [list(column) for column in zip(*trips, strict=True)]
        connection.execute(f"INSERT INTO trips SELECT {', '.join(['unnest(?)'] * len(columns))}", columns)


def open_trips(path: Path) -> SQLManager:
    """Open the DuckDB file as the backend `trips`, which only reads."""
    trips = SQLManager(f"duckdb:///{path}", name="trips", description=TRIPS_DESCRIPTION)
    trips.add_schema(TRIPS_SCHEMA | {"statistics": "DuckDB has median, quantile_cont, date_trunc, QUALIFY and PIVOT."})
    return trips


def open_handbook(folder: Path) -> ChromaManager:
    """Open a Chroma store in `folder` as the backend `handbook` and write the sections of the handbook into it."""
    handbook = ChromaManager(
        persist_path=str(folder),
        name="handbook",
        description=HANDBOOK_DESCRIPTION,
        embedding_function=HashEmbedder(),
    )
    write_handbook(handbook)
    return handbook


def write_handbook(handbook: KnowledgeBase) -> None:
    """Write the sections of the handbook, one record each, and say in the schema which there are."""
    sections = sorted(HANDBOOK.glob("*.md"))
    texts = {section: section.read_text(encoding="utf-8").strip() for section in sections}
    titles = [text.splitlines()[0].removeprefix("# ") for text in texts.values()]
    handbook.add_schema({"content": "Prose, one record for each section.", "sections": titles})
    handbook.write(
        {"text": text, "metadata": {"source": section.name, "title": title}}
        for (section, text), title in zip(texts.items(), titles, strict=True)
    )
