"""Classes that stand for a backend until it is opened, and take the same arguments as its class does."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.config.lazy import LazyKnowledgeBase

_PLAIN = ("search", "query", "fetch", "browse", "write", "add", "check_read")
_ASYNC = ("asearch", "aquery", "afetch", "abrowse", "awrite", "aadd")


@lru_cache(maxsize=64)
def standing_for(kind: type[KnowledgeBase]) -> type[LazyKnowledgeBase]:
    """Return a class of lazy backends whose operations name the keyword arguments that those of `kind` name.

    The router passes a deadline, allowed functions, a bound of rows and a row scope to operations that name them, so a stand-in
    that hid them would weaken what its backend promises. Twins that `kind` has of its own are handed on as well.
    """
    members: dict[str, Any] = {name: _plain(name, getattr(kind, name)) for name in _PLAIN}
    for name in _ASYNC:
        if getattr(kind, name) is not getattr(KnowledgeBase, name):
            members[name] = _twin(name, getattr(kind, name))
    return type(f"Lazy{kind.__name__}", (LazyKnowledgeBase,), members)


def _plain(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    own: Callable[..., Any] = getattr(LazyKnowledgeBase, name)

    @wraps(own)
    def call(self: LazyKnowledgeBase, *args: Any, **kwargs: Any) -> Any:
        return own(self, *args, **kwargs)

    return _signed(call, original)


def _twin(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    async def call(self: LazyKnowledgeBase, *args: Any, **kwargs: Any) -> Any:
        return await getattr(await self.aopened(), name)(*args, **kwargs)

    return _signed(call, original)


def _signed(call: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    call.__signature__ = inspect.signature(original)
    return call
