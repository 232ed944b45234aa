"""A labelled collection: documents, questions, and which document answers which question how well.

The files are those of BEIR (Thakur and others, "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information
Retrieval Models", 2021): `corpus.jsonl` with `_id`, `title` and `text`, `queries.jsonl` with `_id` and `text`, and `qrels.tsv`
(or `qrels/test.tsv`) with a heading and then question, document and grade in columns.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from agentkernel_kb.errors import AKConfigError

_JUDGEMENTS = ("qrels.tsv", "qrels/test.tsv")
_COLUMNS = 3


@dataclass(frozen=True)
class Passage:
    """A document of a labelled collection.

    Attributes:
        id: Its identifier in the judgements.
        text: What it says.
        title: What stands above it; empty where nothing does.
    """

    id: str
    text: str
    title: str = ""


@dataclass(frozen=True)
class Collection:
    """A labelled collection.

    Attributes:
        documents: The documents.
        queries: The questions, by identifier.
        grades: How well each document answers each question: question, document, grade. What is missing, or graded 0 or less,
            does not answer it.
    """

    documents: tuple[Passage, ...]
    queries: Mapping[str, str]
    grades: Mapping[str, Mapping[str, float]]

    @property
    def judged(self) -> dict[str, str]:
        """The questions that some document answers; the others tell nothing."""
        return {
            name: text for name, text in self.queries.items() if any(grade > 0 for grade in self.grades.get(name, {}).values())
        }


def read_collection(folder: str | Path) -> Collection:
    """Read a labelled collection from a folder.

    Raises:
        AKConfigError: A file is missing or faulty, told with its line; or no question that is asked is judged.
    """
    place = Path(folder)
    documents = tuple(_document(record, where) for record, where in _records(place / "corpus.jsonl"))
    queries = {_text(record, "_id", where): _text(record, "text", where) for record, where in _records(place / "queries.jsonl")}
    judgements = next((place / name for name in _JUDGEMENTS if (place / name).is_file()), place / _JUDGEMENTS[0])
    collection = Collection(documents, queries, _grades(judgements))
    if not collection.judged:
        raise AKConfigError(f"{judgements} has no grade above 0 for a question of queries.jsonl.")
    if len({document.id for document in documents}) < len(documents):
        raise AKConfigError(f"{place / 'corpus.jsonl'} has two documents of one _id.")
    return collection


def _document(record: Mapping[str, Any], where: str) -> Passage:
    title: object = record.get("title") or ""
    if not isinstance(title, str):
        raise AKConfigError(f"{where}: title must be text.")
    return Passage(_text(record, "_id", where), _text(record, "text", where), title)


def _records(file: Path) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the objects of a file of JSON lines, each with where it stands."""
    for number, line in _lines(file):
        where = f"{file}:{number}"
        try:
            record: object = json.loads(line)
        except (ValueError, RecursionError):
            raise AKConfigError(f"{where}: is no JSON.") from None
        if not isinstance(record, dict):
            raise AKConfigError(f"{where}: is no JSON object.")
        yield cast("Mapping[str, Any]", record), where


def _grades(file: Path) -> dict[str, dict[str, float]]:
    grades: dict[str, dict[str, float]] = {}
    for number, line in _lines(file):
        columns = line.rstrip("\r\n").split("\t")
        if len(columns) < _COLUMNS:
            raise AKConfigError(f"{file}:{number}: needs a question, a document and a grade, with tabs between them.")
        query, document, grade = (column.strip() for column in columns[:_COLUMNS])
        try:
            value = float(grade)
        except ValueError:
            if number == 1:  # The heading.
                continue
            raise AKConfigError(f"{file}:{number}: the grade {grade!r} is no number.") from None
        if not math.isfinite(value):
            raise AKConfigError(f"{file}:{number}: the grade {grade!r} is no finite number.")
        grades.setdefault(query, {})[document] = value
    return grades


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are not blank, with their numbers."""
    try:
        with file.open(encoding="utf-8") as opened:
            for number, line in enumerate(opened, 1):
                if line.strip():
                    yield number, line
    except OSError as error:
        raise AKConfigError(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise AKConfigError(f"{file} is no UTF-8.") from None


def _text(record: Mapping[str, Any], name: str, where: str) -> str:
    value: object = record.get(name)
    if not isinstance(value, str) or (name == "_id" and not value):
        raise AKConfigError(f"{where}: {name} must be text.")
    return value
