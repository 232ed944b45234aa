"""How well a corpus is searched: nDCG, recall, precision, mean reciprocal rank and time over labelled questions."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from agentkernel_kb.evaluation.corpus import Collection
from agentkernel_kb.evaluation.measures import ndcg, precision, recall, reciprocal_rank
from agentkernel_kb.rag import Document, Knowledge, SearchHit, SearchMode, create_knowledge
from agentkernel_kb.rag.stores.arguments import MOST_HITS, check_hits

_CHUNKS_PER_DOCUMENT = 4
_PERCENT = 100

Progress = Callable[[str, int, int], object]
"""Called with what is done, how many questions are through, and how many there are."""


@dataclass(frozen=True)
class Setting:
    """One way to search.

    Attributes:
        mode: `keyword`, `vector` or `hybrid`.
        embedder: What makes vectors; `None` for the hashing one.
        splitter: What cuts documents; `None` for the default.
        embedder_name: What it is called in the results.
        splitter_name: What it is called in the results.
    """

    mode: SearchMode = "hybrid"
    embedder: Any = None
    splitter: Any = None
    embedder_name: str = "hash"
    splitter_name: str = "recursive"


@dataclass(frozen=True)
class Scores:
    """What came of one question.

    Attributes:
        query: Its identifier.
        ndcg: Normalised discounted cumulated gain.
        recall: Which share of what answers it was found.
        precision: Which share of the places has what answers it.
        reciprocal_rank: One over the first place that has what answers it.
        milliseconds: Time of the search, the question's vector included.
    """

    query: str
    ndcg: float
    recall: float
    precision: float
    reciprocal_rank: float
    milliseconds: float


@dataclass(frozen=True)
class RetrievalResult:
    """What came of one way to search: means over the questions.

    Attributes:
        mode: How it ranks.
        embedder: What made the vectors.
        splitter: What cut the documents.
        k: Places that count.
        scores: Those of each question, in order.
        chunks: Chunks that were searched.
        index_seconds: Time that making them took; shared by the modes over one index.
        failed: Documents that could not be indexed.
    """

    mode: str
    embedder: str
    splitter: str
    k: int
    scores: tuple[Scores, ...] = field(repr=False)
    chunks: int = 0
    index_seconds: float = 0.0
    failed: int = 0

    @property
    def ndcg(self) -> float:
        """Mean nDCG."""
        return statistics.fmean(each.ndcg for each in self.scores)

    @property
    def recall(self) -> float:
        """Mean recall."""
        return statistics.fmean(each.recall for each in self.scores)

    @property
    def precision(self) -> float:
        """Mean precision."""
        return statistics.fmean(each.precision for each in self.scores)

    @property
    def mrr(self) -> float:
        """Mean reciprocal rank."""
        return statistics.fmean(each.reciprocal_rank for each in self.scores)

    def milliseconds(self, percent: int = 50) -> float:
        """Return the time that so many in a hundred searches took at most."""
        times = sorted(each.milliseconds for each in self.scores)
        return times[min(len(times) - 1, len(times) * percent // _PERCENT)]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures, and those of each question, as plain values."""
        return {
            "mode": self.mode,
            "embedder": self.embedder,
            "splitter": self.splitter,
            "k": self.k,
            "questions": len(self.scores),
            "ndcg": round(self.ndcg, 4),
            "recall": round(self.recall, 4),
            "precision": round(self.precision, 4),
            "mrr": round(self.mrr, 4),
            "milliseconds": {"median": round(self.milliseconds(), 3), "p95": round(self.milliseconds(95), 3)},
            "chunks": self.chunks,
            "index_seconds": round(self.index_seconds, 3),
            "failed": self.failed,
            "results": [{**vars(each), "milliseconds": round(each.milliseconds, 3)} for each in self.scores],
        }


async def evaluate_retrieval(
    collection: Collection,
    knowledge: Knowledge,
    *,
    k: int = 10,
    id_of: Callable[[SearchHit], str | None] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> tuple[Scores, ...]:
    """Ask a corpus the judged questions of a collection, one after the other, and judge what it finds.

    A document counts at the place of its best chunk, and once.

    Args:
        collection: The questions and judgements.
        knowledge: What is searched.
        k: Places that count.
        id_of: Which document of the collection a hit is of; by default the one that its source names.
        progress: Told after each question how many are through, and how many there are.

    Raises:
        AKConfigError: `k` is out of range.
        KnowledgeBackendError: A search failed.
    """
    check_hits("k", k)
    named = id_of or _source
    asked, scores = collection.judged, list[Scores]()
    await knowledge.ready()
    for number, (query, text) in enumerate(asked.items(), 1):
        started = time.perf_counter()
        found = await _documents(knowledge, text, k, named)
        milliseconds = (time.perf_counter() - started) * 1_000
        grades = collection.grades[query]
        relevant = {document for document, grade in grades.items() if grade > 0}
        scores.append(
            Scores(
                query,
                ndcg(found, grades, k),
                recall(found, relevant, k),
                precision(found, relevant, k),
                reciprocal_rank(found, relevant, k),
                milliseconds,
            )
        )
        if progress is not None:
            progress(number, len(asked))
    return tuple(scores)


async def compare_retrieval(
    collection: Collection, settings: Iterable[Setting], *, k: int = 10, progress: Progress | None = None
) -> list[RetrievalResult]:
    """Index a collection in memory and ask its questions, once for each setting; the modes of one index share it.

    Args:
        collection: Documents, questions and judgements.
        settings: Ways to search.
        k: Places that count.
        progress: Told what is done, how many questions are through, and how many there are; 0 of 0 while it indexes.

    Raises:
        AKConfigError: As for `evaluate_retrieval`, or a model cannot be loaded.
        KnowledgeBackendError: A search failed.
    """
    results: list[RetrievalResult] = []
    for alike in _by_index(settings).values():
        name = f"{alike[0].embedder_name}, {alike[0].splitter_name}"
        if progress is not None:
            progress(f"Indexing ({name})", 0, 0)
        started = time.perf_counter()
        held = create_knowledge("memory", embedder=alike[0].embedder, splitter=alike[0].splitter)
        report = await held.upsert([_as_document(each.id, each.title, each.text) for each in collection.documents])
        seconds = time.perf_counter() - started
        for setting in alike:
            asked = create_knowledge("vector", store=held.store, embedder=setting.embedder, mode=setting.mode)
            told = _told(progress, f"{setting.mode} ({name})")
            scores = await evaluate_retrieval(collection, asked, k=k, progress=told)
            facts = (setting.mode, setting.embedder_name, setting.splitter_name, k, scores)
            results.append(RetrievalResult(*facts, report.chunks, seconds, len(report.failed)))
        await held.close()
    return results


def _source(hit: SearchHit) -> str | None:
    return hit.source


def _by_index(settings: Iterable[Setting]) -> dict[tuple[int, int], list[Setting]]:
    groups: dict[tuple[int, int], list[Setting]] = {}
    for setting in settings:
        groups.setdefault((id(setting.embedder), id(setting.splitter)), []).append(setting)
    return groups


def _told(progress: Progress | None, what: str) -> Callable[[int, int], object] | None:
    return None if progress is None else lambda done, of: progress(what, done, of)


def _as_document(name: str, title: str, text: str) -> Document:
    """Return a document as the index takes it: a title that its text does not repeat is part of it."""
    metadata: Mapping[str, Any] = {"title": title} if title else {}
    whole = text if not title or text.startswith(title) else f"{title}\n\n{text}"
    return Document(whole, name, dict(metadata))


async def _documents(knowledge: Knowledge, text: str, k: int, id_of: Callable[[SearchHit], str | None]) -> Sequence[str]:
    """Return the first `k` documents of a search, which may need more than `k` chunks."""
    most = min(k * _CHUNKS_PER_DOCUMENT, MOST_HITS)
    while True:
        hits = await knowledge.search(text, k=most)
        found = list(dict.fromkeys(name for hit in hits if (name := id_of(hit)) is not None))
        if len(found) >= k or len(hits) < most or most == MOST_HITS:
            return cast("Sequence[str]", found[:k])
        most = min(most * _CHUNKS_PER_DOCUMENT, MOST_HITS)
