"""The scripts of the real servers: what each promises at its head (A20)."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

import servers


@pytest.mark.server("chroma")
def test_of_several_starts_at_once_one_starts_the_server_and_stop_finds_it() -> None:
    with servers.private("chroma") as own:
        own.stop()
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda _: own.start(), range(3)))
    with socket.socket() as trial:
        assert trial.connect_ex(("127.0.0.1", own.port))
