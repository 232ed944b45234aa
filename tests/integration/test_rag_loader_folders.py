"""AutoLoader over folders (P3): streamed, contained, and one bad file never costs another one."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import textwrap
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agentkernel_kb.errors import KnowledgeBackendError, KnowledgeError
from agentkernel_kb.rag import AutoLoader, create_knowledge
from agentkernel_kb.rag.loading.items import SourceItem


def items(source: Any, **options: Any) -> list[SourceItem]:
    async def collect() -> list[SourceItem]:
        return [item async for item in AutoLoader(**options).items(source)]

    return asyncio.run(collect())


def outcome(folder: Path, **options: Any) -> dict[str, str]:
    """Return what became of each name in a folder: its text, `skipped`, or the reason why it failed."""

    async def each_of() -> dict[str, str]:
        found: dict[str, str] = {}
        async for item in AutoLoader(**options).items(folder):
            name = item.source.removeprefix(f"{folder.as_posix()}/")
            try:
                found[name] = "skipped" if item.skipped else "".join(each.text for each in await item.load())
            except (KnowledgeError, OSError) as error:
                found[name] = f"failed: {error}"
        return found

    return asyncio.run(each_of())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "docs"
    made.mkdir()
    (made / "a.md").write_text("A")
    return made


@pytest.mark.parametrize(
    "name",
    [".git", ".hg", ".svn", "CVS", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".cache", ".pytest_cache", ".idea",
     ".obsidian", "sub/node_modules", "site-packages"],
)  # fmt: skip
def test_folders_of_version_control_caches_and_packages_are_left_out(folder: Path, name: str) -> None:
    (folder / name / "deep").mkdir(parents=True)
    (folder / name / "deep" / "b.md").write_text("B")

    assert outcome(folder) == {"a.md": "A"}


@pytest.mark.parametrize("name", [".env", ".hidden.md", ".#lock.md"])
def test_hidden_files_are_left_out(folder: Path, name: str) -> None:
    (folder / name).write_text("SECRET=1")

    assert outcome(folder) == {"a.md": "A"}


def test_a_file_that_is_called_like_an_ignored_folder_is_read(folder: Path) -> None:
    (folder / "venv.md").write_text("B")
    (folder / "readme").write_text("C")

    assert outcome(folder) == {"a.md": "A", "readme": "C", "venv.md": "B"}


def test_files_of_a_kind_that_is_not_read_are_skipped(folder: Path) -> None:
    (folder / "b.exe").write_bytes(b"MZ")
    (folder / "c.unknown").write_text("?")

    assert outcome(folder) == {"a.md": "A", "b.exe": "skipped", "c.unknown": "skipped"}


def test_binary_content_under_the_suffix_of_a_text_is_a_failure_of_that_file(folder: Path) -> None:
    (folder / "b.txt").write_bytes(bytes(range(256)))

    found = outcome(folder)

    assert found["a.md"] == "A"
    assert "is no text" in found["b.txt"]


def test_a_link_that_stays_inside_is_followed_and_one_that_leads_out_is_left_out(folder: Path) -> None:
    (folder.parent / "secret.md").write_text("SECRET")
    (folder / "inside.md").symlink_to("a.md")
    (folder / "outside.md").symlink_to("../secret.md")
    (folder / "absolute.md").symlink_to(folder.parent / "secret.md")
    (folder / "above").symlink_to("..")
    (folder / "broken.md").symlink_to("nothing.md")

    found = outcome(folder)

    assert {name for name, text in found.items() if text == "A"} == {"a.md", "inside.md"}
    assert {text for name, text in found.items() if name not in ("a.md", "inside.md")} == {"skipped"}


def test_a_loop_of_links_ends(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "b.md").write_text("B")
    (folder / "sub" / "up").symlink_to("..")
    (folder / "self").symlink_to(".")
    (folder / "x.md").symlink_to("y.md")
    (folder / "y.md").symlink_to("x.md")

    assert {name: text for name, text in outcome(folder).items() if text != "skipped"} == {"a.md": "A", "sub/b.md": "B"}


def test_a_file_that_becomes_a_link_out_after_it_was_listed_is_not_read(folder: Path) -> None:
    (folder.parent / "secret.md").write_text("SECRET")
    (item,) = items(folder)
    (folder / "a.md").unlink()
    (folder / "a.md").symlink_to("../secret.md")

    with pytest.raises(KnowledgeError):
        asyncio.run(_load(item))


def test_a_folder_that_becomes_a_link_out_after_it_was_listed_is_not_read(folder: Path) -> None:
    (folder.parent / "other").mkdir()
    (folder.parent / "other" / "b.md").write_text("SECRET")
    (folder / "sub").mkdir()
    (folder / "sub" / "b.md").write_text("B")
    item = items(folder)[1]
    (folder / "sub" / "b.md").unlink()
    (folder / "sub").rmdir()
    (folder / "sub").symlink_to("../other")

    with pytest.raises(KnowledgeError):
        asyncio.run(_load(item))


def test_links_that_are_swapped_all_the_while_never_lead_out(folder: Path) -> None:
    (folder.parent / "secret.md").write_text("SECRET")
    stop = threading.Event()

    def swap() -> None:
        place = folder / "b.md"
        while not stop.is_set():
            for target in ("a.md", "../secret.md"):
                other = folder / "next"
                other.symlink_to(target)
                other.replace(place)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        texts = {text for _ in range(100) for text in outcome(folder).values()}
    finally:
        stop.set()
        thread.join()

    assert "A" in texts
    assert not any("SECRET" in text for text in texts)


def test_pipes_sockets_and_links_to_devices_are_skipped_and_not_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(folder / "pipe.md")
    (folder / "device.md").symlink_to("/dev/zero")
    monkeypatch.chdir(folder)  # The name of a socket is short.
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.md")
        found = outcome(folder)

    assert found == {"a.md": "A", "pipe.md": "skipped", "device.md": "skipped", "socket.md": "skipped"}


def test_a_file_that_becomes_a_pipe_after_it_was_listed_is_a_failure_and_not_waited_for(folder: Path) -> None:
    (item,) = items(folder)
    (folder / "a.md").unlink()
    os.mkfifo(folder / "a.md")

    with pytest.raises(KnowledgeError):
        asyncio.run(_load(item))


AS_NOBODY = """
    import asyncio, os, sys
    from agentkernel_kb.rag import AutoLoader
    from agentkernel_kb.errors import KnowledgeBackendError
    asyncio.run(asyncio.to_thread(str))  # Is imported while the libraries may be read.
    if os.geteuid() == 0:  # Who may do all is refused nothing.
        os.setgroups([]), os.setgid(65534), os.setuid(65534)
    async def outcome(source):
        async for item in AutoLoader().items(source):
            try:
                print(os.path.basename(item.source), "skipped" if item.skipped else [each.text for each in await item.load()])
            except KnowledgeBackendError as error:
                print(os.path.basename(item.source), "failed" if item.source.split("/")[-1] in str(error) else error)
    asyncio.run(outcome(sys.argv[1]))
    asyncio.run(outcome(sys.argv[1] + "/b.md"))
"""


def test_what_may_not_be_read_is_a_failure_that_names_it_and_the_rest_is_read(folder: Path) -> None:
    (folder / "b.md").write_text("B")
    (folder / "b.md").chmod(0)
    (folder / "sub").mkdir(mode=0)
    for above in (folder.parent, *folder.parent.parents):
        if os.geteuid() == 0 and above.stat().st_uid == 0 and above.stat().st_mode & 0o001 == 0:
            above.chmod(above.stat().st_mode | 0o001)
    try:
        finished = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(AS_NOBODY), str(folder)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
    finally:
        (folder / "sub").chmod(0o755)

    assert finished.stdout.splitlines() == ["a.md ['A']", "b.md failed", "sub failed", "b.md failed"], finished.stderr


def test_names_that_cannot_be_shown_are_failures_and_the_rest_is_read(folder: Path) -> None:
    for name in (b"line\nbreak.md", b"not-utf-8-\xff.md", b"back\\slash.md"):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_text("B")

    found = outcome(folder)

    assert found.pop("a.md") == "A"
    assert len(found) == 3
    assert all(text.startswith("failed: ") and "\n" not in text for text in found.values())


@pytest.mark.parametrize(
    "name", ["cafe\u0301.md", "caf\u00e9.md", "日本語.md", "עברית.md", "a b'c\".md", "emoji 😀.md", "%2e%2e.md"]
)
def test_names_in_any_script_and_form_are_read(folder: Path, name: str) -> None:
    (folder / name).write_text("B")

    assert outcome(folder)[name] == "B"


def test_a_file_that_vanishes_after_it_was_listed_is_a_failure_of_that_file_alone(folder: Path) -> None:
    (folder / "b.md").write_text("B")
    first, second = items(folder)
    (folder / "a.md").unlink()

    with pytest.raises(FileNotFoundError):
        asyncio.run(_load(first))
    assert [each.text for each in asyncio.run(_load(second))] == ["B"]


def test_a_file_that_grows_beyond_the_limit_after_it_was_listed_is_a_failure(folder: Path) -> None:
    (item,) = items(folder, max_bytes=10)
    (folder / "a.md").write_text("A" * 1000)

    with pytest.raises(KnowledgeBackendError, match="limit is 10"):
        asyncio.run(_load(item))


def test_a_file_that_grows_within_the_limit_is_read_as_it_is_then(folder: Path) -> None:
    (item,) = items(folder)
    (folder / "a.md").write_text("A" * 1000)

    assert [len(each.text) for each in asyncio.run(_load(item))] == [1000]


def test_a_folder_that_vanishes_is_an_error(folder: Path) -> None:
    async def first_then_gone() -> None:
        async for item in AutoLoader().items(folder):
            if item.source.endswith("/0.md"):
                folder.rename(folder.with_name("moved"))

    for number in range(100):
        (folder / f"{number}.md").write_text("x")
    with pytest.raises(KnowledgeError, match="cannot be opened"):
        asyncio.run(first_then_gone())


def test_the_first_file_is_there_before_the_tree_is_walked(folder: Path) -> None:
    for number in range(200):
        (folder / f"sub-{number:03}").mkdir()
        (folder / f"sub-{number:03}" / "x.md").write_text("x")

    async def seen_after_the_first() -> list[str]:
        found: list[str] = []
        async for item in AutoLoader().items(folder):
            found.append(item.source)
            late = folder / "zz" / "late.md"
            late.parent.mkdir(exist_ok=True)
            (folder / "sub-199" / "late.md").write_text("added while it was walked")
        return found

    assert f"{folder.as_posix()}/sub-199/late.md" in asyncio.run(seen_after_the_first())


def test_a_walk_that_is_given_up_leaves_no_folder_open(folder: Path) -> None:
    for number in range(100):
        (folder / f"{number}.md").write_text("x")

    async def give_up() -> tuple[int, int]:
        found = AutoLoader().items(folder)
        await anext(found)
        before = _open_folders(folder)
        await found.aclose()
        return before, _open_folders(folder)

    assert asyncio.run(give_up()) == (1, 0)


def test_the_order_is_that_of_whole_paths_and_the_same_each_time(folder: Path) -> None:
    for name in ("b/x.md", "b.md", "B.md", "a/z/y.md", "a-1.md", "ä.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    names = [item.source for item in items(folder)]

    assert names == sorted(names) == [item.source for item in items(folder)]


def test_one_bad_file_is_reported_by_knowledge_and_the_others_are_found(folder: Path) -> None:
    (folder / "bad.xml").write_text("<a><b></a>")
    (folder / "bad.txt").write_bytes(b"\0\1\2\3\4\5")
    (folder / "big.md").write_text("x" * 2_000)
    knowledge = create_knowledge("memory", sources=[folder], loader=AutoLoader(max_bytes=1_000))

    report = knowledge.sync.ready()

    assert [Path(each).name for each in report.sources] == ["a.md"]
    assert [Path(each.source).name for each in report.failed] == ["bad.txt", "bad.xml", "big.md"]
    assert "limit is 1,000" in report.failed[2].reason


def test_files_that_did_not_change_are_not_read_again(folder: Path) -> None:
    (folder / "b.md").write_text("B")
    knowledge = create_knowledge("memory", sources=[folder])
    knowledge.sync.ready()
    (folder / "b.md").write_text("changed")

    report = knowledge.sync.refresh([folder])

    assert (report.unchanged, [Path(each).name for each in report.sources]) == (1, ["b.md"])


def test_ten_thousand_files_are_listed_well_within_a_minute(tmp_path: Path) -> None:
    for number in range(10_000):
        path = tmp_path / f"{number % 100}" / f"{number}.md"
        path.parent.mkdir(exist_ok=True)
        path.touch()

    found = items(tmp_path)

    assert len({item.source for item in found}) == 10_000
    assert all(item.version for item in found)


def _open_folders(folder: Path) -> int:
    """Return how many descriptors of this process are of a folder."""
    identity = (folder.stat().st_dev, folder.stat().st_ino)
    found = 0
    for descriptor in range(3, 256):
        with suppress(OSError):
            info = os.fstat(descriptor)
            found += (info.st_dev, info.st_ino) == identity
    return found


def _load(item: SourceItem) -> Any:
    return item.load()
