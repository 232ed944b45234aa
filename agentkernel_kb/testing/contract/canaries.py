"""canaries: files beside and above a backend's folder, and the paths by which a careless backend would give them away."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agentkernel_kb.errors import KnowledgePathError
from agentkernel_kb.model import Record

_TEXT = "canary 7d0f: this stands outside of the store"
_NAME = "canary-7d0f"
_SUFFIX = re.compile(r"\.\w{1,10}")
_USUAL_SUFFIXES = ("", ".json", ".md", ".txt")
_DEEPEST = 3
"""How far below the folder of a test a backend may keep its own for every canary to be within reach."""


@dataclass(frozen=True)
class Canaries:
    """What stands outside of the store.

    Attributes:
        paths: Paths and ids that lead there.
    """

    paths: Sequence[str]

    def assert_kept(self, asked: str, ask: Callable[[], Iterable[Record]]) -> None:
        """Assert that a call answers with nothing, or refuses it as a path."""
        with suppress(KnowledgePathError):
            answer = list(ask())
            assert answer == [], (
                f"{asked} leads out of the store and answers with {answer!r} in place of [] or a KnowledgePathError"
            )


@contextmanager
def canaries(folder: Path, known_ids: Sequence[str]) -> Generator[Canaries]:
    """Put files where no backend made in `folder` may read while its tests run.

    Args:
        folder: The folder of a test. Files stand in it, for a backend that keeps its own in a folder below, and beside it.
        known_ids: Ids of records, whose suffixes the files get.
    """
    suffixes = sorted({*_USUAL_SUFFIXES, *_suffixes_of(known_ids), *_suffixes_of(map(str, folder.rglob("*")))})
    beside = folder.parent / f"{folder.name}-{_NAME}"  # A check by the first letters of a path takes it for `folder` itself.
    for home in (folder, beside):
        home.mkdir(exist_ok=True)
        for suffix in suffixes:
            (home / f"{_NAME}{suffix}").write_text(json.dumps({"text": _TEXT}), encoding="utf-8")
    try:
        yield Canaries([*dict.fromkeys(_leading_to(folder.name, beside, suffixes, _folder_in(known_ids)))])
    finally:
        shutil.rmtree(beside)
        for suffix in suffixes:
            (folder / f"{_NAME}{suffix}").unlink(missing_ok=True)


def _suffixes_of(names: Iterable[str]) -> Iterator[str]:
    """Yield what reads as a file's suffix; what follows a dot in an id may be anything."""
    return (suffix for name in names if _SUFFIX.fullmatch(suffix := PurePosixPath(name).suffix))


def _folder_in(known_ids: Sequence[str]) -> str:
    """Return a folder that is likely to be in the store, as a path through one that isn't leads nowhere on most systems."""
    return next((parent for parent, slash, _ in (name.partition("/") for name in known_ids) if parent and slash), "a")


def _leading_to(name: str, beside: Path, suffixes: Sequence[str], inside: str) -> Iterator[str]:
    for up in ("../" * depth for depth in range(1, _DEEPEST + 1)):
        yield from (up, up.rstrip("/"), f"{up}{beside.name}", f"{up}{name}/..")
        for file in (f"{_NAME}{suffix}" for suffix in suffixes):
            yield from (
                f"{up}{file}",
                f"{up}{beside.name}/{file}",
                f"{inside}/../{up}{file}",
                f"{inside}/../{up}{beside.name}/{file}",
            )
            yield from (f"{up}{file}".replace("/", "\\"), f"{up}{beside.name}/{file}".replace("/", "\\"))
    for file in (f"{_NAME}{suffix}" for suffix in suffixes):
        yield from (f"{beside.as_posix()}/{file}", f"/{beside.as_posix()}/{file}", (beside / file).as_uri())
    yield from (beside.as_posix(), beside.parent.as_posix(), beside.as_uri())
