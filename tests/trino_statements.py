"""What the tests of Trino ask the server themselves, past the backend: statements, schemas of their own, what it ran."""

from __future__ import annotations

import time
import uuid
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import requests
import trino.dbapi

PATIENCE_SECONDS = 30.0


class Query(NamedTuple):
    """A query as the server remembers it."""

    id: str
    state: str
    user: str
    error: str | None
    text: str


def rows(port: int, statement: str, user: str = "kb") -> Sequence[Sequence[Any]]:
    """Run a statement and return its rows."""
    connection = trino.dbapi.connect(host="127.0.0.1", port=port, user=user)
    try:
        cursor = connection.cursor()
        cursor.execute(statement)
        return cursor.fetchall()
    finally:
        connection.close()


@contextmanager
def own_schema(port: int, *tables: str) -> Generator[str]:
    """Make a schema of the memory catalog with tables, each given as `name AS query`, and remove it in the end."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    rows(port, f"CREATE SCHEMA memory.{name}")
    try:
        for table in tables:
            rows(port, f"CREATE TABLE memory.{name}.{table}")
        yield name
    finally:
        rows(port, f"DROP SCHEMA memory.{name} CASCADE")


def queries_with(port: int, marker: str) -> list[Query]:
    """Return the queries whose text holds a marker, the oldest first."""
    statement = f"""SELECT query_id, state, "user", error_code, query FROM system.runtime.queries
        WHERE query LIKE '%{marker}%' AND query NOT LIKE '%system.runtime.queries%' ORDER BY created"""
    return [Query(*row) for row in rows(port, statement)]


def ended_query(port: int, marker: str) -> Query:
    """Return the one query whose text holds a marker, once it has ended."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        (query,) = queries_with(port, marker)
        if query.state in ("FINISHED", "FAILED"):
            return query
        assert time.monotonic() < until, f"the query is still {query.state}"
        time.sleep(0.1)


def started_query(port: int, marker: str) -> Query:
    """Return the one query whose text holds a marker, once the server has begun it."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not (found := queries_with(port, marker)):
        assert time.monotonic() < until, "the server never saw it"
        time.sleep(0.05)
    return found[0]


def queries_of(port: int, source: str) -> list[Query]:
    """Return the queries of a source, the oldest first."""
    statement = f"""SELECT query_id, state, "user", error_code, query FROM system.runtime.queries
        WHERE source = '{source}' ORDER BY created"""
    return [Query(*row) for row in rows(port, statement)]


def started_transactions(port: int, source: str, count: int) -> list[str]:
    """Return the transactions that a source has started, the oldest first, once there are that many."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        starts = [query for query in queries_of(port, source) if query.text.startswith("START") and query.state == "FINISHED"]
        if len(starts) >= count:
            return [details_of(port, query.id)["startedTransactionId"] for query in starts]
        assert time.monotonic() < until, f"only {len(starts)} were started"
        time.sleep(0.1)


def end_transaction(port: int, transaction: str) -> None:
    """End a transaction behind the back of whoever started it."""
    headers = {"X-Trino-User": "kb", "X-Trino-Transaction-Id": transaction}
    answer = requests.post(f"http://127.0.0.1:{port}/v1/statement", "ROLLBACK", headers=headers, timeout=30).json()
    while uri := answer.get("nextUri"):
        answer = requests.get(uri, headers=headers, timeout=30).json()
    assert "error" not in answer


def details_of(port: int, query: str) -> dict[str, Any]:
    """Return all that the server knows about a query."""
    return requests.get(f"http://127.0.0.1:{port}/v1/query/{query}", headers={"X-Trino-User": "kb"}, timeout=30).json()


def session_of(port: int, query: str) -> dict[str, Any]:
    """Return the session that a query came with: its user, client tags, properties."""
    return details_of(port, query)["session"]


def wait_for_nodes(port: int) -> None:
    """Wait until a server that has just started takes queries: it says that it is there before its node is."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            rows(port, "SELECT count(*) FROM tpch.tiny.nation")
        except trino.dbapi.Error:
            assert time.monotonic() < until, "it takes no queries"
            time.sleep(0.2)
        else:
            return


def count_of(port: int, source: str, text: str) -> int:
    """Return how many queries of a source have that text and have ended."""
    ((count,),) = rows(
        port,
        f"SELECT count(*) FROM system.runtime.queries WHERE source = '{source}' AND query = '{text}' AND state = 'FINISHED'",
    )
    return count
