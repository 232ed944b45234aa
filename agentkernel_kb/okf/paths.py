"""Paths of documents: which are concepts, which reserved, and the id by which a model names each. No I/O."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

from agentkernel_kb.errors import KnowledgePathError
from agentkernel_kb.render import usable_id
from agentkernel_kb.store.base import DocumentStore

INDEX, LOG = "index.md", "log.md"
_SUFFIX = ".md"
# Most paths are of this kind, for which nothing else has to be looked at.
_PLAIN = re.compile("[A-Za-z0-9_./-]{1,200}")
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
# What an id cannot hold, and the percent sign where what follows would read as an escape.
_UNSAFE = re.compile("[,\\[\\]\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|%(?=[0-9A-Fa-f]{2})|^\\s|\\s$")


def is_document(path: str) -> bool:
    """Tell whether a path is one of a markdown document."""
    return path[-3:].lower() == _SUFFIX and path[-4:-3] not in ("", "/")


def reserved_kind(path: str) -> str:
    """Return `index` or `log` for a reserved document, whatever its case and folder, and `""` for any other.

    Source: OKF 0.2 §3.1, which does not say whether case counts: on some disks it does not.
    """
    name = path.rpartition("/")[2].lower()
    return "index" if name == INDEX else "log" if name == LOG else ""


def folder_of(path: str) -> str:
    """Return the folder of a document, `""` for the root."""
    return path.rpartition("/")[0]


def name_of(path: str) -> str:
    """Return the name of a document, without its ending and its folder, as a title."""
    return path.rpartition("/")[2][: -len(_SUFFIX)]


def is_reachable(path: str) -> bool:
    """Tell whether a store could have a document at this path."""
    try:
        return DocumentStore.normalise_relative(path) == path
    except KnowledgePathError:
        return False


def has_id(path: str) -> bool:
    """Tell whether there is an id that names the document at `path`; one that is too long has none."""
    return _PLAIN.fullmatch(path) is not None or usable_id({"id": id_of(path)}) is not None


def id_of(path: str) -> str:
    """Return the id of the document at `path`: the path itself, with what an id cannot hold percent-encoded.

    No two paths have one id.
    """
    return path if "%" not in path and usable_id({"id": path}) == path else _UNSAFE.sub(_encoded, path)


def paths_named(identity: str) -> Iterator[str]:
    """Yield the paths that an id may mean, the likeliest first.

    An id is decoded where it holds an escape, and taken literally otherwise. Its `.md` may be missing, it may begin with `/` as
    a link does, and its Unicode form may be another one.

    Raises:
        KnowledgePathError: It leaves the store.
    """
    bare = identity.strip()
    bare = bare[1:] if bare.startswith("/") and not bare.startswith("//") else bare
    decoded = unquote(bare) if _ESCAPE.search(bare) else bare
    named = [DocumentStore.normalise_relative(decoded)]
    if decoded != bare:
        named.append(DocumentStore.normalise_relative(bare))
    for path in filter(None, named):
        spelled = (path, f"{path}{_SUFFIX}") if is_document(path) else (f"{path}{_SUFFIX}",)
        for one in spelled:
            yield from dict.fromkeys((one, unicodedata.normalize("NFC", one), unicodedata.normalize("NFD", one)))


def places_named(path: str) -> list[str]:
    """Return the folders or documents that a path to browse may mean, the likeliest first; `""` is the root.

    A folder is shown by its name as it is, and an id is escaped: so a path is taken literally first, and decoded where that is
    nothing.

    Raises:
        KnowledgePathError: One of them leaves the store.
    """
    bare = path.strip()
    bare = bare[1:] if bare.startswith("/") and not bare.startswith("//") else bare
    spellings = (bare, unquote(bare)) if _ESCAPE.search(bare) else (bare,)
    return list(dict.fromkeys(DocumentStore.normalise_relative(spelling) for spelling in spellings))


def _encoded(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogateescape"))
