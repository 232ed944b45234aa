"""The arguments of Neo4jManager: which server and database they mean, and what is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from agentkernel_kb.errors import AKConfigError, KnowledgeIdentityError
from agentkernel_kb.identity import Identity, current_identity, required_identity

_SYSTEM = "system"
SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
DatabaseOf = Mapping[str, str] | Callable[[str], str | None]
"""The database of a tenant: a mapping, or a function that returns `None` for a tenant that has none."""


@dataclass(frozen=True)
class Target:
    """Where the graph is and who logs in.

    Attributes:
        uri: The server, without a login.
        user: The user, `None` for a server without logins.
        password: Its password.
        database: The database, `None` for the user's home database.
        certificates: Files of the authorities that are trusted besides the system's; empty for the system's alone.
    """

    uri: str
    user: str | None
    password: str | None = field(repr=False)
    database: str | None = None
    certificates: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Host and port, for messages."""
        return urlsplit(self.uri).netloc


@dataclass(frozen=True)
class Scope:
    """For whom, in which database and with which rights one call runs.

    Attributes:
        database: The database, `None` for the user's home database.
        impersonated: The user whose rights it has, `None` for those of the login.
        metadata: What the server lists beside the transaction.
    """

    database: str | None
    impersonated: str | None
    metadata: dict[str, Any] = field(default_factory=dict[str, Any], hash=False, compare=False)


@dataclass(frozen=True)
class Scoping:
    """How an identity becomes a scope.

    Attributes:
        backend: Name of the backend.
        database: The database without a tenant of its own.
        impersonate: Run with the rights of the principal.
        database_of: The database of a tenant.
        required: A call for nobody is refused.
    """

    backend: str
    database: str | None
    impersonate: bool
    database_of: DatabaseOf | None
    required: bool

    def scope(self) -> Scope:
        """Return the scope of the current call, as the application bound it.

        Raises:
            KnowledgeIdentityError: It acts for nobody and has to act for somebody, or for a tenant without a database.
        """
        identity = required_identity(self.backend) if self.required else current_identity()
        told = {"app": "agentkernel_kb", "backend": self.backend}
        if identity is None:
            return Scope(self.database, None, told)
        given: dict[str, Any] = {"principal": identity.principal, "tenant": identity.tenant, "roles": list(identity.roles)}
        metadata = told | {key: value for key, value in given.items() if value}
        return Scope(self._database(identity), identity.principal if self.impersonate else None, metadata)

    def _database(self, identity: Identity) -> str | None:
        if self.database_of is None:
            return self.database
        if identity.tenant is None:
            raise KnowledgeIdentityError(f"Backend '{self.backend}' has a database per tenant, and this call has no tenant.")
        of = self.database_of
        database = of(identity.tenant) if callable(of) else of.get(identity.tenant)
        if not database:
            raise KnowledgeIdentityError(f"Backend '{self.backend}' has no database for this tenant.")
        return database


def target_of(
    subject: str,
    *,
    uri: str | None,
    user: str | None,
    password: str | None,
    database: str | None,
    certificates: Iterable[str | Path],
) -> Target:
    """Return where to connect to, missing arguments taken from the environment.

    Raises:
        AKConfigError: One is missing or wrong; no message holds a password.
    """
    # A variable that is empty is one that is not set: files of services write both in the same way.
    uri = uri or os.environ.get("NEO4J_URI") or ""
    user = user if user is not None else os.environ.get("NEO4J_USERNAME") or None
    password = password if password is not None else os.environ.get("NEO4J_PASSWORD") or None
    _check_uri(subject, uri)
    for name, value in (("user", user), ("password", password), ("database", database)):
        check_text(subject, name, value)
    if (user is None) != (password is None):
        given, missing = ("user", "password") if password is None else ("password", "user")
        raise AKConfigError(f"'{subject}': {given} was given and {missing} was not; see NEO4J_USERNAME and NEO4J_PASSWORD.")
    if database is not None and database.lower() == _SYSTEM:
        raise AKConfigError(f"'{subject}': the database '{_SYSTEM}' administers the server and holds no graph.")
    return Target(uri.strip(), user, password, database, _files(subject, uri, certificates))


def _check_uri(subject: str, uri: object) -> None:
    if not isinstance(uri, str) or not uri.strip():
        raise AKConfigError(f"Neo4jManager '{subject}' needs uri=, or NEO4J_URI, such as 'neo4j+s://host'.")
    try:
        parts = urlsplit(uri.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if "@" in uri:  # The text is not shown: it holds a login.
        raise AKConfigError(f"'{subject}': uri must hold no login; it belongs in user= and password=.")
    if parts.scheme not in SCHEMES or not host or parts.path.strip("/") or parts.fragment:
        raise AKConfigError(f"'{subject}': uri must be one of {', '.join(SCHEMES)}, '://', a host and perhaps a port.")
    if parts.query and parts.scheme.startswith("bolt"):
        raise AKConfigError(f"'{subject}': uri can have a routing policy behind '?' only with neo4j://.")


def _files(subject: str, uri: str, certificates: object) -> tuple[str, ...]:
    if isinstance(certificates, str | bytes | Path) or not isinstance(certificates, Iterable):
        raise AKConfigError(f"'{subject}': certificates takes a list of files.")
    files = tuple(str(path) for path in cast("Iterable[object]", certificates))
    if missing := [path for path in files if not Path(path).is_file()]:
        raise AKConfigError(f"'{subject}': certificates names files that are not there: {', '.join(missing)}.")
    if files and urlsplit(uri).scheme.partition("+")[2]:
        raise AKConfigError(f"'{subject}': certificates goes with bolt:// or neo4j://, whose connections it encrypts.")
    return files


def check_names(subject: str, argument: str, names: object) -> frozenset[str]:
    """Return a list of names as a set.

    Raises:
        AKConfigError: It is no list of names.
    """
    if isinstance(names, str | bytes) or not isinstance(names, Collection):
        raise AKConfigError(f"'{subject}': {argument} takes a list of names, not {names!r}.")
    listed = cast("Collection[object]", names)
    if not all(isinstance(name, str) and name for name in listed):
        raise AKConfigError(f"'{subject}': {argument} takes names.")
    return frozenset(str(name) for name in listed)


def check_text(subject: str, name: str, value: object) -> None:
    """Check an argument that is text where it is given.

    Raises:
        AKConfigError: It is none, or blank; a password may be blank.
    """
    if value is not None and (not isinstance(value, str) or (name != "password" and not value.strip())):
        raise AKConfigError(f"'{subject}': {name} must be text{'' if name == 'password' else ' that is not blank'}.")


def check_number(subject: str, argument: str, value: object, least: int) -> int:
    """Return a whole number.

    Raises:
        AKConfigError: It is none, or too small.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise AKConfigError(f"'{subject}': {argument} is a whole number of at least {least}, not {value!r}.")
    return value


def check_database_of(subject: str, database_of: object) -> None:
    """Check what tells the database of a tenant.

    Raises:
        AKConfigError: It is neither a mapping of names nor a function.
    """
    if database_of is None or callable(database_of):
        return
    if not isinstance(database_of, Mapping):
        raise AKConfigError(f"'{subject}': database_of maps tenants to databases, or is a function that does.")
    pairs = cast("Mapping[object, object]", database_of).items()
    if not all(isinstance(name, str) and name for pair in pairs for name in pair):
        raise AKConfigError(f"'{subject}': database_of maps names to names.")
