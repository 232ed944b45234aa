"""Which relations a statement reads, as PostgreSQL itself finds them, when only some may be read.

When a statement has been parsed, its transaction holds a lock on every relation that it names, and on those behind the views
that it names, at whatever depth. No text is looked at.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from agentkernel_kb.errors import KnowledgeGuardError
from agentkernel_kb.guard.lexer import folded

if TYPE_CHECKING:
    from psycopg import Connection

_LOCKED = "SELECT DISTINCT relation::int8 FROM pg_lock_status() WHERE pid = pg_backend_pid() AND locktype = 'relation'"
_LISTED = """
SELECT c.oid::int8, CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END || c.relname
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END || c.relname = ANY (%s)
AND c.relkind IN ('f', 'm', 'p', 'r', 'v')
"""
_BEHIND = """
WITH RECURSIVE readable (oid) AS (
    SELECT unnest(%s::oid[])
    UNION
    SELECT d.refobjid FROM readable AS r JOIN pg_class AS v ON v.oid = r.oid AND v.relkind = 'v'
    JOIN pg_rewrite AS w ON w.ev_class = r.oid
    JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass
)
SELECT oid::int8 FROM readable
"""


class PostgresScope:
    """The tables and views that may be read, and what those views read.

    Args:
        tables: Their names, with their schema where it is not `public`.
    """

    def __init__(self, tables: Collection[str]) -> None:
        self._tables = tuple(tables)
        self._readable: frozenset[int] = frozenset()

    def check(self, connection: Connection[Any]) -> None:
        """Refuse the statement that was just parsed, in a transaction that did nothing else, if it reads something else.

        Raises:
            KnowledgeGuardError: It does.
        """
        locked = {number for (number,) in connection.execute(_LOCKED).fetchall()}
        if locked <= self._readable:
            return
        self._readable = self._now(connection)  # A table that was made anew has another number.
        if outside := locked - self._readable:
            (name,) = connection.execute("SELECT %s::oid::regclass::text", [min(outside)]).fetchone() or ("",)
            raise KnowledgeGuardError("This table may not be read", part=str(name)[:40])

    def _now(self, connection: Connection[Any]) -> frozenset[int]:
        names = [*self._tables, *map(folded, self._tables)]
        numbers = {name: number for number, name in connection.execute(_LISTED, [names]).fetchall()}
        # A name is meant as it is written; where there is none of it, as a statement without quotes would mean it.
        listed = [numbers.get(name, numbers.get(folded(name))) for name in self._tables]
        behind = connection.execute(_BEHIND, [[number for number in listed if number is not None]]).fetchall()
        return frozenset(number for (number,) in behind)
