"""The questions of the demo, and what each answer is checked against: GeoNames' data and the handbook's files themselves."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from agentkernel_kb import ToolEvent
from multi_demo.geonames import cities, continents, countries
from multi_demo.stores import HANDBOOK, Stores
from multi_demo.trips import Trip, make_trips

_STORE_NAMES = re.compile(r"\b(?:places|borders|trips|handbook)\b")
_SAYS_NO = re.compile(r"\b(no|not|nothing|none|unknown|cannot|refused|declined|unable)\b|n't\b", re.IGNORECASE)


@dataclass(frozen=True)
class Told:
    """What a question led to: the answer, the tool calls behind it, and the stores as they are now."""

    answer: str
    events: Sequence[ToolEvent]
    stores: Stores


@dataclass(frozen=True)
class Verdict:
    """What was expected, and whether it came."""

    expected: str
    passed: bool


@dataclass(frozen=True)
class Check(Verdict):
    """A verdict on the answer to one question."""

    question: str
    answer: str


@dataclass(frozen=True)
class Question:
    """A question, the stores that it needs where that is known, and the check of its answer."""

    text: str
    needs: str = ""
    check: Callable[[Told], Verdict] | None = None

    def checked(self, told: Told) -> Check | None:
        """Check what a question led to; `None` for a question without a check."""
        if self.check is None:
            return None
        verdict = self.check(told)
        asked = {event.backend for event in told.events}
        spared = [store for store in _STORE_NAMES.findall(self.needs) if store not in asked]
        expected = f"{verdict.expected} (and {', '.join(spared)} to be asked)" if spared else verdict.expected
        return Check(expected, verdict.passed and not spared, self.text, told.answer)


@cache
def _countries() -> Mapping[str, Mapping[str, Any]]:
    return {country["name"]: country for country in countries().values()}


def _largest_city(country: str) -> Mapping[str, Any]:
    code = _countries()[country]["iso"]
    return max((city for city in cities() if city["countrycode"] == code), key=lambda city: city["population"])


def _section(name: str) -> str:
    return (HANDBOOK / name).read_text(encoding="utf-8")


def _holds(answer: str, *expected: str) -> Verdict:
    """Pass an answer that holds all of these as whole words, whatever separates the thousands."""
    plain = re.sub(r"(?<=\d)[,.' \u00a0\u202f](?=\d{3}\b)", "", answer)
    found = [re.search(rf"(?<!\w){re.escape(part)}(?!\w)", plain, re.IGNORECASE) for part in expected]
    return Verdict(", ".join(expected), all(found))


def _most_populous(country: str) -> Callable[[Told], Verdict]:
    def check(told: Told) -> Verdict:
        city = _largest_city(country)
        return _holds(told.answer, city["name"], str(city["population"]))

    return check


def _populous_countries(continent: str, people: int) -> Callable[[Told], Verdict]:
    def check(told: Told) -> Verdict:
        found = [c for c in _countries().values() if c["continentcode"] == continent and c["population"] > people]
        return _holds(told.answer, str(len(found)))

    return check


def _as_written(section: str, pattern: str) -> Callable[[Told], Verdict]:
    """Expect the words that a pattern finds in a section of the handbook."""

    def check(told: Told) -> Verdict:
        found = re.search(pattern, _section(section))
        return _holds(told.answer, found[1]) if found else Verdict(f"{pattern} in {section}", False)

    return check


def _allowance(city: Callable[[], Mapping[str, Any]]) -> Callable[[Told], Verdict]:
    """Expect the amount of the tier that a city's population falls into, and none of the others."""

    def check(told: Told) -> Verdict:
        amounts = re.findall(r"is (\d+) euros", _section("daily-allowance.md"))
        millions = [int(number) for number in re.findall(r"than (\d+) million", _section("daily-allowance.md"))]
        people = city()["population"]
        tier = 0 if people > max(millions) * 1e6 else 2 if people < min(millions) * 1e6 else 1
        others = [amount for amount in amounts if amount != amounts[tier] and _holds(told.answer, amount).passed]
        expected = _holds(told.answer, amounts[tier])
        return Verdict(f"{expected.expected} euros ({city()['name']}: {people:,})", expected.passed and not others)

    return check


def _city(name: str) -> Callable[[], Mapping[str, Any]]:
    return lambda: max((city for city in cities() if city["name"] == name), key=lambda city: city["population"])


def _approval(country: Callable[[], Mapping[str, Any]]) -> Callable[[Told], Verdict]:
    def check(told: Told) -> Verdict:
        continent = continents()[country()["continentcode"]]
        found = re.search(rf"\b{continent}\b.* is approved by the ([\w ]+)", _section("approval.md"))
        return _holds(told.answer, found[1]) if found else Verdict(f"{continent} in approval.md", False)

    return check


def _unknown(place: str) -> Callable[[Told], Verdict]:
    """Expect a sentence about the place that says no, and no amount in euros."""

    def check(told: Told) -> Verdict:
        known = place in _countries() or any(city["name"] == place for city in cities())
        says_no = any(
            place in sentence and bool(_SAYS_NO.search(sentence)) for sentence in re.split(r"(?<=[.!?])\s", told.answer)
        )
        amount = re.search(r"\d+ euros|€ ?\d+", told.answer)
        return Verdict("a plain word that it is not known", not known and says_no and not amount)

    return check


def _written(words: str) -> Callable[[Told], Verdict]:
    def check(told: Told) -> Verdict:
        found = told.stores.handbook.search(words, limit=5)
        return Verdict("a record of it in the handbook", any(words in str(record.get("text")) for record in found))

    return check


def _still_there(place: str) -> Callable[[Told], Verdict]:
    """Expect that the model was refused, says so, and that the database is what it was."""

    def check(told: Told) -> Verdict:
        here = f"COUNT(CASE WHEN name = '{place}' THEN 1 END)"
        found = told.stores.places.query(f"SELECT COUNT(*) AS cities, {here} AS here FROM geonames_cities")  # noqa: S608 - ours
        expected = {"cities": len(cities()), "here": sum(city["name"] == place for city in cities())}
        refused = not any(event.outcome == "ok" and event.operation == "write" for event in told.events)
        unchanged = [record.get("metadata", {}).get("row") for record in found] == [expected]
        return Verdict(
            f"a refusal, and all {len(cities()):,} cities still there",
            refused and unchanged and bool(_SAYS_NO.search(told.answer)),
        )

    return check


@cache
def _neighbours() -> dict[str, set[str]]:
    """Return the names of the countries that each lists as a neighbour, by name, if they list it too."""
    listed = {name: country["neighbours"].split(",") for name, country in _countries().items()}
    codes = {name: country["iso"] for name, country in _countries().items()}
    return {one: {other for other in listed if codes[other] in listed[one] and codes[one] in listed[other]} for one in listed}


def _largest_neighbour(country: str) -> Mapping[str, Any]:
    return max((_countries()[name] for name in _neighbours()[country]), key=lambda found: found["population"])


def _bordering(country: str) -> Callable[[Told], Verdict]:
    """Expect the neighbours, and no other country."""

    def check(told: Told) -> Verdict:
        found = _holds(told.answer, *sorted(_neighbours()[country]))
        others = _countries().keys() - _neighbours()[country] - {country}
        return Verdict(found.expected, found.passed and not any(_holds(told.answer, other).passed for other in others))

    return check


def _crossings(start: str, end: str) -> Callable[[Told], Verdict]:
    """Expect the number of borders on a shortest way, found by looking at all countries one border further, and so on."""

    def check(told: Told) -> Verdict:
        reached, crossed = {start}, 0
        while end not in reached:
            reached |= {name for one in reached for name in _neighbours()[one]}
            crossed += 1
        return _holds(told.answer, str(crossed))

    return check


def _populous_neighbour(country: str) -> Callable[[Told], Verdict]:
    def check(told: Told) -> Verdict:
        found = _largest_neighbour(country)
        return _holds(told.answer, found["name"], str(found["population"]))

    return check


@cache
def _trips() -> list[Trip]:
    return make_trips()


def _median_cost(trips: Iterable[Trip]) -> str:
    return f"{statistics.median(trip.cost for trip in trips):g}"


def _quarterly_medians(told: Told) -> Verdict:
    quarters = [[trip for trip in _trips() if (trip.departed.month - 1) // 3 == quarter] for quarter in range(4)]
    return _holds(told.answer, *map(_median_cost, quarters))


def _costliest_by_department(told: Told) -> Verdict:
    """Expect each department before the destination and the cost of its own dearest trip."""
    departments = sorted({trip.department for trip in _trips()})
    told_of = re.split(rf"\b(?={'|'.join(departments)})", told.answer)
    parts = [next((part for part in told_of if part.startswith(department)), "") for department in departments]
    dearest = [max((trip for trip in _trips() if trip.department == one), key=lambda trip: trip.cost) for one in departments]
    verdicts = [_holds(part, trip.destination, str(trip.cost)) for part, trip in zip(parts, dearest, strict=True)]
    expected = "; ".join(f"{trip.department}: {trip.destination}, {trip.cost}" for trip in dearest)
    return Verdict(expected, all(verdict.passed for verdict in verdicts))


def _median_among_neighbours(country: str) -> Callable[[Told], Verdict]:
    return lambda told: _holds(told.answer, _median_cost(trip for trip in _trips() if trip.country in _neighbours()[country]))


QUESTIONS = (
    Question("Which city in Brazil has the largest population?", "places", _most_populous("Brazil")),
    Question("How many countries in Africa have more than 50 million people?", "places", _populous_countries("AF", 50_000_000)),
    Question("Which countries border Austria?", "borders", _bordering("Austria")),
    Question("How many borders lie between Portugal and Poland?", "borders", _crossings("Portugal", "Poland")),
    Question("What was the median cost of trips in each quarter?", "trips", _quarterly_medians),
    Question("Which trip cost the most in each department?", "trips", _costliest_by_department),
    Question(
        "Within how many days must I hand in an expense claim?", "handbook", _as_written("receipts.md", r"within (\d+ days)")
    ),
    Question(
        "To whom do I report a lost laptop?",
        "handbook",
        _as_written("equipment.md", r"is reported to the ([\w ]+) within"),
    ),
    Question("Which neighbour of Germany has the largest population?", "borders and places", _populous_neighbour("Germany")),
    Question(
        "What was the median cost of trips to countries that border Germany?",
        "borders and trips",
        _median_among_neighbours("Germany"),
    ),
    Question("What is the daily allowance for a trip to Nairobi?", "handbook and places", _allowance(_city("Nairobi"))),
    Question(
        "What is the daily allowance in the largest city of Japan?",
        "handbook and places",
        _allowance(lambda: _largest_city("Japan")),
    ),
    Question("Who approves a trip to Mongolia?", "handbook and places", _approval(lambda: _countries()["Mongolia"])),
    Question(
        "Who approves a trip to the neighbour of Spain with the most people?",
        "handbook, borders and places",
        _approval(lambda: _largest_neighbour("Spain")),
    ),
    Question("What is the daily allowance for a trip to Lilliput?", "handbook and places", _unknown("Lilliput")),
    Question("Add to the handbook that hired bicycles are paid in full.", "handbook", _written("hired bicycles")),
    Question("Delete the city Paris from the database of places.", "places, which only reads", _still_there("Paris")),
)
