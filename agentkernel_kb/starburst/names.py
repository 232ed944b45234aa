"""Names of catalogs, schemas, tables and columns: how a statement writes them, and how a path to browse does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote, unquote

# Without quotes Trino reads a name in lower case, and these letters alone.
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
# A slash separates, a percent sign escapes, angle brackets mark a placeholder of the semantic map, outer blanks get lost.
_AWKWARD_IN_PATHS = re.compile(r"[%/<>\x00-\x1f\x7f-\x9f\u2028\u2029]|^\s|\s$")


def identifier(name: str) -> str:
    """Return a name in quotes, in which nothing but itself is read."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a string literal; in Trino nothing but the quote itself has to be escaped."""
    return "'" + text.replace("'", "''") + "'"


def qualified(parts: Sequence[str]) -> str:
    """Return a dotted name of quoted parts."""
    return ".".join(map(identifier, parts))


def written(name: str) -> str:
    """Return a name as a statement may write it: in quotes where it needs them."""
    return name if _PLAIN_NAME.fullmatch(name) else identifier(name)


def path_of(parts: Sequence[str]) -> str:
    """Return the path of an entry; `parts_of` reads it again."""
    return "/".join(_AWKWARD_IN_PATHS.sub(lambda found: quote(found[0], safe=""), part) for part in parts)


def parts_of(path: str) -> list[str]:
    """Return the names that a path is made of; outer slashes and blanks do not count."""
    return [unquote(part) for part in path.strip().strip("/").split("/") if part]
