"""What this backend needs of chromadb and chromadb does not publish; where one is missing, a warning says what is lost."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, cast

_LOG = logging.getLogger("agentkernel_kb.chroma")

_WARNED: set[str] = set()
_GUARD = threading.Lock()


def open_folders() -> dict[str, object] | None:
    """Return chromadb's own table of what this process has open, by folder; `None` where there is no such table."""
    try:
        from chromadb.api.shared_system_client import SharedSystemClient
    except ImportError:
        return table_of(None)
    return table_of(SharedSystemClient)


def table_of(owner: object) -> dict[str, object] | None:
    """Return the table that `owner` keeps; `None`, with a warning, where it keeps none."""
    table: object = getattr(owner, "_identifier_to_system", None)
    if isinstance(table, dict):
        return cast("dict[str, object]", table)
    _warn(
        "SharedSystemClient._identifier_to_system",
        "two spellings of one folder may not see each other's writes, and a folder that failed to open once can't be opened "
        "again before the process ends",
    )
    return None


def reloader(client: object) -> Callable[[], object] | None:
    """Return what lets an embedded client read its folder anew, in place: what runs on the old handle ends on it.

    chromadb 1.5.9 loads an index once and then never sees what other processes write. `None`, with a warning, where there is no
    such thing.
    """
    server = getattr(client, "_server", None)
    start = getattr(server, "start", None)
    if hasattr(server, "bindings") and callable(start):
        return start
    _warn(
        "_server.bindings and _server.start of an embedded client",
        "a process does not see what other processes write to its folder until it opens it again",
    )
    return None


def http_sessions(client: object) -> list[Any]:
    """Return the HTTP sessions of a client, which chromadb 1.5.9 neither limits in time nor closes.

    There are two, one to check the tenant with. See https://github.com/chroma-core/chroma/issues/5805; needless once Chroma
    has a setting for the time and closes what it opened. Where one is missing, a warning says so.
    """
    owners = {"_server._session": client, "_admin_client._server._session": getattr(client, "_admin_client", None)}
    sessions: list[Any] = []
    for name, owner in owners.items():
        session: Any = getattr(getattr(owner, "_server", None), "_session", None)
        if session is None:
            _warn(f"{name} of an HTTP client", "requests to a server have no time limit, and their connections stay open")
        else:
            sessions.append(session)
    return sessions


def _warn(missing: str, lost: str) -> None:
    with _GUARD:
        if missing in _WARNED:
            return
        _WARNED.add(missing)
    _LOG.warning(
        "chromadb %s has no %s, so that %s; use a version of chromadb that agentkernel-kb was tested with.",
        _version(),
        missing,
        lost,
    )


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("chromadb")
    except PackageNotFoundError:
        return "of an unknown version"
