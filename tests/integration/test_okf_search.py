"""What is searched for is found, in every script, with filters, and shows why (A16)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from okf_bundles import concept, ids, opened

from agentkernel_kb import OKFManager

LIBRARY: dict[str, str | bytes] = {
    "title.md": concept("Parcel insurance", "Something else entirely."),
    "body.md": concept(
        "Shipping", "Every parcel has an insurance of its own. " + "Filler words. " * 400 + "Zanzibar comes last."
    ),
    "tag.md": concept("Rates", "Numbers.", tags="[insurance, eu-west]"),
    "cafe.md": concept("Café", "Crème brûlée, naïve."),
    "知識.md": concept("知識管理", "会社の知識管理について。東京都の図書館。"),
    "thai.md": concept("ไทย", "ภาษาไทยไม่มีช่องว่าง"),
    "plain.md": concept("Łódź", "Ærø, Þórshöfn, smørrebrød and ışık."),
    "russian.md": concept("Москва", "Йод и соль."),
    "code.md": concept("Languages", "We write C++ and C#, never order_id."),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    backend = opened(tmp_path_factory.mktemp("library") / "x", LIBRARY)
    yield backend
    backend.close()


@pytest.mark.parametrize(
    ("query", "first"),
    [
        *(
            ("parcel insurance", "title.md"),
            ("insurances", "title.md"),
            ("zanzibar", "body.md"),
            ("cafe", "cafe.md"),
            ("CRÈME", "cafe.md"),
        ),
        *(
            ("naïve", "cafe.md"),
            ("知識", "知識.md"),
            ("管理", "知識.md"),
            ("図書館", "知識.md"),
            ("都", "知識.md"),
            ("館", "知識.md"),
        ),
        *(
            ("ไทย", "thai.md"),
            ("ช่องว่าง", "thai.md"),
            ("йод", "russian.md"),
            ("lodz", "plain.md"),
            ("ŁÓDŹ", "plain.md"),
            ("aero", "plain.md"),
            ("thorshofn", "plain.md"),
            ("isik", "plain.md"),
            ("МОСКВА", "russian.md"),
            ("c++", "code.md"),
            ("C#", "code.md"),
        ),
        *(("order_id", "code.md"), ("insur*", "title.md"), ('"insurance of its own"', "body.md"), ("tag:eu-west", "tag.md")),
        *(
            ("tag:EU-*", "tag.md"),
            ("path:body insurance", "body.md"),
            ("path:*ody* insurance", "body.md"),
            ("type:note zanzibar", "body.md"),
        ),
        *(("what is the parcel insurance?", "title.md"), ('"知識管理"', "知識.md")),
    ],
)
def test_a16_every_word_of_every_body_in_every_script_is_found(library: OKFManager, query: str, first: str):
    assert ids(library.search(query))[:1] == [first]


@pytest.mark.parametrize(
    "query",
    ["type:Policy insurance", "tag:none", '"own its of insurance"', "prefund", "xyzzy", "path:../ insurance", "path:* xyzzy"],
)
def test_a16_what_is_not_there_is_not_found(library: OKFManager, query: str):
    assert list(library.search(query)) == []


def test_a16_a_hit_shows_why_it_was_found(library: OKFManager):
    (hit,) = library.search("zanzibar")
    assert "Zanzibar comes last." in hit["metadata"]["snippet"]
    assert hit["metadata"]["snippet"] in hit["text"]


def test_a16_filters_alone_list_by_path(library: OKFManager):
    assert ids(library.search("type:Note", limit=99)) == sorted(LIBRARY)


def test_a16_a_rare_word_weighs_more_than_common_ones(tmp_path: Path):
    documents: dict[str, str | bytes] = {f"{n:04}.md": concept(f"T{n}", "common words here") for n in range(1_100)}
    documents["0500.md"] = concept("T", "common words and one rarity")
    backend = opened(tmp_path / "x", documents)
    assert ids(backend.search("common words rarity", limit=2))[0] == "0500.md"
    everything = backend.search("common words rarity", limit=50)
    assert backend.search("common words rarity", limit=7) == everything[:7]
    scores = [record["metadata"]["score"] for record in everything]
    assert scores == sorted(scores, reverse=True)
    backend.close()
