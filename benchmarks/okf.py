"""Prints what OKF bundles cost: first walk, warm start, refresh, search, fetch, browse and memory, one JSON object per size.

`python benchmarks/okf.py [SIZE …]` takes sizes in concepts, 1000 and 10000 by default; a million takes many minutes and some
12 GB of disk. `python benchmarks/okf.py bucket [SIZE]` does the same in a bucket, 1000 concepts by default, behind 2 ms of
latency per request, and needs the server of `servers/s3.sh` at `KB_TEST_S3_URL` (`http://127.0.0.1:18333` by default).

CPU is what counts where others use the machine too, so each figure in seconds or milliseconds has one of CPU beside it. As
machines differ, a loop over PyYAML's libyaml and SQLite's FTS5 that does nothing else is measured as well (`bare_loop`).
"""

from __future__ import annotations

import importlib
import json
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

sys.path.append(str(Path(__file__).parents[1] / "tests"))

SIZES = (1_000, 10_000)
QUERIES = 300
BUCKET_SIZE, LATENCY_S = 1_000, 0.002
_SYLLABLES = [
    "ba",
    "ko",
    "ri",
    "ten",
    "mo",
    "sa",
    "lu",
    "ver",
    "dor",
    "ix",
    "pal",
    "num",
    "cra",
    "fen",
    "tol",
    "wis",
    "gar",
    "hel",
    "jun",
    "que",
]
_TYPES = ("BigQuery Table", "Metric", "Playbook", "Reference", "API Endpoint")
_CONCEPT = """---
type: {type}
title: {title}
description: {description}.
tags: [{tags}]
resource: https://example.com/{number}
status: stable
generated: {{ by: reference_agent/gemini-2.5-pro, at: 2026-06-20T22:53:05Z }}
verified:
  - {{ by: human:ahormati, at: 2026-06-25T09:00:00Z }}
stale_after: 2027-09-23T00:00:00Z
sources:
  - id: wiki
    resource: https://wiki.acme/{number}
    title: Wiki
---

{body}
"""


class Words:
    """Words that occur about as unevenly as those of a language do."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)
        made = ("".join(self._random.choices(_SYLLABLES, k=self._random.randint(2, 4))) for _ in range(20_000))
        self._words = list(dict.fromkeys(made))
        self._weights = list(accumulate(1 / (rank + 10) for rank in range(len(self._words))))

    def text(self, count: int) -> list[str]:
        """Return so many words."""
        return self._random.choices(self._words, cum_weights=self._weights, k=count)

    def number(self, below: int) -> int:
        """Return a number from 0 on."""
        return self._random.randrange(below)


def place(number: int) -> str:
    """Return the path of a concept."""
    return f"area{number % 37:02}/group{number % 11:02}/concept-{number:07}.md"


def concepts(size: int) -> Iterator[tuple[str, str]]:
    """Yield paths and documents, whose bodies have 1 to 3 kB."""
    words = Words()
    for number in range(size):
        text = words.text(150 + words.number(300))
        parts = [text[start : start + 60] for start in range(0, len(text), 60)]
        body = "\n\n".join(f"# {part[0]}\n\n{' '.join(part)}. See [{part[0]}](/{place(words.number(size))})." for part in parts)
        yield (
            place(number),
            _CONCEPT.format(
                type=_TYPES[number % len(_TYPES)],
                title=" ".join(text[:4]).title(),
                description=" ".join(text[4:18]),
                tags=", ".join(text[18:21]),
                number=number,
                body=body,
            ),
        )


def generate(folder: Path, size: int) -> None:
    """Write a bundle."""
    for path, document in concepts(size):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(document, encoding="utf-8")


def memory_mib(kind: str) -> float:
    """Return what this process takes, or has taken at most, in MiB."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0.0
    (line,) = (line for line in status.read_text().splitlines() if line.startswith(kind))
    return int(line.split()[1]) / 1_024


def timed(act: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Do something and return what it gave and the seconds it took."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = act()
    return result, {"s": round(time.perf_counter() - wall, 3), "cpu_s": round(time.process_time() - cpu, 3)}


def percentiles(act: Callable[[Any], Any], arguments: list[Any]) -> dict[str, float]:
    """Do something with each argument and return the milliseconds it took."""
    walls: list[float] = []
    cpus: list[float] = []
    for argument in arguments:
        cpu, wall = time.thread_time(), time.perf_counter()
        act(argument)
        walls.append((time.perf_counter() - wall) * 1e3)
        cpus.append((time.thread_time() - cpu) * 1e3)
    found = {"p50_ms": statistics.median(walls), "p95_ms": statistics.quantiles(walls, n=20)[-1]}
    found |= {"cpu_p50_ms": statistics.median(cpus), "cpu_p95_ms": statistics.quantiles(cpus, n=20)[-1]}
    return {name: round(value, 2) for name, value in found.items()}


def questions(size: int) -> list[str]:
    """Return searches of one to six words that stand in one document each."""
    words = Words(seed=3)
    return [" ".join(words.text(1 + number % 6)) for number in range(QUERIES)]


def measure(store: Any, index: Path, size: int, change: Callable[[], None]) -> dict[str, Any]:
    """Measure one bundle. Run in a process of its own, so that the memory is its own too."""
    from agentkernel_kb import OKFManager

    def opened() -> OKFManager:
        return OKFManager(store, index=index, refresh_seconds=None, max_concepts=max(size, 10_000))

    idle = memory_mib("VmRSS")
    figures: dict[str, Any] = {"concepts": size}
    backend, figures["first_walk"] = timed(opened)
    backend.close()
    backend, figures["warm_start"] = timed(opened)
    _, figures["refresh_unchanged"] = timed(backend.reload)
    change()
    _, figures["refresh_1_percent"] = timed(backend.reload)
    figures["search"] = percentiles(backend.search, questions(size))
    paths = [place(number) for number in random.Random(1).sample(range(size), min(size, QUERIES))]
    figures["fetch"] = percentiles(lambda path: backend.fetch([path]), paths)
    figures["browse"] = percentiles(lambda path: backend.browse(path.rpartition("/")[0]), paths)
    figures["found_last_words"] = all(backend.search(f'"{last_words(store, path)}"', limit=1) for path in paths[:50])
    figures["index_mib"] = round(sum(file.stat().st_size for file in index.glob("*.db")) / 2**20, 1)
    figures["memory_above_idle_mib"] = round(memory_mib("VmHWM") - idle, 1)
    backend.close()
    return figures


def last_words(store: Any, path: str) -> str:
    """Return the last words of a body before its last link."""
    return " ".join(store.read_bytes(path).decode().rpartition(". See")[0].split()[-3:])


def measure_folder(size: int) -> dict[str, Any]:
    """Generate a bundle in a folder and measure it."""
    from agentkernel_kb import LocalDocumentStore

    with tempfile.TemporaryDirectory(prefix="kb-bench-") as scratch:
        folder = Path(scratch) / "bundle"
        subprocess.run([sys.executable, __file__, "generate", str(folder), str(size)], check=True)

        def change() -> None:
            for number in range(0, size, 100):
                file = folder / place(number)
                file.write_text(file.read_text(encoding="utf-8") + "\nChanged.\n", encoding="utf-8")

        _, bare = timed(lambda: bare_loop(folder, Path(scratch) / "bare.db"))
        figures = measure(LocalDocumentStore(folder), Path(scratch) / "index", size, change)
        return {"store": "folder", "bare_loop": bare, **figures}


def bare_loop(folder: Path, database: Path) -> None:
    """Read a folder with nothing but libyaml and FTS5, for comparison: no containment, no links, no diagnostics."""
    connection = sqlite3.connect(database)
    try:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("CREATE VIRTUAL TABLE words USING fts5(title, tags, type, description, body)")
        connection.executemany("INSERT INTO words VALUES (?, ?, ?, ?, ?)", _bare_rows(folder))
        connection.commit()
    finally:
        connection.close()


def _bare_rows(folder: Path) -> Iterator[tuple[str, ...]]:
    for place, _, names in os.walk(folder):
        for name in names:
            with open(f"{place}/{name}", encoding="utf-8") as file:  # noqa: PTH123 - the loop is to be as bare as can be
                _, head, body = file.read().split("---\n", 2)
            said: dict[str, Any] = yaml.load(head, Loader=yaml.CSafeLoader)
            yield said["title"], " ".join(map(str, said["tags"])), said["type"], said["description"], body


def measure_bucket(size: int) -> dict[str, Any]:
    """Put a bundle into a bucket and measure it behind a proxy that holds requests back."""
    from agentkernel_kb import OKFManager, S3DocumentStore

    buckets: Any = importlib.import_module("buckets")
    loopback: Any = importlib.import_module("loopback")
    url = os.environ.get("KB_TEST_S3_URL", "http://127.0.0.1:18333")
    documents = {path: document.encode() for path, document in concepts(size)}
    figures: dict[str, Any] = {"store": "bucket", "concepts": size, "latency_ms": LATENCY_S * 1e3}
    with (
        tempfile.TemporaryDirectory(prefix="kb-bench-") as index,
        buckets.new_bucket(url) as bucket,
        loopback.proxied(urlsplit(url).port or 80, delay_s=LATENCY_S) as proxy,
    ):
        prefix = bucket.store(documents).prefix
        client = buckets.client(proxy.url)
        sent: list[str] = []

        def note(model: Any, **_: Any) -> None:
            sent.append(model.name)

        client.meta.events.register("before-call.s3", note)

        def counted(act: Callable[[], Any]) -> tuple[Any, dict[str, Any]]:
            sent.clear()
            result, figure = timed(act)
            return result, {**figure, "requests": {name: sent.count(name) for name in sorted(set(sent))}}

        def opened() -> OKFManager:
            store = S3DocumentStore(bucket.name, prefix, client=client)
            return OKFManager(store, index=index, refresh_seconds=None, max_concepts=size)

        backend, figures["first_walk"] = counted(opened)
        backend.close()
        backend, figures["warm_start"] = counted(opened)
        _, figures["refresh_unchanged"] = counted(backend.reload)
        for number in range(0, size, 100):
            bucket.put(f"{prefix}/{place(number)}", documents[place(number)] + b"\nChanged.\n")
        _, figures["refresh_1_percent"] = counted(backend.reload)
        backend.close()
        client.close()
    return figures


def main() -> None:
    """Measure each size in a fresh process and print one JSON object."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["generate"]:
        generate(Path(arguments[1]), int(arguments[2]))
    elif arguments[:1] == ["measure"]:
        print(json.dumps(measure_folder(int(arguments[1]))))
    elif arguments[:1] == ["bucket"]:
        print(json.dumps({"benchmark": "okf", **measure_bucket(int(arguments[1]) if arguments[1:] else BUCKET_SIZE)}))
    else:
        for size in map(int, arguments or map(str, SIZES)):
            done = subprocess.run(
                [sys.executable, __file__, "measure", str(size)], stdout=subprocess.PIPE, text=True, check=True
            )
            print(json.dumps({"benchmark": "okf", **json.loads(done.stdout)}), flush=True)


if __name__ == "__main__":
    main()
