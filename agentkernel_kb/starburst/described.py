"""The table that a deployment names: its columns and comments as a schema shows them, kept for each user for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from agentkernel_kb.starburst.names import written
from agentkernel_kb.starburst.tables import Ask, columns_of, comment_on

LIFETIME_SECONDS = 300.0
_MAX_COLUMNS = 500
_MAX_USERS = 256


class DescribedTable:
    """What is known about a table.

    Args:
        place: Its catalog, schema and name.
        is_default: The session's catalog and schema are its own, so that its name alone is enough in a statement.
    """

    def __init__(self, place: tuple[str, str, str], *, is_default: bool) -> None:
        self._place = place
        self._label = written(place[2]) if is_default else ".".join(map(written, place))
        self._known: dict[str | None, tuple[float, Mapping[str, Any]]] = {}
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Read it anew when it is asked for next."""
        self._known = {}

    def schema(self, user: str | None, ask: Ask) -> Mapping[str, Any]:
        """Return its columns and the comment on it, as a user may see them.

        Args:
            user: Whom the server answers; what it tells one is not shown to another.
            ask: Runs a statement for that user.

        Raises:
            KnowledgeError: The server does not tell.
        """
        with self._lock:
            until, described = self._known.get(user, (0.0, {}))
            if time.monotonic() > until:
                described = self._read(ask)
                if len(self._known) >= _MAX_USERS:
                    self._known = {}
                self._known[user] = (time.monotonic() + LIFETIME_SECONDS, described)
            return described

    def _read(self, ask: Ask) -> Mapping[str, Any]:
        columns = columns_of(self._place, ask, _MAX_COLUMNS)
        described: dict[str, Any] = {"tables": {self._label: ", ".join(column.line for column in columns)}}
        comment = comment_on(self._place, ask)
        return described | ({"comment": comment} if comment else {})
