"""Takes credentials out of text, and tells whether there are any."""

from __future__ import annotations

import re

_VALUE = r"""(?:"[^"]*"|'[^']*'|[^\s,;&)}\]]+)"""
_IS = r"""["']?\s*(?:=>|[=:])\s*"""

# In each, the named group is what comes before the secret.
_CREDENTIALS = re.compile(
    rf"""
      (?P<user>[\w.%+~-]{{0,256}}):[^\s/:@'"]+(?=@)                                            # user:password@
    | (?P<password>\b[\w-]*(?:password|passwd|pwd|secret|(?:api|access|account)[_-]?key){_IS}){_VALUE}
    | (?P<token>\b[\w-]*token["']?\s*=>?\s*){_VALUE}                                          # token=…
    | (?P<colon>\b[\w-]*token["']?\s*:\s*["']?)(?=[^\s"']*\d)[\w.~+/=-]{{8,}}                # token: a1b2…, not token: SELECT
    | (?P<header>\bauthorization{_IS}["']?(?:\w+\s+)?)[^\s"',;]+                               # Authorization: Basic …
    | (?P<bearer>\bbearer\s+)[\w.~+/=-]{{8,}}
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
    if match["user"] is not None:
        return "***:***"
    return f"{match[match.lastgroup or 0]}***"
