"""Prints how long imports take in a fresh interpreter, in median milliseconds, and which SDKs they load: none."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

RUNS = 15
SDKS = ("chromadb", "neo4j", "trino", "boto3", "sqlalchemy", "sqlglot", "pydantic", "numpy")
IMPORTS = {
    "root": "import agentkernel_kb",
    "contract": "from agentkernel_kb import KnowledgeBase, KnowledgeCapabilities, KnowledgeError, Record",
    "router": "from agentkernel_kb import KnowledgeBuilder",
}
PROBE = (
    "import sys, time; t = time.perf_counter(); {statement}; "
    "print((time.perf_counter() - t) * 1e3, *[m for m in {sdks!r} if m in sys.modules])"
)


def probe(statement: str) -> tuple[float, list[str]]:
    """Run one import in a fresh interpreter; return milliseconds and the SDKs that it loaded."""
    code = PROBE.format(statement=statement, sdks=SDKS)
    # The code is built from the constants above.
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    milliseconds, *loaded = output.split()
    return float(milliseconds), loaded


def main() -> None:
    """Measure and print one JSON object."""
    figures: dict[str, object] = {"benchmark": "import_time"}
    loaded: set[str] = set()
    for name, statement in IMPORTS.items():
        probe(statement)  # The first run writes the byte code.
        runs = [probe(statement) for _ in range(RUNS)]
        figures[f"{name}_ms"] = round(statistics.median(milliseconds for milliseconds, _ in runs), 1)
        loaded.update(*(sdks for _, sdks in runs))
    print(json.dumps({**figures, "sdks_loaded": sorted(loaded)}))


if __name__ == "__main__":
    main()
