"""Databases of one's own on the PostgreSQL server that tests share, which other tests use at the same time."""

from __future__ import annotations

import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress

import psycopg
from psycopg import sql

READER = "reader"


@contextmanager
def database(server_url: str, script: str = "") -> Generator[str]:
    """Make a database in which `script` was run, give its URL, and remove it in the end."""
    url = make(server_url, script)
    try:
        yield url
    finally:
        drop(url)


def make(server_url: str, script: str = "") -> str:
    """Make a database with a name of its own and return its URL."""
    name = f"kb_test_{secrets.token_hex(6)}"
    run(server_url, f"CREATE DATABASE {name}")
    url = server_url.rpartition("/")[0] + f"/{name}"
    run(url, script)
    return url


def drop(url: str) -> None:
    """Remove a database, whoever is still in it."""
    start, _, name = url.rpartition("/")
    with suppress(psycopg.OperationalError):  # The server of a test that killed it takes it along.
        run(f"{start}/kb", f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def run(url: str, script: str) -> None:
    """Run statements, each committed by itself."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(script.encode())


def rows(url: str, statement: str) -> list[tuple[object, ...]]:
    """Return all rows of a statement."""
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(statement.encode()).fetchall()


def contents(url: str) -> list[object]:
    """Return the names of all that stands in `public`, and the rows of its tables."""
    found = rows(url, "SELECT relname, relkind FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1")
    return [(name, rows(url, f'TABLE "{name}"') if kind == "r" else kind) for name, kind in found]


def as_login(url: str, name: str) -> str:
    """Return the URL for another login with the same password."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{name}:{rest.partition(':')[2]}"


@contextmanager
def login(url: str, *roles: str, options: str = "") -> Generator[str]:
    """Make a login with the password of all, and give its URL.

    Args:
        url: The URL of a database.
        roles: Roles that it may become, which are made too.
        options: Further options of `CREATE ROLE`.
    """
    name = f"kb_login_{secrets.token_hex(6)}"
    password = url.partition("://")[2].partition(":")[2].partition("@")[0]
    made: list[str] = []
    try:
        run(url, f"CREATE ROLE {name} LOGIN NOINHERIT {options} PASSWORD '{password}'")
        made.append(name)
        with psycopg.connect(url, autocommit=True) as connection:
            for role in roles:
                connection.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(role)))
                made.append(role)
                connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(role), sql.Identifier(name)))
        yield as_login(url, name)
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            for role in made:
                connection.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(sql.Identifier(role)))
