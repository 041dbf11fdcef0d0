"""MariaDB's and MySQL's SQL. The session's zone is UTC during reads (``resources.connections.jdbc``)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from typing_extensions import override

from partitions import sql_text
from partitions.sources.database_types import ColumnType
from partitions.unit_values import TIMES, ValueType
from resources.dialects.dialect import Dialect, clock


class MariaDB(Dialect):
    """Names in backticks; texts in hexadecimal unless plain ASCII, since quoting depends on sql_mode."""

    lexical_rules = sql_text.MARIADB
    clock = "SELECT UTC_TIMESTAMP(6)"
    text_type = "CHAR"
    moment_says_offset = False

    def name(self, column: str) -> str:
        """Return the name in backticks, with each backtick in it doubled."""
        return "`" + column.replace("`", "``") + "`"

    def text(self, value: str) -> str:
        """Return a text in quotes if it is plain ASCII, else in hexadecimal; always as UTF-8."""
        if value.isascii() and value.isprintable() and not set(value) & {"'", "\\"}:
            return f"_utf8mb4'{value}'"
        return f"_utf8mb4 X'{value.encode().hex()}'"

    def ordered(self, column: str) -> str:
        """Return the column as the bytes of its UTF-8 form."""
        return f"CAST(CONVERT({self.name(column)} USING utf8mb4) AS BINARY)"

    def compared(self, column: str, sign: str, bound: Any) -> str:
        """Return the condition that a column lies on one side of a bound; texts compare as bytes."""
        if not isinstance(bound, str):
            return super().compared(column, sign, bound)
        return f"{self.ordered(column)} {sign} CAST({self.literal(bound)} AS BINARY)"

    def number(self, value: float | Decimal) -> str:
        """Return a float with an exponent: without one it would be a decimal."""
        if isinstance(value, float):
            return text if "e" in (text := repr(value)) else f"{text}E0"
        return super().number(value)

    def instant(self, value: datetime) -> str:
        """Return the time in UTC, the session's zone."""
        return f"TIMESTAMP '{clock(value)}'"

    def known_columns(self, parts: Sequence[str]) -> str:
        """Return a query of the information schema for a table's columns.

        An index of only the first letters of a column does not order its values.
        """
        *schema, table = parts
        database = self.text(schema[-1]) if schema else "DATABASE()"
        return f"""
            SELECT c.COLUMN_NAME, MAX(s.INDEX_NAME IS NOT NULL), MAX(c.IS_NULLABLE = 'NO')
            FROM information_schema.COLUMNS c
            JOIN information_schema.TABLES t
              ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME AND t.TABLE_TYPE = 'BASE TABLE'
            LEFT JOIN information_schema.STATISTICS s
              ON s.TABLE_SCHEMA = c.TABLE_SCHEMA AND s.TABLE_NAME = c.TABLE_NAME AND s.COLUMN_NAME = c.COLUMN_NAME
              AND s.SEQ_IN_INDEX = 1 AND s.INDEX_TYPE = 'BTREE' AND s.SUB_PART IS NULL
            WHERE c.TABLE_SCHEMA = {database} AND c.TABLE_NAME = {self.text(table)}
            GROUP BY c.COLUMN_NAME"""  # noqa: S608 - names are literals

    def identity(self, parts: Sequence[str]) -> str | None:
        """Return a query of a table's creation time, which ALTER and OPTIMIZE TABLE change, too.

        The server offers nothing better.
        """
        if not parts:
            return None
        *schema, table = parts
        database = self.text(schema[-1]) if schema else "DATABASE()"
        return f"""
            SELECT NULL, CONCAT(TABLE_SCHEMA, '.', TABLE_NAME), CAST(CREATE_TIME AS CHAR) FROM information_schema.TABLES
            WHERE TABLE_SCHEMA = {database} AND TABLE_NAME = {self.text(table)} AND TABLE_TYPE = 'BASE TABLE'"""  # noqa: S608 - names are literals

    def finite(self, column: str, kind: ValueType) -> Sequence[str]:
        """Return the condition that excludes the zero date and the year 0; () for other types."""
        return (f"{self.name(column)} >= '0001-01-01'",) if kind in TIMES else ()

    def moment(self, value: datetime) -> str:
        """Return the local time: a DATETIME has no offset."""
        return f"'{value.replace(tzinfo=None).isoformat(sep=' ', timespec='milliseconds')}'"

    @override
    def transfer_expression(self, column: str, type_: ColumnType, keys: Sequence[str] = ()) -> str:
        """Return a column with times and texts as text, a float as a double, a bit or year as an integer.

        Spark pads a CHAR with blanks. A float's text has six digits, its double has all.
        """
        name = self.name(column)
        match type_.form:
            case "text":
                return f"CAST({name} AS CHAR) AS {name}"
            case "double":
                return f"{name} + 0E0 AS {name}"  # a cast to it is unknown to MySQL 5.7
            case "whole":
                # A bit, a year, and a tinyint(1), which the driver takes for true or false.
                return f"CAST({name} AS {'SIGNED' if type_.data_type in ('byte', 'short') else 'UNSIGNED'}) AS {name}"
        return name

    def among(self, column: str, values: Sequence[Any]) -> str:
        """Return the condition that a column has one of these values; texts must be equal by bytes, too.

        Most collations ignore case and trailing blanks. The plain comparison can use an index.
        """
        plain = super().among(column, values)
        if not any(isinstance(value, str) for value in values):
            return plain
        exact = ", ".join(f"CAST({self.literal(value)} AS BINARY)" for value in values)
        return f"{plain} AND CAST(CONVERT({self.name(column)} USING utf8mb4) AS BINARY) IN ({exact})"


MARIADB = MariaDB()
