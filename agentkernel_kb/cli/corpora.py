"""The corpora that `ingest` works on: those of the configuration, or one of a file; and what is printed of them."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.cli.command import Run
from agentkernel_kb.cli.exits import Code, CommandError
from agentkernel_kb.cli.failures import explained
from agentkernel_kb.cli.ingesting import Corpus, Ingested, Way, ingested, source_of
from agentkernel_kb.cli.opening import opened
from agentkernel_kb.config.lazy import LazyKnowledgeBase
from agentkernel_kb.embed import named_embedder
from agentkernel_kb.errors import KnowledgeError
from agentkernel_kb.near import hint
from agentkernel_kb.rag import create_knowledge
from agentkernel_kb.rag.manager import RAGManager
from agentkernel_kb.render import one_line

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

    A corpus that fails as a whole is told with its reason, after the results of the others.

    Raises:
        CommandError: It cannot be done like this.
    """
    way = _way(plan=asked.dry_run, rebuild=asked.rebuild, verify=asked.verify)
    if asked.repair and not asked.verify:
        raise CommandError("--repair goes with --verify.", Code.USAGE)
    with _corpora(run, asked, way) as corpora:
        done = [_done(run, asked, way, corpus) for corpus in corpora]
    code = max((each.code for each in done), default=Code.OK)
    if run.options.as_json:
        run.out.json({"ok": code == Code.OK, "command": run.name, "way": way, "corpora": [each.to_dict() for each in done]})
    else:
        _show(run, done, way)
    for each in done:
        for failure in each.failed:
            run.out.error(one_line(f"{each.name}: {failure.source}: {failure.reason}"))
        if each.error:
            run.out.error(f"{each.name}: {each.error}")
    return code


def _done(run: Run, asked: Asked, way: Way, corpus: Corpus | Ingested) -> Ingested:
    """Return what came of a corpus, whatever that is."""
    if isinstance(corpus, Ingested):
        return corpus
    options = {"delete_missing": asked.delete_missing, "repair": asked.repair}
    try:
        with run.out.progress(f"{_DOING[way]} '{corpus.name}'…") as told:
            return ingested(corpus, way, **options, seconds=run.options.timeout, told=told)
    except (CommandError, KnowledgeError) as error:
        return _failed(run, corpus.name, error)


def _failed(run: Run, name: str, error: Exception) -> Ingested:
    """Return that a corpus failed as a whole. With --debug the traceback is shown."""
    if run.options.debug:
        run.out.traceback("".join(traceback.format_exception(error)).rstrip())
    told = explained(error)
    return Ingested(name, error=told.sentence, error_code=told.code)


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
def _corpora(run: Run, asked: Asked, way: Way) -> Generator[Sequence[Corpus | Ingested]]:
    """Return the corpora, and what came of those that cannot be opened."""
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
        yield _with_sources([_declared(run, name, backends[name]) for name in chosen], asked, way)


def _at(path: Path, asked: Asked, way: Way) -> Corpus:
    """Return the corpus of a file."""
    if not asked.names and way != "verify":
        raise CommandError("Name the sources that are to be indexed: files, folders, addresses.", Code.USAGE)
    model = named_embedder(asked.embedder)
    knowledge = create_knowledge("sqlite", path=path, name=asked.namespace, embedder=model)
    return Corpus(str(path), knowledge, [source_of(each) for each in asked.names])


def _with_sources(found: Sequence[Corpus | Ingested], asked: Asked, way: Way) -> Sequence[Corpus | Ingested]:
    """Return the corpora that have sources; one that agents alone write to is left out, unless it is named.

    Raises:
        CommandError: One that is named has none, or none has any.
    """
    bare = [each.name for each in found if isinstance(each, Corpus) and not each.sources and way != "verify"]
    if bare and (asked.names or len(bare) == len(found)):
        raise CommandError(f"backends.{bare[0]} names no sources, so that there is nothing to index.", Code.USAGE)
    return [each for each in found if each.name not in bare]


def _declared(run: Run, name: str, backend: KnowledgeBase) -> Corpus | Ingested:
    """Return the corpus of a backend, with the sources that the configuration names; or why it cannot be opened."""
    try:
        manager = asyncio.run(backend.aopened()) if isinstance(backend, LazyKnowledgeBase) else backend
    except KnowledgeError as error:
        return _failed(run, name, error)
    if not isinstance(manager, RAGManager):
        raise CommandError(f"'{name}' is a {type(manager).__name__}, and holds no corpus.", Code.USAGE)
    return Corpus(name, manager.knowledge, manager.knowledge.staged)


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
    done = [each for each in done if not each.error]
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
