"""Takes credentials out of text, and tells whether there are any."""

from __future__ import annotations

import re

_VALUE = r"""(?:\\"[^"\\]*\\"|"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"']+)"""
_IS = r"""\\?["']?\s*(?:=>|==?|:|%3[dD])\s*"""
_KEYS = (
    r"password|passwd|passphrase|passwort|pwd|pw|pass|secret|credentials?|cookie|signature|sig|auth"
    r"|(?:api|access|account|private|secret|shared)[_-]?(?:access[_-]?)?key(?:[_-]?id)?"
)

# In each, the named group is what comes before the secret. Repetitions are bounded, so that no text takes long to search.
_CREDENTIALS = re.compile(
    rf"""
      (?P<url>\b[\w+.-]{{1,40}}://)[^\s:/@]{{0,256}}:\S{{1,256}}(?=@)                              # scheme://user:password@
    | (?P<user>[\w.%+~-]{{0,256}}):[^\s/:@'"]{{1,256}}(?=@)                                       # user:password@
    | (?P<oracle>\b\w{{1,64}}/)[^\s/@]{{1,256}}(?=@)                                             # user/password@
    | (?P<password>(?<![a-zA-Z])[\w-]{{0,40}}(?<![a-zA-Z])(?:{_KEYS}){_IS}){_VALUE}
    | (?P<joined>\b\w{{1,40}}(?:password|passwd|secret|signature|accesskey|accountkey){_IS}){_VALUE}
    | (?P<option>--?(?:password|passwd|token|secret|api-?key)\s+){_VALUE}
    | (?P<token>\b[\w-]{{0,40}}tokens?["']?\s*=>?\s*){_VALUE}                                     # token=…
    | (?P<colon>\b[\w-]{{0,40}}token["']?\s*:\s*["']?)(?=[^\s"']{{0,256}}\d)[\w.~+/=-]{{16,}}  # token: a1b2…, not SELECT
    | (?P<header>\bauthorization{_IS}["']?(?:(?:basic|bearer|digest|token|apikey|negotiate)\s+)?)[^\s"',;]+
    | (?P<bearer>\bbearer[\s:]\s*)[\w.~+/=-]{{8,}}
    | (?P<sql>\bidentified\s+by\s+){_VALUE}
    | (?P<xml><(?:password|secret|token)>)[^<\s]+
    | (?P<prefix>\b(?:sk-|gh[pousr]_|xox[abp]-|AKIA))[\w-]{{6,}}                                  # keys that name their issuer
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
    kept = "" if match["user"] is not None else match[match.lastgroup or 0]
    return f"{kept}***"
