"""AutoLoader (P3): whatever an application calls a source, as documents."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pages import resolve, serving, text

from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError
from agentkernel_kb.rag import AutoLoader, Document, Fetcher, ParserBase, Section
from agentkernel_kb.rag.content import DataBlock, TextBlock
from agentkernel_kb.rag.loading.items import SourceItem


def load(source: Any, metadata: dict[str, Any] | None = None, **options: Any) -> list[Document]:
    return asyncio.run(AutoLoader(**options).load(source, metadata=metadata))


def items(source: Any, **options: Any) -> list[SourceItem]:
    async def collect() -> list[SourceItem]:
        return [item async for item in AutoLoader(**options).items(source)]

    return asyncio.run(collect())


def write(folder: Path, **files: str | bytes) -> Path:
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_a_document_keeps_all_that_it_has() -> None:
    document = Document("text", "a.md", {"a": 1}, "id-1", "text/markdown")

    assert load(document) == [document]


def test_metadata_of_the_call_is_added_to_a_document_and_counts_before_its_own() -> None:
    (found,) = load(Document("text", "a.md", {"a": 1, "b": 1}, "id-1"), {"b": 2, "c": 3})

    assert (found.metadata, found.id) == ({"a": 1, "b": 2, "c": 3}, "id-1")


def test_bytes_are_utf_8_and_what_is_malformed_is_replaced() -> None:
    assert [each.text for each in load(b"caf\xc3\xa9 \xff")] == ["café \ufffd"]


@pytest.mark.parametrize(
    "inline",
    [
        "Receipts are due.", "word", "a sentence that ends in readme.md", "no suffix that is known.xyz", "", " ", "x" * 100_000,
        "first\nsecond.md", "a\0.md", "https://example.com is our site", "see /etc/ for more ", "3.14", "and/or", "\ud800 half",
    ],
)  # fmt: skip
def test_any_other_string_is_the_text_itself(home: Path, inline: str) -> None:
    (found,) = load(inline)

    assert found.text == inline.replace("\ud800", "\ufffd")
    assert found.source is None


@pytest.mark.parametrize(
    "spelled", ["guide.md", "./guide.md", "GUIDE.HTML", "a/b/c.txt", "missing/", "~/none.md", "notes.ipynb"]
)
def test_a_string_that_looks_like_a_path_and_names_nothing_is_an_error_that_names_it(home: Path, spelled: str) -> None:
    with pytest.raises(AKConfigError, match=r"no file or folder .*Document\(text=") as caught:
        load(spelled)

    assert spelled in str(caught.value)


@pytest.mark.parametrize("spelled", ["missing", "missing folder", "a\0b", "~nobody-is-called-so/x", "n" * 300])
def test_a_missing_path_is_an_error(home: Path, spelled: str) -> None:
    with pytest.raises(AKConfigError, match="no file or folder"):
        load(Path(spelled))


@pytest.mark.parametrize("source", [None, 3, 2.5, object(), {"a": 1}, ["a"], True])
def test_what_is_no_source_is_an_error_that_names_its_kind(source: Any) -> None:
    with pytest.raises(AKConfigError, match=type(source).__name__):
        load(source)


@pytest.mark.parametrize(
    "spelled", ["docs", "docs/", "./docs", "docs//", Path("docs"), Path("docs/"), "~/docs", Path("~/docs")]
)
def test_a_folder_is_found_however_it_is_spelled(home: Path, spelled: str | Path) -> None:
    write(home, docs__a_md="# A", docs__deep__b_txt="b")

    found = [each.source for each in load(spelled) if each.source]

    assert [Path(source).relative_to(home) if Path(source).is_absolute() else Path(source) for source in found] == [
        Path("docs/a.md"),
        Path("docs/deep/b.txt"),
    ]


def test_files_of_the_working_folder_are_named_without_a_dot(home: Path) -> None:
    write(home, a_md="# A")

    assert [each.source for each in load(".")] == ["a.md"]


def test_a_name_is_found_in_another_form_of_unicode(tmp_path: Path) -> None:
    (tmp_path / "cafe\u0301.md").write_text("# Café")

    assert [each.text for each in load(tmp_path / "caf\u00e9.md")] == ["# Café"]


@pytest.mark.parametrize("suffix", [".MD", ".Txt", ".JSON", ".Html", ".PY", ".Yaml"])
def test_suffixes_count_whatever_their_case(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"file{suffix}").write_text("1")

    assert len(load(tmp_path)) == 1


def test_a_file_without_a_suffix_is_read_where_its_path_is_given(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text("plain")

    assert [(each.text, each.media_type) for each in load(path)] == [("plain", "text/plain")]


def test_an_empty_file_is_a_document_without_text(tmp_path: Path) -> None:
    write(tmp_path, a_md="", b_html="", c_json="", d_csv="", e_py="", f_ipynb="", g_jsonl="", h_yaml="")

    assert [each.text for each in load(tmp_path)] == [""] * 8


def test_metadata_of_the_call_counts_before_what_a_file_says(tmp_path: Path) -> None:
    (found,) = load(write(tmp_path, a_md="# Said"), {"title": "Given", "team": "x"})

    assert found.metadata == {"title": "Given", "team": "x"}


def test_a_file_that_does_not_change_keeps_its_version_and_one_that_does_gets_another(tmp_path: Path) -> None:
    write(tmp_path, a_md="one", b_md="two")
    before = [item.version for item in items(tmp_path)]
    again = [item.version for item in items(tmp_path)]
    (tmp_path / "b.md").write_text("TWO")
    after = [item.version for item in items(tmp_path)]

    assert before == again
    assert (before[0] == after[0], before[1] == after[1]) == (True, False)


def test_a_file_alone_and_in_its_folder_is_the_same(tmp_path: Path) -> None:
    write(tmp_path, docs__a_md="one", docs__deep__b_md="two")
    whole, part = items(tmp_path / "docs"), items(tmp_path / "docs" / "deep")
    alone = items(str(tmp_path / "docs" / "deep" / "b.md"))

    assert whole[1].source == part[0].source == alone[0].source
    assert whole[1].version == part[0].version == alone[0].version
    assert whole[1].identity == part[0].identity == alone[0].identity


def test_a_file_keeps_its_identity_however_its_folder_is_spelled(home: Path) -> None:
    write(home, docs__a_md="one")
    (home / "link").symlink_to("docs")
    spellings = ["docs", "./docs/", str(home / "docs"), "docs/../docs", "link"]

    assert len({item.identity for spelled in spellings for item in items(spelled)}) == 1


def test_a_page_is_fetched_read_by_its_media_type_and_named_by_its_url() -> None:
    html = "<html><head><title>Rules</title></head><body><h1>Receipts</h1><script>x()</script></body></html>"
    with serving({"/": text(html, "text/html; charset=utf-8")}) as site:
        fetcher = Fetcher(resolver=resolve, allow_hosts=["site.example"])
        (found,) = load(site.url("/"), {"team": "x"}, fetcher=fetcher)

    assert (found.text, found.source) == ("# Receipts", site.url("/"))
    assert found.metadata == {"title": "Rules", "team": "x"}


def test_a_page_that_is_sent_as_plain_text_is_read_by_its_suffix() -> None:
    with serving({"/raw/a.md": text("# Raw", "text/plain")}) as site:
        (found,) = load(site.url("/raw/a.md"), fetcher=Fetcher(resolver=resolve, allow_hosts=["site.example"]))

    assert (found.media_type, found.metadata) == ("text/markdown", {"title": "Raw"})


def test_a_page_of_loopback_is_not_fetched() -> None:
    with serving({"/": text("secret")}) as site, pytest.raises(AKConfigError, match="not a public host"):
        load(f"http://127.0.0.1:{site.port}/")


class Pages(ParserBase):
    """A parser of an application, of a format that is no text."""

    supported_media_types: ClassVar[list[str]] = ["application/x-pages"]

    @classmethod
    def supported_extensions(cls) -> list[str]:
        return [".pages"]

    async def parse(self, file: bytes | str, filename: str) -> list[Section]:
        assert isinstance(file, bytes)
        pages = [Section(TextBlock(part.decode()), filename, {"page": n}) for n, part in enumerate(file.split(b"\0"), 1)]
        return [*pages, Section(DataBlock(b"x", "image/png"), filename)]


def test_sections_of_a_parser_of_your_own_are_documents_with_what_it_says(tmp_path: Path) -> None:
    found = load(write(tmp_path, a_pages=b"same\0same", b_md="# B"), {"team": "x"}, parsers=[Pages()])

    assert [(each.text, each.metadata) for each in found] == [
        ("same", {"page": 1, "team": "x"}),
        ("same", {"page": 2, "team": "x"}),
        ("# B", {"title": "B", "team": "x"}),
    ]
    assert len({each.id for each in found}) == 3


def test_a_parser_of_your_own_goes_before_the_registered_one(tmp_path: Path) -> None:
    class Shout(ParserBase):
        supported_media_types: ClassVar[list[str]] = ["text/markdown"]

        async def parse(self, file: bytes | str, filename: str) -> list[Section]:
            assert isinstance(file, bytes)
            return [Section(TextBlock(file.decode().upper()), filename)]

    folder = write(tmp_path, a_md="quiet")

    assert [each.text for each in load(folder, parsers=[Shout()])] == ["QUIET"]
    assert [each.text for each in load(folder)] == ["quiet"]


@pytest.mark.parametrize("options", [{"max_bytes": 0}, {"max_bytes": -1}, {"parsers": ["markdown"]}])
def test_what_can_never_work_is_refused_at_construction(options: dict[str, Any]) -> None:
    with pytest.raises(AKConfigError):
        AutoLoader(**options)


def test_a_large_file_is_refused_with_its_limit_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.log"
    with path.open("wb") as stream:
        stream.truncate(300_000_000)

    for source in (path, str(path), tmp_path):
        with pytest.raises(KnowledgeBackendError, match=r"huge\.log' has 300,000,000 bytes .*50,000,000 \(max_bytes\)"):
            load(source)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"])
def test_a_pipe_or_a_device_is_an_error_and_is_not_waited_for(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "a.md")

    with pytest.raises(KnowledgeBackendError, match="no file, but"):
        load(tmp_path / "a.md")
