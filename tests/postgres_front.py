"""A front on loopback that speaks TLS for a PostgreSQL server without, as a connection pooler before a database does.

Source: "SSL Session Encryption" and "Message Formats" (`SSLRequest`, `GSSENCRequest`) in PostgreSQL's manual, chapter 55.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import certificates

_REQUEST_BYTES = 8
_SSL_REQUEST = (_REQUEST_BYTES).to_bytes(4, "big") + (80_877_103).to_bytes(4, "big")
_CHUNK = 1 << 16


@contextmanager
def tls(server_port: int, certificate: Path) -> Generator[int]:
    """Run a front until the block ends, and give its port.

    Args:
        server_port: Where the PostgreSQL server listens on loopback.
        certificate: A file with the certificate to show, and its key.
    """
    context = certificates.served(certificate)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    near, _ = listener.accept()
                    threading.Thread(target=_serve, args=(near, context, server_port), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield int(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def _serve(near: socket.socket, context: ssl.SSLContext, server_port: int) -> None:
    """Agree on TLS with one client, and pass on what it and the server say; whoever refuses the certificate hangs up."""
    with near, suppress(OSError):
        while (request := near.recv(_REQUEST_BYTES, socket.MSG_WAITALL)) != _SSL_REQUEST:
            if len(request) < _REQUEST_BYTES:
                return
            near.sendall(b"N")  # Encryption by Kerberos, which is asked for first where there is a ticket.
        near.sendall(b"S")
        with (
            context.wrap_socket(near, server_side=True) as inside,
            socket.create_connection(("127.0.0.1", server_port)) as server,
        ):
            _relay(inside, server)


def _relay(inside: ssl.SSLSocket, server: socket.socket) -> None:
    """Pass bytes on both ways until one side ends; in one thread, as a TLS connection may not be used by two."""
    while True:
        ready = [inside] if inside.pending() else select.select([inside, server], [], [])[0]
        for source, sink in ((inside, server), (server, inside)):
            if source in ready:
                chunk = source.recv(_CHUNK)
                if not chunk:
                    return
                sink.sendall(chunk)
