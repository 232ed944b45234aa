"""The rules of the format's specification that a consumer has to keep, one test each (A16). Source: OKF 0.2 §3 to §13."""

from __future__ import annotations

from pathlib import Path

import pytest
from okf_bundles import concept, ids, opened, write

from agentkernel_kb.okf.model import TrustTier
from agentkernel_kb.okf.parser import parse_document

SOUND = concept("Sound", "sound words")


@pytest.mark.parametrize("place", ["index.md", "log.md", "a/index.md", "a/b/log.md"])
def test_a16_okf_3_1_reserved_files_are_never_concepts(tmp_path: Path, place: str):
    backend = opened(tmp_path / "x", {place: concept("Reserved", "reserved words"), "a.md": SOUND})
    assert backend.bundle.concept_count == 1
    assert list(backend.search("reserved")) == []
    backend.close()


@pytest.mark.parametrize("place", ["README.md", "LICENSE.md", "AGENTS.md", "a/README.md"])
def test_a16_okf_3_1_every_other_markdown_file_is_a_concept(tmp_path: Path, place: str):
    backend = opened(tmp_path / "x", {place: SOUND})
    assert ids(backend.search("sound")) == [place]
    backend.close()


@pytest.mark.parametrize("fault", ["no frontmatter", "---\ntype: [\n---\n", "---\ntype: ''\n---\n", "---\ntitle: T\n---\n"])
def test_a16_okf_11_what_does_not_conform_is_a_diagnostic_and_the_rest_is_served(tmp_path: Path, fault: str):
    backend = opened(tmp_path / "x", {"bad.md": fault, "good.md": SOUND})
    assert ids(backend.search("sound")) == ["good.md"]
    (diagnostic,) = backend.bundle.diagnostics
    assert (diagnostic.path, diagnostic.line is not None) == ("bad.md", True)
    backend.close()


@pytest.mark.parametrize(
    "document",
    [
        "---\ntype: Note\n---\nsound words\n",
        "---\ntype: Never Heard Of\ntitle: T\n---\nsound words\n",
        "---\ntype: Note\nowner: me\nnested: {a: [1]}\n---\nsound words\n",
        "---\ntype: Note\n---\nsound words, [broken](/nowhere.md) and [up](../../out.md)\n",
        "---\ntype: Note\nstatus: retired\n---\nsound words\n",
        "---\ntype: Note\nsources: [{resource: all queries in project X}]\n---\nsound words [^1]\n\n[^1]: of nothing\n",
        "---\ntype: Attested Computation\n---\nsound words\n",
    ],
    ids=["optional fields", "unknown type", "unknown keys", "broken links", "unknown status", "scope and footnote", "runtime"],
)
def test_a16_okf_11_a_consumer_rejects_nothing_for(tmp_path: Path, document: str):
    backend = opened(tmp_path / "x", {"sub/a.md": document})
    assert ids(backend.search("sound")) == ids(backend.fetch(["sub/a"])) == ["sub/a.md"]
    assert ids(backend.browse("sub")) == ["sub/a.md"]  # And for no index.md.
    backend.close()


def test_a16_okf_4_1_a_title_may_be_derived_from_the_name(tmp_path: Path):
    backend = opened(tmp_path / "x", {"orders of May.md": "---\ntype: Note\n---\nx\n"})
    assert backend.browse()[0]["metadata"]["title"] == "orders of May"
    backend.close()


def test_a16_okf_4_1_unknown_keys_survive_a_round_trip(tmp_path: Path):
    document = "---\ntype: Note\nowner: me   # a remark\nnested: {a: [1]}\n---\nold\n"
    backend = opened(tmp_path / "x", {"a.md": document})
    (record,) = backend.fetch(["a"])
    backend.write([{**record, "text": "new\n"}])
    assert (tmp_path / "x/a.md").read_text() == document.replace("old", "new")
    backend.close()


def test_a16_okf_5_2_a_bare_verification_is_a_list_of_one():
    bare = parse_document("a.md", b"---\ntype: A\nverified: {by: human:a, at: 2026-06-25T09:00:00Z}\n---\n").concept
    listed = parse_document("a.md", b"---\ntype: A\nverified: [{by: human:a, at: 2026-06-25T09:00:00Z}]\n---\n").concept
    assert bare == listed
    assert bare is not None
    assert bare.trust is TrustTier.HUMAN_REVIEWED


@pytest.mark.parametrize("folder", ["", "sub"])
def test_a16_okf_6_1_links_from_the_root_and_from_the_document_are_links(tmp_path: Path, folder: str):
    linking = concept("Linking", "[one](/sub/b.md) [two](./c.md) [three](/sub/b.md#part)")
    backend = opened(
        tmp_path / "x", {f"{folder}/a.md".lstrip("/"): linking, "sub/b.md": SOUND, "c.md": SOUND, "sub/c.md": SOUND}
    )
    (record,) = backend.fetch([f"{folder}/a.md".lstrip("/")])
    assert record["metadata"]["links"] == ["sub/b.md", f"{folder}/c.md".lstrip("/")]
    backend.close()


def test_a16_okf_8_a_listing_is_made_where_there_is_no_index(tmp_path: Path):
    backend = opened(tmp_path / "x", {"a.md": concept("A", description="About a."), "sub/b.md": SOUND})
    folder, entry = backend.browse()
    assert folder["text"] == "sub/"
    assert entry["text"].endswith("About a.")
    backend.close()


def test_a16_okf_9_a_heading_of_a_log_that_is_no_date_is_a_diagnostic_with_its_line(tmp_path: Path):
    backend = opened(tmp_path / "x", {"log.md": "# Log\n\n## 2026-05-22\n* x\n\n## Yesterday\n* y\n"})
    assert [(one.path, one.line) for one in backend.bundle.diagnostics] == [("log.md", 6)]
    backend.close()


def test_a16_okf_10_a_computation_is_carried_word_for_word_and_never_run(tmp_path: Path):
    document = (
        "---\ntype: Attested Computation\nruntime: python\nparameters: [{name: n, type: integer, required: true}]\n"
        "executor: {resource: /run.md, receipt: [id]}\nattester: {resource: /check.md}\n---\n"
        "# Computation\n\n    import os; os.remove('a.md')\n"
    )
    backend = opened(tmp_path / "x", {"a.md": document})
    (record,) = backend.fetch(["a"])
    assert "    import os; os.remove('a.md')" in record["text"]
    assert record["metadata"]["runtime"] == "python"
    assert record["metadata"]["attester"] == {"resource": "/check.md"}
    backend.close()


@pytest.mark.parametrize("version", ["0.1", "0.3", "7.1", "next"])
def test_a16_okf_12_an_unknown_version_is_read_as_well_as_can_be(tmp_path: Path, version: str):
    index = f'---\nokf_version: "{version}"\n---\n# Index\n'
    backend = opened(write(tmp_path / "x", {"index.md": index, "a.md": SOUND}))
    assert ids(backend.search("sound")) == ["a.md"]
    assert backend.schema()["okf_version"] == version
    backend.close()


def test_a16_okf_13_the_time_of_0_1_is_read_where_there_is_no_other():
    found = parse_document("a.md", b"---\ntype: A\ntimestamp: 2026-06-01T00:00:00Z\n---\n").concept
    assert found is not None
    assert found.generated == {"at": "2026-06-01T00:00:00Z"}
