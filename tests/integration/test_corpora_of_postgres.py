"""The corpora (X20) on a real PostgreSQL server."""

from __future__ import annotations

import pytest
from corpora.suite import LockedCorporaSuite


@pytest.mark.server("postgres")
class TestPostgres(LockedCorporaSuite):
    dialect = "postgres"
