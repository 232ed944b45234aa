"""Where an index is kept: in a cache folder, under a name that its store and settings give."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any, Literal, cast

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.okf.schema import FORMAT
from agentkernel_kb.store.base import DocumentStore

IndexLocation = str | os.PathLike[str] | None
AUTO: Literal["auto"] = "auto"
MEMORY = ":memory:"


def index_path(where: object, store: DocumentStore, settings: tuple[Any, ...], subject: str) -> Path | None:
    """Return the file of an index, `None` for one in memory.

    Args:
        where: A folder; `auto` for the cache folder of this user; `None` or `:memory:` for memory.
        store: Whose documents are indexed.
        settings: What makes the same documents another index.
        subject: Name of the backend, for messages.

    Raises:
        AKConfigError: `where` is no folder.
    """
    if where is None or where == MEMORY:
        return None
    named = os.fspath(cast("str", where)) if isinstance(where, str | os.PathLike) else ""
    if not isinstance(named, str) or not named or "\0" in named:
        raise AKConfigError(f"'{subject}': index must be a folder, 'auto', or None for memory, not {where!r}.")
    identity = store.identity
    if where == AUTO and not identity:  # A store of the application's: who knows whether two of them are the same?
        return None
    folder = cache_folder() if where == AUTO else Path(named).expanduser()
    if folder is None:
        return None
    if folder.exists() and not folder.is_dir():
        raise AKConfigError(f"'{subject}': index must be a folder; {str(folder)!r} is a file.")
    key = hashlib.sha256(json.dumps([identity or type(store).__qualname__, *settings]).encode()).hexdigest()[:20]
    return folder / f"{key}-{FORMAT}.db"


def cache_folder() -> Path | None:
    """Return the folder for the indexes of this user; `None` where there is no home folder."""
    try:
        if sys.platform == "win32":
            base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:
            base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    return base / "agentkernel-kb" / "okf" if base.is_absolute() else None
