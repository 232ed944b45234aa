"""What a subclass of the suite gives, the documents that a store under test holds, and the paths that it is attacked with."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from agentkernel_kb.errors import KnowledgePathError
from agentkernel_kb.store.base import DocumentStore

T = TypeVar("T")

DECOMPOSED = "forms/cafe\u0301.md"
COMPOSED = "forms/caf\u00e9.md"

DOCUMENTS: Mapping[str, bytes] = {
    "a.md": b"# A\n",
    "a/inner.md": b"inner",
    "a/deep/er/still.md": b"still",
    "a-b/dash.md": b"dash",
    "a0.md": b"zero",
    "ab/other.md": b"other",
    "empty.md": b"",
    "binary.bin": bytes(range(256)) * 8,
    DECOMPOSED: b"coffee",
    "names/with blank, comma.md": b"1",
    "names/party \U0001f389.md": b"2",
    "names/\u6771\u4eac.md": b"3",
    "names/CON.md": b"4",
    "names/aux": b"5",
    "names/trailing dot.": b"6",
    "names/100%25.md": b"7",
    "names/[brackets] 'quotes' & #hash + plus.md": b"8",
    f"names/{'x' * 252}.md": b"9",
    "names/\uff0e\uff0e\uff0fetc\uff0fpasswd": b"look-alikes are a name",
    "names/%2e%2e%2fsecret.md": b"nothing is decoded",
}
"""Every store holds these: awkward names, and such as tell an order of whole paths from an order folder by folder."""

ESCAPES = (
    "..", "../secret.md", "a/../../secret.md", "a/..", "./../secret.md", "a/./../../secret.md", "a//..//../secret.md", "../",
    "/", "/secret.md", "//secret.md", "/etc/passwd", "/../secret.md",
    "..\\secret.md", "a\\..\\..\\secret.md", "\\secret.md", "\\\\server\\share\\secret.md", "//server/share/secret.md",
    "C:\\secret.md", "C:/secret.md", "C:secret.md", "a/C:secret.md",
    "a.md\0", "a\0/../secret.md", "../secret.md\0.md", "a\nb.md", "a\x7fb.md", "a\u2028b.md",
    "... /secret.md", ".. /secret.md", " ../secret.md", "..../secret.md", "a/. ./secret.md",
    "\uff0e\uff0e/secret.md", "\u2025/secret.md", "a/\u2025/\u2025/secret.md",
    ".hidden.md", "a/.hidden/x.md", ".git/config", "\ud800.md", "x" * 4_097, "x/" * 2_100 + "y",
)  # fmt: skip
"""Paths that no store takes, whatever it holds."""

LOOK_ALIKES = (
    "%2e%2e/secret.md", "%2e%2e%2fsecret.md", "..%2fsecret.md", "%2e%2e%5csecret.md", "%252e%252e%252fsecret.md",
    "..%c0%afsecret.md", "a/%2e%2e/%2e%2e/secret.md", "\uff0e\uff0e\uff0fsecret.md", "..\u2215secret.md", "..\u2044secret.md",
    "\u202e../secret.md", "..\u200b/secret.md", "~/secret.md", "~root/secret.md", "$HOME/secret.md", "file:///secret.md",
    "a.md/../secret.md", "a.md/secret.md", "secret.md", "a.md ", "a.md.", "A.MD", "con", "-", "*", "?", "a*", "[a].md",
)  # fmt: skip
"""Paths that a store may take for names, which then name nothing it holds."""


class StoreSamples(ABC):
    """The store under test."""

    @abstractmethod
    def make_store(self, tmp_path: Path, documents: Mapping[str, bytes]) -> DocumentStore:
        """Return a new store that holds these documents and no others. The suite closes it.

        Args:
            tmp_path: An empty folder for this one test. What the store keeps in files belongs in a folder of its own in it,
                not in `tmp_path` itself: what stands beside that is used to find out whether a path can leave the store.
            documents: Paths and bytes.
        """


def operations(store: DocumentStore, path: str) -> dict[str, Callable[[], object]]:
    """Return the reading operations on a path; none of them leaves anything unread."""
    return {
        "read_bytes": lambda: store.read_bytes(path),
        "read_prefix_bytes": lambda: store.read_prefix_bytes(path, 4),
        "read_prefix_bytes of nothing": lambda: store.read_prefix_bytes(path, 0),
        "exists": lambda: store.exists(path),
        "stat": lambda: store.stat(path),
        "list": lambda: store.list(path),
        "scan": lambda: list(store.scan(path)),
        "read_many": lambda: _raised(list(store.read_many([path]))),
    }


def outcome(call: Callable[[], T]) -> T | type[Exception]:
    """Return what a call returns, or the kind of error that it raises."""
    try:
        return call()
    except KnowledgePathError:
        return KnowledgePathError
    except FileNotFoundError:
        return FileNotFoundError


def at_once(calls: list[Callable[[], T]]) -> list[T | Exception]:
    """Return what these calls return or raise when each runs in a thread of its own and all begin at once."""
    results: list[T | Exception] = [RuntimeError("did not end")] * len(calls)
    gate = threading.Barrier(len(calls))

    def run(index: int) -> None:
        gate.wait(timeout=30)
        try:
            results[index] = calls[index]()
        except Exception as error:  # noqa: BLE001 - it is the result
            results[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=90)
    return results


def _raised(answers: list[tuple[str, bytes | Exception]]) -> object:
    ((_, answer),) = answers
    if isinstance(answer, Exception):
        raise answer
    return answer
