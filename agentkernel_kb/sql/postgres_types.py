"""Values of PostgreSQL as a model can use them: what Python has no exact value for stays as PostgreSQL writes it.

The driver's own loaders raise on dates before the year 1, after 9999 and on `infinity`, take a month for thirty days, and parse
documents into values that no longer are what is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.abc import AdaptContext, Buffer, Loader

_FIRST_OF_USERS = 16_384  # Numbers of types below this one are the same in every database.
_KNOWN_OR_TEXT = ("date", "time", "timetz", "timestamp", "timestamptz")
_TEXT = """
bpchar cidr daterange datemultirange inet int4multirange int4range int8multirange int8range interval json jsonb name
nummultirange numrange record text tsmultirange tsrange tstzmultirange tstzrange varchar
""".split()  # noqa: SIM905 - a list of words reads better than a word a line
_VECTORS = frozenset(["halfvec", "vector"])

_USERS_TYPES = """
SELECT t.oid::int8, t.typname, CASE WHEN t.typcategory = 'A' THEN t.typelem::int8 ELSE 0 END, t.typdelim, e.typname
FROM pg_catalog.pg_type AS t LEFT JOIN pg_catalog.pg_type AS e ON e.oid = t.typelem AND t.typcategory = 'A'
WHERE t.oid = ANY (%s::oid[])
"""


def teach(connection: Connection[Any]) -> None:
    """Let a connection return values as this module says."""
    from psycopg.adapt import Loader
    from psycopg.pq import Format

    class Text(Loader):
        """Text; what is not UTF-8, which a database without an encoding may hold, has replacement characters."""

        def load(self, data: Buffer) -> str:
            return bytes(data).decode("utf-8", "replace")

    adapters = connection.adapters
    adapters.register_loader(0, Text)
    for name in _TEXT:
        adapters.register_loader(name, Text)
    for name in _KNOWN_OR_TEXT:
        known = adapters.get_loader(adapters.types[name].oid, Format.TEXT)
        if known is not None:
            adapters.register_loader(name, _known_or_text(known, Text))


def _known_or_text(known: type[Loader], text: type[Loader]) -> type[Loader]:
    """Return a loader that gives the text where the driver's own has no value."""
    from psycopg.adapt import Loader as Base

    class KnownOrText(Base):
        def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
            super().__init__(oid, context)
            self._known, self._text = known(oid, context), text(oid, context)

        def load(self, data: Buffer) -> Any:
            try:
                return self._known.load(data)
            except Exception:  # noqa: BLE001 - a date that Python cannot hold has many ways to fail
                return self._text.load(data)

    return KnownOrText


def teach_types(connection: Connection[Any], numbers: Iterable[int], known: set[int]) -> None:
    """Let a connection return values of types that are not PostgreSQL's own: arrays as lists, vectors as lists of numbers.

    Args:
        connection: The connection.
        numbers: The types of a result.
        known: Those that the connection was taught; more are added.
    """
    unknown = {number for number in numbers if number >= _FIRST_OF_USERS} - known
    if not unknown:
        return
    known |= unknown
    for number, name, element, delimiter, element_name in connection.execute(_USERS_TYPES, [sorted(unknown)]).fetchall():
        if name in _VECTORS:
            _teach_vector(connection, number)
        elif element:
            if element_name in _VECTORS:
                _teach_vector(connection, element)
            _teach_array(connection, name, element, number, delimiter)


def _teach_array(connection: Connection[Any], name: str, element: int, number: int, delimiter: str) -> None:
    from psycopg.types import TypeInfo

    TypeInfo(name, element, number, delimiter=delimiter).register(connection)


def _teach_vector(connection: Connection[Any], number: int) -> None:
    from psycopg.adapt import Loader

    class Vector(Loader):
        """A vector of pgvector, as a list of numbers, which is shown by its length where it is long."""

        def load(self, data: Buffer) -> Sequence[float]:
            return [float(part) for part in bytes(data)[1:-1].split(b",")]

    connection.adapters.register_loader(number, Vector)


_FIXED = frozenset(
    """
    bool box char cid cidr circle date float4 float8 inet int2 int4 int8 interval line lseg macaddr macaddr8 money name oid
    pg_lsn point regclass regtype tid time timestamp timestamptz timetz uuid xid xid8
    """.split()  # noqa: SIM905 - a list of words reads better than a word a line
)
_MEASURED_AS_THEY_ARE = frozenset(["bpchar", "bytea", "text", "varchar"])


def measure(connection: Connection[Any], number: int, modifier: int) -> str | None:
    """Return what measures a value in bytes, `{}` standing for it; `None` where its type bounds it.

    Args:
        connection: The connection.
        number: The number of the type.
        modifier: The modifier of the type in this result, -1 for none.
    """
    kind = connection.adapters.types.get(number)
    name = "" if kind is None or kind.oid != number else kind.name.strip('"')
    if name in _FIXED or (name == "numeric" and modifier >= 0):
        return None
    return "octet_length({})" if name in _MEASURED_AS_THEY_ARE else "octet_length({}::text)"
