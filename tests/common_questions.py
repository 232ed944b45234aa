"""The questions that every framework's loop and MCP are asked, and the answers that each has to give (A19, X11, X17).

They are asked in their order, of stores made anew each time: a bundle of markdown, a database and notes that can be written.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from agentkernel_kb import KnowledgeBuilder, LocalDocumentStore, OKFManager
from agentkernel_kb.sql import SQLManager

_FOLDER = Path(__file__).parent / "cases"
FILE = _FOLDER / "questions.yaml"
_ORDERS = [("Acme", "open", 1200.5), ("Globex", "paid", 80.0), ("Initech", "open", None)]


@dataclass(frozen=True)
class Question:
    """A tool call, and what its answer has to be, to the letter.

    Attributes:
        tool: Name of the tool.
        arguments: As a model sends them.
        answer: What the model reads.
        outcome: How the call ends, as MCP's structured content and events tell it.
    """

    tool: str
    arguments: dict[str, Any]
    answer: str
    outcome: str


def questions() -> list[Question]:
    """Return the questions in the order in which they are asked."""
    return [Question(**case) for case in yaml.safe_load(FILE.read_text(encoding="utf-8"))]


def calls() -> list[tuple[str, dict[str, Any]]]:
    """Return each question's tool and arguments, as a scripted model makes them."""
    return [(question.tool, question.arguments) for question in questions()]


def answers() -> list[str]:
    """Return the answers in their order."""
    return [question.answer for question in questions()]


@contextmanager
def asked_builder(folder: Path) -> Generator[KnowledgeBuilder]:
    """Make the stores in a folder of one's own, and a builder over them."""
    shutil.copytree(_FOLDER / "handbook", folder / "handbook")
    (folder / "notes").mkdir()
    with closing(sqlite3.connect(folder / "sales.db")) as database, database:
        database.execute("CREATE TABLE orders_2026 (client TEXT PRIMARY KEY, status TEXT, amount REAL)")
        database.executemany("INSERT INTO orders_2026 VALUES (?, ?, ?)", _ORDERS)
    handbook = OKFManager(
        LocalDocumentStore(folder / "handbook", writable=False), "handbook", "Policies and questions.", index=None
    )
    notes = OKFManager(LocalDocumentStore(folder / "notes", writable=True), "notes", "What the agents noted.", index=None)
    sales = SQLManager(f"sqlite:///{folder / 'sales.db'}", name="sales", description="sales holds the orders of 2026.")
    with KnowledgeBuilder([handbook, notes, sales], {"<ORDERS>": "orders_2026"}) as builder:
        yield builder
