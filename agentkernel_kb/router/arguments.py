"""Arguments as models send them: numbers as text, lists in brackets, objects as JSON and the reverse."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, cast

from agentkernel_kb.render import encode, one_line, to_text
from agentkernel_kb.router.failures import Refusal

MAX_ARGUMENT_CHARS = 100_000
MAX_WRITTEN_CHARS = 1_000_000
_MAX_SHOWN = 100
_MAX_ID_NESTING = 8
_QUOTES = "\"'`"


def shown(value: object) -> str:
    """Return a short one-line form of what a model sent, for a message."""
    text = one_line(to_text(value))
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def as_name(value: object) -> str:
    """Understand the name of a backend: blanks and quotes around it don't count."""
    if isinstance(value, list | tuple) and len(cast("list[object]", value)) == 1:
        value = cast("list[object]", value)[0]
    return unquoted(value) if isinstance(value, str) else shown(cast("object", value))


def as_text(value: object, name: str, most: int = MAX_ARGUMENT_CHARS) -> str:
    """Understand a text argument; null is empty, an object becomes JSON.

    Raises:
        Refusal: It is not text that can be encoded, or has more than `most` characters.
    """
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(encode(value), ensure_ascii=False)
    if len(text) > most:
        raise Refusal("bad_argument", f"{name} has {len(text):,} characters, more than {most:,}. Shorten it.")
    if "\x00" in text:
        raise Refusal("bad_argument", f"{name} holds a NUL character. Send plain text.")
    return text.encode("utf-8", "replace").decode("utf-8")  # Half a surrogate pair is no text that a store could hold.


def as_required_text(value: object, name: str, what: str) -> str:
    """Understand a text argument that must not be blank.

    Raises:
        Refusal: It is blank; the sentence says `what` it should be.
    """
    text = as_text(value, name)
    if not text.strip():
        raise Refusal("bad_argument", f"{name} is empty. It must be {what}.")
    return text


def as_limit(value: object, default: int, most: int) -> int:
    """Understand a number of records: `"5"` is 5, 2.5 is 2, null and what is below 1 is the default, at most `most`.

    Raises:
        Refusal: It is no number.
    """
    number = _as_number(value, default)
    if number is None:
        found = f"'{shown(value)}'" if isinstance(value, str) else shown(value)
        raise Refusal("bad_argument", f"limit must be a whole number from 1 to {most}, not {found}.")
    return min(default if number < 1 else number, most)


def _as_number(value: object, default: int) -> int | None:
    if value is None or value == "":
        return default
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        try:
            value = float(value.strip(_QUOTES + " \t\n"))
        except ValueError:
            return None
    if isinstance(value, float):
        if math.isnan(value):
            return default
        return int(value) if math.isfinite(value) else (2**63 if value > 0 else 0)
    return None


def as_ids(value: object, most: int) -> list[str]:
    """Understand ids: one, several separated by commas, a list, JSON, in brackets or quotes; doubles count once.

    Raises:
        Refusal: There is none, or there are more than `most`.
    """
    ids = list(dict.fromkeys(_each_id(value, 0)))
    if not ids:
        raise Refusal(
            "bad_argument", "ids is empty. It must be one id, or several separated by commas, as shown in [brackets]."
        )
    if len(ids) > most:
        raise Refusal("bad_argument", f"{len(ids)} ids are more than the {most} that one call can fetch. Ask for fewer.")
    return ids


def _each_id(value: object, depth: int) -> Iterable[str]:
    if depth > _MAX_ID_NESTING:
        raise Refusal("bad_argument", "ids is nested too deeply. Send one id, or several separated by commas.")
    if isinstance(value, Mapping):
        value = cast("Mapping[object, object]", value).get("id")
    if value is None or isinstance(value, bool):
        return []
    if isinstance(value, int | float):
        return [to_text(value)]
    if isinstance(value, str):
        listed = _json_list(value)
        return _split_ids(value) if listed is None else _each_id(listed, depth + 1)
    if isinstance(value, Iterable):
        return [identity for item in cast("Iterable[object]", value) for identity in _each_id(item, depth + 1)]
    return []


def _json_list(text: str) -> list[object] | None:
    if text.lstrip()[:1] != "[" or len(text) > MAX_ARGUMENT_CHARS:
        return None
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("list[object]", value) if isinstance(value, list) else None


def _split_ids(text: str) -> list[str]:
    text = as_text(text, "ids").strip()
    if text.startswith("[") and text.endswith("]") and not set("[]") & set(text[1:-1]):
        text = text[1:-1]
    return [identity for part in text.split(",") if (identity := unquoted(_unbracketed(unquoted(part))))]


def _unbracketed(part: str) -> str:
    return part[1:-1] if part.startswith("[") and part.endswith("]") else part


def unquoted(text: str) -> str:
    """Return `text` without the blanks and the pair of quotes around it."""
    text = text.strip()
    while len(text) > 1 and text[0] in _QUOTES and text[-1] == text[0]:
        text = text[1:-1].strip()
    return text


def as_params(value: object) -> dict[str, Any]:
    """Understand the parameters of a write: an object, or one as JSON, even if that is encoded twice; blank is none.

    Raises:
        Refusal: It is no JSON object.
    """
    for _ in range(2):
        if isinstance(value, str) and value.strip():
            value = _parsed(value)
    if value is None or (isinstance(value, str) and not value.strip()):
        return {}
    if not isinstance(value, Mapping):
        raise Refusal("bad_argument", 'params_json must be a JSON object such as {"name": "Acme"}.')
    return {str(key): item for key, item in cast("Mapping[object, object]", value).items()}


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        at = f" (position {error.pos})" if isinstance(error, json.JSONDecodeError) else ""
        raise Refusal(
            "bad_argument", f'params_json is not valid JSON{at}. Send an object such as {{"name": "Acme"}}.'
        ) from error
