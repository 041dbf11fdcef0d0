"""What becomes of each type of a database's columns: the type that a column has in Spark, and the form in which the database is asked to send it.

Only what driver and Spark pass on exactly is sent as it is; all else is sent as text, and read from it or refused value by value (docs/reference/databases.md,
Types). Belongs here: the decision. Does not belong here: the SQL of a form (``resources.dialects``), and reading it (``resources.sources.jdbc.values``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from partitions.errors import SourceError

Form = Literal["plain", "text", "number", "microseconds", "double", "whole", "flag"]
"""How a column is sent: as it is; as the database writes it; a decimal as it is, unless it is none; an instant in microseconds since the epoch; a number
with or without a fraction; a single bit."""

NOTE = "strandline-value"
"""What begins the note of a value that is refused: behind it column, what was expected, value and row, each in hexadecimal before a colon."""

MOST_LETTERS = 200
"""Of a value that an error shows."""

OF_UNITS = "the value of a unit as the definition spells it"
"""What is expected of a column that tells the unit of a row."""

DIGITS = 38
"""Of Spark's longest decimal."""

_POINT_DIGITS = 18
"""Behind the point, of a number whose type does not say how many there are."""


@dataclass(frozen=True)
class ColumnType:
    """What becomes of a column.

    Attributes:
        data_type: in Spark's JSON of a schema; of an array the type of its elements.
        form: how the database sends it. Elements of arrays are texts.
        dimensions: of an array; 0: it is none.
        fixed_scale: whether the database keeps a decimal's digits after the point within ``data_type``.
        is_time_of_day: whether its text is a time without a date.
        problem: why no run can read it, in words; None if runs can.
    """

    data_type: str
    form: Form = "plain"
    dimensions: int = 0
    fixed_scale: bool = True
    is_time_of_day: bool = False
    problem: str | None = None

    @property
    def spark_type(self) -> Any:
        """The type of the whole column in Spark's JSON of a schema."""
        nested: Any = self.data_type
        for _ in range(self.dimensions):
            nested = {"type": "array", "elementType": nested, "containsNull": True}
        return nested

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        words = {
            "date": "a date of the years 1 to 9999",
            "timestamp": "a time of the years 1 to 9999",
            "timestamp_ntz": "a time of the years 1 to 9999",
        }
        value = words.get(self.data_type, f"a value that {self.data_type} holds exactly")
        if not self.dimensions:
            return value
        counted = f"{self.dimensions} dimension{'s' if self.dimensions > 1 else ''}"
        of = "" if self.data_type == "string" else f", each element {value}"
        return f"an array of {counted}{of}"

    def note(self, column: str, expected: str | None = None) -> str:
        """Return the begin of the note of a value of a column that is refused: the hexadecimal value and row follow, each with a colon.

        Args:
            column: its name.
            expected: instead of what the type holds, in words.
        """
        words = self.expected if expected is None else expected
        return "".join(f"{part}:" for part in (NOTE, column.encode().hex(), words.encode().hex()))

    def as_array(self, dimensions: int) -> ColumnType:
        """Return the type of an array of such elements."""
        return replace(self, dimensions=dimensions)


_TEXT = ColumnType("string", "text")
_TIME = ColumnType("string", "text", is_time_of_day=True)

_POSTGRESQL: Mapping[str, ColumnType] = {
    "bool": ColumnType("boolean"),
    "int2": ColumnType("short"),
    "int4": ColumnType("integer"),
    "int8": ColumnType("long"),
    "float4": ColumnType("float"),
    "float8": ColumnType("double"),
    "text": ColumnType("string"),
    "varchar": ColumnType("string"),
    "bpchar": ColumnType("string"),
    "name": ColumnType("string"),
    "inet": ColumnType("string"),  # a cast would add the mask that it leaves out
    "bytea": ColumnType("binary"),
    "oid": ColumnType("decimal(20,0)", "text"),
    "date": ColumnType("date", "text"),
    "timestamp": ColumnType("timestamp_ntz", "text"),
    "timestamptz": ColumnType("timestamp", "microseconds"),
    "time": _TIME,
}
"""By the name in ``pg_type``. All other types have a text that names exactly one value."""


def postgresql_type(name: str, precision: int | None = None, scale: int | None = None) -> ColumnType:
    """Return what becomes of a column of PostgreSQL that is no array.

    Args:
        name: of the type, as in ``pg_type``; a domain's is that of its base.
        precision: of ``numeric``; of ``bit`` its length; None if the type does not say it.
        scale: of ``numeric``.
    """
    if name == "numeric":
        decided = decimal_type(precision, scale or 0)
        is_decimal = precision is not None and 0 <= (scale or 0) <= precision <= DIGITS
        return replace(decided, form="number") if is_decimal else decided
    if name == "bit" and precision == 1:
        return ColumnType("boolean", "flag")
    return _POSTGRESQL.get(name, _TEXT)


def decimal_type(precision: int | None, scale: int) -> ColumnType:
    """Return what becomes of a decimal: its scale is kept, and a value whose digits do not fit is refused.

    Args:
        precision: digits in all; None: any number of digits before and behind the point.
        scale: digits after the point; below 0: so many zeros before it.
    """
    if precision is None:
        return ColumnType(f"decimal({DIGITS},{_POINT_DIGITS})", "text", fixed_scale=False)
    digits, behind = max(precision - min(scale, 0), scale), max(scale, 0)
    fits = f"decimal({min(digits, DIGITS)},{min(behind, DIGITS)})"
    return ColumnType(fits, "text", fixed_scale=behind <= DIGITS)


_WHOLE: Mapping[str, tuple[str, str]] = {
    "tiny": ("byte", "short"),
    "short": ("short", "integer"),
    "int24": ("integer", "integer"),
    "long": ("integer", "long"),
    "longlong": ("long", "decimal(20,0)"),
}
"""With a sign, and without."""

_MARIADB: Mapping[str, ColumnType] = {
    "double": ColumnType("double"),
    "year": ColumnType("integer", "whole"),
    "date": ColumnType("date", "text"),
    "newdate": ColumnType("date", "text"),
    "datetime": ColumnType("timestamp_ntz", "text"),
    "timestamp": ColumnType("timestamp", "text"),
    "time": _TIME,
    "geometry": ColumnType("binary"),
    "null": ColumnType(
        "string", problem="has no type: its values are all NULL. Cast it, such as CAST(NULL AS CHAR)"
    ),
}
_BINARY_TEXTS = frozenset(
    {"blob", "tiny_blob", "medium_blob", "long_blob", "var_string", "varchar", "string"}
)


def mariadb_type(name: str, length: int, scale: int, *, unsigned: bool, binary: bool) -> ColumnType:
    """Return what becomes of a column of MariaDB or MySQL.

    Args:
        name: of the type in the protocol, in small letters.
        length: letters that a value is shown in at most; of ``bit`` its bits.
        scale: of ``newdecimal``.
        unsigned: whether it has no sign.
        binary: whether its texts are bytes.
    """
    if name in _WHOLE:
        # The driver makes true or false of a tinyint(1), unless it is a number that was computed.
        return ColumnType(_WHOLE[name][unsigned], "whole" if name == "tiny" and length == 1 else "plain")
    if name == "bit":
        return (
            ColumnType("boolean")
            if length == 1
            else ColumnType("decimal(20,0)" if length > 63 else "long", "whole")
        )
    if name == "float":
        return ColumnType("double" if unsigned else "float", "double")  # its text has six digits
    if name == "newdecimal":
        precision = length - (scale > 0) - (not unsigned)
        decided = decimal_type(precision, scale)
        return decided if precision > DIGITS else replace(decided, form="plain")
    if name in _BINARY_TEXTS and binary:
        return ColumnType("binary") if length else _MARIADB["null"]  # as a NULL of a subquery is told
    return _MARIADB.get(name, _TEXT)


class Described(Protocol):
    """A column as a database describes it."""

    @property
    def name(self) -> str:
        """As the query names it."""
        ...

    @property
    def type(self) -> ColumnType:
        """What becomes of it."""
        ...


def readable_types(columns: Sequence[Described], shown: str) -> Mapping[str, ColumnType]:
    """Return what becomes of each column, by its name.

    Args:
        columns: of a table or query, in their order.
        shown: the table or query for people.

    Raises:
        SourceError: code ``unreadable_column``: no run can read one of them, each named with the remedy.
    """
    counts = Counter(column.name.casefold() for column in columns)
    problems = [f"{column.name} {column.type.problem}" for column in columns if column.type.problem]
    problems += [
        f"{column.name} is there {counts[column.name.casefold()]} times, upper and lower case alike. Give each a name of its own, by AS"
        for column in {column.name.casefold(): column for column in columns}.values()
        if counts[column.name.casefold()] > 1
    ]
    if problems:
        raise SourceError(
            f"{shown}: expected columns that a run can read, found: {'; '.join(problems)}, in a query",
            code="unreadable_column",
        )
    return {column.name: column.type for column in columns}
