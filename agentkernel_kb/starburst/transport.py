"""HTTP as the `trino` client speaks it, held to one deadline: every request, every byte of every response, every redirect.

The client's own time-out is one of a single request, and begins anew with each chunk that arrives.
"""

from __future__ import annotations

from typing import Any

import requests
from requests.adapters import HTTPAdapter
from requests.auth import HTTPBasicAuth
from urllib3.exceptions import HTTPError, ProtocolError, ReadTimeoutError
from urllib3.util.retry import Retry

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import (
    AKConfigError,
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.starburst.failures import DroppedError, meaning_of_status
from agentkernel_kb.starburst.settings import Settings

CONNECT_SECONDS = 10.0
MAX_RESPONSE_BYTES = 64_000_000
_CHUNK_BYTES = 65_536
_CONNECTIONS = 32
# The protocol asks clients to send a request again after these: https://trino.io/docs/current/develop/client-protocol.html
_REPEATED_STATUSES = (502, 503, 504)


def shared_connections() -> HTTPAdapter:
    """Return a pool of connections, which the sessions of all calls share."""
    repeats = Retry(
        total=2,
        connect=0,
        read=0,
        other=0,
        status_forcelist=_REPEATED_STATUSES,
        allowed_methods=None,
        backoff_factor=0.1,
        raise_on_status=False,
        respect_retry_after_header=False,  # It may ask for more time than there is.
    )
    return HTTPAdapter(pool_connections=4, pool_maxsize=_CONNECTIONS, max_retries=repeats)


class BoundedSession(requests.Session):
    """The HTTP session of one call.

    Args:
        settings: The server and the login.
        connections: Where connections are taken from.
        deadline: When everything has to be over.
        acts_for: The user that the call acts for in place of the login's, for messages.
    """

    def __init__(self, settings: Settings, connections: HTTPAdapter, deadline: Deadline, acts_for: str | None = None) -> None:
        super().__init__()
        self._settings, self._deadline, self._acts_for = settings, deadline, acts_for
        self.mount("http://", connections)
        self.mount("https://", connections)
        if settings.password is not None:
            self.auth = HTTPBasicAuth(_bytes(settings.user or ""), _bytes(settings.password))

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        """Send a request and read its response, within what is left of the time.

        Raises:
            KnowledgeTimeoutError: Time was out.
            KnowledgeConnectionError: The server cannot be reached, or does not let us in.
            KnowledgeQueryError: The response is larger than any is allowed to be.
            AKConfigError: A certificate or key to log in with is not there.
        """
        left = self._deadline.left()
        if not left:
            raise self._out_of_time()
        # Rows come with the answer: with this header a server may hand out addresses of a store to fetch them from instead.
        request.headers.pop("X-Trino-Query-Data-Encoding", None)
        kwargs |= {"timeout": (min(CONNECT_SECONDS, left), left), "stream": True}
        if self._settings.verify is not True:  # Else a bundle that the environment names would win over the deployment's.
            kwargs["verify"] = self._settings.verify
        try:
            response = super().send(request, **kwargs)
            self._read(response)
        except requests.RequestException as error:
            raise self._meaning_of(error) from error
        except KnowledgeError:
            raise
        except OSError as error:  # `requests` looks for these files before it connects.
            raise AKConfigError(
                "A certificate or key that auth= or the environment (REQUESTS_CA_BUNDLE) names is not there or cannot be read."
            ) from error
        is_query = request.method != "POST"
        failed = meaning_of_status(response.status_code, self._settings.address, acts_for=self._acts_for, is_query=is_query)
        if failed is not None and request.method != "DELETE":
            raise failed
        return response

    def _read(self, response: requests.Response) -> None:
        """Read the body, so that whoever asks for it has it already."""
        if response.is_redirect:
            return
        chunks: list[bytes] = []
        left = MAX_RESPONSE_BYTES
        for chunk in response.iter_content(_CHUNK_BYTES):
            chunks.append(chunk)
            left -= len(chunk)
            if left < 0 or self._deadline.passed():
                response.close()
                raise self._too_large() if left < 0 else self._out_of_time()
        response._content = b"".join(chunks)  # pyright: ignore[reportPrivateUsage] - what `content` itself keeps once it is read

    def _meaning_of(self, error: requests.RequestException) -> KnowledgeError:
        cause = _cause_of(error)
        if isinstance(error, requests.exceptions.SSLError):
            return KnowledgeConnectionError(
                f"The certificate of {self._settings.address} does not hold, or it does not speak TLS.", state="untrusted"
            )
        if self._deadline.passed() or isinstance(error, requests.ReadTimeout) or isinstance(cause, ReadTimeoutError):
            return self._out_of_time()
        address = self._settings.address
        if isinstance(error, requests.exceptions.ChunkedEncodingError) or isinstance(cause, ProtocolError | ConnectionError):
            return DroppedError(f"The connection to {address} broke.")
        return KnowledgeConnectionError(f"The server {address} can't be reached.")

    def _out_of_time(self) -> KnowledgeTimeoutError:
        return KnowledgeTimeoutError(f"The server {self._settings.address} did not answer within the time that was left.")

    def _too_large(self) -> KnowledgeQueryError:
        return KnowledgeQueryError(
            f"One page of rows has more than {MAX_RESPONSE_BYTES:,} bytes: select parts of large values, as with substr"
        )


def _cause_of(error: BaseException) -> object:
    """Return the failure of urllib3 below one of `requests`."""
    inner: object = error.args[0] if error.args else None
    return getattr(inner, "reason", None) or inner if isinstance(inner, HTTPError) else inner


def _bytes(text: str) -> bytes:
    """Encode a part of a login: as the server reads it, and a character that it cannot read as most others would."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape")
