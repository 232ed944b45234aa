"""One collection, bound to one embedding function: made, checked, searched and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from agentkernel_kb.chroma.embedding import Embedding, stored_name
from agentkernel_kb.chroma.exact import distances
from agentkernel_kb.chroma.failures import translated
from agentkernel_kb.chroma.ranking import WIDEST, Hit, best
from agentkernel_kb.chroma.records import Distance, Prepared, is_within, restore, score
from agentkernel_kb.errors import AKConfigError, KnowledgeQueryError
from agentkernel_kb.model import Record, Scalar

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

    from agentkernel_kb.chroma.connection import Connection

EMBEDDER_KEY = "agentkernel_kb:embedder"
"""The key in the collection's metadata that names the function its vectors come from, written before the first vector is."""

_CERTAINLY_FITS = 1_000
_SHOWN_NAME_CHARS = 200


class BoundCollection:
    """A collection and the embedding function that its vectors come from.

    Args:
        connection: An open connection.
        name: Name of the collection.
        embedding: The function.
        distance: The distance it must have, `None` for any; a new one gets `cosine`.
        subject: Name of the backend, for messages.
        place: Where its Chroma is, for messages.
        min_score: Lowest score of a hit, `None` for any.
        create: Make the collection where it is missing.

    Raises:
        AKConfigError: The name is not allowed, the collection was built with another function, dimension or distance, or
            no score of its distance can reach `min_score`.
        KnowledgeConnectionError: It is missing, and is not to be made.
        KnowledgeBackendError: Chroma failed.
    """

    def __init__(
        self,
        connection: Connection,
        name: str,
        embedding: Embedding,
        distance: Distance | None,
        subject: str,
        place: str,
        *,
        min_score: float | None = None,
        create: bool = True,
    ) -> None:
        self._connection = connection
        self._client = connection.client
        self._name = name
        self._embedding = embedding
        self._subject = subject
        self._place = place
        self._min_score = min_score
        self._bound = False
        with translated(subject, place, "open its collection"):
            collection = self._get_or_create(distance) if create else self._get()
        self._check_origin(collection)
        self._collection = collection
        self._check_distance(distance)
        self._check_min_score()

    def search(
        self,
        query: str,
        vector: list[float],
        limit: int,
        where: Mapping[str, Any] | None,
        where_document: Mapping[str, Any] | None,
    ) -> list[Record]:
        """Return at most `limit` records, the most like `vector` first, ties broken by id.

        Args:
            query: The text that `vector` comes from.
            vector: Its vector.
            limit: At least 1.
            where: A filter over metadata.
            where_document: A filter over the text.

        Raises:
            AKConfigError: The vector does not fit the collection.
            KnowledgeQueryError: Chroma rejects a filter.
        """
        self._check_length(len(vector))
        if _dimension(self._collection) is None:
            return []
        if self.distance == "cosine" and not any(vector):
            return []  # A text without any feature is like nothing, and Chroma would return records at random.

        def look(number: int) -> list[Hit]:
            with self._connection.searching(str(self._collection.id)):
                found = self._query(vector, number, where, where_document)
                hits = self._hits(cast("Mapping[str, Any]", found))
                if (where or where_document) and len(hits) < number:
                    hits = self._unreached(hits, vector, where, where_document)
            return hits

        return [_record(hit) for hit in best(look, limit, self._min_score, self._embedding.related_to(query))]

    def store(
        self, prepared: Sequence[Prepared], vectors: Sequence[list[float]], filters: Mapping[str, Scalar] | None = None
    ) -> None:
        """Store records with their vectors, each in place of the one with the same id, in batches of Chroma's own limit.

        The caller makes sure that nobody else writes meanwhile.

        Args:
            prepared: The records.
            vectors: Their vectors.
            filters: The row scope outside of which no record is replaced.

        Raises:
            AKConfigError: The vectors do not fit the collection; nothing was stored.
            KnowledgeQueryError: A record outside of the row scope has one of the ids; nothing was stored.
        """
        self._bind(len(vectors[0]))
        size = max(1, self._client.get_max_batch_size())
        if filters:
            for start in range(0, len(prepared), size):
                self._check_within([one.id for one in prepared[start : start + size]], filters)
        for start in range(0, len(prepared), size):
            with self._connection.storing():
                self._store_batch(prepared[start : start + size], vectors[start : start + size])

    def _check_within(self, ids: list[str], filters: Mapping[str, Scalar]) -> None:
        stored = self._collection.get(ids=ids, include=["metadatas"])["metadatas"] or []
        if not all(is_within(metadata, filters) for metadata in stored):
            raise KnowledgeQueryError(f"'{self._subject}' can't store under an id that is in use; nothing was written.")

    def check(self) -> str:
        """Return Chroma's version, once it has said that the collection is there."""
        version = self._client.get_version()
        self._get()
        return version

    def _query(
        self, vector: list[float], limit: int, where: Mapping[str, Any] | None, where_document: Mapping[str, Any] | None
    ) -> object:
        if limit > _CERTAINLY_FITS:
            limit = min(limit, max(1, self._collection.count()))  # Chroma takes 32 bits.
        try:
            return self._collection.query(
                query_embeddings=cast("Any", [vector]),
                n_results=limit,
                where=cast("Any", where or None),
                where_document=cast("Any", where_document or None),
                include=["documents", "metadatas", "distances"],
            )
        except Exception as error:
            if (where or where_document) and _is_rejection(error):
                raise KnowledgeQueryError(f"Chroma rejects where= or where_document= of '{self._subject}'.") from error
            raise

    def _unreached(
        self, hits: list[Hit], vector: list[float], where: Mapping[str, Any] | None, where_document: Mapping[str, Any] | None
    ) -> list[Hit]:
        """Add what a filter lets through and the index did not find: seen for one record in four of a thousand.

        See https://github.com/chroma-core/chroma/issues/4089.
        """
        found = {hit.id for hit in hits}
        filters: Any = {"where": where or None, "where_document": where_document or None}
        matching = self._collection.get(**filters, include=[], limit=WIDEST)["ids"]
        missed = [identity for identity in matching if identity not in found]
        if not missed:
            return hits
        stored = self._collection.get(ids=missed, include=["documents", "metadatas", "embeddings"])
        columns: Any = (stored["ids"], stored["documents"], stored["metadatas"], stored["embeddings"])
        rows: list[tuple[str, str | None, Any, Any]] = list(zip(*columns, strict=True))
        away = distances(vector, ([float(number) for number in row[3]] for row in rows), self.distance)
        scored = zip(rows, away, strict=True)
        return hits + [Hit(identity, text, kept, score(far, self.distance)) for (identity, text, kept, _), far in scored]

    @property
    def distance(self) -> Distance:
        """The distance that the collection ranks by."""
        configuration = self._collection.configuration_json
        index = cast("Mapping[str, Any]", configuration.get("hnsw") or configuration.get("spann") or {})
        return cast("Distance", index.get("space") or "l2")

    def _get_or_create(self, distance: Distance | None) -> Collection:
        from chromadb.errors import ChromaError, InvalidArgumentError, NotFoundError

        try:
            return self._get()
        except NotFoundError:
            pass
        try:
            return _without_stored_functions(
                self._client.create_collection(
                    self._name, configuration={"hnsw": {"space": distance or "cosine"}}, embedding_function=None
                )
            )
        except InvalidArgumentError as error:
            raise AKConfigError(
                f"'{self._subject}': {self._name!r} can't name a collection of Chroma; allowed are 3 to 512 letters, digits, "
                "dots, underscores and hyphens, with a letter or a digit at both ends."
            ) from error
        except ChromaError:
            return self._get()  # Somebody else has made it since.

    def _get(self) -> Collection:
        # Without Chroma's own function: it would be the default model, whatever the collection was built with.
        return _without_stored_functions(self._client.get_collection(self._name, embedding_function=None))

    def _check_distance(self, distance: Distance | None) -> None:
        if distance not in (None, self.distance):
            raise AKConfigError(
                f"{self._where()} was built with the distance {self.distance!r}, not with {distance!r}. "
                "Leave distance= out, or choose another collection_name=."
            )

    def _check_min_score(self) -> None:
        if self._min_score is not None and self._min_score > 1 and self.distance != "ip":
            raise AKConfigError(
                f"{self._where()} ranks by the distance {self.distance!r}, whose scores are at most 1; min_score="
                f"{self._min_score:g} would leave out every record."
            )

    def _check_origin(self, collection: Collection) -> None:
        """Compare what a collection was built with to what this backend would add; an empty one fits any function."""
        if _dimension(collection) is None:
            return
        origin = _origin(collection)
        if origin not in (None, self._embedding.name):
            raise self._other_function(origin)
        if self._embedding.dimensions is not None:
            self._compare_dimension(collection, self._embedding.dimensions)

    def _check_length(self, length: int) -> None:
        if _dimension(self._collection) is None:  # It was empty when it was last looked at; somebody may have filled it since.
            collection = self._get()
            self._check_origin(collection)
            self._collection = collection
        self._compare_dimension(self._collection, length)

    def _compare_dimension(self, collection: Collection, length: int) -> None:
        dimension = _dimension(collection)
        if dimension not in (None, length):
            raise AKConfigError(
                f"{self._where()} holds vectors of {dimension} numbers, but the embedding function "
                f"'{self._embedding.name}' gives {length}. {_REMEDY}"
            )

    def _bind(self, length: int) -> None:
        """Write down which function the vectors come from, before the first of them is stored."""
        self._check_length(length)
        if self._bound:
            return
        if _origin(self._collection) != self._embedding.name:
            # Chroma refuses this key, and has taken the distance over into the collection's configuration.
            kept = {key: value for key, value in (self._collection.metadata or {}).items() if key != "hnsw:space"}
            self._collection.modify(metadata={**kept, EMBEDDER_KEY: self._embedding.name})
            collection = self._get()
            self._check_origin(collection)
            if (origin := _origin(collection)) != self._embedding.name:
                raise self._other_function(origin)
            self._collection = collection
        self._bound = True

    def _store_batch(self, prepared: Sequence[Prepared], vectors: Sequence[list[float]]) -> None:
        ids = [one.id for one in prepared]
        stored = self._collection.get(ids=ids, include=["metadatas"])
        # Chroma merges new metadata into the old, so what the new record does not have is taken away by name.
        gone = {
            identity: dict.fromkeys(metadata or {})
            for identity, metadata in zip(stored["ids"], stored["metadatas"] or [], strict=True)
        }
        metadatas = [{**gone.get(one.id, {}), **one.metadata} or None for one in prepared]
        self._collection.upsert(
            ids=ids,
            embeddings=cast("Any", list(vectors)),
            documents=[one.text for one in prepared],
            metadatas=cast("Any", metadatas),
        )

    def _hits(self, found: Mapping[str, Any]) -> list[Hit]:
        columns = (found["ids"][0], found["documents"][0], found["metadatas"][0], found["distances"][0])
        return [
            Hit(identity, text, metadata, score(distance, self.distance))
            for identity, text, metadata, distance in zip(*columns, strict=True)
        ]

    def _other_function(self, origin: str | None) -> AKConfigError:
        shown = str(origin)[:_SHOWN_NAME_CHARS]
        return AKConfigError(
            f"{self._where()} was built with the embedding function {shown!r}, not with {self._embedding.name!r}, and "
            f"vectors of different functions can't be compared. {_REMEDY} If they are the same function, give yours "
            f"the attribute name = {shown!r}."
        )

    def _where(self) -> str:
        return f"'{self._subject}': the collection {self._name!r} at {self._place}"


_REMEDY = (
    "Pass as embedding_function= the one it was built with, or choose another collection_name= and write the records into that."
)


def _record(hit: Hit) -> Record:
    return {"text": hit.text or "", "metadata": {**restore(hit.metadata, hit.id), "score": hit.score}}


def _without_stored_functions(collection: Collection) -> Collection:
    """Take the embedding functions that a collection was stored with out of what this process knows of it.

    chromadb 1.5.9 builds them whenever something is written, though the vectors are given: whoever may make a collection on the
    server could have this process load a model, and run its code. See https://github.com/chroma-core/chroma/issues/6717.
    """
    collection.get_model().serialized_schema = None
    return collection


def _dimension(collection: Collection) -> int | None:
    return collection.get_model().dimension


def _origin(collection: Collection) -> str | None:
    own: object = (collection.metadata or {}).get(EMBEDDER_KEY)
    return own if isinstance(own, str) else stored_name(collection.configuration_json)


def _is_rejection(error: Exception) -> bool:
    from chromadb.errors import InvalidArgumentError

    return isinstance(error, ValueError | TypeError | InvalidArgumentError)
