"""The corpora (X20) on a real Trino server."""

from __future__ import annotations

import pytest
from corpora.suite import LockedCorporaSuite


@pytest.mark.server("trino")
class TestTrino(LockedCorporaSuite):
    dialect = "trino"
