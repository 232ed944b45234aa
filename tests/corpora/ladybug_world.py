"""The graph on which the Ladybug corpora run: people, cities and orders, many types, and names that look like keywords."""

from __future__ import annotations

import hashlib
from pathlib import Path

from agentkernel_kb import KnowledgeBase
from agentkernel_kb.ladybug import LadybugManager

SETUP = Path(__file__).with_name("ladybug.setup.cypher")


def build(folder: Path) -> Path:
    """Make the graph in `folder` and return its path."""
    path = folder / "people.lbug"
    statements = SETUP.read_text(encoding="utf-8").split(";\n")
    graph = LadybugManager(path, threads=1)
    graph.write([{"text": "", "metadata": {"query": statement}} for statement in statements if statement.strip()])
    graph.close()
    return path


def open_backend(path: Path) -> KnowledgeBase:
    """Open the graph as an application would: writable, so that nothing but the two locks keeps a read from writing."""
    return LadybugManager(path, name="people", threads=1, max_memory_bytes=256_000_000)


def fingerprint(path: Path) -> str:
    """Return a hash of the database's files: data, schema and settings, as they are on disk and in the log of writes."""
    digest = hashlib.sha256()
    for file in (path, path.with_name(f"{path.name}.wal")):
        content = file.read_bytes() if file.exists() else b""
        digest.update(f"{len(content)} ".encode() + content)
    return digest.hexdigest()
