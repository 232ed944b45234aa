"""`agentkernel-kb ingest` over real corpora: kb.yaml's and those of a path, tables, JSON, exit codes (X10, P2, X19)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cli_world import Command, Ran

from agentkernel_kb import Document, create_knowledge
from agentkernel_kb.cli import main

KB_YAML = """\
backends:
  handbook: {type: knowledge, path: kb.db, sources: [docs/]}
  empty: {type: knowledge, path: empty.db}
  sales: {type: sql, url: "sqlite:///sales.db"}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/refunds.md").write_text("# Refunds\n\nRefunds are granted within 30 days.\n", "utf-8")
    (tmp_path / "docs/travel.md").write_text("# Travel\n\nTrains before planes.\n", "utf-8")
    (tmp_path / "kb.yaml").write_text(KB_YAML, "utf-8")
    return tmp_path


@pytest.fixture
def kb(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.chdir(folder)
    for name in ("AGENTKERNEL_KB_CONFIG", "AGENTKERNEL_KB_ENV"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: str) -> Ran:
        capsys.readouterr()
        code = main(arguments)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


def corpus(ran: Ran) -> dict[str, object]:
    (found,) = ran.json["corpora"]
    return {name: [Path(each).name for each in value] if isinstance(value, list) else value for name, value in found.items()}


def test_a_backend_is_brought_in_step_with_the_sources_of_the_file(kb: Command, folder: Path):
    assert kb("ingest", "handbook").out == "handbook\t2\t0\t0\t0\t0\t0\t2\n"
    assert kb("ingest", "handbook").out == "handbook\t0\t0\t0\t2\t0\t0\t0\n"
    (folder / "docs/travel.md").unlink()
    (folder / "docs/refunds.md").write_text("Refunds are granted within 60 days.\n", "utf-8")
    (folder / "docs/pay.md").write_text("Pay comes on the first.\n", "utf-8")
    done = kb("ingest", "handbook", "--delete-missing", "--json")
    found = corpus(done)
    assert (done.code, done.json["ok"]) == (0, True)
    assert (found["added"], found["changed"], found["removed"]) == (["pay.md"], ["refunds.md"], ["travel.md"])
    assert "60 days" in kb("search", "handbook", "refunds").out


def test_what_is_gone_stays_unless_it_is_asked_for(kb: Command, folder: Path):
    kb("ingest", "handbook")
    (folder / "docs/travel.md").unlink()
    assert corpus(kb("ingest", "handbook", "--json"))["removed"] == []
    assert "Trains" in kb("search", "handbook", "trains").out


def test_a_dry_run_tells_each_source_and_indexes_nothing(kb: Command, folder: Path):
    done = kb("ingest", "--path", "new.db", "docs", "--dry-run")
    assert done.out.splitlines()[0] == "new.db\t2\t0\t0\t0\t0\t0\t0"
    assert [line.partition("\t")[0] for line in done.out.splitlines()[1:]] == ["added", "added"]
    assert not (folder / "new.db").exists()
    kb("ingest", "handbook")
    (folder / "docs/travel.md").unlink()
    (folder / "docs/refunds.md").write_text("Other.\n", "utf-8")
    for _ in range(2):
        planned = corpus(kb("ingest", "handbook", "--dry-run", "--delete-missing", "--json"))
        assert (planned["changed"], planned["removed"], planned["unchanged"]) == (["refunds.md"], ["travel.md"], 0)


def test_a_source_that_fails_is_told_and_the_others_are_indexed(kb: Command):
    done = kb("ingest", "--path", "x.db", "docs", "nope.md")
    assert (done.code, done.out) == (1, "x.db\t2\t0\t0\t0\t0\t1\t2\n")
    assert done.err.startswith("x.db: nope.md: There is no file or folder")
    told = kb("ingest", "--path", "x.db", "nope.md", "--json").json
    assert (told["ok"], told["corpora"][0]["failed"][0]["source"]) == (False, "nope.md")


@pytest.mark.parametrize(
    ("source", "options"),
    [("docs/", ["--delete-missing"]), ("docs", ["--delete-missing"]), ("docs", ["--rebuild", "--delete-missing"])],
    ids=["slash", "no slash", "rebuild"],
)
def test_a_folder_of_the_file_that_is_gone_fails_and_loses_nothing(kb: Command, folder: Path, source: str, options: list[str]):
    (folder / "kb.yaml").write_text(KB_YAML.replace("[docs/]", f"[{source}]"), "utf-8")
    kb("ingest", "handbook")
    (folder / "docs").rename(folder / "away")
    done = kb("ingest", "handbook", *options)
    assert (done.code, done.out[:-2], "There is no file or folder" in done.err) == (1, "handbook\t0\t0\t0\t0\t0\t1\t", True)
    assert kb("ingest", "handbook", "--verify").out == "handbook\t2\t2\tok\n"


def test_words_that_name_no_file_are_not_indexed_as_a_text(kb: Command):
    assert kb("ingest", "--path", "x.db", "refund period").code == 1


def test_a_name_of_several_lines_is_told_in_one(kb: Command, folder: Path):
    (folder / "docs/two\nx.db: lines.md").write_text("Text.", "utf-8")
    (told,) = kb("ingest", "--path", "x.db", "docs").err.splitlines()
    assert told.startswith("x.db: docs/two x.db: lines.md: 'docs/two\\nx.db: lines.md' has a control character")


def test_a_corpus_is_compared_with_its_notes_and_mended(kb: Command, folder: Path):
    kb("ingest", "handbook")
    assert kb("ingest", "handbook", "--verify").out == "handbook\t2\t2\tok\n"
    with sqlite3.connect(folder / "kb.db") as file:
        (table,) = file.execute("SELECT name FROM sqlite_master WHERE name LIKE '%chunks' AND type = 'table'").fetchone()
        file.execute(f"DELETE FROM {table} WHERE rowid = (SELECT min(rowid) FROM {table})")
    file.close()
    done = kb("ingest", "handbook", "--verify", "--repair", "--json")
    assert (done.code, done.json["corpora"][0]["verified"]["ok"]) == (1, False)
    kb("ingest", "handbook")
    assert kb("ingest", "handbook", "--verify").code == 0


def test_a_corpus_is_made_anew(kb: Command):
    kb("ingest", "handbook")
    found = corpus(kb("ingest", "handbook", "--rebuild", "--json"))
    assert (found["changed"], found["chunks"]) == (["refunds.md", "travel.md"], 2)
    assert "Refunds" in kb("search", "handbook", "refunds").out


def test_what_is_made_anew_keeps_what_agents_wrote_unless_that_is_asked_for(kb: Command, folder: Path):
    kb("ingest", "handbook")
    with closing(create_knowledge("sqlite", path=folder / "kb.db", name="handbook").sync) as written:
        written.upsert(Document("Lunch is at noon.", "agent"))
        (folder / "docs/travel.md").unlink()
        assert corpus(kb("ingest", "handbook", "--rebuild", "--json"))["removed"] == []
        assert (kb("ingest", "handbook", "--verify").code, len(written.list_documents())) == (0, 3)
        found = corpus(kb("ingest", "handbook", "--rebuild", "--delete-missing", "--json"))
        assert (found["removed"], len(written.list_documents())) == (["travel.md", "agent"], 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("handbok",), "Did you mean 'handbook'?"),
        (("sales",), "No backend of type knowledge is called 'sales'"),
        (("empty",), "backends.empty names no sources"),
        (("handbook", "--rebuild", "--dry-run"), "one of --dry-run, --rebuild and --verify"),
        (("handbook", "--repair"), "--repair goes with --verify"),
        (("handbook", "--agent", "Support"), "leave --agent out"),
        (("handbook", "--embedder", "hash", "--namespace", "x"), "go with --path"),
        (("--path", "x.db"), "Name the sources"),
        (("--path", "x.db", "--verify"), "There is no corpus at x.db"),
    ],
    ids=["misspelt", "other type", "no sources", "two ways", "repair", "agent", "namespace", "nothing", "nowhere"],
)
def test_what_cannot_be_done_is_told_before_anything_is(kb: Command, arguments, message):
    done = kb("ingest", *arguments)
    assert (done.code, message in done.err) == (2, True), done.err


def test_an_unknown_model_is_told_with_those_that_are_known(kb: Command):
    done = kb("ingest", "--path", "x.db", "docs", "--embedder", "onnx:nowhere")
    assert (done.code, "there is no model at nowhere" in done.err) == (1, True)


@pytest.mark.parametrize("way", ["--verify", "--dry-run"])
def test_looking_makes_neither_file_nor_corpus(kb: Command, folder: Path, way: str):
    kb("ingest", "--path", "kb.db", "docs", "--namespace", "handbook")
    before = {path.name for path in folder.iterdir()}
    for arguments in (("--path", "kb.db", "--namespace", "handbok"), ("--path", "new/x.db")):
        kb("ingest", *arguments, *(["docs"] if way == "--dry-run" else []), way)
    (folder / "kb.yaml").write_text(KB_YAML.replace("path: kb.db", "path: other.db"), "utf-8")
    kb("ingest", "handbook", way)
    assert {path.name for path in folder.iterdir()} == before
    with closing(sqlite3.connect(folder / "kb.db")) as file:
        assert file.execute("SELECT name FROM namespaces").fetchall() == [("handbook",)]


@pytest.mark.parametrize("options", [("--verify",), ("--verify", "--repair")], ids=["verify", "repair"])
def test_a_corpus_that_is_not_in_the_file_is_told_with_those_that_are(kb: Command, options: tuple[str, ...]):
    for name in ("handbook", "travel"):
        kb("ingest", "--path", "kb.db", "docs", "--namespace", name)
    done = kb("ingest", "--path", "kb.db", *options, "--namespace", "handbok")
    told = "There is no corpus 'handbok' in kb.db. Did you mean 'handbook'? There are: handbook, travel."
    assert (done.code, done.out, told in done.err) == (2, "", True), done.err
    assert kb("ingest", "--path", "kb.db", "--verify", "--namespace", "travel").code == 0


def test_a_corpus_that_fails_hides_no_other_and_is_told_by_its_name(kb: Command, folder: Path):
    (folder / "broken.db").write_text("This is no database, and long enough to be read as one that is none.\n" * 20)
    backends = "  broken: {type: knowledge, path: broken.db, sources: [docs/]}\n  absent: {type: knowledge, path: absent.db}\n"
    (folder / "kb.yaml").write_text(KB_YAML.replace("backends:\n", f"backends:\n{backends}"), "utf-8")
    done = kb("ingest")
    assert (done.code, done.out) == (1, "handbook\t2\t0\t0\t0\t0\t0\t2\n")
    assert "broken: " in done.err
    assert "is no corpus of this library" in done.err
    done = kb("ingest", "--verify", "--json")
    assert {each["name"]: bool(each["error"]) for each in done.json["corpora"]} == {
        "broken": True, "absent": True, "handbook": False, "empty": True,
    }  # fmt: skip
    assert (done.json["ok"], "absent: There is no corpus" in done.err) == (False, True)
