"""On whose behalf a call is made: bound by the application around a request, read by backends, never an argument of a tool."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import cast

from agentkernel_kb.errors import AKConfigError, KnowledgeIdentityError

_MAX_CHARS = 256


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom a call acts for.

    Attributes:
        principal: The user, as the stores know them.
        tenant: Whose data they may see, where one store serves several.
        roles: What they may be, as the stores name it.

    Raises:
        AKConfigError: A name is empty, longer than 256 characters, or holds control characters.
    """

    principal: str
    tenant: str | None = None
    roles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check(self.principal, "principal")
        if self.tenant is not None:
            _check(self.tenant, "tenant")
        object.__setattr__(self, "roles", _listed(self.roles))
        for role in self.roles:
            _check(role, "role")


_CURRENT: ContextVar[Identity | None] = ContextVar("agentkernel_kb_identity", default=None)


def current_identity() -> Identity | None:
    """Return whom this call acts for; `None` where the application bound nobody."""
    return _CURRENT.get()


def required_identity(backend: str) -> Identity:
    """Return whom this call acts for.

    Raises:
        KnowledgeIdentityError: The application bound nobody.
    """
    identity = _CURRENT.get()
    if identity is None:
        raise KnowledgeIdentityError(
            f"Backend '{backend}' answers only on behalf of a user, and the application bound none to this call "
            "(builder.acting_as). No argument of a tool can."
        )
    return identity


@contextmanager
def acting_as(principal: str, *, tenant: str | None = None, roles: Iterable[str] = ()) -> Generator[Identity]:
    """Bind an identity to every call made inside the block, in this task or thread and those that it starts with its context.

    An identity bound inside holds until the inner block ends.

    Raises:
        AKConfigError: A name is empty, too long, or holds control characters.
    """
    identity = Identity(principal, tenant, _listed(roles))
    token = _CURRENT.set(identity)
    try:
        yield identity
    finally:
        _CURRENT.reset(token)


def _listed(roles: object) -> tuple[str, ...]:
    if isinstance(roles, str) or not isinstance(roles, Iterable):
        raise AKConfigError(f"An identity's roles are a list of names, not {type(roles).__name__}.")
    return tuple(cast("Iterable[str]", roles))


def _check(name: object, what: str) -> None:
    if not isinstance(name, str) or not name.strip() or len(name) > _MAX_CHARS or not name.isprintable():
        raise AKConfigError(f"An identity's {what} is one line of text of at most {_MAX_CHARS} characters.")
