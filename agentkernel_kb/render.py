"""Text for a model out of whatever a store returned: one encoder for every value, one line format, one table format.

Retrieved text is data. Nothing in it can start a line that reads as another record, as a row or as a note of the router.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, time
from itertools import islice
from typing import Any, cast

NOTHING_FOUND = "No relevant knowledge found."
"""What an empty result is rendered as."""

LONG_NUMBERS = 32
"""A list of at least this many numbers is taken for a vector and shown by its length."""

MAX_DEPTH = 24
MAX_ITEMS = 50_000
_MAX_TEXT_ITEMS = 5_000
MAX_ID_CHARS = 1_024
MAX_CELL_CHARS = 4_000
_MAX_SOURCE_CHARS = 500
_MAX_ID_BITS = 256
_MAX_OBJECT_CHARS = 1_000
_MAX_HEX_BYTES = 32
_NUMBERS_CHECKED = 1_000
_JSON_INTEGER = 2**63

# Control characters but tab and the line breaks; they can move a terminal's cursor over another line.
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_LINE_BREAKS = re.compile("\r\n|[\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
# They show what follows in another order, so that one name can look like another: https://unicode.org/reports/tr9/ (2.1-2.6).
DIRECTIONS = r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
"""A pattern, for Python and for JSON Schema alike."""

_DIRECTIONS = re.compile(DIRECTIONS)
_CONTINUATION = "\n  | "


def clean(text: str) -> str:
    r"""Return `text` without control characters and lone surrogates; every line break becomes `\n`."""
    return _LINE_BREAKS.sub("\n", _SURROGATES.sub("\ufffd", _CONTROL.sub("", text)))


def one_line(text: str) -> str:
    """Return `text` cleaned, on one line."""
    return clean(text).replace("\n", " ")


def is_name(text: str) -> bool:
    """Tell whether a text can name something: one line without outer blanks, and nothing that shows it as another one."""
    return bool(text) and text == text.strip() and one_line(text) == text and not _DIRECTIONS.search(text)


def name_shown(text: str) -> str:
    r"""Return a text on one line that reads as it stands: what would turn its characters round is shown as `\u202e`."""
    return _DIRECTIONS.sub(lambda found: f"\\u{ord(found[0]):04x}", one_line(text))


def to_text(value: object) -> str:
    """Return any value as text: what is encoded as a string is shown as it is, cleaned; anything else as JSON.

    At most 5,000 items of it.
    """
    encoded = value if isinstance(value, str) else _Encoder(_MAX_TEXT_ITEMS).encode(value, 0)
    return clean(encoded if isinstance(encoded, str) else json.dumps(encoded, ensure_ascii=False))


def encode(value: object) -> Any:
    """Return `value` as something that `json.dumps` takes, whatever it is; never raises.

    Dates and times become ISO 8601, decimals and identifiers their text, bytes hexadecimal or their length, NaN and the
    infinities words, long lists of numbers their length, cycles and excess a word in angle brackets. At most 50,000 items and
    24 levels.
    """
    return _Encoder(MAX_ITEMS).encode(value, 0)


class _Encoder:
    def __init__(self, items: int) -> None:
        self._items_left = items
        self._open: set[int] = set()

    def encode(self, value: object, depth: int) -> Any:
        try:
            return self._encode(value, depth)
        except Exception:  # noqa: BLE001 - a driver's type may raise anything from its own methods; the encoder is total
            return _type_word(value)

    def _encode(self, value: object, depth: int) -> Any:
        self._items_left -= 1
        if self._items_left < 0:
            return "<too many items>"
        for types, encoder in _SCALARS:
            if isinstance(value, types):
                return encoder(value)
        if depth >= MAX_DEPTH:
            return "<nested too deeply>"
        if id(value) in self._open:
            return "<cycle>"
        self._open.add(id(value))
        try:
            return self._encode_container(value, depth + 1)
        finally:
            self._open.discard(id(value))

    def _encode_container(self, value: object, depth: int) -> Any:
        if isinstance(value, Mapping):
            return self._encode_mapping(cast("Mapping[object, object]", value), depth)
        if isinstance(value, AbstractSet):
            kept = islice(cast("AbstractSet[object]", value), max(0, self._items_left) + 1)
            return sorted((self.encode(item, depth) for item in kept), key=_order)
        if isinstance(value, Sequence):
            return self._encode_sequence(cast("Sequence[object]", value), depth)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [f.name for f in dataclasses.fields(value)]
            return self._encode_mapping({name: getattr(value, name, None) for name in names}, depth)
        if callable(to_list := getattr(value, "tolist", None)):  # numpy arrays and scalars
            size = getattr(value, "size", 0)
            return _numbers(size) if isinstance(size, int) and size >= LONG_NUMBERS else self.encode(to_list(), depth)
        for method in ("iso_format", "isoformat"):  # neo4j's and other libraries' temporal types
            if callable(to_iso := getattr(value, method, None)):
                return _string(str(to_iso()))
        return _object(value)

    def _encode_mapping(self, mapping: Mapping[object, object], depth: int) -> dict[str, Any]:
        encoded: dict[str, Any] = {}
        for key, item in mapping.items():
            if self._items_left <= 0:
                encoded["…"] = "<too many items>"
                break
            name = _key(self.encode(key, depth))
            while name in encoded:
                name = f"{name} ({len(encoded)})"
            encoded[name] = self.encode(item, depth)
        return encoded

    def _encode_sequence(self, sequence: Sequence[object], depth: int) -> Any:
        if len(sequence) >= LONG_NUMBERS and all(_is_number(item) for item in islice(sequence, _NUMBERS_CHECKED)):
            return _numbers(len(sequence))
        encoded: list[Any] = []
        for item in sequence:
            if self._items_left <= 0:
                encoded.append("<too many items>")
                break
            encoded.append(self.encode(item, depth))
        return encoded


def _string(value: str) -> str:
    return clean(value) if _CONTROL.search(value) or _SURROGATES.search(value) else str(value)


def _integer(value: int) -> int | str:
    if -_JSON_INTEGER <= value < _JSON_INTEGER:
        return int(value)
    bits = value.bit_length()
    return str(int(value)) if bits < 4_000 else f"<integer of {bits} bits>"


def _float(value: float) -> float | str:
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _bytes(value: bytes | bytearray | memoryview) -> str:
    raw = bytes(value[: _MAX_HEX_BYTES + 1])
    return f"0x{raw.hex()}" if len(raw) <= _MAX_HEX_BYTES else f"<{len(value)} bytes>"


def _object(value: object) -> str:
    kind = type(value)
    if isinstance(value, type | BaseException) or callable(value):
        return _type_word(value)
    if kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__:
        return _type_word(value)  # The default representation is only an address.
    return _string(str(value)[:_MAX_OBJECT_CHARS])


# The first entry that fits is used, so the narrower type stands first (a bool is an int, an enum may be a string).
_SCALARS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (type(None), lambda _: None),
    (bool, bool),
    (enum.Enum, lambda member: encode(member.value)),
    (str, _string),
    (int, _integer),
    (float, _float),
    ((date, time), lambda moment: _string(moment.isoformat())),
    ((bytes, bytearray, memoryview), _bytes),
)


def _is_number(item: object) -> bool:
    return isinstance(item, int | float) and not isinstance(item, bool)


def _numbers(count: int) -> str:
    return f"[{count} numbers]"


def _type_word(value: object) -> str:
    name: str = type.__dict__["__name__"].__get__(type(value))  # Not by way of a metaclass, which may refuse it.
    return f"<{one_line(name)}>"


def _key(encoded: object) -> str:
    return encoded if isinstance(encoded, str) else json.dumps(encoded, ensure_ascii=False)


def _order(encoded: object) -> str:
    return json.dumps(encoded, ensure_ascii=False, sort_keys=True)


def usable_id(metadata: Mapping[str, Any]) -> str | None:
    """Return the record's id if `fetch` could be asked for it.

    That is one line of text without a comma and without outer blanks, whose brackets are in pairs: it is shown in brackets
    itself.
    """
    value: object = metadata.get("id")
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < _MAX_ID_BITS:
        value = str(value)
    if not isinstance(value, str) or not value or "," in value or value != value.strip() or len(value) > MAX_ID_CHARS:
        return None
    return value if one_line(value) == value and _brackets_pair(value) else None


def _brackets_pair(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if depth < 0:
            return False
    return depth == 0


def metadata_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record's metadata, empty where it has none."""
    metadata: object = record.get("metadata")
    return cast("Mapping[str, Any]", metadata) if isinstance(metadata, Mapping) else {}


def record_line(record: Mapping[str, Any], *, with_id: bool) -> str:
    """Return one record as `- [id] text (source: S)`; the further lines of its text are indented behind a bar.

    Args:
        record: The record; a missing text is empty, a missing source is `N/A`.
        with_id: Show the id, for a backend that can fetch by it. Text that would itself read as an id is escaped then.
    """
    metadata = metadata_of(record)
    value: object = record.get("text")
    text = ("" if value is None else to_text(value)).strip("\n").replace("\n", _CONTINUATION)
    identity = usable_id(metadata) if with_id else None
    if identity is not None:
        text = f"[{identity}] {text}"
    elif with_id and text.lstrip().startswith("["):
        text = "\\" + text.lstrip()
    source: object = metadata.get("source")
    shown = "" if source is None else one_line(to_text(source)[:_MAX_SOURCE_CHARS]).strip()
    return f"- {text} (source: {shown or 'N/A'})"


def table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as a compact Markdown table whose columns are the keys, in the order of their first appearance.

    A cell stands on one line with its bars escaped; SQL's NULL is `NULL`; a cell of over 4,000 characters is cut and says so.
    """
    listed = list(rows)
    columns = list(dict.fromkeys(key for row in listed for key in row))
    lines = [[_cell(column) for column in columns], ["---"] * len(columns)]
    lines += [[_cell(row.get(column)) for column in columns] for row in listed]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell_text(value: object) -> str:
    """Return one value of a row as text on one line: NULL for none, a vector by its length, at most 4,000 characters of it."""
    if value is None:
        return "NULL"
    text = _without_vector(value) if isinstance(value, str) else to_text(value)
    more = f"… ({len(text):,} characters)" if len(text) > MAX_CELL_CHARS else ""
    return one_line(text[:MAX_CELL_CHARS]) + more


def _cell(value: object) -> str:
    return cell_text(value).replace("|", "\\|")


def _without_vector(text: str) -> str:
    """Return the length of a vector that a driver handed over as text, and any other text as it is."""
    if text[:1] == "[" and text[-1:] == "]" and text.count(",") >= LONG_NUMBERS - 1:
        numbers = text[1:-1].split(",")
        if all(_reads_as_number(number) for number in numbers[:LONG_NUMBERS]):
            return _numbers(len(numbers))
    return text


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
