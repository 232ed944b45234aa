"""Which tables of a SQLite database may be opened when only some may be read, as the engine's own programs tell.

SQLite's authorizer is not asked about the columns that `USING` and `NATURAL` name, and takes a common table expression for the
view whose name it has. So a statement is looked at in two more ways before it runs: no name of the database may be given to
something else, and the program that SQLite makes of it may open nothing but what is listed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress

from agentkernel_kb.errors import KnowledgeGuardError
from agentkernel_kb.guard.lexer import Token, folded
from agentkernel_kb.guard.sqlite import SQLITE

TABLE_FUNCTIONS = SQLITE.table_functions
_ENGINE_PREFIX = "sqlite_"
_OPENINGS = frozenset(["OpenRead", "OpenWrite", "ReopenIdx"])
_EXPLANATIONS = frozenset(["EXPLAIN", "PRAGMA"])
_OBJECTS = "SELECT type, name, tbl_name, rootpage FROM sqlite_master"


class Scope:
    """The tables and views that may be read, in one database as it is now.

    Args:
        connection: A connection that is not locked at the moment.
        listed: Their names, folded.

    Attributes:
        listed: The same.
        views: The listed views.
        readable: The listed tables, and those that the listed views read.
    """

    def __init__(self, connection: sqlite3.Connection, listed: frozenset[str]) -> None:
        self.listed = listed
        rows = [(kind, folded(str(name)), folded(str(table)), root) for kind, name, table, root in connection.execute(_OBJECTS)]
        self._objects = frozenset(name for kind, name, _, _ in rows if kind in ("table", "view"))
        self.views = frozenset(name for kind, name, _, _ in rows if kind == "view") & listed
        self._virtual = frozenset(name for kind, name, _, root in rows if kind == "table" and not root) & listed
        tables = {root: table for _, _, table, root in rows if root}
        opened: set[int | str] = set()
        for view in self.views:
            with suppress(sqlite3.OperationalError):  # A broken view opens nothing.
                opened.update(_opened(connection, _all_of(view)))
        self.readable = listed | {table for root, table in tables.items() if root in opened}
        self._places = opened | {root for root, table in tables.items() if table in self.readable}

    def is_taken(self, name: str) -> bool:
        """Tell whether a folded name is one of the database, or one that SQLite keeps for itself."""
        return name in self._objects or name.startswith(_ENGINE_PREFIX)

    def check(self, connection: sqlite3.Connection, statement: str) -> None:
        """Refuse a statement that gives a name of the database to something else, or opens what is not listed.

        Raises:
            KnowledgeGuardError: It does.
            sqlite3.Error: SQLite does not take the statement.
        """
        tokens = SQLITE.lexer.read(statement).tokens
        for token in _defined(tokens):
            if self.is_taken(folded(token.unquoted)):
                raise KnowledgeGuardError(
                    "This name is that of a table; take another one", part=token.shown, position=token.start
                )
        if not tokens or tokens[0].keyword in _EXPLANATIONS:
            return
        unknown = set(_opened(connection, statement)) - self._places
        if any(isinstance(place, str) for place in unknown):
            unknown -= self._virtual_tables(connection)
        if unknown:
            raise KnowledgeGuardError("The database refused: the statement opens a table that may not be read")

    def _virtual_tables(self, connection: sqlite3.Connection) -> set[int | str]:
        """Return how programs name the virtual tables that may be read, and the functions that stand for tables."""
        places: set[int | str] = set()
        for name in self._virtual | TABLE_FUNCTIONS:
            with suppress(sqlite3.OperationalError):  # This SQLite, or this database, does not have it.
                places.update(_opened(connection, _all_of(name)))
        return places


def _opened(connection: sqlite3.Connection, statement: str) -> list[int | str]:
    """Return what the program of a statement opens: pages at which tables and indexes begin, and virtual tables."""
    places: list[int | str] = []
    for _, operation, _, page, database, handle, *_ in connection.execute(f"EXPLAIN {statement}"):
        if operation in _OPENINGS:
            places.append(page if not database else f"page {page} of database {database}")
        elif operation == "VOpen":
            places.append(str(handle))
    return places


def _all_of(name: str) -> str:
    quoted = name.replace('"', '""')
    return f'SELECT * FROM "{quoted}"'  # noqa: S608 - the name is quoted


def _defined(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the names that the statement itself gives to queries: `name AS (…)` and `name (columns) AS (…)`."""
    for index, token in enumerate(tokens):
        if token.kind in ("word", "quoted", "string"):
            words = [following.keyword or following.text for following in tokens[_after_columns(tokens, index + 1) :][:4]]
            if words[:1] == ["AS"] and "(" in words[1:] and set(words[1 : words.index("(")]) <= {"NOT", "MATERIALIZED"}:
                yield token


def _after_columns(tokens: Sequence[Token], index: int) -> int:
    """Return the place after a list of names in brackets, or `index` itself where there is none."""
    if tokens[index : index + 1] == () or tokens[index].text != "(":
        return index
    end = index + 1
    while end < len(tokens) and (tokens[end].name or tokens[end].text == ","):
        end += 1
    return end + 1 if end < len(tokens) and tokens[end].text == ")" else index
