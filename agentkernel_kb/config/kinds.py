"""What YAML can say for a parameter of Python: its annotation as a kind of value that pydantic checks and describes."""

from __future__ import annotations

import builtins
import collections.abc
import inspect
import os
import pathlib
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

_SCALARS = (str, int, float, bool)
_LISTS = (list, set, frozenset, Collection, Iterable, Sequence, AbstractSet, collections.abc.MutableSequence)
_MAPPINGS = (dict, Mapping, collections.abc.MutableMapping)
_PATHS = (pathlib.Path, os.PathLike, pathlib.PurePath)
_NAMESPACES = (collections.abc, typing, pathlib, os, builtins)


class Opaque:
    """Stands for a type that YAML has no value for, such as a function or a client."""

    def __class_getitem__(cls, _: object) -> type[Opaque]:
        return cls


@dataclass(frozen=True)
class Kind:
    """What may be given for a parameter.

    Attributes:
        type: A type of plain values for pydantic; `None` where only an object of Python's will do.
        takes_path: Texts in it are paths.
        takes_object: An object of Python's may be named in place of a value.
    """

    type: Any
    takes_path: bool = False
    takes_object: bool = False


@dataclass(frozen=True)
class Parameter:
    """One parameter of a callable.

    Attributes:
        name: Its name.
        kind: What may be given for it.
        required: It has no default.
    """

    name: str
    kind: Kind
    required: bool


def parameters_of(call: Callable[..., Any]) -> dict[str, Parameter]:
    """Return the parameters of a callable that can be given by name; none for one without a signature."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return {}
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    module = _names_around(call)
    return {
        parameter.name: Parameter(parameter.name, _kind(parameter, module), parameter.default is inspect.Parameter.empty)
        for parameter in parameters
        if parameter.kind in named
    }


def takes_any(call: Callable[..., Any]) -> bool:
    """Tell whether a callable takes keyword arguments that it does not name."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)


class _Names(dict[str, Any]):
    """The names of a module, with something for those that it only has for type checkers."""

    def __missing__(self, name: str) -> Any:
        return next((vars(module)[name] for module in _NAMESPACES if name in vars(module)), Opaque)


def _names_around(call: Any) -> _Names:
    function: Any = getattr(call, "__init__", call) if isinstance(call, type) else call
    return _Names(getattr(inspect.unwrap(function), "__globals__", {}))


def _kind(parameter: inspect.Parameter, names: _Names) -> Kind:
    annotation: Any = parameter.annotation
    if annotation is inspect.Parameter.empty:
        return Kind(Any, takes_object=True)
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, {}, names)  # noqa: S307 - an annotation of the class that is going to be called
        except Exception:  # noqa: BLE001 - whatever an annotation raises, it is one that can't be read
            annotation = Opaque
    return _translated(annotation)


def _translated(annotation: Any) -> Kind:
    if annotation is None or annotation is types.NoneType:
        return Kind(types.NoneType)
    if annotation in _SCALARS:
        return Kind(annotation)
    if annotation is Any:
        return Kind(Any, takes_object=True)
    if isinstance(annotation, TypeVar):
        return Kind(Any, takes_object=True)
    outer: Any = get_origin(annotation) or annotation
    if outer in (Union, types.UnionType):
        return _union([_translated(each) for each in get_args(annotation)])
    if outer is Literal:
        return Kind(annotation)
    if outer is typing.Annotated:
        return _translated(get_args(annotation)[0])
    if outer in _PATHS:
        return Kind(str, takes_path=True)
    return _container(outer, get_args(annotation))


def _container(outer: Any, arguments: Sequence[Any]) -> Kind:
    if outer in _MAPPINGS:
        key, value = (_translated(each) for each in arguments) if len(arguments) == 2 else (Kind(str), Kind(Any))
        plain = key.type is str and value.type is not None
        return Kind(dict[str, value.type], value.takes_path) if plain else Kind(None, takes_object=True)
    if outer is tuple and arguments and arguments[-1] is not Ellipsis:
        each_kind = [_translated(each) for each in arguments]
        types_ = tuple(each.type for each in each_kind)
        return Kind(None, takes_object=True) if None in types_ else Kind(tuple.__class_getitem__(types_))
    if outer in _LISTS or outer is tuple:
        inner = _translated(arguments[0]) if arguments else Kind(Any)
        return Kind(None, takes_object=True) if inner.type is None else Kind(list[inner.type], inner.takes_path)
    return Kind(None, takes_object=True)


def _union(kinds: Sequence[Kind]) -> Kind:
    plain = [kind.type for kind in kinds if kind.type is not None]
    told = [each for each in plain if each is not types.NoneType]
    joined: Any = cast("Any", Union[tuple(plain)]) if told else None  # noqa: UP007 - the members are only known now
    return Kind(joined, any(kind.takes_path for kind in kinds), any(kind.takes_object for kind in kinds))
