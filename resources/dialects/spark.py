"""Spark's SQL: for reads of tables in the lake, and for ``replaceWhere`` of a Delta table."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from resources.dialects.dialect import SqlSyntax, clock
from resources.sql import literal, quoted

_LARGEST = 2**63 - 1


class SparkSql(SqlSyntax):
    """Literals whose types no setting of the session changes."""

    def name(self, column: str) -> str:
        """Return the name in backticks."""
        return quoted(column)

    def text(self, value: str) -> str:
        """Return the text with a backslash before quotes and backslashes."""
        return literal(value)

    def instant(self, value: datetime) -> str:
        """Return the instant with its offset."""
        return f"TIMESTAMP_LTZ '{clock(value)}+00:00'"

    def local(self, value: datetime) -> str:
        """Return a time without zone."""
        return f"TIMESTAMP_NTZ '{clock(value)}'"

    def number(self, value: float | Decimal) -> str:
        """Return a float as a double, and an integer beyond long as a decimal."""
        if isinstance(value, Decimal):
            return f"{value:f}BD"
        if isinstance(value, int):
            return str(value) if abs(value) <= _LARGEST else f"{value}BD"
        return f"{value!r}D"


SPARK = SparkSql()
