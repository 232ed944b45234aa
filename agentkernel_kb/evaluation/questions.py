"""The file of labelled questions: every fault of it told with its line."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

from agentkernel_kb.config.faults import ConfigurationError, Fault, Finding, Key
from agentkernel_kb.config.source import Source, did_you_mean, few_hints, listed, read_as_written
from agentkernel_kb.model import Operation

NONE = "none"
"""What stands as the backend of a question that belongs to none."""

_SECTIONS = ("examples", "questions")
_FIELDS = ("question", "backend", "operation", "contains", "agent")
_OPERATIONS: tuple[str, ...] = get_args(Operation)


@dataclass(frozen=True)
class Question:
    """One labelled question.

    Attributes:
        text: The question.
        backend: Where it belongs; `None` for nowhere.
        operation: What it asks for; `None` where that does not matter.
        contains: What the answer has to contain, letter case aside; nothing where that does not matter.
        agent: On whose behalf; `None` for whoever runs the evaluation.
    """

    text: str
    backend: str | None
    operation: Operation | None = None
    contains: tuple[str, ...] = ()
    agent: str | None = None


@dataclass(frozen=True)
class QuestionFile:
    """What a file of labelled questions holds.

    Attributes:
        questions: The questions, in their order.
        examples: Questions to learn from, by backend; no labelled question is learnt from.
        warnings: What should probably not be left so.
    """

    questions: tuple[Question, ...]
    examples: Mapping[str, tuple[str, ...]]
    warnings: tuple[Fault, ...] = ()


def read_questions(
    source: str | Path | Mapping[str, Any], backends: Collection[str] = (), agents: Collection[str] | None = None
) -> QuestionFile:
    """Read labelled questions.

    Args:
        source: Path of the YAML file, or its content.
        backends: The names that are known; every name is taken where there are none.
        agents: The agents that are known; every name is taken for `None`.

    Raises:
        ConfigurationError: All that is wrong with it, each with its line.
    """
    read = read_as_written(source, first="questions")
    checking = _Checking(read, frozenset(backends), None if agents is None else frozenset(agents))
    with few_hints():
        questions, examples = checking.questions(), checking.examples()
        checking.sections()
    learnt = {example.casefold(): name for name, known in examples.items() for example in known}
    for number, question in enumerate(questions):
        if question is not None and question.text.casefold() in learnt:
            message = "This question is also an example to learn from: what it tells is worth little."
            checking.findings.append(Finding(("questions", number), message, "warning"))
    errors = [finding for finding in checking.findings if finding.severity == "error"]
    if errors:
        raise read.error(errors)
    warnings = tuple(read.placed(finding) for finding in checking.findings)
    return QuestionFile(tuple(question for question in questions if question is not None), examples, warnings)


class _Checking:
    """Takes a file apart and keeps what was found."""

    def __init__(self, read: Source, backends: frozenset[str], agents: frozenset[str] | None) -> None:
        self._data: Mapping[str, Any] = read.written
        self._backends, self._agents = backends, agents
        self.findings: list[Finding] = list(read.findings)

    def sections(self) -> None:
        self._only(self._data, _SECTIONS, ())

    def questions(self) -> list[Question | None]:
        listed: object = self._data.get("questions")
        if not isinstance(listed, list) or not listed:
            there = "questions" in self._data
            what = "a list of at least one question"
            self._fault(("questions",) if there else (), f"must be {what}." if there else f"'questions' is missing: {what}.")
            return []
        return [self._question(each, ("questions", number)) for number, each in enumerate(cast("list[object]", listed))]

    def examples(self) -> dict[str, tuple[str, ...]]:
        given: object = self._data.get("examples", {})
        if not isinstance(given, Mapping):
            self._fault(("examples",), "must name backends, each with a list of questions.")
            return {}
        found: dict[str, tuple[str, ...]] = {}
        for name, examples in cast("Mapping[str, object]", given).items():
            if self._known_backend(name, ("examples", name)):
                found[name] = self._texts(examples, ("examples", name))
        return found

    def _question(self, given: object, key: Key) -> Question | None:
        if not isinstance(given, Mapping):
            self._fault(key, "A question is a mapping: question, backend, and perhaps operation, contains, agent.")
            return None
        entry = cast("Mapping[str, object]", given)
        self._only(entry, _FIELDS, key)
        text = self._text(entry, "question", key)
        backend = self._text(entry, "backend", key) if entry.get("backend", "") is not None else NONE
        if not text or not backend or (backend != NONE and not self._known_backend(backend, (*key, "backend"))):
            return None
        return Question(
            text,
            None if backend == NONE else backend,
            self._operation(entry, key),
            self._texts(entry["contains"], (*key, "contains")) if "contains" in entry else (),
            self._agent(entry, key),
        )

    def _operation(self, entry: Mapping[str, object], key: Key) -> Operation | None:
        if "operation" not in entry:
            return None
        name = entry["operation"]
        if name in _OPERATIONS:
            return cast("Operation", name)
        self._fault((*key, "operation"), f"operation must be one of {', '.join(_OPERATIONS)}.{did_you_mean(name, _OPERATIONS)}")
        return None

    def _agent(self, entry: Mapping[str, object], key: Key) -> str | None:
        if "agent" not in entry:
            return None
        name = self._text(entry, "agent", key)
        if name and self._agents is not None and name not in self._agents:
            known = listed(sorted(self._agents))
            self._fault((*key, "agent"), f"No agent is called '{name}'.{did_you_mean(name, self._agents)} Agents: {known}.")
        return name or None

    def _known_backend(self, name: str, key: Key) -> bool:
        if not self._backends or name in self._backends:
            return True
        known = listed(sorted(self._backends))
        self._fault(key, f"No backend is called '{name}'.{did_you_mean(name, self._backends)} Backends: {known}.")
        return False

    def _text(self, entry: Mapping[str, object], name: str, key: Key) -> str:
        value = entry.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
        kind = "is missing" if name not in entry else "must be text that is not blank"
        hint = f"; {NONE} for a question of no backend" if name == "backend" else ""
        self._fault((*key, name) if name in entry else key, f"{name} {kind}{hint}.")
        return ""

    def _texts(self, value: object, key: Key) -> tuple[str, ...]:
        listed = [value] if isinstance(value, str) else value
        if isinstance(listed, list) and all(isinstance(each, str) and each.strip() for each in cast("list[object]", listed)):
            return tuple(each.strip() for each in cast("list[str]", listed))
        self._fault(key, f"{key[-1]} must be text or a list of texts, none of them blank; put numbers in quotes.")
        return ()

    def _only(self, entry: Mapping[str, object], known: tuple[str, ...], key: Key) -> None:
        for name in entry:
            if name not in known:
                message = f"There is no '{name}' here.{did_you_mean(name, known)} Known: {', '.join(known)}."
                self._fault((*key, name), message)

    def _fault(self, key: Key, message: str) -> None:
        self.findings.append(Finding(key, message))


__all__ = ["NONE", "ConfigurationError", "Question", "QuestionFile", "read_questions"]
