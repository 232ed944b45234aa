"""The index asked: concepts ranked by BM25 with a weight for each field, and the filters of a query."""

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agentkernel_kb.okf import schema
from agentkernel_kb.okf.query import Group, Query
from agentkernel_kb.okf.rows import type_key

COMMON = 1_000
"""A word that this many concepts have is common: concepts with a rarer word of the query come first."""

MOST_RANKED = 4_000
"""Most concepts that are ranked for one step of a search, which bounds what it costs however large the bundle is."""

_HEADER = "{title tags type description}"
_RANK = f"bm25(words, {', '.join(map(str, schema.WEIGHTS))})"
_RANKED = (
    f"SELECT id, score FROM (SELECT words.rowid AS id, -{_RANK} AS score "  # noqa: S608 - numbers, and marks for values
    "FROM words CROSS JOIN document ON document.id = words.rowid "
    "WHERE words MATCH ?{filters} LIMIT ?) ORDER BY score DESC, id LIMIT ?"
)
_LISTED = "SELECT id, 0.0 FROM document WHERE kind = 1{filters} ORDER BY path LIMIT ?"


class Hit(NamedTuple):
    """A concept that was found, by its number in the index."""

    number: int
    score: float


def find(connection: sqlite3.Connection, query: Query, limit: int) -> list[Hit]:
    """Return the concepts that a query finds, best first, at most `limit`; a query of filters alone, in the order of paths.

    Concepts with a word that few have come before those with common words only, and of the latter those that have the words in
    title, tags, type or description first. Within each step the rank is BM25, and equal ranks are in the order of the index.
    """
    if query.is_blank:
        return []
    filters, values = _filters(query)
    if not (query.words or query.required):
        return [Hit(*row) for row in connection.execute(_LISTED.format(filters=filters), (*values, limit))]
    found: dict[int, float] = {}
    for expression in _steps(connection, query):
        statement = _RANKED.format(filters=filters)
        for number, score in connection.execute(statement, (expression, *values, MOST_RANKED, limit)):
            if number not in found:
                found[number] = score
        if len(found) >= limit:
            break
    return _falling(list(found.items())[:limit])


def _steps(connection: sqlite3.Connection, query: Query) -> Iterable[str]:
    """Yield the expressions to ask with, one after the other as long as there is not enough."""
    everywhere = _any_of(query.words)
    if query.required:
        phrases = " AND ".join(f"({group.expression()})" for group in query.required)
        yield f"{phrases} AND ({everywhere} OR every : {schema.EVERY})" if query.words else phrases
        return
    common = [group for group in query.words if _is_common(connection, group)]
    rare = [group for group in query.words if group not in common]
    if not common:
        yield everywhere
        return
    if rare:
        # Each concept has the term of `every`, so that the common words are optional and count nevertheless.
        yield f"({_any_of(rare)}) AND ({_any_of(common)} OR every : {schema.EVERY})"
    if len(common) > 1:
        yield f"{_HEADER} : ({' AND '.join(f'({group.expression()})' for group in common)})"
    yield f"{_HEADER} : ({_any_of(common)})"
    if len(common) > 1:
        yield " AND ".join(f"({group.expression()})" for group in common)
    yield _any_of(common)


def _any_of(groups: Sequence[Group]) -> str:
    return " OR ".join(group.expression() for group in groups)


def _is_common(connection: sqlite3.Connection, group: Group) -> bool:
    statement = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
    return bool(connection.execute(statement, (group.expression(), COMMON)).fetchone()[0] >= COMMON)


def _filters(query: Query) -> tuple[str, list[str]]:
    conditions: list[str] = []
    values: list[str] = []
    for kind in query.types:
        conditions.append("' ' || document.type_key || ' ' GLOB ?")
        key = type_key(kind)
        values.append(f"* {_literal(key[:-1])}*" if key.endswith("*") else f"* {_literal(key)} *")
    for tag in query.tags:
        key = type_key(tag.lstrip("#"))
        conditions.append("document.id IN (SELECT document FROM tag WHERE key GLOB ?)" if key.endswith("*") else _HAS_TAG)
        values.append(f"{_literal(key[:-1])}*" if key.endswith("*") else key)
    for path in query.paths:
        conditions.append(_IN_PATH if path.isascii() else _IN_PATH_OF_ANY_FORM)
        values += _path_patterns(unicodedata.normalize("NFC", path))
    return "".join(f" AND {condition}" for condition in conditions), values


_IN_PATH = "(document.path GLOB ? OR document.path GLOB ?)"
_IN_PATH_OF_ANY_FORM = _IN_PATH.replace("document.path", "document.nfc")
_HAS_TAG = "EXISTS (SELECT 1 FROM tag WHERE key = ? AND tag.document = document.id)"


def _path_patterns(path: str) -> list[str]:
    """Return what a path has to look like: the document, or one beneath the folder; `*` stands for anything."""
    bare = path.strip().lstrip("/").rstrip("/")
    if "*" in bare:
        pattern = "*".join(map(_literal, bare.split("*")))
        return [pattern, f"{pattern}.md"]
    literal = _literal(bare)
    return [f"{literal}/*", literal if bare.endswith(".md") else f"{literal}.md"] if bare else ["*", "*"]


def _literal(text: str) -> str:
    """Return text as a pattern of SQLite that matches nothing but itself."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in text)


def _falling(found: Sequence[tuple[int, float]]) -> list[Hit]:
    """Return hits whose scores fall, as the order of the steps weighs more than a score."""
    hits: list[Hit] = []
    lowest = float("inf")
    for number, score in found:
        lowest = min(lowest, round(score, 6))
        hits.append(Hit(number, lowest))
    return hits
