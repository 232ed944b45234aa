"""Prints what managed knowledge costs: indexing, synchronising what did not change or little, and a search of each kind.

Arguments are sizes, 10,000 passages by default, and backends, `memory` and `sqlite` by default. With `KB_DATA`, a folder with
`cranfield/` in it, passages are made of real text and nDCG@10 is printed; without it they are made of made-up words.
"""

from __future__ import annotations

import json
import math
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

from passages import CRANFIELD, lines, passages, questions

from agentkernel_kb.rag import Document, Knowledge, SearchMode, create_knowledge

BACKENDS = ("memory", "sqlite")
SEARCHES = 40
WHERE: tuple[dict[str, Any] | None, ...] = (None, {"year": {"$gte": 5}})


def documents(count: int) -> Iterator[Document]:
    """Yield documents of about one passage each."""
    return (Document(*passage) for passage in passages(count))


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that something takes, and its result."""
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def say(**figures: Any) -> None:
    """Print one line of figures."""
    print(json.dumps(figures), flush=True)


def cost(backend: str, count: int, folder: Path) -> None:
    """Index, synchronise and search one corpus."""
    given = list(documents(count))
    knowledge = create_knowledge("sqlite", path=folder / f"{count}.db") if backend == "sqlite" else create_knowledge()
    seconds, report = timed(lambda: knowledge.sync.refresh(given))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    say(backend=backend, passages=report.chunks, indexed_per_s=round(report.chunks / seconds), peak_mib_so_far=memory)
    seconds, report = timed(lambda: knowledge.sync.refresh(given, delete_missing=True))
    say(backend=backend, passages=count, unchanged=report.unchanged, sync_again_s=round(seconds, 2))
    changed = [Document(f"Changed. {each.text}", each.source, each.metadata) for each in given[: count // 100]]
    seconds, report = timed(lambda: knowledge.sync.refresh([*changed, *given[count // 100 :]], delete_missing=True))
    say(backend=backend, passages=count, changed=report.documents, sync_one_percent_s=round(seconds, 2))
    for mode in get_args(SearchMode):
        asked = create_knowledge("vector", store=knowledge.store, mode=mode)
        for where in WHERE:
            say(backend=backend, passages=count, mode=mode, filtered=where is not None, **searched(asked, where))


def files(backend: str, count: int, folder: Path) -> None:
    """Index a folder, and synchronise it: unchanged, with one file in a hundred changed, unchanged in a new process's store."""
    pages = folder / f"{backend}-{count}"
    for number, document in enumerate(documents(count)):
        page = pages / str(number % 100) / f"{number}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(document.text, encoding="utf-8")

    def opened() -> Knowledge:
        return create_knowledge("sqlite", path=f"{pages}.db") if backend == "sqlite" else create_knowledge()

    knowledge = opened()
    seconds, report = timed(lambda: knowledge.sync.refresh(pages))
    say(backend=backend, files=count, indexed_per_s=round(report.chunks / seconds))
    seconds, report = timed(lambda: knowledge.sync.refresh(pages, delete_missing=True))
    say(backend=backend, files=count, unchanged=report.unchanged, sync_again_s=round(seconds, 2))
    for number in range(0, count, 100):
        page = pages / str(number % 100) / f"{number}.md"
        page.write_text(f"Changed. {page.read_text(encoding='utf-8')}", encoding="utf-8")
    seconds, report = timed(lambda: knowledge.sync.refresh(pages, delete_missing=True))
    say(backend=backend, files=count, changed=report.documents, sync_one_percent_s=round(seconds, 2))
    if backend == "sqlite":
        knowledge.sync.close()
        seconds, report = timed(lambda: opened().sync.refresh(pages, delete_missing=True))
        say(backend=backend, files=count, unchanged=report.unchanged, open_and_sync_again_s=round(seconds, 2))


def searched(knowledge: Knowledge, where: dict[str, Any] | None) -> dict[str, float]:
    """Return median, 95th percentile and least time of a search, embedding included; the least is what load changes least."""
    first, *others = questions(SEARCHES + 1)
    knowledge.sync.search(first, where=where)
    walls = [timed(lambda question=question: knowledge.sync.search(question, where=where))[0] * 1_000 for question in others]
    median, most = statistics.median(walls), statistics.quantiles(walls, n=20)[18]
    return {"p50_ms": round(median, 2), "p95_ms": round(most, 2), "least_ms": round(min(walls), 2)}


def quality() -> None:
    """Print nDCG@10 on Cranfield for each mode."""
    wanted: dict[str, dict[str, int]] = {}
    assert CRANFIELD is not None
    for row in (CRANFIELD / "qrels.tsv").read_text(encoding="utf-8").splitlines():
        query, document, grade = row.split("\t")[:3]
        if grade.lstrip("-").isdigit():
            wanted.setdefault(query, {})[document] = max(0, int(grade))
    corpus = [Document(record["text"], record["_id"], {"title": record.get("title", "")}) for record in lines("corpus.jsonl")]
    held = create_knowledge("memory", sources=corpus)
    held.sync.ready()
    for mode in get_args(SearchMode):
        knowledge = create_knowledge("vector", store=held.store, mode=mode)
        judged = [record for record in lines("queries.jsonl") if record["_id"] in wanted]
        gains = [gain(knowledge, record["text"], wanted[record["_id"]]) for record in judged]
        say(corpus="cranfield", mode=mode, ndcg_at_10=round(statistics.mean(gains), 3))


def gain(knowledge: Knowledge, question: str, wanted: dict[str, int]) -> float:
    """Return nDCG@10 of one question, where a document counts once."""
    sources = list(dict.fromkeys(hit.source for hit in knowledge.sync.search(question, k=30)))[:10]
    found = [wanted.get(source or "", 0) for source in sources]
    best = discounted(sorted(wanted.values(), reverse=True)[:10])
    return discounted(found) / best if best else 0.0


def discounted(grades: list[int]) -> float:
    """Return grades added up, the later the less."""
    return sum(grade / math.log2(place + 1) for place, grade in enumerate(grades, 1))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        for size in [int(argument) for argument in sys.argv[1:] if argument.isdigit()] or [10_000]:
            for kind in [argument for argument in sys.argv[1:] if argument in BACKENDS] or BACKENDS:
                cost(kind, size, Path(scratch))
    if CRANFIELD is not None:
        quality()
