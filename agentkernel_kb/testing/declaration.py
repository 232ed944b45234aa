"""declaration_faults: does a backend implement exactly what it declares, in a way that its callers can call?"""

from __future__ import annotations

import inspect
from collections.abc import Coroutine
from typing import Any, cast, get_args

from agentkernel_kb.base import KnowledgeBase, keywords_of, overrides
from agentkernel_kb.errors import KnowledgeCapabilityError
from agentkernel_kb.model import KnowledgeCapabilities, Operation

# How the contract's callers may call each member: positional arguments, keyword arguments.
_Call = tuple[tuple[Any, ...], dict[str, Any]]
_PLAIN_CALLS: dict[str, tuple[_Call, ...]] = {
    "search": ((("",), {}), (("", 3), {}), ((), {"query": "", "limit": 3, "unknown": None})),
    "query": ((("",), {}), (("", 3), {}), ((), {"statement": "", "limit": 3, "unknown": None})),
    "fetch": ((((),), {}), ((), {"ids": (), "unknown": None})),
    "browse": (((), {}), (("", 50), {}), ((), {"path": "", "limit": 50, "unknown": None})),
    "write": ((((),), {}), ((), {"records": (), "unknown": None})),
    "add": ((((),), {}), ((), {"records": (), "unknown": None})),
}
_GUARD_CALLS: tuple[_Call, ...] = ((("",), {}), (("",), {"allow": ()}), ((), {"statement": ""}))
_CALLS = {**_PLAIN_CALLS, **{f"a{name}": calls for name, calls in _PLAIN_CALLS.items()}, "check_read": _GUARD_CALLS}
_OPERATIONS: tuple[Operation, ...] = get_args(Operation)
_MEMBERS: dict[Operation, tuple[str, ...]] = {
    **{operation: (operation, f"a{operation}") for operation in _OPERATIONS},
    "write": ("write", "awrite", "add", "aadd"),
}


def declaration_faults(backend: KnowledgeBase | type[KnowledgeBase]) -> list[str]:
    """Return how a backend contradicts its declaration or the contract's signatures, a sentence each; `[]` for none.

    An override of an undeclared operation is sound only where it refuses at once with `KnowledgeCapabilityError`, as it must
    where the declaration depends on the configuration. To find out, it is called with nothing: blank text, no ids, no records.

    Args:
        backend: A backend, or its class; of a class only the signatures are checked, as a declaration belongs to an instance.
    """
    if isinstance(backend, type):
        return _signature_faults(backend)
    faults = _signature_faults(type(backend))
    capabilities: object = getattr(backend, "capabilities", None)
    if not isinstance(capabilities, KnowledgeCapabilities):
        return [
            f"{type(backend).__name__} has no capabilities: its __init__ must call super().__init__(capabilities).",
            *faults,
        ]
    for operation in _OPERATIONS:
        faults += _operation_faults(backend, operation)
    if capabilities.derives_schema and not overrides(backend, "_derived_schema"):
        faults.append("derives_schema is declared, but _derived_schema() is not implemented.")
    if capabilities.filters and not any(_takes_filters(backend, operation) for operation in _OPERATIONS):
        faults.append("filters is declared, but no operation names filters in its signature.")
    return faults


def _takes_filters(backend: KnowledgeBase, operation: Operation) -> bool:
    supported = backend.capabilities.supports(operation)
    return supported and any("filters" in keywords_of(getattr(backend, member)) for member in _MEMBERS[operation])


def _operation_faults(backend: KnowledgeBase, operation: Operation) -> list[str]:
    implemented = [member for member in _MEMBERS[operation] if overrides(backend, member)]
    flag = "writable" if operation == "write" else operation
    if backend.capabilities.supports(operation):
        return [] if operation in implemented else [f"{flag} is declared, but {operation}() is not implemented."]
    unasked = [member for member in implemented if not _refuses(backend, member)]
    return [f"{member}() is implemented, but {flag} is not declared." for member in unasked]


def _refuses(backend: KnowledgeBase, member: str) -> bool:
    arguments, keywords = _CALLS[member][0]
    try:
        answer = getattr(backend, member)(*arguments, **keywords)
        if inspect.iscoroutine(answer):
            _run_to_first_wait(cast("Coroutine[Any, Any, Any]", answer))
    except KnowledgeCapabilityError:
        return True
    except Exception:  # noqa: BLE001 - a third party's operation may fail in any way; only a refusal counts
        return False
    return False


def _run_to_first_wait(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Run a coroutine as far as it goes without an event loop, which is far enough for a refusal."""
    try:
        coroutine.send(None)
    finally:
        coroutine.close()


def _signature_faults(backend_class: type[KnowledgeBase]) -> list[str]:
    faults: list[str] = []
    for member, calls in _CALLS.items():
        own, base = (inspect.getattr_static(owner, member) for owner in (backend_class, KnowledgeBase))
        if own is not base:
            faults += _member_faults(member, getattr(backend_class, member), getattr(KnowledgeBase, member), calls)
    return faults


def _member_faults(member: str, own: Any, base: Any, calls: tuple[_Call, ...]) -> list[str]:
    if inspect.iscoroutinefunction(own) and not inspect.iscoroutinefunction(base):
        return [f"{member}() is a coroutine function; the contract's is a plain one, and its async twin is a{member}()."]
    signature = inspect.signature(own)
    for arguments, keywords in calls:
        try:
            signature.bind(None, *arguments, **keywords)
        except TypeError as error:
            return [f"{member}{signature} cannot be called as {member}{inspect.signature(base)} can: {error}."]
    expected = inspect.signature(base).parameters
    return [
        f"{member}() has {name}={own_parameter.default!r} by default; the contract has {name}={expected[name].default!r}."
        for name, own_parameter in signature.parameters.items()
        if name in expected and own_parameter.default != expected[name].default
    ]
