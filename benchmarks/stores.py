"""Prints what stores cost: a folder of 10,000 documents, and reads of a bucket behind 2 ms of latency at several parallelisms.

The bucket needs the server of `servers/s3.sh` at `KB_TEST_S3_URL` (`http://127.0.0.1:18333` by default); without it only the
folder is measured. `cpu_s` and `wall_s` are of one call; `bare_s` is what a loop of `os.walk`, `stat` and `open` takes.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from agentkernel_kb import DocumentStore, LocalDocumentStore, S3DocumentStore

DOCUMENTS, FOLDERS, BYTES = 10_000, 100, 2_000
OBJECTS, LATENCY_S = 500, 0.002


def timed(call: Callable[[], object]) -> dict[str, float]:
    """Return the seconds that a call takes, of the clock and of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return {"wall_s": round(time.perf_counter() - wall, 3), "cpu_s": round(time.process_time() - cpu, 3)}


def show(what: str, **figures: Any) -> None:
    """Print one line of figures."""
    print(json.dumps({"benchmark": "stores", "what": what, **figures}), flush=True)


def fill(folder: Path) -> None:
    """Write the documents of the folder."""
    for number in range(DOCUMENTS):
        place = folder / f"topic-{number % FOLDERS:03}"
        place.mkdir(exist_ok=True)
        (place / f"concept-{number:05}.md").write_bytes(b"x" * BYTES)


def bare(folder: Path, *, read: bool) -> None:
    """Walk the folder without a store."""
    for place, _, names in os.walk(folder):
        for name in names:
            file = Path(place, name)
            if read:
                file.read_bytes()
            else:
                file.stat()


def read_all(store: DocumentStore, paths: list[str]) -> None:
    """Read all documents."""
    for _, data in store.read_many(paths):
        assert isinstance(data, bytes), data


def measure_folder(folder: Path) -> None:
    """Print the figures of a folder."""
    fill(folder)
    store = LocalDocumentStore(folder)
    paths = store.list()
    show(
        "scan of a folder",
        documents=len(paths),
        **timed(lambda: list(store.scan())),
        bare_s=timed(lambda: bare(folder, read=False))["wall_s"],
    )
    show(
        "read_many of a folder",
        documents=len(paths),
        **timed(lambda: read_all(store, paths)),
        bare_s=timed(lambda: bare(folder, read=True))["wall_s"],
    )
    writes = 200
    show("write_bytes to a folder", writes=writes, **timed(lambda: [store.write_bytes(path, b"y") for path in paths[:writes]]))


def measure_bucket(url: str) -> None:
    """Print the figures of a bucket behind a proxy that holds requests back."""
    buckets: Any = importlib.import_module("buckets")
    loopback: Any = importlib.import_module("loopback")
    client: Callable[[str], Any] = buckets.client
    with buckets.new_bucket(url) as bucket, loopback.proxied(urlsplit(url).port or 80, delay_s=LATENCY_S) as proxy:
        filled = bucket.store({f"topic-{number % 20:02}/{number:04}.md": b"x" * BYTES for number in range(OBJECTS)})
        for parallelism in (1, 8, 16):
            distant = client(proxy.url)
            store = S3DocumentStore(bucket.name, filled.prefix, client=distant, parallelism=parallelism)
            paths = store.list()
            show(
                "read_many of a bucket",
                latency_ms=LATENCY_S * 1_000,
                parallelism=parallelism,
                objects=len(paths),
                **timed(functools.partial(read_all, store, paths)),
            )
            distant.close()
        distant = client(proxy.url)
        store = S3DocumentStore(bucket.name, filled.prefix, client=distant)
        show("scan of a bucket", latency_ms=LATENCY_S * 1_000, objects=OBJECTS, **timed(lambda: list(store.scan())))
        distant.close()


def answers(url: str) -> bool:
    """Tell whether a server listens at an address."""
    try:
        socket.create_connection((urlsplit(url).hostname or "", urlsplit(url).port or 80), timeout=2).close()
    except OSError:
        return False
    return True


def main() -> None:
    """Print all figures."""
    with tempfile.TemporaryDirectory() as folder:
        measure_folder(Path(folder))
    url = os.environ.get("KB_TEST_S3_URL", "http://127.0.0.1:18333")
    if answers(url):
        measure_bucket(url)
    else:
        show("bucket", skipped=f"no S3 server at {url}")


if __name__ == "__main__":
    main()
