"""The corpora (X20) on a real Neo4j server."""

from __future__ import annotations

import pytest
from corpora.suite import LockedCorporaSuite


@pytest.mark.server("neo4j")
class TestNeo4j(LockedCorporaSuite):
    dialect = "neo4j"
