"""A bundle in a folder as an application uses it: every statement of seed 002 on reading (A16)."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from okf_bundles import CountingStore, concept, ids, opened, write

from agentkernel_kb import (
    AKConfigError,
    KnowledgeBuilder,
    KnowledgePathError,
    KnowledgeStateError,
    LocalDocumentStore,
    OKFManager,
)

SHARED = Path(__file__).parent.parent.parent / "examples" / "okf" / "bundle"
DOCUMENTS: dict[str, str | bytes] = {
    "index.md": '---\nokf_version: "0.2"\n---\n# The shop\n\n* [Rules](rules/)\n',
    "log.md": "---\ntype: Log\n---\n# Log\n\n## 2026-05-22\n* **Creation**: All.\n",
    "rules/index.md": "# Rules\n\n* [Refunds](refunds.md) - how\n",
    "rules/refunds.md": concept(
        "Refunds", "Thirty days. See [returns](/rules/returns.md), [none](none.md).", "Policy", tags="[billing]"
    ),
    "rules/returns.md": concept(
        "Returns", "Free of charge, see [refunds](refunds.md).", "Policy", description="How to return."
    ),
    "tables/orders.md": concept(
        "Orders", "One row per order.", "BigQuery Table", verified="{by: human:a, at: 2026-01-01T00:00:00Z}"
    ),
    "tables/eu/old.md": concept("Old", "Kept.", "BigQuery Table", stale_after="2020-01-01T00:00:00Z", status="deprecated"),
}


@pytest.fixture
def shop(tmp_path: Path) -> Any:
    backend = opened(tmp_path / "shop", DOCUMENTS, name="shop", description="What the shop does.")
    yield backend
    backend.close()


# Seed 002, "The OKF backend": what is reserved, and browsing.


def test_a16_a_human_index_is_returned_verbatim(shop: OKFManager):
    for path, place in (
        ("", "index.md"),
        ("rules", "rules/index.md"),
        ("/rules/", "rules/index.md"),
        ("rules/index.md", "rules/index.md"),
    ):
        (record,) = shop.browse(path)
        assert (record["text"], record["metadata"]["id"], record["metadata"]["kind"]) == (DOCUMENTS[place], place, "index")


def test_a16_a_folder_without_an_index_shows_its_folders_and_concepts(shop: OKFManager):
    folder, table = shop.browse("tables")
    assert (folder["text"], folder["metadata"]) == ("tables/eu/", {"source": "tables/eu/", "kind": "folder"})
    assert ids([table]) == ["tables/orders.md"]
    assert "One row per order" not in table["text"]


def test_a16_a_concept_can_be_browsed_and_an_unknown_path_is_empty(shop: OKFManager):
    assert ids(shop.browse("tables/orders.md")) == ids(shop.browse("tables/orders")) == ["tables/orders.md"]
    assert list(shop.browse("nowhere")) == list(shop.browse("rules/refunds.md/x")) == []


def test_a16_a_log_is_never_a_concept_whatever_its_frontmatter(shop: OKFManager):
    assert list(shop.fetch(["log.md", "log", "/log.md"])) == []
    assert list(shop.search("type:Log")) == list(shop.search("Creation")) == []


def test_a16_reserved_names_are_reserved_at_every_level_and_in_every_case(tmp_path: Path):
    documents: dict[str, str | bytes] = {"a/INDEX.md": concept("I"), "a/Log.md": concept("L"), "a/b.md": concept("B")}
    with_upper = opened(tmp_path / "x", documents)
    assert with_upper.bundle.concept_count == 1
    assert with_upper.browse("a")[0]["text"] == concept("I")
    with_upper.close()


def test_a16_limits_cut_and_say_so(tmp_path: Path):
    backend = opened(tmp_path / "x", {f"f{n:02}/c.md": concept(f"C{n}", "same words") for n in range(12)})
    assert [len(backend.browse(limit=limit)) for limit in (0, 1, 12, 10**30)] == [1, 1, 12, 12]
    assert [getattr(backend.browse(limit=limit), "more", None) for limit in (11, 12)] == [True, False]
    assert [getattr(backend.search("words", limit=limit), "more", None) for limit in (11, 12)] == [True, False]
    backend.close()


# Self-derived schema.


def test_a16_the_schema_comes_from_the_bundle_itself(shop: OKFManager):
    schema = shop.schema()
    assert {key: schema[key] for key in ("okf_version", "concept_count", "types", "top_level_directories", "diagnostics")} == {
        "okf_version": "0.2",
        "concept_count": 4,
        "types": ["BigQuery Table", "Policy"],
        "top_level_directories": ["rules", "tables"],
        "diagnostics": 0,
    }
    assert schema["reserved_files"] == {"index": ["index.md", "rules/index.md"], "log": ["log.md"]}
    assert schema["truncated"] is False
    assert shop.capabilities.derives_schema


@pytest.mark.parametrize(("cap", "truncated"), [(2, True), (3, False), (4, False)])
def test_a16_max_concepts_cuts_and_says_so(tmp_path: Path, cap: int, truncated: bool):
    documents = {**{f"{name}.md": concept(name) for name in "abc"}, "index.md": "# I", "log.md": "# L"}
    backend = opened(tmp_path / "x", documents, max_concepts=cap)
    assert (backend.bundle.concept_count, backend.schema()["truncated"]) == (min(cap, 3), truncated)
    assert any("max_concepts" in line for line in backend.get_diagnostics()) is truncated
    assert ids(backend.fetch(["c.md"])) == ["c.md"]
    backend.close()


# Tolerance.


def test_a16_a_document_that_cannot_be_read_is_skipped_with_file_and_line_and_shown_to_the_agent(tmp_path: Path):
    bad = "---\ntype: A\ntitle: a: b\n---\nx"
    backend = opened(tmp_path / "x", {"bad.md": bad, "good.md": concept("Good")}, name="shop")
    assert backend.bundle.concept_count == 1
    assert backend.get_diagnostics() == [
        "bad.md:3: Skipped: its frontmatter is not valid YAML: mapping values are not allowed in this context."
    ]
    described = {tool.__name__: tool for tool in KnowledgeBuilder([backend]).build()}["get_all_kb_descriptions"]()
    assert "bad.md:3" in described
    assert "1 concept. 1 diagnostic." in backend.get_description()
    backend.close()


def test_a16_broken_links_unknown_types_and_missing_indexes_reject_nothing(tmp_path: Path):
    backend = opened(tmp_path / "x", {"a/b.md": concept("B", "[gone](gone.md)", "Unheard Of", owner="x")})
    (record,) = backend.fetch(["a/b.md"])
    assert (record["metadata"]["links"], record["metadata"]["broken_links"]) == ([], ["a/gone.md"])
    assert backend.get_diagnostics() == []
    backend.close()


def test_a16_an_unknown_version_is_read_and_named(tmp_path: Path):
    backend = opened(tmp_path / "x", {"index.md": '---\nokf_version: "7.1"\n---\n# I', "a.md": concept("A")})
    assert (backend.schema()["okf_version"], backend.bundle.concept_count) == ("7.1", 1)
    assert "7.1" in backend.get_diagnostics()[0]
    backend.close()


@pytest.mark.parametrize(
    ("documents", "code"),
    [
        ({"a/index.md": "---\nokf_version: '0.2'\n---\n# I"}, "index_frontmatter"),
        ({"index.md": "---\nokf_version: [\n---\n# I"}, "unparseable_frontmatter"),
        ({"log.md": "# L\n\n## May\n* x\n"}, "log_heading"),
        ({"a/log.md": "# L\n\n## 2026-05-22: Summary\n* x\n"}, ""),
        ({"index.md": "no headings at all"}, ""),
    ],
    ids=["nested", "broken", "heading", "summary", "bare"],
)
def test_a16_reserved_documents_that_break_a_rule_are_diagnostics(tmp_path: Path, documents: dict[str, str | bytes], code: str):
    backend = opened(tmp_path / "x", {**documents, "c.md": concept("C")})
    assert [diagnostic.code.value for diagnostic in backend.bundle.diagnostics] == [code] * bool(code)
    assert backend.bundle.concept_count == 1
    backend.close()


def test_a16_a_tree_of_documentation_can_be_read_with_a_type_of_ones_own(tmp_path: Path):
    documents: dict[str, str | bytes] = {
        "a.md": "---\ntitle: With title\n---\nx",
        "b.md": "# A heading\n\nplain text",
        "c.md": "---\n[\n---\n",
    }
    backend = opened(tmp_path / "x", documents, default_type="Page")
    assert [(r["metadata"]["title"], r["metadata"]["kind"]) for r in backend.browse()] == [
        ("With title", "Page"),
        ("A heading", "Page"),
    ]
    assert len(backend.get_diagnostics()) == 1
    backend.close()


# Trust and age.


def test_a16_every_record_carries_trust_and_age_and_nothing_is_left_out_for_them(shop: OKFManager):
    for records in (
        shop.search("tables old orders path:tables", limit=9),
        shop.fetch(["tables/orders.md", "tables/eu/old.md"]),
    ):
        signals = {record["metadata"]["id"]: (record["metadata"]["trust"], record["metadata"]["stale"]) for record in records}
        assert signals == {"tables/orders.md": ("human-reviewed", False), "tables/eu/old.md": ("unverified", True)}


def test_a16_a_concept_becomes_stale_while_it_is_served(tmp_path: Path):
    soon = (datetime.now(UTC) + timedelta(seconds=1.5)).isoformat()
    backend = opened(tmp_path / "x", {"a.md": concept("A", "words", stale_after=soon)}, refresh_seconds=None)
    fresh = backend.search("words")[0]["metadata"]["stale"]
    time.sleep(1.6)
    assert (fresh, backend.search("words")[0]["metadata"]["stale"]) == (False, True)
    backend.close()


def test_a16_a_model_reads_type_trust_age_tags_and_links(shop: OKFManager):
    shown = shop.format_results(shop.fetch(["rules/refunds.md", "tables/eu/old.md"]))
    for expected in (
        "(Policy; unverified)",
        "STALE since 2020-01-01",
        "deprecated",
        "tags: billing",
        "links: rules/returns.md",
        "backlinks: rules/returns.md",
    ):
        assert expected in shown
    assert shown.count("\n- [") == 1


# Only fetch reads a body.


def test_a16_search_and_browse_read_nothing_and_fetch_reads_what_is_asked_for(tmp_path: Path):
    write(tmp_path / "x", DOCUMENTS)
    store = CountingStore(tmp_path / "x")
    backend = opened(tmp_path / "x", store=store)
    store.reads = 0
    backend.search("thirty days refunds")
    backend.browse("tables")
    backend.browse()
    backend.schema()
    assert store.reads == 0
    backend.fetch(["rules/refunds.md", "tables/orders.md"])
    assert store.reads == 2
    backend.close()


def test_a16_what_is_fetched_is_what_the_store_has_now(tmp_path: Path):
    backend = opened(tmp_path / "x", {"a.md": concept("A", "old")}, refresh_seconds=None)
    write(tmp_path / "x", {"a.md": concept("A", "new"), "b.md": concept("B", "unseen")})
    assert [record["text"] for record in backend.fetch(["a.md", "b.md"])] == ["new\n", "unseen\n"]
    (tmp_path / "x" / "a.md").unlink()
    assert list(backend.fetch(["a.md"])) == []
    backend.close()


@pytest.mark.parametrize(
    "identity", ["rules/refunds.md", "rules/refunds", "/rules/refunds.md", "./rules//refunds.md", " rules/refunds.md "]
)
def test_a16_an_id_may_be_spelled_as_models_spell_it(shop: OKFManager, identity: str):
    assert ids(shop.fetch([identity])) == ["rules/refunds.md"]


@pytest.mark.parametrize(
    "identity", ["../secret.md", "/../secret.md", "rules/../../x", "%2e%2e/x", "C:\\x.md", "a\x00b", ".git/config.md"]
)
def test_a16_an_id_or_a_path_that_leaves_the_bundle_is_refused(shop: OKFManager, identity: str):
    with pytest.raises(KnowledgePathError):
        shop.fetch([identity])
    with pytest.raises(KnowledgePathError):
        shop.browse(identity)


@pytest.mark.parametrize("identity", ["/etc/passwd", "etc/passwd", "~/x", "", " ", ".", 7, None])
def test_a16_an_id_of_nothing_is_left_out(shop: OKFManager, identity: Any):
    assert ids(shop.fetch([identity, "tables/orders.md"])) == ["tables/orders.md"]


def test_a16_backlinks_follow_what_a_link_means(tmp_path: Path):
    documents: dict[str, str | bytes] = {
        "a/one.md": concept("One", "[t](target.md) [u](/a/under.md)"),
        "a/target.md": concept("T"),
        "target.md": concept("Root T"),
        "b/two.md": concept("Two", "[t](target.md)", sources="[{resource: a/one.md}]"),
    }
    backend = opened(tmp_path / "x", documents)
    backlinks = {record["metadata"]["id"]: record["metadata"].get("backlinks", []) for record in backend.fetch(list(documents))}
    assert backlinks == {"a/one.md": ["b/two.md"], "a/target.md": ["a/one.md"], "target.md": ["b/two.md"], "b/two.md": []}
    backend.close()


# Construction.


@pytest.mark.parametrize(
    "arguments",
    [
        {"refresh_seconds": -1},
        {"refresh_seconds": "5"},
        {"refresh_seconds": float("nan")},
        {"max_concepts": 0},
        {"max_concepts": True},
        {"max_concepts": 2.5},
        {"write_actor": ""},
        {"write_actor": "a\nb"},
        {"write_prefix": "../x"},
        {"write_prefix": "/abs"},
        {"description": 5},
        {"index": 5},
        {"index": ""},
        {"default_type": "\n"},
    ],
)
def test_a16_a_wrong_argument_is_an_error_that_names_it(tmp_path: Path, arguments: dict[str, Any]):
    with pytest.raises(AKConfigError, match=next(iter(arguments))):
        opened(tmp_path / "x", {}, **arguments)


def test_a16_a_store_that_is_none_or_gone_fails_at_construction(tmp_path: Path):
    not_a_store: Any = str(tmp_path)
    with pytest.raises(AKConfigError):
        OKFManager(not_a_store)
    store = LocalDocumentStore(write(tmp_path / "x", {}))
    shutil.rmtree(tmp_path / "x")
    with pytest.raises(Exception, match="x"):
        OKFManager(store, index=None)


def test_a16_the_positional_arguments_are_the_seeds(tmp_path: Path):
    store = LocalDocumentStore(write(tmp_path / "x", {"a.md": concept("A")}))
    backend = OKFManager(store, "name", "described", None, 5, "actor/1", "made", index=None)
    assert (backend.backend_name, backend.get_description()) == ("name", "name: described. 1 concept.")
    backend.close()
    with OKFManager(store, index=None).store as inner:
        assert inner is store


def test_a16_the_default_name_is_okf(tmp_path: Path):
    backend = opened(tmp_path / "x", {})
    assert backend.backend_name == "okf"
    assert list(backend.browse()) == list(backend.search("x")) == []
    backend.close()


def test_a16_after_close_every_call_says_so_and_connect_opens_again(shop: OKFManager):
    shop.close()
    for call in (lambda: shop.search("x"), shop.browse, shop.schema, shop.reload, lambda: shop.fetch(["a"])):
        with pytest.raises(KnowledgeStateError, match="'shop' is closed"):
            call()
    shop.connect()
    assert ids(shop.search("thirty"))[0] == "rules/refunds.md"
