"""The mapping from a database's column types to Spark types, and how each value is sent.

Values that driver and Spark pass on exactly are sent as they are; all others are sent as text, and parsed
or refused one by one (docs/reference/databases.md, Types). Belongs here: the decision. Does not belong
here: the SQL of a form (``resources.dialects``), and parsing it (``resources.sources.jdbc.values``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from partitions.errors import SourceError

Form = Literal["plain", "text", "number", "microseconds", "double", "whole", "flag"]
"""How the database sends a column.

``plain``: as it is; ``text``: as the database writes it; ``number``: a decimal as it is, any other value as text; ``microseconds``: an instant in
microseconds since the epoch; ``double`` and ``whole``: a number with or without a fraction; ``flag``: a single bit."""

REFUSAL_PREFIX = "strandline-value"
"""The start of the note of a refused value. The column, what was expected, the value and the row follow: each in hexadecimal, before a colon."""

MAX_SHOWN_LETTERS = 200
"""The most letters of a value that an error shows."""

EXPECTED_UNIT_VALUE = "the value of a unit as the definition spells it"
"""What a unit column must hold, in words."""

MAX_DECIMAL_DIGITS = 38
"""The precision of Spark's longest decimal."""

_DEFAULT_SCALE = 18
"""The scale of a number whose type declares none."""


@dataclass(frozen=True)
class ColumnType:
    """The Spark type of a database column, and how its values are sent.

    Attributes:
        data_type: in Spark's JSON form of a schema; for an array the type of its elements.
        form: how the database sends the values. Elements of arrays are always texts.
        dimensions: the dimensions of an array; 0 for any other column.
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
        """The type of the whole column in Spark's JSON form of a schema."""
        nested: Any = self.data_type
        for _ in range(self.dimensions):
            nested = {"type": "array", "elementType": nested, "containsNull": True}
        return nested

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        expected_values = {
            "date": "a date of the years 1 to 9999",
            "timestamp": "a time of the years 1 to 9999",
            "timestamp_ntz": "a time of the years 1 to 9999",
        }
        value = expected_values.get(self.data_type, f"a value that {self.data_type} holds exactly")
        if not self.dimensions:
            return value
        dimension_count = f"{self.dimensions} dimension{'s' if self.dimensions > 1 else ''}"
        element_words = "" if self.data_type == "string" else f", each element {value}"
        return f"an array of {dimension_count}{element_words}"

    def note(self, column: str, expected: str | None = None) -> str:
        """Return the start of the note of a refused value; hexadecimal value and row follow.

        Args:
            column: the column's name.
            expected: what the value must be, in words; None: what the type holds.
        """
        expected_values = self.expected if expected is None else expected
        return "".join(
            f"{part}:" for part in (REFUSAL_PREFIX, column.encode().hex(), expected_values.encode().hex())
        )

    def as_array(self, dimensions: int) -> ColumnType:
        """Return the type of an array with elements of this type."""
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
    "inet": ColumnType("string"),  # a cast to text would add the mask
    "bytea": ColumnType("binary"),
    "oid": ColumnType("decimal(20,0)", "text"),
    "date": ColumnType("date", "text"),
    "timestamp": ColumnType("timestamp_ntz", "text"),
    "timestamptz": ColumnType("timestamp", "microseconds"),
    "time": _TIME,
}
"""By the name in ``pg_type``. All other types have an unambiguous text."""


def postgresql_type(name: str, precision: int | None = None, scale: int | None = None) -> ColumnType:
    """Return the type of a PostgreSQL column that is no array.

    Args:
        name: the type in ``pg_type``; for a domain its base type.
        precision: the precision of ``numeric``; the length of ``bit``; None if the type does not declare it.
        scale: the scale of ``numeric``.
    """
    if name == "numeric":
        column_type = decimal_type(precision, scale or 0)
        is_decimal = precision is not None and 0 <= (scale or 0) <= precision <= MAX_DECIMAL_DIGITS
        return replace(column_type, form="number") if is_decimal else column_type
    if name == "bit" and precision == 1:
        return ColumnType("boolean", "flag")
    return _POSTGRESQL.get(name, _TEXT)


def decimal_type(precision: int | None, scale: int) -> ColumnType:
    """Return the type of a decimal: it keeps its scale, and refuses values with too many digits.

    Args:
        precision: all digits; None: any number of digits before and after the point.
        scale: digits after the point; below 0: the number of zeros before it.
    """
    if precision is None:
        return ColumnType(f"decimal({MAX_DECIMAL_DIGITS},{_DEFAULT_SCALE})", "text", fixed_scale=False)
    digits, scale_digits = max(precision - min(scale, 0), scale), max(scale, 0)
    data_type = f"decimal({min(digits, MAX_DECIMAL_DIGITS)},{min(scale_digits, MAX_DECIMAL_DIGITS)})"
    return ColumnType(data_type, "text", fixed_scale=scale_digits <= MAX_DECIMAL_DIGITS)


_WHOLE: Mapping[str, tuple[str, str]] = {
    "tiny": ("byte", "short"),
    "short": ("short", "integer"),
    "int24": ("integer", "integer"),
    "long": ("integer", "long"),
    "longlong": ("long", "decimal(20,0)"),
}
"""The signed and the unsigned type."""

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
    """Return the type of a column of MariaDB or MySQL.

    Args:
        name: the type in the protocol, in lower case.
        length: the most letters of a displayed value; the bits of ``bit``.
        scale: the scale of ``newdecimal``.
        unsigned: whether it has no sign.
        binary: whether its texts are bytes.
    """
    if name in _WHOLE:
        # The driver turns a tinyint(1) into a boolean, unless the number was computed.
        return ColumnType(_WHOLE[name][unsigned], "whole" if name == "tiny" and length == 1 else "plain")
    if name == "bit":
        return (
            ColumnType("boolean")
            if length == 1
            else ColumnType("decimal(20,0)" if length > 63 else "long", "whole")
        )
    if name == "float":
        return ColumnType("double" if unsigned else "float", "double")  # as text it would have six digits
    if name == "newdecimal":
        precision = length - (scale > 0) - (not unsigned)
        column_type = decimal_type(precision, scale)
        return column_type if precision > MAX_DECIMAL_DIGITS else replace(column_type, form="plain")
    if name in _BINARY_TEXTS and binary:
        return ColumnType("binary") if length else _MARIADB["null"]  # length 0: the NULL of a subquery
    return _MARIADB.get(name, _TEXT)


class DescribedColumn(Protocol):
    """A column as a database describes it."""

    @property
    def name(self) -> str:
        """The name in the query."""
        ...

    @property
    def type(self) -> ColumnType:
        """The Spark type and how values are sent."""
        ...


def readable_types(columns: Sequence[DescribedColumn], label: str) -> Mapping[str, ColumnType]:
    """Return the type of each column, by its name.

    Args:
        columns: the columns of a table or query, in their order.
        label: the table or query, for the error.

    Raises:
        SourceError: code ``unreadable_column``: no run can read some columns; the error names each with
        its remedy.
    """
    counts = Counter(column.name.casefold() for column in columns)
    problems = [f"{column.name} {column.type.problem}" for column in columns if column.type.problem]
    problems += [
        f"the name {column.name} occurs {counts[column.name.casefold()]} times, ignoring case. Rename each by "
        "AS"
        for column in {column.name.casefold(): column for column in columns}.values()
        if counts[column.name.casefold()] > 1
    ]
    if problems:
        raise SourceError(
            f"{label}: expected columns that a run can read, found: {'; '.join(problems)}, in a query",
            code="unreadable_column",
        )
    return {column.name: column.type for column in columns}
