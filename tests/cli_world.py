"""A folder with a `kb.yaml` over real stores, and the `agentkernel-kb` command run in it as its users run it."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HOSTILE = "\x1b[31mred\x1b[0m \x1b]0;owned\x07 \x9b2J \u202egnp.exe"
KB_YAML = """\
version: 1
backends:
  handbook:
    type: okf
    uri: ./handbook
    description: The rules of the company. Refunds, travel.
  sales:
    type: sql
    url: sqlite:///sales.db
    description: Clients, their status and budgets.
  lake:
    type: sql
    url: duckdb:///lake.duckdb
    description: Orders of clients and their amounts.
  notes:
    type: chroma
    persist_path: ./notes
    embedding_function: hash
    description: What was said in meetings.
semantic_map:
  <CLIENTS>: clients
agents:
  Support_Agent: {handbook: consumer, sales: consumer}
  Editor_Agent: {notes: producer, handbook: curator}
environments:
  prod:
    semantic_map: {<CLIENTS>: old_clients}
"""


@dataclass(frozen=True)
class Ran:
    """What came of a run.

    Attributes:
        code: The exit code.
        out: What stood on stdout.
        err: What stood on stderr.
    """

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


Command = Callable[..., Ran]


def make_world(folder: Path) -> Path:
    """Fill a folder: a bundle, SQLite, DuckDB, and the configuration over them; Chroma makes its own."""
    import duckdb

    handbook = folder / "handbook"
    handbook.mkdir()
    (handbook / "refunds.md").write_text(
        "---\ntype: Policy\ntitle: Refunds\n---\n\nRefunds are granted within 30 days of delivery.\n", "utf-8"
    )
    (handbook / "travel.md").write_text(f"---\ntype: Policy\ntitle: Travel\n---\n\nTrains before planes. {HOSTILE}\n", "utf-8")
    with sqlite3.connect(folder / "sales.db") as database:
        for table in ("clients", "old_clients"):
            database.execute(f"CREATE TABLE {table} (name TEXT PRIMARY KEY, status TEXT, budget INTEGER)")
        database.executemany("INSERT INTO clients VALUES (?, ?, ?)", [("Acme", "active", 90), ("Globex", "lost", 10)])
        database.execute("INSERT INTO old_clients VALUES ('Initech', 'lost', 1)")
    database.close()
    with duckdb.connect(folder / "lake.duckdb") as lake:
        lake.execute("CREATE TABLE orders (id INTEGER, client TEXT, amount INTEGER)")
        lake.execute("INSERT INTO orders VALUES (1, 'Acme', 50), (2, 'Globex', 5)")
    (folder / "kb.yaml").write_text(KB_YAML, "utf-8")
    return folder


def run(
    *arguments: str,
    folder: Path,
    typed: str | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 100,
    **options: Any,
) -> Ran:
    """Run the command as a process of its own, in a folder.

    Args:
        arguments: What stands behind its name.
        folder: The working directory.
        typed: What it reads from stdin; nothing by default.
        env: Further variables of its environment.
        timeout: Seconds until the test fails.
        options: Handed to `subprocess.run`.
    """
    done = subprocess.run(
        [sys.executable, "-m", "agentkernel_kb", *arguments],
        cwd=folder,
        input=typed if typed is not None else "",
        env=environment(env),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
        **options,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def environment(further: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment without what would choose another file, and with further variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AGENTKERNEL_KB_", "OPENAI_"))}
    return {**kept, "PYTHONIOENCODING": "utf-8", "PYTHONDONTWRITEBYTECODE": "1", **(further or {})}


def without(module: str, folder: Path) -> dict[str, str]:
    """Return an environment in which a module cannot be imported, as if it was not installed."""
    site = folder / "blocked"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "from importlib.machinery import PathFinder\n"
        "found = PathFinder.find_spec\n"
        "def find_spec(name, path=None, target=None):\n"
        f"    return None if name.partition('.')[0] == {module!r} else found(name, path, target)\n"
        "PathFinder.find_spec = find_spec\n"
    )
    return with_path(site)


def with_path(folder: Path) -> dict[str, str]:
    """Return an environment whose Python looks for modules in a folder first."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))}
