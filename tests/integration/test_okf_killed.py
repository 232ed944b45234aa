"""Writers of one bundle, killed at any moment (A17): what was acknowledged is there, whole, and nothing else is listed.

Two processes write with one index and are killed together, fifty times, or as often as `KB_STRESS_KILLS` says (`make stress`).
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import textwrap
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from okf_bundles import concept, opened, write

from agentkernel_kb import LocalDocumentStore, OKFManager

KILLS = int(os.environ.get("KB_STRESS_KILLS", "50"))
NAMES: tuple[str, ...] = ("one", "two")

# A note and a change of one's own concept, each acknowledged when it is done, and a change of a concept that both change.
WRITER = """
    import itertools, sys
    from agentkernel_kb import DocumentChangedError, LocalDocumentStore, OKFManager
    folder, index, name, first = sys.argv[1:]
    backend = OKFManager(LocalDocumentStore(folder), index=index, refresh_seconds=None)
    print("ready", flush=True)
    for number in itertools.count(int(first)):
        text = f"{name} {number:09}\\n" * 500
        (note,) = backend.add([{"text": f"Note {number} of {name}\\n\\n{text}", "metadata": {}}])
        print("note", note, flush=True)
        backend.add([{"text": text, "metadata": {"id": f"own/{name}.md", "type": "Count"}}])
        print("own", number, flush=True)
        try:
            backend.add([{"text": text, "metadata": {"id": "shared.md", "type": "Count"}}])
        except DocumentChangedError:
            continue
"""


@pytest.mark.timeout(300 + 10 * KILLS)  # Twice as many processes are started.
def test_a17_killed_writers_lose_nothing_that_was_acknowledged_and_break_nothing(tmp_path: Path):
    folder = write(tmp_path / "x", {"log.md": "# Log\n", "shared.md": concept("Shared")})
    notes: set[str] = set()
    reached: dict[str, int] = dict.fromkeys(NAMES, 1)
    for _ in range(KILLS):
        for name, said in killed_pair(folder, tmp_path / "index", reached).items():
            notes |= {line.partition(" ")[2] for line in said if line.startswith("note ")}
            acknowledged = [int(line.partition(" ")[2]) for line in said if line.startswith("own ")]
            assert own_number(folder, name) >= max([reached[name] - 1, *acknowledged])
            reached[name] = own_number(folder, name) + 1
        assert names_but_documents(LocalDocumentStore(folder)) == []
        assert notes <= set(LocalDocumentStore(folder).list())
    assert_whole(opened(folder, index=None, max_concepts=1_000_000), notes)
    assert_whole(opened(folder, index=tmp_path / "index"), notes)


def killed_pair(folder: Path, index: Path, first: dict[str, int]) -> dict[str, list[str]]:
    """Let two writers run and kill them at a random moment; return what each acknowledged."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with ExitStack() as stack:
        writers: dict[str, subprocess.Popen[str]] = {}
        for name in NAMES:
            command = [sys.executable, "-c", textwrap.dedent(WRITER), str(folder), str(index), name, str(first[name])]
            writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
            writers[name] = stack.enter_context(writer)
            stack.callback(writer.kill)
        for writer in writers.values():
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        time.sleep(random.random() * 0.1)
        for writer in writers.values():
            writer.kill()
        return {name: whole_lines(writer.communicate()[0]) for name, writer in writers.items()}


def whole_lines(said: str) -> list[str]:
    """Return the lines that were printed to their end."""
    return said.split("\n")[:-1]


def own_number(folder: Path, name: str) -> int:
    """Return the one number that a writer's own concept holds, again and again; of one that was never written, 0."""
    file = folder / f"own/{name}.md"
    if not file.exists():
        return 0
    numbers = set(re.findall(rf"^{name} (\d+)$", file.read_text(), re.MULTILINE))
    assert len(numbers) == 1
    return int(numbers.pop())


def names_but_documents(store: LocalDocumentStore) -> list[str]:
    """Return what the store lists and no writer wrote."""
    wanted = re.compile(r"log\.md|shared\.md|own/(one|two)\.md|generated/note-\d+-of-(one|two)-[0-9a-f]{10}\.md")
    return [path for path in store.list() if not wanted.fullmatch(path)]


def assert_whole(backend: OKFManager, notes: set[str]) -> None:
    """Check that a bundle parses, and that each note that was acknowledged is whole and is found."""
    assert backend.get_diagnostics() == []
    records = backend.fetch(sorted(notes))
    assert len(records) == len(notes)
    for record in records:
        name, number = re.findall(r"^(one|two) (\d+)$", record["text"], re.MULTILINE)[0]
        assert record["text"].count(f"{name} {number}\n") == 500
    for record in random.sample(records, min(20, len(records))):
        assert backend.search(f'"{record["metadata"]["title"]}"', limit=1)
    backend.close()
