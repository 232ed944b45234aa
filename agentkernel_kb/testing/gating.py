"""Gating for contract suites: a subclass is given the tests that its declaration asks for, and cannot quietly change them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from types import FunctionType
from typing import Any, ClassVar, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

_REQUIRED = "_contract_requires"


def requires(*features: str) -> Callable[[F], F]:
    """Mark a contract test as one for what declares all of `features`."""

    def mark(test: F) -> F:
        setattr(test, _REQUIRED, frozenset(features))
        return test

    return mark


class GatedSuite:
    """Base of a contract suite. Tests that do not apply to what a subclass declares are not collected; none is skipped.

    A contract test cannot be redefined, which would hide a fault, but by one that is expected to fail and says why:
    `@pytest.mark.xfail(strict=True, reason="…")`.
    """

    declares: ClassVar[AbstractSet[str]] = frozenset()
    """What the subject of the suite can do."""

    features: ClassVar[AbstractSet[str]] = frozenset()
    """What a suite knows to test for."""

    samples: ClassVar[dict[str, tuple[str, ...]]] = {}
    """For each feature the attributes that a subclass has to give."""

    other_words: ClassVar[dict[str, str]] = {}
    """Words that are easily taken for a feature, and the feature that is meant."""

    @classmethod
    def sample_faults(cls) -> Iterable[str]:
        """Yield what is wrong with the samples given, a sentence each; a suite that can tell overrides it."""
        return ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Check the subclass and keep the tests that apply to it.

        Raises:
            TypeError: A contract test is redefined, an unknown feature is declared, a sample is missing or of the wrong kind,
                or a class that pytest would collect lacks a method that the suite needs.
        """
        super().__init_subclass__(**kwargs)
        suite = _suite_of(cls)
        if suite is cls:
            return
        _check_subclass(cls, suite)
        for name, test in contract_tests(suite):
            if _replacement(cls, suite, name) is None:
                setattr(cls, name, test if _required(test) <= cls.declares else None)


def _required(test: FunctionType) -> frozenset[str]:
    return getattr(test, _REQUIRED, frozenset[str]())


def contract_tests(suite: type[GatedSuite]) -> Iterator[tuple[str, FunctionType]]:
    """Yield the names and functions of the tests that a suite itself defines, those that its own bases define included."""
    for base in reversed(suite.__mro__):
        for name, value in list(vars(base).items()):
            if name.startswith("test_") and isinstance(value, FunctionType):
                yield name, value


def _suite_of(cls: type[GatedSuite]) -> type[GatedSuite]:
    """Return the suite: the class right below `GatedSuite` in the line of `cls`."""
    line: list[type[GatedSuite]] = [base for base in cls.__mro__ if issubclass(base, GatedSuite) and base is not GatedSuite]
    return line[-1]


def _check_subclass(cls: type[GatedSuite], suite: type[GatedSuite]) -> None:
    _check_declared(cls, suite)
    _check_samples(cls, suite)
    for name, _ in contract_tests(suite):
        replacement = _replacement(cls, suite, name)
        if replacement is not None and not _is_expected_failure(replacement[0]):
            raise TypeError(
                f"{cls.__name__} redefines {name} of {suite.__name__}. A contract test can only be replaced by one that is "
                "marked @pytest.mark.xfail(strict=True, reason=…)."
            )
    _check_methods(cls, suite)


def _check_declared(cls: type[GatedSuite], suite: type[GatedSuite]) -> None:
    unknown = sorted(set(cls.declares) - set(suite.features))
    if unknown:
        meant = [f" {word!r} is called {suite.other_words[word]!r} here." for word in unknown if word in suite.other_words]
        known = sorted(suite.features)
        raise TypeError(f"{cls.__name__}.declares names {unknown}; {suite.__name__} knows {known}.{''.join(meant)}")


def _check_samples(cls: type[GatedSuite], suite: type[GatedSuite]) -> None:
    wanted = [name for feature in sorted(cls.declares) for name in suite.samples.get(feature, ())]
    missing = [name for name in wanted if not getattr(cls, name, None)]
    if missing:
        raise TypeError(f"{cls.__name__} declares {sorted(cls.declares)} and has to give {missing}.")
    faults = [f"{cls.__name__}: {fault}" for fault in cls.sample_faults()]
    if faults:
        raise TypeError("\n".join(faults))


def _check_methods(cls: type[GatedSuite], suite: type[GatedSuite]) -> None:
    """Complain of a missing method where pytest, which passes over an abstract class in silence, would say nothing."""
    abstract = sorted(getattr(suite, "__abstractmethods__", ()))
    missing = [name for name in abstract if getattr(getattr(cls, name), "__isabstractmethod__", False)]
    if missing and cls.__name__.startswith("Test") and getattr(cls, "__test__", True):
        wanted = ", ".join(f"{name}{inspect.signature(getattr(suite, name))}" for name in missing)
        raise TypeError(
            f"{cls.__name__} is missing {wanted}. A class that is only a base for others is one whose name does not begin "
            "with Test."
        )


def _replacement(cls: type[GatedSuite], suite: type[GatedSuite], name: str) -> tuple[object] | None:
    """Return what a class in the line of `cls` puts in place of the contract test `name`, in a tuple of one, if any does."""
    original = getattr(suite, name)
    line: tuple[type[object], ...] = cls.__mro__
    for base in line[: line.index(suite)]:
        value: object = base.__dict__.get(name, original)
        gated = base is not cls and issubclass(base, suite)  # It was checked when it was made; `None` is the gate's own then.
        if value is not original and not (gated and value is None):
            return (value,)
    return None


def _is_expected_failure(value: object) -> bool:
    marks = cast("list[Any]", getattr(value, "pytestmark", []))
    return any(mark.name == "xfail" and mark.kwargs.get("strict") is True and mark.kwargs.get("reason") for mark in marks)
