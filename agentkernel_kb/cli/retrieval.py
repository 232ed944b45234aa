"""`eval --corpus`: ways to search a labelled collection, side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, cast, get_args

from agentkernel_kb.cli.command import Run
from agentkernel_kb.cli.exits import Code, CommandError
from agentkernel_kb.embed import named_embedder
from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.evaluation.corpus import Collection, read_collection
from agentkernel_kb.evaluation.retrieval import RetrievalResult, Setting, compare_retrieval
from agentkernel_kb.near import hint
from agentkernel_kb.rag import ApproxTokenChunker, HeadingChunker, RecursiveCharacterSplitter, SearchMode

_MODES: tuple[SearchMode, ...] = get_args(SearchMode)
_SPLITTERS: dict[str, Callable[..., Any]] = {
    "recursive": RecursiveCharacterSplitter,
    "tokens": ApproxTokenChunker,
    "headings": HeadingChunker,
}
_SIZES = 2


def evaluated(
    run: Run, folder: Path, *, modes: Sequence[str], embedders: Sequence[str], splitters: Sequence[str], k: int, least: float
) -> Code:
    """Search a labelled collection in each of the ways that the options make, and print what came of them.

    Raises:
        CommandError: A mode or a chunker is not known.
        KnowledgeError: The collection or a model cannot be read, or a search failed.
    """
    settings = _settings(modes or _MODES, embedders or ["hash"], splitters or ["recursive"])
    collection = read_collection(folder)
    run.out.note(f"{len(collection.documents):,} documents, {len(collection.judged):,} judged questions.")
    with run.out.progress("Reading…") as told:
        results = asyncio.run(_compared(collection, settings, k, told))
    best = max(each.ndcg for each in results)
    if run.options.as_json:
        facts = {"documents": len(collection.documents), "questions": len(collection.judged), "min_ndcg": least}
        run.out.json({"ok": best >= least, "command": run.name, **facts, "settings": [each.to_dict() for each in results]})
    else:
        _table(run, results, k)
    for each in results:
        if each.failed:
            run.out.warning(f"{each.failed} documents could not be indexed with {each.embedder}, {each.splitter}.")
    if best < least:
        run.out.error(f"The best nDCG@{k} is {best:.3f}; --min-ndcg asks for {least:.3f}.")
    return Code.OK if best >= least else Code.FAILED


async def _compared(
    collection: Collection, settings: Sequence[Setting], k: int, told: Callable[[str], None]
) -> list[RetrievalResult]:
    def progress(what: str, done: int, of: int) -> None:
        told(f"{what}: {done} of {of} questions" if of else f"{what}…")

    return await compare_retrieval(collection, settings, k=k, progress=progress)


def _settings(modes: Sequence[str], embedders: Sequence[str], splitters: Sequence[str]) -> list[Setting]:
    for mode in modes:
        _check("mode", mode, _MODES)
    models = {name: named_embedder(name) for name in embedders}
    cutters = {name: _splitter(name) for name in splitters}
    return [
        Setting(cast("SearchMode", mode), models[model], cutters[cutter], model, cutter)
        for model, cutter, mode in product(models, cutters, dict.fromkeys(modes))
    ]


def _splitter(name: str) -> Any:
    """Return a chunker by its name, and perhaps its size and its overlap: `tokens:256:32`."""
    kind, *sizes = name.split(":")
    _check("chunker", kind, tuple(_SPLITTERS))
    if len(sizes) > _SIZES or not all(size.isdecimal() for size in sizes):
        raise CommandError(f"A chunker is {kind}, {kind}:SIZE or {kind}:SIZE:OVERLAP, not {name!r}.", Code.USAGE)
    try:
        return _SPLITTERS[kind](*map(int, sizes))
    except AKConfigError as error:
        raise CommandError(str(error), Code.USAGE) from error


def _check(what: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise CommandError(f"There is no {what} '{name}'.{hint(name, known)} Known: {', '.join(known)}.", Code.USAGE)


def _table(run: Run, results: Sequence[RetrievalResult], k: int) -> None:
    measures = (f"nDCG@{k}", f"Recall@{k}", f"Precision@{k}", f"MRR@{k}", "Median", "p95")
    columns = ("Mode", "Embedder", "Chunker", *measures)
    rows = [_row(each) for each in results]
    run.out.table(columns, rows if run.out.is_terminal else [columns, *rows])


def _row(each: RetrievalResult) -> tuple[str, ...]:
    figures = (f"{figure:.3f}" for figure in (each.ndcg, each.recall, each.precision, each.mrr))
    times = (f"{each.milliseconds(percent):,.1f} ms" for percent in (50, 95))
    return (each.mode, each.embedder, each.splitter, *figures, *times)
