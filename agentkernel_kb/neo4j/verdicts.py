"""What the server said of the statements that were seen lately."""

from __future__ import annotations

import threading
from collections import OrderedDict

from agentkernel_kb.neo4j.arguments import Scope

MAX_VERDICTS = 512
MAX_CHARS = 10_000


class Verdicts:
    """The kinds of statements by database, the least used forgotten first. Longer statements are asked about each time."""

    def __init__(self) -> None:
        self._kinds: OrderedDict[tuple[str | None, str], str] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, scope: Scope, statement: str) -> str | None:
        """Return what the server said, `None` if it was not asked."""
        key = (scope.database, statement)
        with self._lock:
            if key in self._kinds:
                self._kinds.move_to_end(key)
            return self._kinds.get(key)

    def remember(self, scope: Scope, statement: str, kind: str) -> None:
        """Keep what the server said."""
        if len(statement) > MAX_CHARS:
            return
        with self._lock:
            self._kinds[scope.database, statement] = kind
            while len(self._kinds) > MAX_VERDICTS:
                self._kinds.popitem(last=False)
