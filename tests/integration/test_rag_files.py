"""The file of a corpus: several processes, forks, namespaces, and files that are damaged or of something else (P7, X19)."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from rag_world import made

from agentkernel_kb.errors import AKConfigError, KnowledgeError
from agentkernel_kb.rag import Document, SQLiteVectorStore, create_knowledge

WRITER = """
import sys
from agentkernel_kb.rag import Document, create_knowledge
knowledge = create_knowledge("sqlite", path=sys.argv[1])
for line in sys.stdin:
    print(knowledge.sync.upsert(Document(line.strip(), "theirs.md")).added, flush=True)
"""


def texts(knowledge, query: str) -> list[str]:
    return [hit.text for hit in knowledge.sync.search(query)]


def other_process(code: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )


def test_what_another_process_writes_is_seen_by_the_next_search(tmp_path: Path):
    mine = made("sqlite", tmp_path, sources=[Document("Refunds take thirty days.", "mine.md")])
    mine.sync.ready()
    with other_process(WRITER, str(tmp_path / "kb.db")) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        for number in ("first", "second", "third"):
            writer.stdin.write(f"The {number} answer about lamps.\n")
            writer.stdin.flush()
            assert writer.stdout.readline() == "1\n"
            assert texts(mine, "lamps") == [f"The {number} answer about lamps."]
            mine.sync.upsert(Document(f"Refunds take {number} days.", "mine.md"))
    assert texts(made("sqlite", tmp_path), "refunds") == ["Refunds take third days."]


def test_namespaces_do_not_see_each_other(tmp_path: Path):
    one, two = (
        create_knowledge("sqlite", path=tmp_path / "kb.db", namespace=name, sources=[Document(f"Text of {name}.", "same.md")])
        for name in ("one", "two")
    )
    assert (texts(one, "text"), texts(two, "text")) == (["Text of one."], ["Text of two."])
    assert two.sync.delete(sources=["same.md"]) == 1
    assert texts(one, "text") == ["Text of one."]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_has_the_file_for_itself(tmp_path: Path):
    knowledge = made("sqlite", tmp_path, sources=[Document("Refunds take thirty days.", "mine.md")])
    assert texts(knowledge, "refunds")
    child = os.fork()
    if child == 0:
        try:
            knowledge.sync.upsert(Document("Lamps are repaired.", "child.md"))
            os._exit(0 if len(texts(knowledge, "lamps refunds")) == 2 else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert texts(knowledge, "lamps") == ["Lamps are repaired."]
    knowledge.sync.upsert(Document("Lamps are sold.", "mine.md"))


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path):
    path = tmp_path / "kb.db"
    path.write_text("Minutes of the meeting.\n" * 100)
    before = path.read_bytes()
    with pytest.raises(AKConfigError, match="no corpus"):
        made("sqlite", tmp_path).sync.search("x")
    assert path.read_bytes() == before


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path):
    path = tmp_path / "kb.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE orders (id INTEGER)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(AKConfigError, match="something else"):
        made("sqlite", tmp_path).sync.add_text("x")
    assert path.read_bytes() == before


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path):
    made("sqlite", tmp_path).sync.add_text("x")
    connection = sqlite3.connect(tmp_path / "kb.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(AKConfigError, match="newer version"):
        made("sqlite", tmp_path).sync.search("x")


def test_a_folder_in_place_of_the_file_is_an_error(tmp_path: Path):
    (tmp_path / "kb.db").mkdir()
    with pytest.raises(KnowledgeError):
        made("sqlite", tmp_path).sync.search("x")


def test_a_damaged_file_is_an_error_or_still_good_and_nothing_else(tmp_path: Path):
    knowledge = made("sqlite", tmp_path)
    knowledge.sync.add([Document(f"Refund number {n} takes {n} days.", f"{n}.md") for n in range(60)])
    knowledge.sync.close()
    connection = sqlite3.connect(tmp_path / "kb.db")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    good, draw = (tmp_path / "kb.db").read_bytes(), random.Random(7)
    for number in range(40):
        bad = bytearray(good)
        start = draw.randrange(0 if number % 4 == 0 else 100, len(bad) - 64)
        bad[start : start + 64] = draw.randbytes(64)
        folder = tmp_path / f"bad{number}"
        folder.mkdir()
        (folder / "kb.db").write_bytes(bad[: len(bad) // 2] if number % 10 == 9 else bad)
        damaged = made("sqlite", folder)
        try:
            damaged.sync.search("refund 30 days", k=50)
            damaged.sync.refresh([Document("New.", "new.md")], delete_missing=True)
        except KnowledgeError:
            continue
        finally:
            damaged.sync.close()


def test_terms_of_another_analysis_are_refused(tmp_path: Path):
    from agentkernel_kb.rag.index.analysis import Analysis

    made("sqlite", tmp_path).sync.add_text("x")
    other = SQLiteVectorStore(tmp_path / "kb.db", "knowledge", analysis=Analysis(language="german"))
    with pytest.raises(AKConfigError, match="analysis"):
        create_knowledge("vector", store=other).sync.search("x")


async def test_reading_makes_nothing_and_sees_what_others_make(tmp_path: Path):
    reader = made("sqlite", tmp_path, name="mine")
    for _ in range(2):
        assert await reader.search("refunds") == []
        assert await reader.list_documents() == []
        assert (await reader.verify(repair=True)).ok
    assert list(tmp_path.iterdir()) == []
    async with made("sqlite", tmp_path, name="theirs") as theirs:
        await theirs.add(Document("Theirs.", "theirs.md"))
    assert await reader.list_documents() == []
    async with SQLiteVectorStore(tmp_path / "kb.db") as store:
        assert await store.namespaces() == ["theirs"]
    async with made("sqlite", tmp_path, name="mine") as writer:
        await writer.add(Document("Refunds take thirty days.", "refunds.md"))
    assert [hit.source for hit in await reader.search("refunds")] == ["refunds.md"]
    await reader.close()


async def test_a_path_where_no_file_can_be_is_told_to_who_reads_too(tmp_path: Path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(KnowledgeError, match=r"kb\.db cannot be opened"):
        await made("sqlite", tmp_path / "file").search("refunds")


async def test_a_generation_that_cannot_be_read_is_told_and_leaves_nothing_open(tmp_path: Path):
    async with made("sqlite", tmp_path) as knowledge:
        await knowledge.upsert(Document("Refunds take thirty days.", "refunds.md"))
    async with SQLiteVectorStore(tmp_path / "kb.db", "knowledge") as store, await store.begin_generation({"model": "other"}):
        pass
    with closing(sqlite3.connect(tmp_path / "kb.db")) as connection:
        connection.execute("UPDATE namespaces SET fingerprint = '{' WHERE name <> 'knowledge'")
        connection.commit()
    async with made("sqlite", tmp_path) as again:
        with pytest.raises(KnowledgeError, match=r"kb\.db is damaged") as raised:
            await again.reindex()
        assert [hit.source for hit in await again.search("refunds")] == ["refunds.md"]
    assert raised.value.__traceback__  # It holds what was not closed, so that nobody else closes it.
    assert [path for path in opened() if path.is_relative_to(tmp_path)] == []


def opened() -> list[Path]:
    """Return the files that this process has open."""
    return [each.readlink() for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]


# A file that takes no more.

LIMITED = """
import resource
import sys
from agentkernel_kb.rag import Document, create_knowledge
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
knowledge = create_knowledge("sqlite", path=sys.argv[1])
report = knowledge.sync.add([Document(f"filler {number} " * 800, f"{number}.md") for number in range(40)])
print(report.failed[-1].reason, report.documents == len(knowledge.sync.list_documents()), knowledge.sync.verify().ok, sep="|")
"""


def test_a_file_that_cannot_grow_is_told_in_words_and_stays_whole(tmp_path: Path):
    with other_process(LIMITED, str(tmp_path / "kb.db")) as process:
        told, error = process.communicate(timeout=60)
    assert error is None
    assert told == "The store on kb.db failed: its file system failed (SQLITE_IOERR_WRITE).|True|True\n"


def test_a_file_that_somebody_else_writes_to_for_long_is_told_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("agentkernel_kb.rag.stores.sqlite_file._BUSY_SECONDS", 0.1)
    knowledge = made("sqlite", tmp_path, sources=[Document("Refunds take thirty days.", "mine.md")])
    knowledge.sync.ready()
    with closing(sqlite3.connect(tmp_path / "kb.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        assert "somebody else was writing to it" in knowledge.sync.add_text("Text.").failed[0].reason
        assert texts(knowledge, "refunds") == ["Refunds take thirty days."]
    assert knowledge.sync.add_text("Text.").added == 1
