"""Takes credentials out of text, and tells whether there are any."""

from __future__ import annotations

import re

_CREDENTIALS = re.compile(
    r"""
      (?P<url>[\w.%+~-]{0,256}:[^\s/:@'"]+@)                                   # user:password@
    | (?P<key>\b(?:[\w-]*(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|account[_-]?key)))
      (?P<is>["']?\s*(?:=>|[=:])\s*)(?P<value>"[^"]*"|'[^']*'|[^\s,;&)}]+)  # password=…, api_key: …
    | (?P<scheme>\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}                     # Authorization: Bearer …
    """,
    re.VERBOSE | re.IGNORECASE,
)


def holds_credentials(text: str) -> bool:
    """Tell whether `text` has the shape of `user:password@`, `password=…`, `token: …` or `Bearer …`."""
    return _CREDENTIALS.search(text) is not None


def redact(text: str) -> str:
    """Return `text` with the credentials that it shows replaced by `***`."""
    return _CREDENTIALS.sub(_masked, text)


def _masked(match: re.Match[str]) -> str:
    if match["url"]:
        return "***@"
    if match["scheme"]:
        return f"{match['scheme']}***"
    return f"{match['key']}{match['is']}***"
