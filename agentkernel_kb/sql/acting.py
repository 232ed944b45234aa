"""On whose behalf a statement runs: how the identity that the application bound reaches the database."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agentkernel_kb.errors import AKConfigError, KnowledgeIdentityError
from agentkernel_kb.identity import Identity, current_identity

RoleOf = Callable[[Identity], str]

_PREFIX = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
# The database takes this one for the login itself, which may do more than any user.
_THE_LOGIN = "none"


@dataclass(frozen=True)
class ActingRules:
    """What becomes of an identity inside of the database.

    Attributes:
        role_of: Returns the database's role that an identity stands for; `None` leaves the login as it is.
        settings_prefix: The settings `<prefix>.principal`, `<prefix>.tenant` and `<prefix>.roles` (a JSON list) hold the
            identity where row-level security can read it; `None` sets none.

    Raises:
        AKConfigError: The prefix is no plain word, or `role_of` cannot be called.
    """

    role_of: RoleOf | None = None
    settings_prefix: str | None = None

    def __post_init__(self) -> None:
        if self.role_of is not None and not callable(self.role_of):
            raise AKConfigError("role_of is a function from an identity to the name of a role.")
        prefix: object = self.settings_prefix
        if prefix is not None and not (isinstance(prefix, str) and _PREFIX.fullmatch(prefix)):
            raise AKConfigError("settings_prefix is one word of letters, digits and underscores, such as 'app'.")

    def __bool__(self) -> bool:
        return self.role_of is not None or self.settings_prefix is not None

    def settings(self) -> Mapping[str, str]:
        """Return the settings of this call by name; empty texts where nobody is bound, so that none is left from before."""
        if self.settings_prefix is None:
            return {}
        identity = current_identity()
        values = {
            "principal": identity.principal if identity else "",
            "tenant": (identity.tenant or "") if identity else "",
            "roles": json.dumps(identity.roles if identity else (), ensure_ascii=False),
        }
        return {f"{self.settings_prefix}.{name}": value for name, value in values.items()}

    def role(self) -> str | None:
        """Return the role of this call, `None` where it runs as the login.

        Raises:
            KnowledgeIdentityError: The identity stands for no role.
        """
        identity = current_identity()
        if self.role_of is None or identity is None:
            return None
        role: object = self.role_of(identity)
        if not isinstance(role, str) or not role or role == _THE_LOGIN:
            raise KnowledgeIdentityError("The identity that the application bound stands for no role of the database.")
        return role
