"""Which path a source is, if it is one."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag.parsers.files import shown
from agentkernel_kb.rag.parsers.registry import ParserRegistry
from agentkernel_kb.store.paths import other_spellings

_MOST_PATH_CHARS = 4_096


def path_of(source: str | os.PathLike[str], parsers: ParserRegistry) -> Path | None:
    """Return the path that a source is, as the disk spells it; `None` for a text.

    Raises:
        AKConfigError: It is a path, and nothing is there.
    """
    given = os.fspath(source)
    if isinstance(given, bytes):
        given = os.fsdecode(given)
    if isinstance(source, str) and not _can_be_path(source):
        return None
    if found := _existing(given):
        return found
    if not isinstance(source, str):
        raise AKConfigError(f"There is no file or folder {shown(given)}.")
    if re.search(r"\s", source) is None and (source.endswith("/") or parsers.media_type_of(source)):
        raise AKConfigError(
            f"There is no file or folder {shown(source)}. For a text that only looks like a path use Document(text=…)."
        )
    return None


def _can_be_path(text: str) -> bool:
    return bool(text) and len(text) <= _MOST_PATH_CHARS and "\n" not in text and "\0" not in text


def whole_paths(given: str) -> list[str]:
    """Return the whole paths that a source can mean, whether something is there or not; none for what is no path."""
    paths = list[str]()
    for each in _spellings(given):
        with suppress(OSError, ValueError):  # A loop of links, or a NUL.
            paths.append(os.path.realpath(each))
    return paths


def _existing(given: str) -> Path | None:
    """Return the path where something is."""
    return next((each for each in _spellings(given) if _exists(each)), None)


def _spellings(given: str) -> list[Path]:
    """Return a path as it is given, in other forms of Unicode, and in the home folder."""
    spellings = [Path(each) for each in (given, *other_spellings(given))]
    if given.startswith("~"):
        with suppress(RuntimeError):  # There is no such user.
            spellings.append(Path(given).expanduser())
    return spellings


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # A name that is too long, or a NUL.
        return False
