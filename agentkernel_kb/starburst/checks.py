"""What the arguments of a session can be: text that HTTP headers carry, and files that are there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

from agentkernel_kb.headers import is_header_name


def fault_of_login(user: object, password: object) -> str:
    """Return what is wrong with a user or a password that was given, `""` for nothing; a password is not told."""
    if user is not None and (not isinstance(user, str) or not user.isascii() or not _is_carried(user)):
        return "takes a user of printable ASCII characters without outer blanks; HTTP headers carry no others."
    if password is not None and not isinstance(password, str):
        return "takes a password that is text."
    return ""


def fault_of_session(session: Mapping[str, Any]) -> str:
    """Return what is wrong with the first faulty argument of a session, `""` for nothing; nothing secret is told."""
    for name, (is_right, wanted) in _WANTED.items():
        if name in session and not is_right(session[name]):
            return wanted
    if session.get("db_schema") and not session.get("catalog"):
        return "has a schema without a catalog: pass catalog= as well."
    if session.get("timezone") is not None and not _is_zone(session["timezone"]):
        return f"does not know the time zone {session['timezone']!r}; names are like 'Europe/Zurich'."
    return ""


def _is_carried(text: object) -> bool:
    """Tell whether a header can carry a text as it is."""
    if not isinstance(text, str) or not text.isprintable() or text != text.strip():
        return False
    return all(ord(character) < 256 for character in text)


def _is_tag(text: object) -> bool:
    return isinstance(text, str) and text.isascii() and text.isprintable() and bool(text.strip()) and "," not in text


def _are_tags(tags: object) -> bool:
    listed = cast("Collection[object]", tags)
    return isinstance(tags, Collection) and not isinstance(tags, str | bytes) and all(map(_is_tag, listed))


def _are_headers(value: object) -> bool:
    return _is_mapping(value, _is_carried) and all(map(is_header_name, cast("Mapping[str, str]", value)))


def _are_properties(value: object) -> bool:
    return _is_mapping(value, lambda each: isinstance(each, str | int | float))


def _are_roles(value: object) -> bool:
    return value is None or _is_text(value) or _is_mapping(value, _is_text)


def _are_credentials(value: object) -> bool:
    pairs = cast("Iterable[object]", value) if isinstance(value, list | tuple) else [None]
    return all(isinstance(pair, list | tuple) and _is_pair(cast("list[object]", pair)) for pair in pairs)


def _is_pair(pair: Iterable[object]) -> bool:
    match [*pair]:
        case [str(name), str()]:
            return bool(name) and _is_carried(name)
        case _:
            return False


def _is_mapping(value: object, is_right: Callable[[object], bool]) -> bool:
    if not isinstance(value, Mapping):
        return False
    items = cast("Mapping[object, object]", value).items()
    return all(bool(name) and _is_carried(name) and is_right(each) for name, each in items)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_trust(verify: object) -> bool:
    # An empty text would switch the check of certificates off.
    return isinstance(verify, bool) or (isinstance(verify, str) and bool(verify.strip()) and _is_there(verify))


def _is_there(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError:  # No name of a file, or in a folder that one may not look into.
        return False


def _is_zone(name: object) -> bool:
    try:
        ZoneInfo(cast("str", name))
    except (KeyError, ValueError, TypeError, OSError):
        return False
    return True


_HEADER = "that an HTTP header can carry: printable Latin characters without outer blanks."
_WANTED: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "catalog": (_is_carried, f"takes a catalog {_HEADER}"),
    "db_schema": (_is_carried, f"takes a schema {_HEADER}"),
    "source": (_is_carried, f"takes a source {_HEADER}"),
    "verify": (_is_trust, "takes verify=True, False, or the path of a file or folder of certificates that is there."),
    "client_tags": (_are_tags, "takes client_tags as a list of tags of printable ASCII characters without commas."),
    "roles": (_are_roles, "takes roles as one name, or a mapping of catalogs to names."),
    "session_properties": (_are_properties, "takes session_properties as a mapping of names to texts."),
    "extra_credential": (_are_credentials, "takes extra_credential as a list of pairs of texts."),
    "http_headers": (_are_headers, f"takes http_headers as a mapping of names to texts {_HEADER}"),
}
