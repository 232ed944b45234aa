"""The corpora (X20) on the engines that live in the process; Ladybug's lock alone is in `test_ladybug_corpora.py`."""

from __future__ import annotations

from corpora.suite import CorporaSuite, LockedCorporaSuite


class TestSQLite(LockedCorporaSuite):
    dialect = "sqlite"


class TestDuckDB(LockedCorporaSuite):
    dialect = "duckdb"


class TestLadybug(CorporaSuite):
    dialect = "ladybug"
