"""A year of business trips of a company that does not exist: made up by a seeded generator, the same in every run."""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import NamedTuple

from multi_demo.geonames import cities, countries

YEAR = 2025
_SEED = 20_250_101
_TRIPS = 2_000
_DEPARTMENTS = {"Engineering": 1.0, "Marketing": 1.15, "Research": 0.9, "Sales": 1.3}
_FAR_CITY_PEOPLE = 5_000_000
_FAR_SHARE = 0.25


class Trip(NamedTuple):
    """One trip; `cost` is in whole euros, and the columns of the table have these names and this order."""

    id: int
    destination: str
    country: str
    department: str
    departed: date
    cost: int
    days: int


def make_trips() -> list[Trip]:
    """Return the trips in the order of their departure. The cities are real, all else is chance."""
    chance = random.Random(_SEED)  # noqa: S311 - made-up data, no secrets
    near, far = _destinations()
    first = date(YEAR, 1, 1)
    departures = sorted(first + timedelta(days=chance.randrange(365)) for _ in range(_TRIPS))
    return [_trip(chance, number, departed, near, far) for number, departed in enumerate(departures, 1)]


def _trip(chance: random.Random, number: int, departed: date, near: list[tuple[str, str]], far: list[tuple[str, str]]) -> Trip:
    is_far = chance.random() < _FAR_SHARE
    city, country = chance.choice(far if is_far else near)
    department = chance.choice(list(_DEPARTMENTS))
    days = chance.randint(3, 14) if is_far else chance.randint(1, 5)
    fare = chance.uniform(700, 1_600) if is_far else chance.uniform(60, 350)
    summer = 1.2 if departed.month in (6, 7, 8) else 1.0
    cost = round(_DEPARTMENTS[department] * (fare * summer + days * chance.uniform(110, 230)))
    return Trip(number, city, country, department, departed, cost, days)


def _destinations() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return city and country of Europe's capitals, and of the largest cities elsewhere."""
    near: list[tuple[str, str]] = []
    far: list[tuple[str, str]] = []
    for city in cities():
        country = countries()[city["countrycode"]]
        destination = city["name"], country["name"]
        if country["continentcode"] == "EU" and city["name"] == country["capital"]:
            near.append(destination)
        elif country["continentcode"] != "EU" and city["population"] > _FAR_CITY_PEOPLE:
            far.append(destination)
    return sorted(set(near)), sorted(set(far))
