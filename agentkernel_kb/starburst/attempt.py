"""One statement on the server: a transaction that only reads, the statement in it, and the end of both."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Mapping
from typing import Any, NamedTuple, cast

from requests.adapters import HTTPAdapter
from trino import exceptions
from trino.client import ClientSession, TrinoQuery, TrinoRequest
from trino.constants import HEADER_STARTED_TRANSACTION
from trino.transaction import NO_TRANSACTION

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import KnowledgeBackendError, KnowledgeConnectionError, KnowledgeError
from agentkernel_kb.starburst.asking import Asker
from agentkernel_kb.starburst.failures import DroppedError, failure_of, meaning_of
from agentkernel_kb.starburst.settings import Settings
from agentkernel_kb.starburst.transport import BoundedSession
from agentkernel_kb.starburst.values import decoder, weight

MAX_PAGE_BYTES = 16_000_000
CLEANUP_SECONDS = 5.0
START = "START TRANSACTION READ ONLY"
END = "ROLLBACK"


class Fetched(NamedTuple):
    """Rows of one statement: the columns' names, the rows, and whether the statement has more of them."""

    columns: list[str]
    rows: list[list[Any]]
    more: bool


class Attempt:
    """A statement that is sent once.

    Args:
        settings: The server.
        connections: Where HTTP connections are taken from.
        asker: Who asks.
        deadline: When it has to be over.
        limits: Session properties that bound it on the server.
        transaction: A transaction that only reads and was started for it, if there is one.
    """

    def __init__(
        self,
        settings: Settings,
        connections: HTTPAdapter,
        asker: Asker,
        deadline: Deadline,
        limits: Mapping[str, str],
        transaction: str | None = None,
    ) -> None:
        self._settings, self._connections, self._asker = settings, connections, asker
        self._request = self._new_request(deadline, limits, transaction or NO_TRANSACTION)

    def _new_request(self, deadline: Deadline, limits: Mapping[str, str], transaction: str = NO_TRANSACTION) -> TrinoRequest:
        settings = self._settings
        session = ClientSession(
            user=self._asker.user or "",
            catalog=settings.catalog or None,
            schema=settings.db_schema or None,
            source=settings.source,
            properties={**settings.session_properties, **limits},
            headers=dict(settings.http_headers),
            transaction_id=transaction,
            extra_credential=list(settings.extra_credential),
            client_tags=list(self._asker.tags),
            roles=settings.roles,  # pyright: ignore[reportArgumentType] - any mapping will do
            timezone=settings.timezone,
            encoding=None,
        )
        return TrinoRequest(
            settings.host,
            settings.port,
            session,
            BoundedSession(settings, self._connections, deadline, self._asker.acts_for),
            settings.scheme,
            settings.auth,
            max_attempts=1,  # The client's own repetitions know nothing of the deadline.
        )

    def rows(self, statement: str, most: int, *, read_only: bool) -> Fetched:
        """Return at most `most` rows of the statement, which is sent as it is.

        Args:
            statement: One statement.
            most: Most rows.
            read_only: Run it in a transaction that only reads.

        Raises:
            KnowledgeError: What a failure of the client or the server means.
        """
        with meaningful_errors():
            if read_only and self._request.transaction_id == NO_TRANSACTION:
                self._begin()
            query = TrinoQuery(self._request, statement, legacy_primitive_types=True)  # Values as the server writes them.
            return _bounded(query, _run(query), most)

    def begin(self) -> str:
        """Start a transaction that only reads, for a later attempt, and return its name.

        Raises:
            KnowledgeError: What a failure of the client or the server means.
        """
        with meaningful_errors():
            return self._begin()

    def _begin(self) -> str:
        """Start the transaction. `Transaction` of the client can start none that only reads."""
        response, started = self._request.post(START), NO_TRANSACTION
        while True:
            started = response.headers.get(HEADER_STARTED_TRANSACTION) or started
            status = self._request.process(response)
            if status.next_uri is None:
                break
            response = self._request.get(status.next_uri)
        if started == NO_TRANSACTION:
            raise KnowledgeBackendError("The server did not start a transaction that only reads; the statement was not sent.")
        self._request.transaction_id = started
        return started

    def cancel(self) -> None:
        """Stop the query on the server, from any thread. It may be over already, or the server gone."""
        if uri := self._request.next_uri:
            with contextlib.suppress(Exception):
                self._new_request(Deadline(CLEANUP_SECONDS), {}).delete(uri)

    def finish(self) -> None:
        """Stop the query if it still runs, and end the transaction; never raises."""
        self.cancel()
        transaction = self._request.transaction_id
        if transaction and transaction != NO_TRANSACTION:
            with contextlib.suppress(Exception):
                request = self._new_request(Deadline(CLEANUP_SECONDS), {}, transaction)
                list(_run(TrinoQuery(request, END)))


def _run(query: TrinoQuery) -> Iterator[list[Any]]:
    return iter(query.execute())  # pyright: ignore[reportUnknownMemberType] - an argument that is not used has no type


def _bounded(query: TrinoQuery, rows: Iterator[list[Any]], most: int) -> Fetched:
    columns = cast("list[dict[str, Any]]", query.columns or [])
    decoders = [decoder(column["typeSignature"]) for column in columns]
    fetched: list[list[Any]] = []
    bytes_left = MAX_PAGE_BYTES
    more = False
    for row in rows:
        if len(fetched) == most or bytes_left <= 0:
            more = True
            break
        fetched.append([decode(value) for decode, value in zip(decoders, row, strict=True)])
        bytes_left -= weight(row)
    return Fetched([str(column["name"]) for column in columns], fetched, more)


@contextlib.contextmanager
def meaningful_errors() -> Generator[None]:
    """Turn whatever the client raises into one of this library's errors, with the client's own as the cause."""
    try:
        yield
    except KnowledgeError:
        raise
    except exceptions.TrinoQueryError as error:
        raise meaning_of(failure_of(error)) from error
    except exceptions.TrinoAuthError as error:
        raise KnowledgeConnectionError("The login failed.", state="unauthorized") from error
    except exceptions.TrinoConnectionError as error:
        raise DroppedError("The server's answer was cut off.") from error
    except Exception as error:  # Whatever answers there may send anything.
        raise KnowledgeBackendError(f"The server's answer cannot be read ({type(error).__name__}): is it Trino?") from error
