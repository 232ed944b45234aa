"""What `SQLManager` promises on every engine whose databases are files (X16): named when wrong, and left alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import engines
import pytest
from engines import Database, Engine

from agentkernel_kb import AKConfigError, KnowledgeConnectionError
from agentkernel_kb.sql import SQLManager

pytestmark = engines.on(engines.FILES)

SETUP = "CREATE TABLE cities (id INTEGER PRIMARY KEY, name VARCHAR); INSERT INTO cities VALUES (1, 'Bern')"


@pytest.fixture
def database(engine: Engine, tmp_path: Path) -> Iterator[Database]:
    with engine.open(tmp_path) as made:
        made.run(SETUP)
        yield made


def url(engine: Engine, path: Path | str) -> str:
    return f"{engine.name}:///{path}"


def test_a_missing_file_is_named_and_not_created(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(AKConfigError, match=r"There is no \w+ database '.*nothing\.db'"):
        SQLManager(url(engine, tmp_path / "nothing.db"))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_database(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(AKConfigError, match=r"There is no \w+ database"):
        SQLManager(url(engine, tmp_path))


@pytest.mark.parametrize("content", [b"This is a text file and no database.", b"\x00" * 4_096])
def test_a_file_that_is_no_database_is_named(engine: Engine, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.db"
    path.write_bytes(content)
    with pytest.raises(AKConfigError, match=r"is not a \w+ database"):
        SQLManager(url(engine, path))


def test_a_damaged_database_is_not_an_empty_one(database: Database) -> None:
    content = bytearray(database.path.read_bytes())
    content[100:-4_000] = b"\xff" * (len(content) - 4_100)
    database.path.write_bytes(content)
    with closing(database.manager()) as manager, pytest.raises(KnowledgeConnectionError):
        manager.query("SELECT * FROM cities")


@pytest.mark.parametrize("name", ["", ":memory:"])
def test_a_private_in_memory_database_is_an_error(engine: Engine, name: str) -> None:
    with pytest.raises(AKConfigError, match="in-memory"):
        SQLManager(url(engine, name))


def test_nothing_is_made_beside_the_database(database: Database) -> None:
    before = database.state()
    manager = database.manager()
    manager.query("SELECT * FROM cities ORDER BY name")
    manager.schema()
    manager.close()
    assert (list(database.path.parent.iterdir()), database.state()) == ([database.path], before)
