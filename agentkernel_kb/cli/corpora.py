"""The corpora that `ingest` works on: those of the configuration, or one of a file; and what is printed of them."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.cli.command import Run
from agentkernel_kb.cli.exits import Code, CommandError
from agentkernel_kb.cli.ingesting import Corpus, Ingested, Way, ingested, source_of
from agentkernel_kb.cli.opening import opened
from agentkernel_kb.config.lazy import LazyKnowledgeBase
from agentkernel_kb.embed import named_embedder
from agentkernel_kb.near import hint
from agentkernel_kb.rag import create_knowledge
from agentkernel_kb.rag.manager import RAGManager

_TYPE = "knowledge"
_DOING = {"sync": "Indexing", "plan": "Looking at", "rebuild": "Making anew", "verify": "Comparing"}


@dataclass(frozen=True)
class Asked:
    """What `ingest` is asked for: its arguments and options, see there."""

    names: Sequence[str]
    path: Path | None
    namespace: str
    embedder: str
    delete_missing: bool
    dry_run: bool
    rebuild: bool
    verify: bool
    repair: bool


def ingest_all(run: Run, asked: Asked) -> Code:
    """Do what is asked for with each corpus, print what came of it, and return the exit code.

    Raises:
        CommandError: It cannot be done like this.
        KnowledgeError: A corpus failed as a whole.
    """
    way = _way(plan=asked.dry_run, rebuild=asked.rebuild, verify=asked.verify)
    if asked.repair and not asked.verify:
        raise CommandError("--repair goes with --verify.", Code.USAGE)
    done: list[Ingested] = []
    with _corpora(run, asked, way) as corpora:
        for corpus in corpora:
            with run.out.progress(f"{_DOING[way]} '{corpus.name}'…") as told:
                options = {"delete_missing": asked.delete_missing, "repair": asked.repair}
                done.append(ingested(corpus, way, **options, seconds=run.options.timeout, told=told))
    code = max((each.code for each in done), default=Code.OK)
    if run.options.as_json:
        run.out.json({"ok": code == Code.OK, "command": run.name, "way": way, "corpora": [each.to_dict() for each in done]})
    else:
        _show(run, done, way)
    for each in done:
        for failure in each.failed:
            run.out.error(f"{each.name}: {failure.source}: {failure.reason}")
    return code


def _way(**asked: bool) -> Way:
    """Return what is done.

    Raises:
        CommandError: Two things are asked for at once.
    """
    chosen = [name for name, is_asked in asked.items() if is_asked]
    if len(chosen) > 1:
        raise CommandError("Give one of --dry-run, --rebuild and --verify.", Code.USAGE)
    ways: dict[str, Way] = {"plan": "plan", "rebuild": "rebuild", "verify": "verify"}
    return ways[chosen[0]] if chosen else "sync"


@contextmanager
def _corpora(run: Run, asked: Asked, way: Way) -> Generator[Sequence[Corpus]]:
    if run.options.agent:
        raise CommandError(
            "Corpora are indexed for the application, and not on behalf of an agent: leave --agent out.", Code.USAGE
        )
    if asked.path is not None:
        yield [_at(asked.path, asked, way)]
        return
    if (asked.namespace, asked.embedder) != ("knowledge", "hash"):
        raise CommandError("--namespace and --embedder go with --path.", Code.USAGE)
    with opened(run) as knowledge:
        declared = knowledge.configuration.backends
        backends = {each.backend_name: each for each in knowledge.builder.backends}
        known = [name for name, each in declared.items() if each.type == _TYPE and name in backends]
        chosen = [_known(name, known) for name in dict.fromkeys(asked.names)] or known
        if not chosen:
            raise CommandError(f"No backend of {knowledge.path} is of type knowledge.", Code.USAGE)
        yield [_declared(name, backends[name], way) for name in chosen]


def _at(path: Path, asked: Asked, way: Way) -> Corpus:
    """Return the corpus of a file; nothing is made for looking at it."""
    is_there = path.exists()
    if not asked.names and way != "verify":
        raise CommandError("Name the sources that are to be indexed: files, folders, addresses.", Code.USAGE)
    if not is_there and way == "verify":
        raise CommandError(f"There is no corpus at {path}.", Code.USAGE)
    model = named_embedder(asked.embedder)
    if way == "plan" and not is_there:
        knowledge = create_knowledge("memory", name=asked.namespace, embedder=model)
    else:
        knowledge = create_knowledge("sqlite", path=path, name=asked.namespace, embedder=model)
    return Corpus(str(path), knowledge, [source_of(each) for each in asked.names])


def _declared(name: str, backend: KnowledgeBase, way: Way) -> Corpus:
    """Return the corpus of a backend, with the sources that the configuration names."""
    manager = asyncio.run(backend.aopened()) if isinstance(backend, LazyKnowledgeBase) else backend
    if not isinstance(manager, RAGManager):
        raise CommandError(f"'{name}' is a {type(manager).__name__}, and holds no corpus.", Code.USAGE)
    staged = manager.knowledge.staged
    if not staged and way != "verify":
        raise CommandError(f"backends.{name} names no sources, so that there is nothing to index.", Code.USAGE)
    return Corpus(name, manager.knowledge, staged)


def _known(name: str, known: Sequence[str]) -> str:
    if name in known:
        return name
    raise CommandError(
        f"No backend of type knowledge is called '{name}'.{hint(name, known)} There are: {', '.join(known) or 'none'}.",
        Code.USAGE,
    )


def _show(run: Run, done: Sequence[Ingested], way: Way) -> None:
    if way == "verify":
        for each in done:
            _show_verified(run, each)
        return
    columns = ("Corpus", "Added", "Changed", "Removed", "Unchanged", "Skipped", "Failed", "Chunks")
    run.out.table(columns, [_row(each) for each in done])
    if way == "plan":
        run.out.table(("Would be", "Source"), [row for each in done for row in _sources(each)])


def _row(each: Ingested) -> tuple[object, ...]:
    counts = (
        len(each.added),
        len(each.changed),
        len(each.removed),
        each.unchanged,
        each.skipped,
        len(each.failed),
        each.chunks,
    )
    return (each.name, *counts)


def _sources(each: Ingested) -> list[tuple[str, str]]:
    groups = {"added": each.added, "changed": each.changed, "removed": each.removed}
    return [(what, source) for what, sources in groups.items() for source in sources]


def _show_verified(run: Run, each: Ingested) -> None:
    found = each.verified
    if found is None:
        return
    run.out.table(
        ("Corpus", "Sources", "Chunks", "State"), [(each.name, found.sources, found.chunks, "ok" if found.ok else "faulty")]
    )
    rows = [
        *(("missing", source, "noted, and has no chunk") for source in found.missing),
        *(("unknown", source, "has chunks, and no note") for source in found.unknown),
        *(("differs", one.source, f"{one.noted} chunks noted, {one.held} there") for one in found.differing),
        *(("store", "", fault) for fault in found.faults),
        *([("model", "", found.fingerprint)] if found.fingerprint else []),
        *([("unfinished", "", f"{found.unfinished} chunks of a rebuild that did not end")] if found.unfinished else []),
    ]
    if rows:
        run.out.table(("What", "Source", "Why"), rows)
    if found.repaired:
        run.out.note("Notes that were not true were taken back: the next ingest reads these sources anew.")
