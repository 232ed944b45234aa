"""The arguments of ChromaManager: which way to Chroma they mean, and what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args

from agentkernel_kb.chroma.connection import Folder, Given
from agentkernel_kb.chroma.records import Distance
from agentkernel_kb.chroma.server import Server
from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.headers import is_header_name

DEFAULT_PATH = "./chroma_db"
DEFAULT_PORT = 8000


@dataclass(frozen=True)
class ServerArguments:
    """What ChromaManager was told about a server."""

    host: str | None
    port: int | None
    ssl: bool
    headers: Mapping[str, str] | None = field(repr=False)

    def given(self) -> list[str]:
        """Return the names of the arguments that were given."""
        values = {"host": self.host, "port": self.port, "ssl": self.ssl or None, "headers": self.headers}
        return [name for name, value in values.items() if value is not None]

    def check(self, subject: str) -> None:
        """Check the types and ranges.

        Raises:
            AKConfigError: One is wrong; the message names the argument and never shows a header.
        """
        host, port, headers = cast("tuple[object, object, object]", (self.host, self.port, self.headers))
        if not isinstance(host, str) or not host.strip() or host != host.strip() or "@" in host:
            raise AKConfigError(f"'{subject}': host must name a Chroma server; credentials belong in headers=.")
        if port is not None and (not isinstance(port, int) or isinstance(port, bool) or not 1 <= port <= 65_535):
            raise AKConfigError(f"'{subject}': port must be a whole number from 1 to 65535, not {port!r}.")
        if headers is not None and not (
            isinstance(headers, Mapping) and all(_is_header(*pair) for pair in cast("Mapping[object, object]", headers).items())
        ):
            raise AKConfigError(
                f"'{subject}': headers must map names to values, both strings of printable ASCII without outer blanks."
            )


def check_plain_arguments(
    subject: str, collection_name: Any, description: Any, distance: Any, *, download: Any, min_score: Any, connect: Any
) -> None:
    """Check the arguments that do not say where Chroma is.

    Raises:
        AKConfigError: One is wrong.
    """
    if not isinstance(collection_name, str) or not collection_name:
        raise AKConfigError(f"'{subject}': collection_name must be text, not {collection_name!r}.")
    if not isinstance(description, str):
        raise AKConfigError(f"'{subject}': description must be text, not {type(description).__name__}.")
    if distance is not None and distance not in get_args(Distance):
        raise AKConfigError(f"'{subject}': distance must be one of {list(get_args(Distance))} or None, not {distance!r}.")
    if not isinstance(download, bool):
        raise AKConfigError(f"'{subject}': download must be True or False, not {download!r}.")
    if connect not in ("eager", "lazy"):
        raise AKConfigError(f"'{subject}': connect must be 'eager' or 'lazy', not {connect!r}.")
    if min_score is not None and not _is_finite_number(min_score):
        raise AKConfigError(f"'{subject}': min_score must be a finite number or None, not {min_score!r}.")


def choose_source(
    subject: str,
    *,
    persist_path: str | Path | None,
    server: ServerArguments,
    tenant: str | None,
    database: str | None,
    client: object | None,
) -> Folder | Server | Given:
    """Return the way to Chroma that the arguments mean.

    Args:
        subject: Name of the backend, for messages.
        persist_path: The folder, `None` where none was given.
        server: What was said about a server.
        tenant: Tenant of Chroma, if given.
        database: Its database, if given.
        client: A ready client, if given.

    Raises:
        AKConfigError: They contradict each other, or one is wrong.
    """
    options = {name: value for name, value in (("tenant", tenant), ("database", database)) if value is not None}
    chosen = [*(["persist_path"] if persist_path is not None else []), *server.given()]
    if client is not None:
        if chosen or options:
            raise AKConfigError(f"'{subject}': client= stands alone; leave out {[*chosen, *options]}.")
        return Given(client)
    if server.host is None:
        if server.given():
            raise AKConfigError(f"'{subject}': {server.given()} need host=.")
        return Folder(_resolved(subject, DEFAULT_PATH if persist_path is None else persist_path), options)
    if persist_path is not None:
        raise AKConfigError(f"'{subject}': persist_path and host exclude each other; leave out one.")
    server.check(subject)
    return Server(server.host, server.port or DEFAULT_PORT, server.ssl, server.headers or {}, options)


def _is_header(name: object, value: object) -> bool:
    if not isinstance(name, str) or not isinstance(value, str) or not is_header_name(name):
        return False
    return value.isascii() and value.isprintable() and value == value.strip()


def _is_finite_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -math.inf < value < math.inf


def _resolved(subject: str, path: object) -> Path:
    if not isinstance(path, str | Path) or not str(path).strip() or "\0" in str(path):
        raise AKConfigError(f"'{subject}': persist_path must be a folder, not {path!r}.")
    try:
        return Path(path).expanduser().resolve()
    except (OSError, RuntimeError) as error:  # A loop of links, or no home folder.
        raise AKConfigError(f"'{subject}': persist_path {str(path)!r} can't be resolved.") from error
