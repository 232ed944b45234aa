"""The client of an S3 store, and what its errors mean. The SDK is imported inside the call that makes the client."""

from __future__ import annotations

from typing import Any, Literal, cast
from urllib.parse import urlsplit

from agentkernel_kb.errors import (
    AKConfigError,
    DocumentChangedError,
    KnowledgeBackendError,
    KnowledgeConnectionError,
    KnowledgeDependencyError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.store.paths import shown

AddressingStyle = Literal["path", "virtual"]

# Errors are told apart by the codes of the protocol and by the names of the SDK's classes, so that it is not imported for them.
_DENIED = {
    "403", "AccessDenied", "AllAccessDisabled", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch",
    "TokenRefreshRequired",
}  # fmt: skip
_BUSY = {"500", "502", "503", "504", "InternalError", "RequestTimeout", "ServiceUnavailable", "SlowDown", "Throttling"}
_CHANGED = {"409", "412", "ConditionalRequestConflict", "PreconditionFailed"}
_MISSING = {"404", "NoSuchKey", "NoSuchVersion"}
_ELSEWHERE = {"301", "307", "400", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect"}
_NO_LOGIN = {
    "CredentialRetrievalError", "NoCredentialsError", "PartialCredentialsError", "SSOError", "TokenRetrievalError",
    "UnauthorizedSSOTokenError",
}  # fmt: skip


def make_client(
    *,
    region: str | None,
    endpoint_url: str | None,
    addressing_style: AddressingStyle | None,
    connections: int,
    max_attempts: int,
    connect_timeout_s: float,
    read_timeout_s: float,
) -> Any:
    """Return a client; nothing is sent. What is not given comes from the usual environment, profiles and roles.

    Raises:
        KnowledgeDependencyError: boto3 is not installed.
        AKConfigError: The endpoint, the region or the profile is not valid.
    """
    try:
        from boto3 import session as sessions
        from botocore.config import Config
    except ImportError as error:
        raise KnowledgeDependencyError("aws", "S3DocumentStore") from error

    def client(style: str | None) -> Any:
        config = Config(
            connect_timeout=connect_timeout_s,
            read_timeout=read_timeout_s,
            retries={"mode": "standard", "total_max_attempts": max_attempts},
            max_pool_connections=connections,
            s3={"addressing_style": style} if style else None,
        )
        session: Any = cast("Any", sessions).Session(region_name=region)
        return session.client("s3", endpoint_url=endpoint_url, config=config)

    try:
        made = client(addressing_style)
        # Bucket names are subdomains at AWS; other servers seldom have names for them.
        return made if addressing_style or is_aws(made) else client("path")
    except Exception as error:
        message = f"No S3 client can be made of the endpoint, region and profile given: {type(error).__name__}."
        raise AKConfigError(message) from error


def is_aws(client: Any) -> bool:
    """Tell whether a client talks to AWS itself, and not to another server with its protocol."""
    host = urlsplit(str(client.meta.endpoint_url)).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn"))


def code_of(error: BaseException | None) -> str:
    """Return the protocol's code of an error, `""` for one that the server did not send."""
    return str(_response(error).get("Error", {}).get("Code", ""))


def attempts_of(error: BaseException | None) -> int:
    """Return how often the SDK had tried again before this error."""
    return int(_response(error).get("ResponseMetadata", {}).get("RetryAttempts", 0))


def _response(error: BaseException | None) -> dict[str, Any]:
    response: object = getattr(error, "response", None)
    return cast("dict[str, Any]", response) if isinstance(response, dict) else {}


def failure(error: Exception, bucket: str, path: str, server: str) -> Exception:
    """Return the error of ours that an SDK's error means. Its text is not repeated: it may hold a key or a whole URL.

    Args:
        error: What was raised.
        bucket: Name of the bucket.
        path: The document, `""` for a listing.
        server: Host and port, for what did not answer.
    """
    code = code_of(error)
    if code:
        return _refusal(code, bucket, path)
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & _NO_LOGIN:
        return KnowledgeConnectionError(f"No usable credentials for the bucket '{bucket}'.", state="unauthorized")
    if "SSLError" in kinds:
        return KnowledgeConnectionError(f"The certificate of the S3 server {server} does not hold.", state="untrusted")
    if "ReadTimeoutError" in kinds:
        return KnowledgeTimeoutError(f"The S3 server {server} did not answer in time.")
    if kinds & {"HTTPClientError", "ConnectionError", "IncompleteReadError", "ResponseStreamingError"}:
        return KnowledgeConnectionError(f"The S3 server {server} cannot be reached.")
    return KnowledgeBackendError(f"The S3 server {server} could not be used: {type(error).__name__}.")


def _refusal(code: str, bucket: str, path: str) -> Exception:
    what = f"the document {shown(path)} of the bucket '{bucket}'" if path else f"the bucket '{bucket}'"
    if code == "NoSuchBucket":
        return KnowledgeConnectionError(f"There is no bucket '{bucket}'.", state="missing")
    if path and code in _MISSING:
        return FileNotFoundError(2, "No such document", path)
    if path and code in _CHANGED:
        return DocumentChangedError(path)
    if code in _DENIED:
        return KnowledgeConnectionError(f"The S3 server denies this application {what} ({code}).", state="unauthorized")
    if code in _BUSY:
        return KnowledgeConnectionError(f"The S3 server is too busy for {what} ({code}).")
    if code in _ELSEWHERE:
        return KnowledgeBackendError(f"The S3 server refuses {what} ({code}); it may be in another region.")
    return KnowledgeBackendError(f"The S3 server refuses {what} ({code}).")
