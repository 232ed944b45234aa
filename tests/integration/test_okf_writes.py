"""Writes to a bundle (A17): every statement of seed 002, two writers, failures in the middle, the log."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from okf_bundles import CountingStore, concept, ids, opened, write

from agentkernel_kb import (
    DocumentChangedError,
    KnowledgeBuilder,
    KnowledgeCapabilityError,
    KnowledgePathError,
    KnowledgeQueryError,
    LocalDocumentStore,
    OKFManager,
    acting_as,
)
from agentkernel_kb.errors import KnowledgeBackendError

CURATED = (
    "---\ntype: Policy # by hand\ntitle: Refunds\nverified: { by: human:anna, at: 2026-01-01T00:00:00Z }\n---\nThirty days.\n"
)


@pytest.fixture
def shop(tmp_path: Path) -> Any:
    backend = opened(
        tmp_path / "shop", {"rules/refunds.md": CURATED, "index.md": "# Shop\n"}, name="shop", refresh_seconds=None
    )
    yield backend
    backend.close()


def text_of(tmp_path: Path, path: str) -> str:
    return (tmp_path / "shop" / path).read_bytes().decode()


def test_a17_what_is_written_is_a_document_of_the_bundle_and_seen_by_the_next_call(shop: OKFManager, tmp_path: Path):
    (identity,) = shop.add([{"text": "# Acme pays late\n\nBy 40 days.", "metadata": {"source": "call"}}])
    assert identity.startswith("generated/acme-pays-late-")
    assert ids(shop.search("acme pays")) == ids(shop.browse("generated")) == ids(shop.fetch([identity])) == [identity]
    assert shop.browse("generated")[0]["text"] == "Acme pays late"
    assert "type: Note\ntitle: Acme pays late\ngenerated:\n  by: agentkernel-kb/" in text_of(tmp_path, identity)


def test_a17_the_actor_and_the_folder_can_be_chosen(tmp_path: Path):
    backend = opened(tmp_path / "shop", {}, write_actor="ingest/2", write_prefix="made/here/")
    (identity,) = backend.add([{"text": "x", "metadata": {}}])
    assert identity.startswith("made/here/x-")
    assert backend.fetch([identity])[0]["metadata"]["generated"]["by"] == "ingest/2"
    backend.close()


def test_a17_whom_a_call_acts_for_is_not_who_wrote_it(shop: OKFManager, tmp_path: Path):
    with acting_as("human-boss"):
        (identity,) = shop.add([{"text": "x", "metadata": {}}])
    assert "human" not in text_of(tmp_path, identity)


def test_a17_the_tool_writes_and_tells_the_id(shop: OKFManager):
    tools = {tool.__name__: tool for tool in KnowledgeBuilder([shop]).build()}
    answer = tools["write_kb"]("shop", "Globex pays early.", "call with Globex")
    (hit,) = shop.search("globex")
    assert hit["metadata"]["id"] in answer
    assert "sources: call with Globex" in tools["fetch_kb"]("shop", hit["metadata"]["id"])


def test_a17_the_same_record_again_changes_nothing(shop: OKFManager, tmp_path: Path):
    record = {"text": "Once.", "metadata": {"source": "x"}}
    (identity,) = shop.add([record])
    before = text_of(tmp_path, identity)
    assert shop.add([record]) == [identity]
    assert text_of(tmp_path, identity) == before


def test_a17_a_note_that_was_edited_since_is_left_to_its_editor(shop: OKFManager, tmp_path: Path):
    record = {"text": "Once.", "metadata": {}}
    (identity,) = shop.add([record])
    write(tmp_path / "shop", {identity: concept("Edited", "by a curator")})
    assert shop.add([record]) == [identity]
    assert "by a curator" in text_of(tmp_path, identity)


def test_a17_a_fetched_concept_written_back_gains_nothing(shop: OKFManager, tmp_path: Path):
    (record,) = shop.fetch(["rules/refunds.md"])
    shop.write([record])
    assert text_of(tmp_path, "rules/refunds.md") == CURATED


def test_a17_a_changed_body_leaves_the_curators_frontmatter_byte_for_byte(shop: OKFManager, tmp_path: Path):
    (record,) = shop.fetch(["rules/refunds.md"])
    shop.write([{**record, "text": "Forty days.\n"}])
    assert text_of(tmp_path, "rules/refunds.md") == CURATED.replace("Thirty", "Forty")
    assert ids(shop.search("forty")) == ["rules/refunds.md"]
    assert list(shop.search("thirty")) == []


def test_a17_a_named_record_goes_exactly_where_it_says(shop: OKFManager, tmp_path: Path):
    assert shop.add([{"text": "Body.", "metadata": {"id": "tables/new", "type": "Table"}}]) == ["tables/new.md"]
    assert text_of(tmp_path, "tables/new.md").startswith("---\ntype: Table\ngenerated:")
    assert text_of(tmp_path, "tables/new.md").endswith("---\nBody.")
    assert shop.fetch(["tables/new.md"])[0]["text"] == "Body."


def test_a17_a_path_with_a_comma_is_written_by_its_escaped_id(tmp_path: Path):
    backend = opened(tmp_path / "shop", {"a, b.md": concept("A", "old")})
    (identity,) = ids(backend.search("old"))
    backend.add([{"text": "new", "metadata": {"id": identity}}])
    assert text_of(tmp_path, "a, b.md").endswith("new")
    backend.close()


def test_a17_an_index_is_never_written(shop: OKFManager, tmp_path: Path):
    for identity in ("index.md", "rules/index.md", "Index", "log"):
        with pytest.raises(KnowledgeQueryError):
            shop.add([{"text": "x", "metadata": {"id": identity}}])
    shop.add([{"text": "x", "metadata": {}}])
    assert text_of(tmp_path, "index.md") == "# Shop\n"


@pytest.mark.parametrize("identity", ["../out.md", "a/../../out", "%2e%2e/out", "/../out", ".git/out"])
def test_a17_an_escape_is_refused_and_nothing_written(shop: OKFManager, tmp_path: Path, identity: str):
    with pytest.raises(KnowledgePathError):
        shop.add([{"text": "fine", "metadata": {}}, {"text": "x", "metadata": {"id": identity}}])
    assert sorted(place.name for place in tmp_path.rglob("*.md")) == ["index.md", "refunds.md"]


def test_a17_a_store_that_cannot_be_written_makes_a_backend_that_cannot(tmp_path: Path):
    write(tmp_path / "shop", {"a.md": concept("A")})
    backend = OKFManager(LocalDocumentStore(tmp_path / "shop", writable=False), index=None)
    assert backend.capabilities.writable is False
    with pytest.raises(KnowledgeCapabilityError):
        backend.add([{"text": "x", "metadata": {}}])
    backend.close()


# Two writers.


def test_a17_of_two_writers_that_saw_the_same_state_the_second_is_told(shop: OKFManager, tmp_path: Path):
    (record,) = shop.fetch(["rules/refunds.md"])
    shop.write([{**record, "text": "First.\n"}])
    with pytest.raises(DocumentChangedError, match="changed by somebody else"):
        shop.write([{**record, "text": "Second.\n"}])
    assert text_of(tmp_path, "rules/refunds.md").endswith("First.\n")
    (record,) = shop.fetch(["rules/refunds.md"])
    shop.write([{**record, "text": "Second, knowing of the first.\n"}])


def test_a17_a_document_that_changed_beneath_the_index_is_not_overwritten_unseen(shop: OKFManager, tmp_path: Path):
    write(tmp_path / "shop", {"rules/refunds.md": CURATED.replace("Thirty", "Ninety")})
    with pytest.raises(DocumentChangedError):
        shop.write([{"text": "Mine.", "metadata": {"id": "rules/refunds.md"}}])
    assert "Ninety" in text_of(tmp_path, "rules/refunds.md")
    assert ids(shop.search("ninety")) == ["rules/refunds.md"]
    shop.write([{"text": "Mine.", "metadata": {"id": "rules/refunds.md"}}])


def test_a17_a_document_that_was_removed_meanwhile_is_not_brought_back_unseen(shop: OKFManager, tmp_path: Path):
    (record,) = shop.fetch(["rules/refunds.md"])
    (tmp_path / "shop/rules/refunds.md").unlink()
    with pytest.raises(DocumentChangedError, match="is gone"):
        shop.write([record])
    assert not (tmp_path / "shop/rules/refunds.md").exists()


def test_a17_many_threads_write_and_nothing_is_lost(shop: OKFManager):
    failures: list[BaseException] = []
    written: list[str] = []

    def work(name: int) -> None:
        try:
            for number in range(10):
                written.extend(shop.add([{"text": f"Note {name} {number}", "metadata": {}}]))
                (record,) = shop.fetch(["rules/refunds.md"])
                try:
                    shop.write([{**record, "text": f"{record['text']}line {name} {number}\n"}])
                    written.append(f"line {name} {number}")
                except DocumentChangedError:
                    continue
        except BaseException as error:  # noqa: BLE001 - whatever a thread meets fails the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    body = shop.fetch(["rules/refunds.md"])[0]["text"]
    assert [line for line in written if line.startswith("line ") and line not in body] == []
    notes = [identity for identity in written if identity.startswith("generated/")]
    assert len(notes) == len(set(notes)) == len(shop.fetch(notes)) == 60
    assert len(shop.search("note type:Note", limit=100)) == 60


# Failures.


class FailingStore(CountingStore):
    """A folder whose disk is full from the second write on."""

    writes = 0
    fails_from = 2

    def write_bytes(self, path: str, data: bytes, **conditions: Any) -> Any:
        self.writes += 1
        if self.writes == self.fails_from:
            raise KnowledgeBackendError("The disk is full.")
        return super().write_bytes(path, data, **conditions)


def test_a17_a_call_that_fails_half_way_takes_back_what_it_wrote(tmp_path: Path):
    write(tmp_path / "shop", {"rules/refunds.md": CURATED})
    backend = opened(tmp_path / "shop", store=FailingStore(tmp_path / "shop"), refresh_seconds=None)
    records = [{"text": "New body.", "metadata": {"id": "rules/refunds.md"}}, {"text": "second", "metadata": {}}]
    with pytest.raises(KnowledgeBackendError, match="disk is full"):
        backend.add(records)
    assert text_of(tmp_path, "rules/refunds.md") == CURATED
    assert [place.name for place in (tmp_path / "shop").rglob("*") if place.is_file()] == ["refunds.md"]
    assert len(backend.add(records)) == 2
    backend.close()


@pytest.mark.parametrize("records", ["text", {"text": "x"}, [{"text": "fine", "metadata": {}}, {"text": ""}], 5])
def test_a17_what_cannot_be_stored_is_refused_before_anything_is(shop: OKFManager, tmp_path: Path, records: Any):
    with pytest.raises(KnowledgeQueryError, match=r"[Nn]othing was written"):
        shop.add(records)
    assert not (tmp_path / "shop/generated").exists()


# The log.


def test_a17_the_nearest_log_gets_an_entry_newest_first(tmp_path: Path):
    documents: dict[str, str | bytes] = {
        "log.md": "# Log\n\n## 2026-05-22\n* old\n",
        "rules/log.md": "# Rules\n",
        "rules/refunds.md": CURATED,
    }
    backend = opened(tmp_path / "shop", documents)
    (identity,) = backend.add([{"text": "A [new] note", "metadata": {}}])
    backend.add([{"text": "Changed.", "metadata": {"id": "rules/refunds.md"}}])
    today = datetime.now(UTC).date().isoformat()
    assert (
        text_of(tmp_path, "log.md")
        == f"# Log\n\n## {today}\n* **Creation**: Added [A \\[new\\] note](/{identity}).\n\n## 2026-05-22\n* old\n"
    )
    assert text_of(tmp_path, "rules/log.md") == f"# Rules\n\n## {today}\n* **Update**: Changed [Refunds](/rules/refunds.md).\n"
    assert backend.get_diagnostics() == []
    backend.close()


def test_a17_a_bundle_without_a_log_gets_none_and_what_changes_nothing_is_not_logged(tmp_path: Path):
    backend = opened(tmp_path / "shop", {"log.md": "# Log\n", "a.md": CURATED})
    backend.write(backend.fetch(["a.md"]))
    assert text_of(tmp_path, "log.md") == "# Log\n"
    backend.close()


def test_a17_a_log_that_cannot_be_written_does_not_undo_the_write(tmp_path: Path):
    write(tmp_path / "shop", {"log.md": "# Log\n"})
    backend = opened(tmp_path / "shop", store=FailingStore(tmp_path / "shop"), refresh_seconds=None)
    (identity,) = backend.add([{"text": "kept", "metadata": {}}])
    assert ids(backend.fetch([identity])) == [identity]
    assert "disk is full" in backend.get_diagnostics()[0]
    backend.add([{"text": "another", "metadata": {}}])
    assert backend.get_diagnostics() == []
    backend.close()


def test_a17_many_writers_lose_no_entry_of_the_log(tmp_path: Path):
    backend = opened(tmp_path / "shop", {"log.md": "# Log\n"})
    threads = [threading.Thread(target=backend.add, args=([{"text": f"Note {name}", "metadata": {}}],)) for name in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert text_of(tmp_path, "log.md").count("* **Creation**") == 12
    backend.close()
