"""Records of concepts: what a search, a browse and a fetch hand out, and how a model reads it."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from agentkernel_kb.lexical.excerpt import excerpt
from agentkernel_kb.model import Record
from agentkernel_kb.okf.model import OKFConcept
from agentkernel_kb.okf.paths import id_of, name_of
from agentkernel_kb.okf.rows import TAGS_JOINED
from agentkernel_kb.render import encode, metadata_of, to_text

COMPUTED_KEYS = frozenset(
    (
        *("id", "source", "kind", "trust", "stale", "links", "backlinks", "broken_links", "score", "snippet", "version"),
        *("truncated", "extra"),
    )
)
"""Keys of a record's metadata that no frontmatter is made of, because they are found out anew whenever a concept is read."""

_MOST_SHOWN = 20
_MAX_NOTE_CHARS = 600
SUMMARY_COLUMNS = "document.id, path, type, title, description, tags, trust, status, deadline"


class Summary(NamedTuple):
    """What the index says of a concept, as `SUMMARY_COLUMNS` order it."""

    number: int
    path: str
    type: str
    title: str
    description: str
    tags: str
    trust: str
    status: str
    deadline: float | None


def summary_record(found: Summary, *, score: float | None = None, body: str = "", needles: Sequence[str] = ()) -> Record:
    """Return the record of a concept without its body; for a hit of a search, with the place that shows why."""
    title = found.title or name_of(found.path)
    text = f"{title}: {found.description}" if found.description else title
    metadata: dict[str, Any] = {"id": id_of(found.path), "source": found.path, "title": title, "kind": found.type}
    if found.tags:
        metadata["tags"] = found.tags.split(TAGS_JOINED)
    metadata |= {"trust": found.trust, "stale": found.deadline is not None and time.time() >= found.deadline}
    metadata["status"] = found.status
    if score is not None:
        metadata["score"] = score
    if shown := excerpt(body, needles):
        metadata["snippet"] = shown
        text = f"{text}\n{shown}"
    return {"text": text, "metadata": metadata}


def index_record(path: str, text: str) -> Record:
    """Return the record of an `index.md`, verbatim."""
    return {"text": text, "metadata": {"id": id_of(path), "source": path, "title": path, "kind": "index"}}


def folder_record(path: str) -> Record:
    """Return the record of a folder, whose text is the path to browse next."""
    return {"text": f"{path}/", "metadata": {"source": f"{path}/", "kind": "folder"}}


def frontmatter_of(concept: OKFConcept) -> dict[str, Any]:
    """Return the frontmatter of a concept as a fetch shows it: the values that were understood, and every other key."""
    known: dict[str, Any] = {
        "type": concept.type,
        "title": concept.title,
        "description": concept.description,
        "resource": concept.resource,
        "tags": list(concept.tags),
        "status": concept.status,
        "stale_after": concept.stale_after,
        "generated": dict(concept.generated),
        "verified": [dict(event) for event in concept.verified],
        "sources": [dict(source) for source in concept.sources],
        "usage_window": dict(concept.usage_window),
        **concept.computation,
    }
    shown = {key: value for key, value in known.items() if value}
    extra = {key: value for key, value in concept.extra.items() if key not in COMPUTED_KEYS}
    hidden = {key: value for key, value in concept.extra.items() if key in COMPUTED_KEYS}
    return {**extra, **shown, **({"extra": hidden} if hidden else {})}


def concept_record(concept: OKFConcept, version: str, links: Mapping[str, Sequence[str]], *, truncated: bool) -> Record:
    """Return the whole record of a concept.

    Args:
        concept: The concept.
        version: What the store calls this state of it; a write that brings it back fails where there is another one by then.
        links: `links` it has, `broken_links` that lead to nothing yet, and `backlinks` of others to it, as ids.
        truncated: The body is cut.
    """
    metadata: dict[str, Any] = frontmatter_of(concept)
    metadata |= {
        "id": id_of(concept.path),
        "source": concept.path,
        "title": concept.title or name_of(concept.path),
        "kind": concept.type,
        "trust": concept.trust.value,
        "stale": concept.is_stale(),
        "links": list(links.get("links", ())),
    }
    metadata |= {key: list(links[key]) for key in ("broken_links", "backlinks") if links.get(key)}
    metadata |= {"version": version} if version else {}
    metadata |= {"truncated": True} if truncated else {}
    return {"text": concept.body, "metadata": metadata}


def links_of(connection: sqlite3.Connection, path: str, edges: Iterable[Sequence[str]]) -> dict[str, list[str]]:
    """Return which of the links of a document lead somewhere, which do not, and which documents link to it."""
    links: dict[str, None] = {}
    broken: dict[str, None] = {}
    for paths in edges:
        there = next((one for one in paths if _is_there(connection, one)), None)
        if there is None:
            broken[paths[0]] = None
        elif there != path:
            links[there] = None
    return {
        "links": [id_of(one) for one in links],
        "broken_links": [id_of(one) for one in broken],
        "backlinks": [id_of(one) for (one,) in connection.execute(_BACKLINKS, {"path": path})],
    }


# A link may mean several paths, and it means the first of them that there is.
_BACKLINKS = """
SELECT DISTINCT document.path FROM link JOIN document ON document.id = link.source
WHERE link.target = :path AND document.path <> :path AND NOT EXISTS (
    SELECT 1 FROM link AS earlier JOIN document AS other ON other.path = earlier.target
    WHERE earlier.source = link.source AND earlier.number = link.number AND earlier.place < link.place
)
ORDER BY document.path LIMIT 100
"""


def _is_there(connection: sqlite3.Connection, path: str) -> bool:
    return connection.execute("SELECT 1 FROM document WHERE path = ? AND kind IN (1, 2)", (path,)).fetchone() is not None


def with_notes(record: Record) -> Record:
    """Return a record whose text also says what a model has to know of it: type, trust, age, tags, links and sources."""
    metadata = metadata_of(record)
    notes = [note for note in (_signals(metadata), *(_listed(metadata, key) for key in _LISTED)) if note]
    if not notes:
        return record
    text: object = record.get("text")
    return {**record, "text": "\n".join([("" if text is None else to_text(text)).rstrip("\n"), *notes])}


_LISTED = ("tags", "links", "backlinks", "sources")


def _signals(metadata: Mapping[str, Any]) -> str:
    if not isinstance(metadata.get("trust"), str) or not isinstance(metadata.get("kind"), str):
        return ""
    signals = [to_text(metadata["kind"]), to_text(metadata["trust"])]
    if metadata.get("stale") is True:
        after = metadata.get("stale_after")
        signals.append(f"STALE since {to_text(after)}" if isinstance(after, str) else "STALE")
    status = metadata.get("status")
    if isinstance(status, str) and status not in ("", "stable"):
        signals.append(to_text(status))
    if metadata.get("truncated") is True:
        signals.append("cut, as it is too long")
    return f"({'; '.join(signals)[:_MAX_NOTE_CHARS]})"


def _listed(metadata: Mapping[str, Any], key: str) -> str:
    values: object = metadata.get(key)
    if not isinstance(values, list) or not values:
        return ""
    items = cast("list[object]", values)
    shown = [_one(item) for item in items[:_MOST_SHOWN]]
    more = f" and {len(items) - _MOST_SHOWN} more" if len(items) > _MOST_SHOWN else ""
    return f"{key}: {', '.join(filter(None, shown))[:_MAX_NOTE_CHARS]}{more}"


def _one(item: object) -> str:
    if isinstance(item, dict):
        mark = cast("dict[str, Any]", item)
        return to_text(mark.get("title") or mark.get("resource") or "").replace("\n", " ")
    return to_text(item).replace("\n", " ")


def comparable(value: object) -> str:
    """Return a form in which two values of a frontmatter can be compared, whatever their types are."""
    return json.dumps(encode(value), sort_keys=True)
