"""What was probably meant by a name that the server does not know: near names from its own catalogue."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from agentkernel_kb.errors import KnowledgeError
from agentkernel_kb.guard.silence import quiet_parser
from agentkernel_kb.starburst.failures import ServerFailure
from agentkernel_kb.starburst.names import identifier, qualified, written
from agentkernel_kb.starburst.tables import Ask, columns_of

HINT_SECONDS = 5.0
_MAX_KNOWN = 5_000
_MAX_TABLES = 4
_MAX_LISTED = 30
_QUOTED = re.compile(r"'(.*?)'")


class _Known(NamedTuple):
    """Names that there are, and what they name."""

    what: str
    names: list[str]


def hint_for(failure: ServerFailure, statement: str, *, catalog: str, schema: str, ask: Ask) -> str:
    """Return a sentence on what was meant, `""` where there is none to give.

    Args:
        failure: What the server rejected.
        statement: The statement.
        catalog: Catalog of tables that are named without one.
        schema: Schema of tables that are named without one.
        ask: Runs a statement of our own, within little time.
    """
    look = _LOOKS.get(failure.name)
    found = _QUOTED.search(failure.message)
    if look is None or found is None:
        return ""
    name = found[1]
    try:
        known = look(name, tables_of(statement, catalog, schema), ask)
    except KnowledgeError:  # A hint is worth no failure of its own.
        return ""
    return _sentence(name.rsplit(".", 1)[-1], known) if known.names else ""


def _sentence(name: str, known: _Known) -> str:
    near = get_close_matches(name.lower(), known.names, n=2, cutoff=0.6)
    if near:
        return f"Did you mean {' or '.join(map(written, near))}?"
    listed = ", ".join(map(written, known.names[:_MAX_LISTED]))
    return f"{known.what}: {listed}{', …' if len(known.names) > _MAX_LISTED else ''}"


def tables_of(statement: str, catalog: str, schema: str) -> list[tuple[str, str, str]]:
    """Return the tables that a statement names, as catalog, schema and name, in lower case."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        with quiet_parser():
            tree = sqlglot.parse_one(statement, read="trino")
    except (SqlglotError, RecursionError):
        return []
    found = [(table.catalog or catalog, table.db or schema, table.name) for table in tree.find_all(exp.Table)]
    return list(dict.fromkeys((one.lower(), two.lower(), three.lower()) for one, two, three in found if one and two and three))


def _tables(name: str, tables: Iterable[tuple[str, str, str]], ask: Ask) -> _Known:
    place = next((table[:2] for table in tables if ".".join(table) == name), None)
    return _Known("Tables", _first_column(ask, f"SHOW TABLES FROM {qualified(place)}") if place else [])


def _schemas(name: str, tables: Iterable[tuple[str, str, str]], ask: Ask) -> _Known:
    catalog = next((table[0] for table in tables if table[1] == name), None)
    return _Known("Schemas", _first_column(ask, f"SHOW SCHEMAS FROM {identifier(catalog)}") if catalog else [])


def _catalogs(name: str, tables: Iterable[tuple[str, str, str]], ask: Ask) -> _Known:
    return _Known("Catalogs", _first_column(ask, "SHOW CATALOGS"))


def _columns(name: str, tables: Sequence[tuple[str, str, str]], ask: Ask) -> _Known:
    names: dict[str, None] = {}
    for table in tables[:_MAX_TABLES]:
        try:
            names |= dict.fromkeys(column.name for column in columns_of(table, ask, _MAX_KNOWN))
        except KnowledgeError:  # It may be the name of a common table expression.
            continue
    return _Known("Columns", list(names))


def _first_column(ask: Ask, statement: str) -> list[str]:
    return [str(row[0]) for row in ask(statement, _MAX_KNOWN)]


_Look = Callable[[str, list[tuple[str, str, str]], Ask], _Known]
_LOOKS: Mapping[str, _Look] = {
    "CATALOG_NOT_FOUND": _catalogs,
    "COLUMN_NOT_FOUND": _columns,
    "SCHEMA_NOT_FOUND": _schemas,
    "TABLE_NOT_FOUND": _tables,
}
