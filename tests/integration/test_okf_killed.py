"""Writers of one bundle, killed at any moment (A17): what was acknowledged is there, whole, and nothing else is listed.

Two processes write with one index and are killed together, fifty times, or as often as `KB_STRESS_KILLS` says (`make stress`).
"""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest
from killed_writers import KilledWriters
from okf_bundles import concept, opened, write

from agentkernel_kb import LocalDocumentStore, OKFManager

KILLS = int(os.environ.get("KB_STRESS_KILLS", "50"))
NAMES: tuple[str, ...] = ("one", "two")

# A note and a change of one's own concept, each acknowledged when it is done, and a change of a concept that both change.
WRITER = """
import itertools
from agentkernel_kb import DocumentChangedError, LocalDocumentStore, OKFManager

def write(say, folder, index, name, first):
    backend = OKFManager(LocalDocumentStore(folder), index=index, refresh_seconds=None, max_concepts=1_000_000)
    say("ready")
    for number in itertools.count(int(first)):
        text = f"{name} {number:09}\\n" * 500
        (note,) = backend.add([{"text": f"Note {number} of {name}\\n\\n{text}", "metadata": {}}])
        say(f"note {note}")
        backend.add([{"text": text, "metadata": {"id": f"own/{name}.md", "type": "Count"}}])
        say(f"own {number}")
        try:
            backend.add([{"text": text, "metadata": {"id": "shared.md", "type": "Count"}}])
        except DocumentChangedError:
            continue
"""


@pytest.mark.timeout(120 + 10 * KILLS)
def test_a17_killed_writers_lose_nothing_that_was_acknowledged_and_break_nothing(tmp_path: Path):
    folder, index = write(tmp_path / "x", {"log.md": "# Log\n", "shared.md": concept("Shared")}), tmp_path / "index"
    notes: set[str] = set()
    reached: dict[str, int] = dict.fromkeys(NAMES, 1)
    with KilledWriters(WRITER) as writers:
        for _ in range(KILLS):
            said = writers.run({name: (str(folder), str(index), name, str(reached[name])) for name in NAMES})
            for name, lines in said.items():
                notes |= {line.partition(" ")[2] for line in lines if line.startswith("note ")}
                acknowledged = [int(line.partition(" ")[2]) for line in lines if line.startswith("own ")]
                assert own_number(folder, name) >= max([reached[name] - 1, *acknowledged])
                reached[name] = own_number(folder, name) + 1
            assert names_but_documents(LocalDocumentStore(folder)) == []
            assert notes <= set(LocalDocumentStore(folder).list())
    assert_whole(opened(folder, index=None, max_concepts=1_000_000), notes)
    assert_whole(opened(folder, index=index, max_concepts=1_000_000), notes)


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
