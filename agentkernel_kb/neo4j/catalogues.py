"""What is known of the graph's schema: read when it is asked for, kept for a while, and used to mend misspelt names."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import pairwise

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import KnowledgeError, KnowledgeGuardError, KnowledgeQueryError, KnowledgeTimeoutError
from agentkernel_kb.guard.neo4j import NEO4J
from agentkernel_kb.neo4j.arguments import Scope
from agentkernel_kb.neo4j.calls import Calls
from agentkernel_kb.neo4j.catalogue import Catalogue, quoted, read_catalogue
from agentkernel_kb.render import one_line

SECONDS = 10.0
LIFETIME_SECONDS = 300.0
HURRIED_SECONDS = 10.0
"""How long one is kept for which there was too little time."""

_MOST_SCOPES = 64
_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")


class Catalogues:
    """The schemas of a server's databases as its users see them.

    Args:
        calls: The way to the server.
        most: Most labels, and most types, that are described.
    """

    def __init__(self, calls: Calls, most: int) -> None:
        self._calls, self._most = calls, most
        self._known: dict[Scope, tuple[float, Catalogue]] = {}
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Let the next one that is asked for be read anew."""
        self._known.clear()

    def current(self, seconds: float = SECONDS) -> Catalogue:
        """Return the schema that the current call sees.

        Raises:
            KnowledgeError: It cannot be had.
        """
        scope, deadline = self._calls.scope(), Deadline(min(seconds, SECONDS))
        if known := self._fresh(scope):
            return known
        if not self._lock.acquire(timeout=deadline.left()):
            raise KnowledgeTimeoutError(f"The schema could not be read within {deadline.seconds:g} s.")
        try:  # Who waited for another reader has it now.
            return self._fresh(scope) or self._read(scope, deadline)
        finally:
            self._lock.release()

    def _fresh(self, scope: Scope) -> Catalogue | None:
        known = self._known.get(scope)
        return known[1] if known and time.monotonic() <= known[0] else None

    def _read(self, scope: Scope, deadline: Deadline) -> Catalogue:
        found = self._calls.run(lambda driver, scope, left: read_catalogue(driver, scope, self._most, left), deadline)
        if len(self._known) >= _MOST_SCOPES:
            self.forget()
        self._known[scope] = (time.monotonic() + (LIFETIME_SECONDS if found.is_whole else HURRIED_SECONDS), found)
        return found

    def known(self, seconds: float = SECONDS) -> Catalogue | None:
        """Return the schema where it can be had; who asks does without it."""
        try:
            return self.current(seconds)
        except KnowledgeError:
            return None

    def fault_of_empty(self, statement: str, deadline: Deadline) -> KnowledgeQueryError | None:
        """Return what is wrong with a statement that found nothing: a label that is not there, though one like it is.

        The server takes any name for a label, and finds nothing for one that is misspelt.
        """
        names = set(_labels_of(statement))
        if not names or self._misspelt(names, deadline) is None:
            return None
        self.forget()  # Another application may have made that label since.
        return self._misspelt(names, deadline)

    def _misspelt(self, names: set[str], deadline: Deadline) -> KnowledgeQueryError | None:
        catalogue = self.known(deadline.left())
        for name in sorted(names) if catalogue else ():
            if near := catalogue.near(name) if catalogue else []:
                shown = quoted(one_line(name)[:64])
                return KnowledgeQueryError(
                    f"Nothing was found: the graph has no label or type {shown}. Did you mean {' or '.join(near)}?"
                )
        return None


def _labels_of(statement: str) -> Iterator[str]:
    """Return the names that stand where a label or a type stands, outside of maps."""
    try:
        tokens = NEO4J.lexer.read(statement).tokens
    except KnowledgeGuardError:
        return
    brackets: list[str] = []
    for before, token in pairwise(tokens):
        if before.kind == "mark":
            if before.text in _OPENING:
                brackets.append(before.text)
            elif before.text in _CLOSING and brackets:
                brackets.pop()
            is_map = bool(brackets) and brackets[-1] == "{"
            if before.text == ":" and not is_map and token.kind in ("word", "quoted"):
                yield token.unquoted
