"""Transactions: a bounded read in READ mode, a write of its own, and the server's word on what a statement does."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import KnowledgeGuardError
from agentkernel_kb.neo4j.arguments import Scope
from agentkernel_kb.neo4j.failures import is_safe_to_repeat
from agentkernel_kb.neo4j.values import plain_row, weight
from agentkernel_kb.neo4j.verdicts import Verdicts

if TYPE_CHECKING:
    from typing import LiteralString

    from neo4j import AsyncDriver, AsyncResult, AsyncSession, AsyncTransaction

MAX_PAGE_BYTES = 16_000_000
MAX_FETCHED = 100
"""Most rows that the server sends before it is asked for more."""

_WRITE_ATTEMPTS = 3
_LEAST_SECONDS = 0.001  # To the driver, zero means no limit.
_KINDS = {"w": "writes", "rw": "reads and writes", "s": "changes the schema or administers the server"}


class Fetched(NamedTuple):
    """Rows of one statement as plain data: the columns' names, the rows, and whether the statement has more of them."""

    columns: list[str]
    rows: list[list[Any]]
    more: bool


@asynccontextmanager
async def transaction_of(
    driver: AsyncDriver, scope: Scope, deadline: Deadline, *, writes: bool = False, fetch_size: int = MAX_FETCHED
) -> AsyncGenerator[AsyncTransaction]:
    """Begin a transaction and commit it at the end of the block; one that fails or is cancelled is rolled back.

    What a call reads holds what the calls before it wrote, on whichever member of a cluster it lands.
    """
    session_of = cast("Callable[..., AsyncSession]", driver.session)  # pyright: ignore[reportUnknownMemberType] - untyped
    async with session_of(
        database=scope.database,
        impersonated_user=scope.impersonated,
        default_access_mode="WRITE" if writes else "READ",
        fetch_size=fetch_size,
        bookmark_manager=driver.execute_query_bookmark_manager,
    ) as session:
        begun = await session.begin_transaction(metadata=scope.metadata, timeout=max(_LEAST_SECONDS, deadline.left()))
        async with begun as transaction:
            yield transaction


async def run(transaction: AsyncTransaction, statement: str, parameters: Mapping[str, Any] | None = None) -> AsyncResult:
    """Run a statement; the driver's own signature wants text that stands in a program, which a model's does not."""
    return await transaction.run(cast("LiteralString", statement), dict(parameters or {}))


async def read(driver: AsyncDriver, scope: Scope, statement: str, most: int, deadline: Deadline, verdicts: Verdicts) -> Fetched:
    """Return at most `most` rows of a statement that the server itself takes for a read, in a transaction that only reads.

    Raises:
        KnowledgeGuardError: The server does not take it for a read.
        neo4j.exceptions.Neo4jError: The server failed.
        neo4j.exceptions.DriverError: The driver failed.
    """
    async with transaction_of(driver, scope, deadline, fetch_size=min(most + 1, MAX_FETCHED)) as transaction:
        await _ask_first(transaction, scope, statement, verdicts)
        return await _fetch(await run(transaction, statement), most)


async def _ask_first(transaction: AsyncTransaction, scope: Scope, statement: str, verdicts: Verdicts) -> None:
    """Let the server say what a statement does, which is explained and not run."""
    kind = verdicts.known(scope, statement)
    if kind is None:
        explained = await run(transaction, f"EXPLAIN {statement}")
        kind = (await explained.consume()).query_type or ""
        verdicts.remember(scope, statement, kind)
    if kind != "r":
        raise KnowledgeGuardError(f"The server finds that this statement {_KINDS.get(kind, 'does more than read')}")


async def _fetch(result: AsyncResult, most: int) -> Fetched:
    columns = list(result.keys())
    rows: list[list[Any]] = []
    bytes_left = MAX_PAGE_BYTES
    async for row in result:
        if len(rows) == most or bytes_left <= 0:
            return Fetched(columns, rows, more=True)
        values = plain_row(row)
        rows.append(values)
        bytes_left -= weight(values)
    if not rows and (plan := cast("Mapping[str, Any] | None", (await result.consume()).plan)):  # pyright: ignore[reportUnknownMemberType]
        return _plan(plan, most)
    return Fetched(columns, rows, more=False)


def _plan(plan: Mapping[str, Any], most: int) -> Fetched:
    """Return the plan of an explained statement, a line each."""
    drawn = str(plan.get("args", {}).get("string-representation") or plan.get("operatorType", ""))
    lines = [[line.rstrip()] for line in drawn.splitlines() if line.strip()]
    return Fetched(["plan"], lines[:most], more=len(lines) > most)


async def write(driver: AsyncDriver, scope: Scope, statement: str, parameters: dict[str, Any], deadline: Deadline) -> None:
    """Run one statement in a transaction of its own, which is repeated where the driver calls that safe.

    Raises:
        neo4j.exceptions.Neo4jError: The server failed.
        neo4j.exceptions.DriverError: The driver failed.
    """
    from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_random

    async for attempt in AsyncRetrying(
        retry=retry_if_exception(is_safe_to_repeat),
        stop=stop_after_attempt(_WRITE_ATTEMPTS),
        wait=wait_random(0.05, 0.3),
        reraise=True,
    ):
        with attempt:
            async with transaction_of(driver, scope, deadline, writes=True) as transaction:
                await (await run(transaction, statement, parameters)).consume()


async def rows_of(
    transaction: AsyncTransaction, statement: str, parameters: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Return all rows of one of this package's own statements, by column."""
    result = await run(transaction, statement, parameters)
    return [dict(zip(row.keys(), row.values(), strict=True)) async for row in result]


async def version(driver: AsyncDriver, scope: Scope, deadline: Deadline) -> str:
    """Reach the database and return the server's version."""
    async with transaction_of(driver, scope, deadline) as transaction:
        summary = await (await run(transaction, "RETURN 1 AS one")).consume()
    return str(summary.server.agent).removeprefix("Neo4j/")
