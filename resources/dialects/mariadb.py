"""MariaDB's and MySQL's SQL. The session's zone is UTC while rows are read (``resources.jdbc``)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from partitions import sql_text
from resources.dialects.dialect import Dialect, clock


class MariaDB(Dialect):
    """Names in backticks; texts in hexadecimal if a quote or a backslash would depend on sql_mode."""

    reading = sql_text.MARIADB

    def name(self, column: str) -> str:
        """In backticks, which are doubled inside."""
        return "`" + column.replace("`", "``") + "`"

    def text(self, value: str) -> str:
        """Plain letters in quotes, all others in hexadecimal, always in UTF-8."""
        if value.isascii() and value.isprintable() and not set(value) & {"'", "\\"}:
            return f"_utf8mb4'{value}'"
        return f"_utf8mb4 X'{value.encode().hex()}'"

    def number(self, value: float | Decimal) -> str:
        """A float has an exponent: without one it is a decimal."""
        if isinstance(value, float):
            return text if "e" in (text := repr(value)) else f"{text}E0"
        return super().number(value)

    def instant(self, value: datetime) -> str:
        """The time in UTC, the session's zone."""
        return f"TIMESTAMP '{clock(value)}'"

    def moment(self, value: datetime) -> str:
        """The local time: a DATETIME has no offset."""
        return f"'{value.replace(tzinfo=None).isoformat(sep=' ', timespec='milliseconds')}'"

    def readable(self, column: str, *, is_instant: bool) -> str:  # noqa: ARG002 - the session's zone is UTC
        """As text."""
        name = self.name(column)
        return f"CAST({name} AS CHAR) AS {name}"

    def among(self, column: str, values: Sequence[Any]) -> str:
        """Texts are compared by bytes, too: most collations ignore case and blanks at the end. The plain comparison can use an index."""
        plain = super().among(column, values)
        if not any(isinstance(value, str) for value in values):
            return plain
        exact = ", ".join(f"CAST({self.literal(value)} AS BINARY)" for value in values)
        return f"{plain} AND CAST(CONVERT({self.name(column)} USING utf8mb4) AS BINARY) IN ({exact})"


MARIADB = MariaDB()
