"""What a write to Neo4j may reach: the graph and its schema, and nothing outside, with the work of a read."""

from __future__ import annotations

from collections.abc import Sequence

from agentkernel_kb.guard.cypher_cursor import keyword
from agentkernel_kb.guard.cypher_effort import refusal
from agentkernel_kb.guard.lexer import Token
from agentkernel_kb.guard.neo4j_effort import check_work

_SCHEMA = frozenset(["CONSTRAINT", "FULLTEXT", "INDEX", "LOOKUP", "POINT", "RANGE", "TEXT", "VECTOR"])
_GRAPH_PROCEDURES = ("db.index.fulltext.query", "db.index.vector.query", "db.create.set")
_REACHING = frozenset(["apoc", "dbms", "genai", "graph", "tx"])
_OF_FILES = frozenset(["file", "linenumber"])
_CLAUSES = {
    "LOAD": "This statement reads files or opens connections",
    "USE": "This statement chooses another database",
}


def check_reach(tokens: Sequence[Token]) -> None:
    """Refuse a write that administers the server, reads files, chooses another database, commits alone, or calls elsewhere.

    Raises:
        KnowledgeGuardError: It does.
    """
    _check_opening(tokens)
    check_work(tokens)
    for index, token in enumerate(tokens):
        word, following = keyword(token), _at(tokens, index + 1)
        if word == "LOAD" and _keyword_of(following) == "CSV":
            raise refusal(_CLAUSES["LOAD"], token)
        if word == "USE" and index and following is not None and following.kind in ("word", "quoted"):
            raise refusal(_CLAUSES["USE"], token)
        if word == "TRANSACTIONS" and _keyword_of(_at(tokens, index - 1)) in ("IN", "CONCURRENT"):
            raise refusal("This statement would run in transactions of its own", token)
        if word == "CALL" and following is not None and following.kind in ("word", "quoted"):
            _check_procedure(tokens, index + 1)
        if token.name in _OF_FILES and following is not None and following.text == "(" and _is_called(tokens, index):
            raise refusal("This function tells about files", token)
        if token.name in _REACHING and following is not None and following.text == "." and _is_called(tokens, index):
            raise refusal("This function reaches outside of the graph", token)


def _check_opening(tokens: Sequence[Token]) -> None:
    first, second = keyword(tokens[0]), _keyword_of(_at(tokens, 1))
    if first in ("CREATE", "DROP") and second and second not in _SCHEMA:
        raise refusal("A write creates or drops indexes and constraints, and nothing else of the server", tokens[1])


def _check_procedure(tokens: Sequence[Token], index: int) -> None:
    name, end = tokens[index].name, index
    while (dot := _at(tokens, end + 1)) is not None and dot.text == "." and (part := _at(tokens, end + 2)) is not None:
        name, end = f"{name}.{part.name}", end + 2
    if not name.startswith(_GRAPH_PROCEDURES):
        raise refusal("This procedure is not known to stay inside of the graph", tokens[index])


def _is_called(tokens: Sequence[Token], index: int) -> bool:
    """Tell whether the name with dots that begins here is called, and is no property of a variable."""
    if index and tokens[index - 1].text == ".":
        return False
    end = index
    while (dot := _at(tokens, end + 1)) is not None and dot.text == ".":
        end += 2
    return (bracket := _at(tokens, end + 1)) is not None and bracket.text == "("


def _at(tokens: Sequence[Token], index: int) -> Token | None:
    return tokens[index] if 0 <= index < len(tokens) else None


def _keyword_of(token: Token | None) -> str:
    return "" if token is None else keyword(token)
