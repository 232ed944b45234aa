"""Lets the test of this example ask for the real Neo4j server, as those in `tests/` do."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "tests"))
