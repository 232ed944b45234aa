"""The engine's own parser as a judge: a text is one statement or it is not sent.

A connection runs all statements of a text, and a `COMMIT` among them ends the transaction that keeps a read from writing. Only
preparing refuses several statements, but it also plans, which may take long and holds up all threads of the process. So a text
is prepared on an empty database, where anything that names a label ends before it is planned.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from agentkernel_kb.errors import KnowledgeQueryError

if TYPE_CHECKING:
    from ladybug import Connection

_MEMORY_BYTES = 64_000_000
_SEVERAL = "prepare multiple statements"
_UNPARSED = "Parser exception"

_LOCK = threading.Lock()
_EMPTY: list[Connection] = []


def check_single(statement: str) -> None:
    """Check that the engine reads a text as one statement.

    Raises:
        KnowledgeQueryError: It reads several.
        RuntimeError: It cannot parse the text; the message is the engine's.
    """
    from ladybug import PreparedStatement

    with _LOCK:
        prepared = PreparedStatement(_empty_graph(), statement, {})
        message = "" if prepared.is_success() else str(prepared.get_error_message())
    if _SEVERAL in message:
        raise KnowledgeQueryError("Only one statement can be run at a time.")
    if message.startswith(_UNPARSED):
        raise RuntimeError(message)


def prepare() -> None:
    """Open the empty database now, which otherwise happens with the first statement."""
    with _LOCK:
        _empty_graph()


def _empty_graph() -> Connection:
    """Return the connection to an empty database in memory that this process keeps for parsing."""
    from ladybug import Connection, Database

    if not _EMPTY:
        _EMPTY.append(Connection(Database(":memory:", buffer_pool_size=_MEMORY_BYTES, max_num_threads=1)))
    return _EMPTY[0]
