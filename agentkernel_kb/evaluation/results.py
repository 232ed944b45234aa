"""What came of labelled questions: shares of right ones, a confusion matrix, tokens and time."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentkernel_kb.evaluation.questions import NONE, Question

CHARS_PER_TOKEN = 4
"""Characters that are reckoned as one token, as the router does for its instructions."""


@dataclass(frozen=True)
class Call:
    """A tool call: of which backend and for which operation."""

    backend: str
    operation: str


@dataclass(frozen=True)
class Transcript:
    """What somebody did about one question.

    Attributes:
        calls: The calls that reach a backend, in order.
        answer: What was said, or what the tools answered where nothing else was said.
        characters: Of all that was read and written.
        tokens: Tokens that were used, as a model's server counted them; `None` where nobody did.
    """

    calls: tuple[Call, ...] = ()
    answer: str = ""
    characters: int = 0
    tokens: int | None = None


@dataclass(frozen=True)
class Result:
    """What came of one question.

    Attributes:
        question: The question.
        backend: The backend of the first call; `None` where none was called.
        operation: The operation of the first call.
        right_backend: It is the labelled one.
        right_operation: It is the labelled one; `None` where none is labelled.
        right_answer: The answer contains what it has to; `None` where nothing is labelled.
        tokens: Tokens used, or reckoned from characters.
        reckoned: Nobody counted the tokens.
        milliseconds: Time taken.
        error: What failed, if anything did.
    """

    question: Question
    backend: str | None
    operation: str | None
    right_backend: bool
    right_operation: bool | None
    right_answer: bool | None
    tokens: int
    reckoned: bool
    milliseconds: float
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "question": self.question.text,
            "agent": self.question.agent,
            "expected": {"backend": _label(self.question.backend), "operation": self.question.operation},
            "backend": _label(self.backend),
            "operation": self.operation,
            "right_backend": self.right_backend,
            "right_operation": self.right_operation,
            "right_answer": self.right_answer,
            "tokens": self.tokens,
            "milliseconds": round(self.milliseconds, 3),
            "error": self.error,
        }


@dataclass(frozen=True)
class Evaluation:
    """What came of all questions.

    Attributes:
        results: One for each question, in order.
    """

    results: tuple[Result, ...]

    @property
    def backend_accuracy(self) -> float:
        """Which share of the questions went to the labelled backend, or to none where none is labelled; 0 without questions."""
        return _share([result.right_backend for result in self.results]) or 0.0

    @property
    def operation_accuracy(self) -> float | None:
        """Which share of those that label an operation got it; `None` where none does."""
        return _share([result.right_operation for result in self.results])

    @property
    def answer_accuracy(self) -> float | None:
        """Which share of those that label an answer got it; `None` where none does."""
        return _share([result.right_answer for result in self.results])

    @property
    def confusion(self) -> dict[str, dict[str, int]]:
        """How often each labelled backend (or `none`) was answered by each: `confusion[labelled][chosen]`, names in order."""
        counted = Counter((_label(result.question.backend), _label(result.backend)) for result in self.results)
        labelled = sorted({label for label, _ in counted}, key=_none_last)
        chosen = sorted({choice for _, choice in counted}, key=_none_last)
        return {label: {choice: counted[label, choice] for choice in chosen if counted[label, choice]} for label in labelled}

    def to_dict(self) -> dict[str, Any]:
        """Return the figures and every result as plain values."""
        times = [result.milliseconds for result in self.results] or [0.0]
        return {
            "questions": len(self.results),
            "accuracy": {
                "backend": _rounded(self.backend_accuracy),
                "operation": _rounded(self.operation_accuracy),
                "answer": _rounded(self.answer_accuracy),
            },
            "confusion": self.confusion,
            "tokens": {
                "total": sum(result.tokens for result in self.results),
                "reckoned": any(result.reckoned for result in self.results),
            },
            "milliseconds": {"total": round(sum(times), 3), "median": round(statistics.median(times), 3)},
            "errors": sum(bool(result.error) for result in self.results),
            "results": [result.to_dict() for result in self.results],
        }


def judged(question: Question, transcript: Transcript, milliseconds: float, error: str = "") -> Result:
    """Return what came of a question: its first call is the choice, its answer is compared with letter case aside."""
    first = transcript.calls[0] if transcript.calls else None
    backend, operation = (first.backend, first.operation) if first else (None, None)
    said = transcript.answer.casefold()
    tokens = transcript.tokens
    return Result(
        question=question,
        backend=backend,
        operation=operation,
        right_backend=not error and backend == question.backend,
        right_operation=None if question.operation is None else operation == question.operation,
        right_answer=all(text.casefold() in said for text in question.contains) if question.contains else None,
        tokens=-(-transcript.characters // CHARS_PER_TOKEN) if tokens is None else tokens,
        reckoned=tokens is None,
        milliseconds=milliseconds,
        error=error,
    )


def _share(right: Sequence[bool | None]) -> float | None:
    labelled = [each for each in right if each is not None]
    return sum(labelled) / len(labelled) if labelled else None


def _label(backend: str | None) -> str:
    return NONE if backend is None else backend


def _none_last(name: str) -> tuple[bool, str]:
    return name == NONE, name


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)
