"""PostgreSQL's own lock: each statement in a read-only transaction of its own, with time-outs that the server keeps."""

from __future__ import annotations

from collections.abc import Collection, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import (
    AKConfigError,
    KnowledgeDependencyError,
    KnowledgeError,
    KnowledgeIdentityError,
)
from agentkernel_kb.render import one_line
from agentkernel_kb.sql.acting import ActingRules
from agentkernel_kb.sql.postgres_catalogue import PostgresTables
from agentkernel_kb.sql.postgres_connections import PostgresConnections, PostgresSession
from agentkernel_kb.sql.postgres_failures import meaning, unknown_name
from agentkernel_kb.sql.postgres_rows import PostgresRows
from agentkernel_kb.sql.postgres_scope import PostgresScope

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

_DRIVERS = ("postgresql", "postgresql+psycopg")
_ENCODINGS = ("utf8", "utf-8")
# So that a network that swallows everything ends a connection too.
_LINE = {
    "keepalives": "1",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "application_name": "agentkernel_kb",
}


class PostgresLock:
    """Opens one PostgreSQL database for reading and nothing else.

    Args:
        url: Its SQLAlchemy URL; its query may hold libpq's parameters, such as `sslmode`.
        tables: Names of the tables and views that may be read, `None` for all; with their schema where it is not `public`.
        max_value_bytes: Largest value that a result may have.
        acting: What becomes of the identity of a call.

    Raises:
        AKConfigError: The URL names another driver, or has parameters that are none.
        KnowledgeDependencyError: The driver is missing.
    """

    dialect = "postgres"

    def __init__(
        self, url: URL, *, tables: Collection[str] | None, max_value_bytes: int, acting: ActingRules | None = None
    ) -> None:
        if url.drivername not in _DRIVERS:
            raise AKConfigError(
                f"SQLManager goes to PostgreSQL by psycopg: write '{_DRIVERS[0]}://', not '{url.drivername}://'."
            )
        try:
            import psycopg  # noqa: F401  # pyright: ignore[reportUnusedImport] - better missed now than at first use
        except ImportError as error:
            raise KnowledgeDependencyError("postgres", "SQLManager on PostgreSQL") from error
        self._parameters = _checked_parameters(url)
        self._place = _place(self._parameters)
        self._tables = None if tables is None else tuple(tables)
        self._scope = None if self._tables is None else PostgresScope(self._tables)
        self._max_value_bytes = max_value_bytes
        self._acting = acting or ActingRules()

    def make_engine(self, connections: int) -> PostgresConnections:
        """Return what lends sessions; the first connection is made when it is needed."""
        return PostgresConnections(self._parameters, connections)

    def driver(self, connection: PostgresSession) -> PostgresSession:
        """Return the session, in which a driver's connection changes hands where one has died."""
        return connection

    @contextmanager
    def reading(self, connection: PostgresSession, deadline: Deadline, *, whole: bool) -> Generator[None]:
        """Hold a session ready for one piece of work, on behalf of whoever is bound unless it sees the `whole` catalogue."""
        if whole:
            connection.begin(deadline, {})
        else:
            role = self._acting.role()
            connection.begin(deadline, self._acting.settings())
            if role is not None:
                _become(connection, role)
        yield

    def tables(self, connection: PostgresSession) -> PostgresTables:
        """Return what the catalogue tells about tables; where calls run as other roles, those of all are listed."""
        return PostgresTables(connection.connection, self._tables, of_all_roles=self._acting.role_of is not None)

    def rows(self, connection: PostgresSession, statement: str, most: int) -> PostgresRows:
        """Send a statement and return its rows, which the server makes as they are asked for.

        Raises:
            psycopg.Error: PostgreSQL does not take the statement.
            KnowledgeGuardError: It is no read, or one of other tables than those that may be read.
        """
        return PostgresRows(connection, statement, most, self._max_value_bytes, self._scope)

    def translate(self, error: Exception, deadline: Deadline) -> KnowledgeError:
        """Return what an error of the driver means."""
        return meaning(error, deadline, self._place)

    def missing_name(self, error: KnowledgeError) -> str | None:
        """Return the name that a rejected statement uses and the database does not have."""
        return unknown_name(error.__cause__)


def _become(session: PostgresSession, role: str) -> None:
    """Go on as another role.

    Raises:
        KnowledgeIdentityError: The database has no such role, or does not let the login become it.
    """
    from psycopg.errors import InsufficientPrivilege, InvalidParameterValue

    try:
        session.take_role(role)
    except (InsufficientPrivilege, InvalidParameterValue) as error:
        raise KnowledgeIdentityError(
            "The identity that the application bound stands for a role that the database does not have, or that the login "
            "may not become (GRANT the role to it)."
        ) from error


def _checked_parameters(url: URL) -> dict[str, str]:
    """Return the URL as libpq's parameters, with those of this library.

    Raises:
        AKConfigError: One of them is none. The error repeats no values, which may be secrets.
    """
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    if "@" in (url.host or "")[1:] or "@" in (url.database or ""):  # What is taken for a host is a part of the password then.
        raise AKConfigError("The URL of a PostgreSQL database has an '@' too many: in a user or password it is written %40.")
    given: dict[str, Any] = {
        **url.translate_connect_args(username="user", database="dbname"),
        **{name: value if isinstance(value, str) else ",".join(value) for name, value in url.query.items()},
    }
    try:
        own: dict[str, Any] = conninfo_to_dict(make_conninfo("", **given))
    except ProgrammingError:
        raise AKConfigError(
            f"The URL of a PostgreSQL database takes libpq's parameters, such as sslmode; these are not all: {sorted(given)}."
        ) from None
    parameters = {**_LINE, **{key: str(value) for key, value in own.items()}}
    for name in ("connect_timeout", "port"):
        if not all(part.isdecimal() for part in parameters.get(name, "1").split(",")):
            raise AKConfigError(f"{name} is a whole number.")
    if parameters.get("client_encoding", "utf8").lower() not in _ENCODINGS:
        raise AKConfigError("client_encoding is UTF8, whatever the database's own encoding is.")
    only_reads = "-c default_transaction_read_only=on"
    options = f"{parameters.get('options', '')} {only_reads}".strip()
    return {**parameters, "client_encoding": "UTF8", "options": options}


def _place(parameters: dict[str, str]) -> str:
    """Return how the database is called in messages: not by its user, where drivers take tokens, nor by anything but these."""
    database = parameters.get("dbname", "")
    host = parameters.get("host") or parameters.get("hostaddr") or "localhost"
    port = f":{parameters['port']}" if "port" in parameters else ""
    return one_line(f"The PostgreSQL database '{database}' at {host}{port}")
