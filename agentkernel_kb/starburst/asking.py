"""Who a statement is run for: the session's user and the tags of its query, made of the identity that the application bound."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from agentkernel_kb.errors import KnowledgeIdentityError
from agentkernel_kb.identity import Identity
from agentkernel_kb.starburst.settings import Settings


class Asker(NamedTuple):
    """Who asks.

    Attributes:
        user: User of the session, `None` for the one of the login.
        tags: Tags of the query.
        acts_for: The user that the session acts for in place of the login's, `None` where it does not.
    """

    user: str | None
    tags: tuple[str, ...]
    acts_for: str | None = None


def asker(settings: Settings, identity: Identity | None, *, impersonate: bool, backend: str) -> Asker:
    """Return who asks.

    Args:
        settings: The user and the tags of the deployment.
        identity: Whom the call acts for, if the application bound anybody.
        impersonate: The session's user becomes the identity's principal.
        backend: Name of the backend, for messages.

    Raises:
        KnowledgeIdentityError: The principal cannot be the name of a user in an HTTP header. It is not bent into one that can:
            two principals must never become one user.
    """
    if identity is None:
        return Asker(settings.user, settings.client_tags)
    tags = (*settings.client_tags, *_tags(identity))
    if not impersonate:
        return Asker(settings.user, tags)
    principal = identity.principal
    if not principal.isascii() or principal != principal.strip():
        raise KnowledgeIdentityError(
            f"Backend '{backend}' can act only for users whose name has ASCII characters and no outer blanks."
        )
    return Asker(principal, tags, acts_for=principal)


def _tags(identity: Identity) -> list[str]:
    tenant = [f"tenant:{_tag(identity.tenant)}"] if identity.tenant is not None else []
    return [f"principal:{_tag(identity.principal)}", *tenant, *(f"role:{_tag(role)}" for role in identity.roles)]


def _tag(text: str) -> str:
    """Return a text as a tag can hold it: commas separate tags, and headers are of ASCII."""
    return quote(text, safe="@._-+:")
