"""Searching by an index of the server: a full-text index by words, or a vector index by what the words mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError, KnowledgeError
from agentkernel_kb.graph_values import LABELS, as_text
from agentkernel_kb.model import Record, RecordPage
from agentkernel_kb.neo4j.arguments import Scope
from agentkernel_kb.neo4j.sessions import MAX_PAGE_BYTES, rows_of, run, transaction_of
from agentkernel_kb.neo4j.values import plain, weight

if TYPE_CHECKING:
    from neo4j import AsyncDriver, AsyncResult

MAX_WORDS = 64
_FIND = """
SHOW INDEXES YIELD name, type, entityType, properties, options WHERE name = $name RETURN type, entityType, properties, options
"""
_BY = {"FULLTEXT": "fulltext", "VECTOR": "vector"}


class EmbedsQueries(Protocol):
    """An object that embeds documents and queries each in its own way."""

    def embed_query(self, text: str, /) -> Any:
        """Return the vector of a query."""
        ...


EmbeddingFunction = Callable[[list[str]], Any] | EmbedsQueries
"""What can be given as an embedding function: an object with `embed_query`, or a callable from a list of texts to vectors."""


@dataclass(frozen=True)
class SearchIndex:
    """An index by which to search.

    Attributes:
        name: Its name on the server.
        embed: Texts to vectors, for a vector index; `None` for a full-text index.
        text: The property whose value a hit shows; `None` for those of a full-text index, or the whole node.
    """

    name: str
    embed: EmbeddingFunction | None
    text: str | None

    @property
    def kind(self) -> str:
        """The type that the server has to give for it."""
        return "FULLTEXT" if self.embed is None else "VECTOR"

    def question(self, query: str) -> str | list[float]:
        """Return what the index is asked: words, none of which is syntax to it, or a vector.

        Raises:
            KnowledgeBackendError: The embedding function failed.
        """
        return _as_words(query) if self.embed is None else _as_vector(self.embed, query)


def _as_words(query: str) -> str:
    r"""Return the words of a text, each in quotes, in which only `\` and `"` mean anything to Lucene."""
    words = (word.replace("\\", "\\\\").replace('"', '\\"') for word in query.split()[:MAX_WORDS])
    return " ".join(f'"{word}"' for word in words)


def _as_vector(embed: EmbeddingFunction, query: str) -> list[float]:
    try:
        if callable(by_query := getattr(embed, "embed_query", None)):
            vector: Any = by_query(query)
        else:
            vector = cast("Callable[[list[str]], Any]", embed)([query])[0]
        numbers = [float(number) for number in vector]
    except KnowledgeError:
        raise
    except Exception as error:  # An embedding function is the application's and may raise anything.
        raise KnowledgeBackendError(f"The embedding function failed ({type(error).__name__}).") from error
    if not numbers or not all(map(math.isfinite, numbers)):
        raise KnowledgeBackendError("The embedding function returned no vector of finite numbers.")
    return numbers


async def search(
    driver: AsyncDriver,
    scope: Scope,
    index: SearchIndex,
    question: str | list[float],
    limit: int,
    deadline: Deadline,
    source: str,
) -> RecordPage:
    """Return the nodes or relationships that an index finds, best first; none where a vector without a direction is asked for.

    As soon as they take 16 MB, those after them are left out.

    Raises:
        AKConfigError: The server has no such index of that type, or one of vectors of another length.
    """
    async with transaction_of(driver, scope, deadline) as transaction:
        found = _checked(await rows_of(transaction, _FIND, {"name": index.name}), index)
        if isinstance(question, list) and not _fits(question, found["options"].get("indexConfig", {}), index):
            return RecordPage([])
        asked = {"name": index.name, "asked": question, "most": limit}
        result = await run(transaction, _statement(index, found), asked)
        shown = [index.text] if index.text else found["properties"] if index.embed is None else []
        return await _fetch(result, shown, source)


async def _fetch(result: AsyncResult, shown: Sequence[str], source: str) -> RecordPage:
    records: list[Record] = []
    bytes_left = MAX_PAGE_BYTES
    async for row in result:
        if bytes_left <= 0:
            return RecordPage(records, more=True)
        records.append(_record(row["found"], row["score"], shown, source))
        bytes_left -= weight(records[-1]["metadata"]["row"])
    return RecordPage(records)


def _checked(rows: Sequence[dict[str, Any]], index: SearchIndex) -> dict[str, Any]:
    if not rows:
        raise AKConfigError(f"Neo4j has no index {index.name!r}; search_index names one that is not there.")
    if rows[0]["type"] != index.kind:
        needed = "embedding_function= goes with a vector index" if index.embed else "a vector index needs embedding_function="
        raise AKConfigError(f"The index {index.name!r} is of type {rows[0]['type']}; {needed}.")
    return rows[0]


def _fits(vector: list[float], config: Mapping[str, Any], index: SearchIndex) -> bool:
    """Check the length of a vector, and tell whether it can be compared: by its angle, one of zeros cannot."""
    length = config.get("vector.dimensions", len(vector))
    if length != len(vector):
        raise AKConfigError(
            f"The index {index.name!r} has vectors of {length} numbers, embedding_function= makes {len(vector)}"
        )
    return any(vector) or str(config.get("vector.similarity_function", "")).lower() != "cosine"


def _statement(index: SearchIndex, found: dict[str, Any]) -> str:
    kind, is_node = _BY[index.kind], found["entityType"] == "NODE"
    procedure = f"db.index.{kind}.{'queryNodes' if is_node else 'queryRelationships'}"
    arguments = "$name, $asked, {limit: $most}" if kind == "fulltext" else "$name, $most, $asked"
    return (
        f"CALL {procedure}({arguments}) YIELD {'node' if is_node else 'relationship'} AS found, score "
        "RETURN found, score ORDER BY score DESC, elementId(found)"
    )


def _record(element: object, score: float, shown: Sequence[str], source: str) -> Record:
    values: dict[str, Any] = plain(element)
    texts = [as_text(values[name]) for name in shown if values.get(name) is not None]
    metadata: dict[str, Any] = {"row": values, "score": float(score), "source": source}
    if labels := values.get(LABELS):
        metadata["kind"] = labels[0]
    return {"text": "\n".join(texts) or as_text(values), "metadata": metadata}
