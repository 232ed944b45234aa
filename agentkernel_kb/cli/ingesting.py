"""A corpus brought in step with its sources from the command line: what is asked for, and what came of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from agentkernel_kb.cli.exits import Code, CommandError
from agentkernel_kb.near import hint
from agentkernel_kb.rag import IndexReport, Knowledge, SQLiteVectorStore
from agentkernel_kb.rag.plan import planned
from agentkernel_kb.rag.reindex import reindexed
from agentkernel_kb.rag.values import Failure
from agentkernel_kb.rag.verify import VerifyReport, verified

Way = Literal["sync", "plan", "rebuild", "verify"]
"""What is done: sources are indexed; it is told what that would do; all is made anew; notes and chunks are compared."""

Told = Callable[[str], None]


@dataclass(frozen=True)
class Corpus:
    """A corpus and what it is to be made of.

    Attributes:
        name: What it is called.
        knowledge: The corpus.
        sources: Its sources.
    """

    name: str
    knowledge: Knowledge
    sources: Sequence[Any]


@dataclass(frozen=True)
class Ingested:
    """What came of a corpus.

    Attributes:
        name: What it is called.
        added: Sources that are new.
        changed: Sources that were indexed again.
        removed: Sources that are gone.
        unchanged: How many are as they were.
        skipped: How many were left out on purpose.
        failed: Sources that could not be indexed.
        chunks: Chunks that were made.
        milliseconds: Time taken.
        verified: What a comparison found, where that was asked for.
        error: Why it failed as a whole; empty where it did not.
        error_code: The exit code that stands for that.
    """

    name: str
    added: list[str] = field(default_factory=list[str])
    changed: list[str] = field(default_factory=list[str])
    removed: list[str] = field(default_factory=list[str])
    unchanged: int = 0
    skipped: int = 0
    failed: list[Failure] = field(default_factory=list[Failure])
    chunks: int = 0
    milliseconds: float = 0.0
    verified: VerifyReport | None = None
    error: str = ""
    error_code: Code = Code.OK

    @property
    def code(self) -> Code:
        """The exit code that stands for it."""
        if self.error:
            return self.error_code
        return Code.FAILED if self.failed or (self.verified is not None and not self.verified.ok) else Code.OK

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, as `--json` prints it."""
        plain = {**vars(self), "failed": [dict(vars(each)) for each in self.failed]}
        del plain["error_code"]
        found = self.verified
        plain["verified"] = None if found is None else {"ok": found.ok, **found.to_dict()}
        return {**plain, "milliseconds": round(self.milliseconds, 3)}


def ingested(corpus: Corpus, way: Way, *, delete_missing: bool, repair: bool, seconds: float | None, told: Told) -> Ingested:
    """Do what is asked for with a corpus, and close it.

    Args:
        corpus: The corpus.
        way: What is done.
        delete_missing: What is not among the sources is deleted.
        repair: A comparison takes back what is not true.
        seconds: Most seconds; `None` for as long as it takes.
        told: Told how far it has come.

    Raises:
        CommandError: It takes longer; what was indexed until then stays. Or there is nothing to compare.
        KnowledgeError: It failed as a whole.
    """

    async def work() -> Ingested:
        try:
            async with asyncio.timeout(seconds):
                return await _worked(corpus, way, delete_missing=delete_missing, repair=repair, told=told)
        finally:
            await corpus.knowledge.close()

    started = time.perf_counter()
    try:
        done = asyncio.run(work())
    except TimeoutError as error:
        message = f"'{corpus.name}' was not done in {seconds:g} seconds; the next run goes on from what was indexed."
        raise CommandError(message, Code.UNREACHABLE) from error
    return replace(done, milliseconds=(time.perf_counter() - started) * 1_000)


def source_of(text: str) -> str | Path:
    """Return a source as it is typed: an address with `://`, else a path, and never a text by itself."""
    return text if "://" in text else Path(text)


async def _worked(corpus: Corpus, way: Way, *, delete_missing: bool, repair: bool, told: Told) -> Ingested:
    indexer, sources = corpus.knowledge.indexer, list(corpus.sources)
    if way == "verify":
        await _check_there(corpus)
        return Ingested(corpus.name, verified=await verified(indexer, repair=repair))
    if way == "plan":
        plan = await planned(indexer, sources, delete_missing=delete_missing)
        return Ingested(corpus.name, plan.added, plan.changed, plan.removed, plan.unchanged, plan.skipped, plan.failed)

    def progress(report: IndexReport) -> None:
        told(f"Indexing '{corpus.name}': {len(report.sources):,} indexed, {report.unchanged:,} unchanged…")

    before = await indexer.ledger.held(indexer.scope)
    if way == "rebuild":
        report = await reindexed(indexer, sources, metadata=None, progress=progress, delete_missing=delete_missing)
    else:
        report = await indexer.index(sources, delete_missing=delete_missing, progress=progress)
    after = await indexer.ledger.held(indexer.scope)
    return _told_apart(corpus.name, report, _names(before), _names(after))


async def _check_there(corpus: Corpus) -> None:
    """Check that there is something to compare.

    Raises:
        CommandError: There is no corpus of the name in the file, or no file.
    """
    store = corpus.knowledge.store
    if not isinstance(store, SQLiteVectorStore):
        return
    known = await store.namespaces()
    if store.namespace in known:
        return
    if not known:
        raise CommandError(f"There is no corpus at {store.path}.", Code.USAGE)
    near = hint(store.namespace, known)
    message = f"There is no corpus '{store.namespace}' in {store.path}.{near} There are: {', '.join(known)}."
    raise CommandError(message, Code.USAGE)


def _told_apart(name: str, report: IndexReport, before: set[str], after: set[str]) -> Ingested:
    return Ingested(
        name,
        added=[source for source in report.sources if source not in before],
        changed=[source for source in report.sources if source in before],
        removed=sorted(before - after),
        unchanged=report.unchanged,
        skipped=report.skipped,
        failed=report.failed,
        chunks=report.chunks,
    )


def _names(held: Sequence[tuple[str | None, str]]) -> set[str]:
    return {source or document for source, document in held}
