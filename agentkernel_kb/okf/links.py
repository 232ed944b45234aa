"""Links of a document: which it has, and which paths of the bundle each may mean. No I/O. Source: OKF 0.2 §6."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import unquote

from agentkernel_kb.okf.model import OKFConcept
from agentkernel_kb.okf.paths import is_document, is_reachable

MAX_LINKS = 1_000
"""Most links of one document that are followed up."""

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n(?:.*?)(?:^ {0,3}\1[`~]*[ \t]*\r?$|\Z)", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:(?<=\n\n)|(?<=\n\r\n)|\A)(?:(?: {4}|\t)[^\n]*(?:\n|\Z))+")
_LIST_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]", re.MULTILINE)
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.{1,1000}?)(?<!`)\1(?!`)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)

_INLINE = re.compile(r"\]\([ \t]*\n?[ \t]*(?:<([^<>\n]+)>|([^\s()<>]+(?:\([^\s()]*\)[^\s()]*)*))")
_DEFINITION = re.compile(r"^ {0,3}\[([^\]^\n][^\]\n]{0,200})\]:[ \t]*(?:<([^<>\n]+)>|(\S+))", re.MULTILINE)
# What most links are like: there is nothing in them that has to be resolved or decoded.
_PLAIN_ABSOLUTE = re.compile(r"(?:/[A-Za-z0-9_][A-Za-z0-9_-]*)+\.md")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_MAX_LABEL = 1_000


def targets(body: str) -> list[str]:
    """Return what a body links to, as it stands there, in order, each once; not what stands in code, comments or images."""
    if "](" not in body and "]:" not in body:
        return []
    prose = _prose(body)
    found = [match[1] or match[2] for match in _INLINE.finditer(prose) if _is_link(prose, match.start())]
    found += _referred(prose)
    return list(dict.fromkeys(found))[:MAX_LINKS]


def candidates(target: str, document: str, *, rooted: bool = True) -> list[str]:
    """Return the paths of the bundle that a link may mean, the likeliest first; none for what leads elsewhere.

    One that begins with `/` is taken from the root of the bundle. Any other is taken from the document's folder and then,
    unless it begins with a dot, from the root. Each is taken literally first and then with its percent signs decoded.

    Args:
        target: The link as it stands in the document.
        document: Path of the document.
        rooted: A relative link may be meant from the root as well.
    """
    if _PLAIN_ABSOLUTE.fullmatch(target):
        return [target[1:]]
    bare = target.partition("#")[0].strip()
    if not bare or bare.startswith("//") or _SCHEME.match(bare):
        return []
    spellings = dict.fromkeys((bare, unquote(bare) if "%" in bare else bare))
    if bare.startswith("/"):
        return _existing(_joined("", spelling.lstrip("/")) for spelling in spellings)
    folder = document.rpartition("/")[0]
    paths = [_joined(folder, spelling) for spelling in spellings]
    if rooted and not bare.startswith("."):
        paths += [_joined("", spelling) for spelling in spellings]
    return _existing(paths)


def edges(concept: OKFConcept) -> list[list[str]]:
    """Return for each link of a concept the paths that it may mean: those of its body, and of its path-valued fields."""
    found = [candidates(target, concept.path) for target in targets(concept.body)]
    found += [candidates(target, concept.path) for target in _field_targets(concept)]
    unique = dict.fromkeys(tuple(path for path in paths if path != concept.path) for paths in found)
    return [list(paths) for paths in unique if paths][:MAX_LINKS]


def _field_targets(concept: OKFConcept) -> Iterator[str]:
    contract = concept.computation
    values: list[object] = [concept.resource, contract.get("computation")]
    values += [source.get("resource") for source in concept.sources]
    for key in ("executor", "attester"):
        part: object = contract.get(key)
        if isinstance(part, dict):
            values.append(cast("dict[str, Any]", part).get("resource"))
    # A scope descriptor such as "all queries in project X" is no path.
    return (
        value for value in values if isinstance(value, str) and (is_document(value) or value.startswith(("/", "./", "../")))
    )


def _prose(body: str) -> str:
    if "<!--" in body:
        body = _COMMENT.sub("", body)
    if "```" in body or "~~~" in body:
        body = _FENCE.sub("\n", body)
    if "\n    " in body or "\n\t" in body or body.startswith(("    ", "\t")):
        body = _INDENTED.sub(_unless_in_list, body)
    return _SPAN.sub(" ", body) if "`" in body else body


def _unless_in_list(match: re.Match[str]) -> str:
    """Return an indented block where it belongs to an item of a list, and nothing where it is code."""
    before = match.string[max(0, match.start() - 2_000) : match.start()].rstrip()
    paragraph = before.rpartition("\n\n")[2]
    in_list = _LIST_ITEM.match(paragraph) or paragraph.startswith(("    ", "\t", "  "))
    return match[0] if in_list else "\n"


def _is_link(prose: str, closing: int) -> bool:
    """Tell whether the bracket at `closing` ends the text of a link, and not of an image or of something escaped."""
    opening = prose.rfind("[", max(0, closing - _MAX_LABEL), closing)
    if opening >= 0 and prose.find("]", opening, closing) < 0 and "\\" not in prose[max(0, opening - 1) : closing]:
        return prose[opening - 1 : opening] != "!"
    depth = 0
    for place in range(closing, max(-1, closing - _MAX_LABEL), -1):
        if place and prose[place - 1] == "\\":
            continue
        depth += (prose[place] == "]") - (prose[place] == "[")
        if depth == 0:
            return not (place and prose[place - 1] == "!")
    return False


def _referred(prose: str) -> Iterator[str]:
    definitions = {_label(match[1]): match for match in _DEFINITION.finditer(prose)} if "]:" in prose else {}
    if not definitions:
        return
    rest = " ".join(_DEFINITION.sub(" ", prose).casefold().split())
    for label, match in definitions.items():
        if f"[{label}]" in rest:
            yield match[2] or match[3]


def _label(text: str) -> str:
    return " ".join(text.casefold().split())


def _joined(folder: str, path: str) -> str:
    """Return `path` taken from `folder`, or `""` where it leads above the root."""
    segments = folder.split("/") if folder else []
    for segment in path.split("/"):
        if segment == "..":
            if not segments:
                return ""
            segments.pop()
        elif segment not in ("", "."):
            segments.append(segment)
    return "/".join(segments) + ("/" if path.endswith("/") else "")


def _existing(paths: Iterator[str] | list[str]) -> list[str]:
    """Return those paths that a document can have, `.md` appended where the last segment has no ending."""
    named = (path if is_document(path) or "." in path.rpartition("/")[2] else f"{path}.md" for path in paths if path)
    return [path for path in dict.fromkeys(named) if is_document(path) and is_reachable(path) and not path.endswith("/.md")]
