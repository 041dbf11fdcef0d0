"""Parse Spark's schema DDL without Spark, and refuse what Spark 4.1 refuses (tried case by case)."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from partitions.spelling import nearest_name
from partitions.unit_values import ValueType, round_half_up

RESERVED = ("_source_file", "_ingested_at", "_run_id", "_corrupt_record", "_rescued_data")
"""Columns that loading adds."""

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<name>`(?:[^`]|``)+`|[A-Za-z0-9_]+)
    |(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<mark>[<>(),:])""",
    re.VERBOSE | re.DOTALL,
)
_PLAIN = (
    "boolean",
    "tinyint",
    "byte",
    "smallint",
    "short",
    "int",
    "integer",
    "bigint",
    "long",
    "float",
    "real",
    "double",
    "date",
    "timestamp",
    "timestamp_ntz",
    "timestamp_ltz",
    "string",
    "binary",
    "decimal",
    "dec",
    "numeric",
    "time",
    "void",
    "variant",
    "interval",
    "char",
    "character",
    "varchar",
    "geometry",
    "geography",
    "array",
    "map",
    "struct",
)
_VALUE_TYPES: Mapping[str, ValueType] = {
    **dict.fromkeys(("timestamp", "timestamp_ltz"), "instant"),
    "timestamp_ntz": "local",
    "date": "day",
    **dict.fromkeys(("string", "char", "character", "varchar"), "text"),
    **dict.fromkeys(("tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long"), "whole"),
    **dict.fromkeys(("float", "real", "double", "decimal", "dec", "numeric"), "number"),
    "boolean": "flag",
}
_DECIMALS = ("decimal", "dec", "numeric")
_NEEDS_LENGTH = ("char", "character", "varchar", "geometry", "geography")
_TAKES_NUMBERS = {"decimal": 2, "dec": 2, "numeric": 2, "time": 1, **dict.fromkeys(_NEEDS_LENGTH, 1)}
_UNITS = ("year", "month", "day", "hour", "minute", "second")
_END = "the end"


class DdlError(ValueError):
    """A text that is no schema.

    Attributes:
        actual: the offending part, in words.
        expected: what was expected, in words.
        nearest: the name that the user may have meant.
    """

    def __init__(self, actual: str, expected: str, nearest: str | None = None) -> None:
        """Keep the parts for the error of a project file."""
        super().__init__(f"expected {expected}, found {actual}")
        self.actual, self.expected, self.nearest = actual, expected, nearest


@dataclass(frozen=True)
class Column:
    """A column at the top level.

    Attributes:
        type: name of the outermost type, in lower case.
        numbers: the type's numbers in parentheses, such as a decimal's precision and scale.
        is_required: whether each record must have a value (``NOT NULL``).
    """

    name: str
    type: str
    numbers: tuple[int, ...] = ()
    is_required: bool = False


def parse_ddl(text: str) -> list[Column]:
    """Parse columns written as ``name type [NOT NULL] [COMMENT 'text'], …``.

    Raises:
        DdlError: Spark refuses the text, a column occurs twice (case does not count), or a name is
        reserved.
    """
    columns = _Parser(text).columns()
    folded_names: set[str] = set()
    for column in columns:
        name = column.name.casefold()
        if name in folded_names:
            raise DdlError(
                f"the column {column.name} again", "each column once, upper and lower case being the same"
            )
        if name in RESERVED:
            raise DdlError(
                f"the column {column.name}", f"other names than {', '.join(RESERVED)}, which loading adds"
            )
        folded_names.add(name)
    return columns


def ddl_name(name: str) -> str:
    """Return a name as DDL writes it: in backquotes unless it is plain."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)
    return name if plain else f"`{name.replace('`', '``')}`"


def value_types(text: str) -> dict[str, ValueType]:
    """Return the columns whose values can be compared, each with the type of its values."""
    return {
        column.name: _VALUE_TYPES[column.type] for column in parse_ddl(text) if column.type in _VALUE_TYPES
    }


def round_as_column(value: Decimal, column: Column) -> Decimal:
    """Round a number as Spark rounds it when it is loaded, so that it compares as the loaded value does.

    Spark rounds to the scale of a decimal, halves away from zero, and to the nearest 32-bit number for a
    ``float``.
    """
    if column.type in _DECIMALS:
        scale = column.numbers[1] if len(column.numbers) > 1 else 0
        return round_half_up(value, scale)
    if column.type in ("float", "real"):
        (nearest_float,) = struct.unpack("f", struct.pack("f", value))
        return value if math.isinf(nearest_float) else Decimal(nearest_float)
    return value


class _Parser:
    """A recursive-descent parser of columns."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)

    def columns(self) -> list[Column]:
        columns = [self._column()]
        while self._peek != _END:
            self._expect(",", "a comma between columns")
            columns.append(self._column())
        return columns

    def _column(self) -> Column:
        name = self._name("a column as `name type`")
        if self._peek in (_END, ","):
            raise DdlError(f"{name} without a type", f"a column as `name type`, such as {name} string")
        type_name, numbers = self._type()
        return Column(name, type_name, numbers, self._constraints())

    def _type(self) -> tuple[str, tuple[int, ...]]:
        """Read a type; return its short name and the numbers in its parentheses."""
        type_name = self._name("a type").lower()
        numbers: tuple[int, ...] = ()
        if type_name not in _PLAIN:
            raise DdlError(
                f"the type {type_name}",
                "a type of Spark, such as string, long, double, date or timestamp",
                nearest_name(type_name, _PLAIN),
            )
        if type_name in ("array", "map", "struct"):
            self._inner_types(type_name)
        elif type_name in _TAKES_NUMBERS:
            numbers = self._numbers(type_name)
        return self._type_suffix(type_name), numbers

    def _inner_types(self, type_name: str) -> None:
        self._expect("<", f"< after {type_name}")
        if type_name == "struct":
            while self._peek != ">":
                self._field()
                if self._peek != ">":
                    self._expect(",", "a comma or > in struct<…>")
        else:
            self._type()
            if type_name == "map":
                self._expect(",", "two types in map<…>")
                self._type()
        self._expect(">", f"> at the end of {type_name}<…>")

    def _field(self) -> None:
        self._name("a field as `name: type`")
        if self._peek == ":":
            self._pop()
        self._type()
        if self._constraints():
            raise DdlError("NOT NULL within a struct", "NOT NULL for a column, not for a field in it")

    def _numbers(self, type_name: str) -> tuple[int, ...]:
        if self._peek != "(":
            if type_name in _NEEDS_LENGTH:
                raise DdlError(f"{type_name} without a number", f"{type_name}(n)")
            return ()
        self._pop()
        numbers: list[int] = []
        for index in range(_TAKES_NUMBERS[type_name]):
            if index and self._peek == ")":
                break
            if index:
                self._expect(",", f"a comma or ) in {type_name}(…)")
            token = self._pop()
            if not token.isdecimal():
                raise DdlError(f"no number in {type_name}(…)", f"{type_name}(n)")
            numbers.append(int(token))
        self._expect(")", f") at the end of {type_name}(…)")
        return tuple(numbers)

    def _type_suffix(self, type_name: str) -> str:
        """Read the words after a type's name, such as ``without time zone``; return the type's short name.

        They are a collation, an interval's units, or ``without time zone``.
        """
        if type_name == "string" and self._peek.lower() == "collate":
            self._pop()
            self._name("a collation")
        elif type_name == "timestamp" and self._peek.lower() == "without":
            for word in ("without", "time", "zone"):
                self._expect(word, "timestamp without time zone")
            return "timestamp_ntz"
        elif type_name == "interval" and self._peek.lower() in _UNITS:
            self._pop()
            if self._peek.lower() == "to":
                self._pop()
                self._name("a unit")
        return type_name

    def _constraints(self) -> bool:
        """Read ``NOT NULL`` and ``COMMENT`` after a type; return whether the column is ``NOT NULL``."""
        is_required = self._peek.lower() == "not"
        if is_required:
            self._pop()
            self._expect("null", "NOT NULL")
        if self._peek.lower() == "comment":
            self._pop()
            if self._peek[0] not in "'\"":
                raise DdlError(self._peek, "the comment's text in quotes")
            self._pop()
        return is_required

    @property
    def _peek(self) -> str:
        return self._tokens[-1]

    def _pop(self) -> str:
        return self._tokens.pop() if self._peek != _END else _END

    def _expect(self, token: str, expected: str) -> None:
        next_token = self._pop()
        if next_token.lower() != token:
            raise DdlError(next_token, expected)

    def _name(self, expected: str) -> str:
        token = self._pop()
        if token == _END or not re.match(r"[`\w]", token):
            raise DdlError(token, expected)
        return token[1:-1].replace("``", "`") if token[0] == "`" else token


def _tokens(text: str) -> list[str]:
    """Return the tokens in reverse, so that the next token is the last; ``the end`` is the first."""
    tokens: list[str] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise DdlError(
                f"the character {text[at]!r}",
                "names in backquotes if they contain other characters than a-z, 0-9 and _",
            )
        if match.lastgroup != "space":
            tokens.append(match[0])
        at = match.end()
    return [_END, *reversed(tokens)]
