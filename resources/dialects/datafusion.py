"""DataFusion's SQL, which deltalake uses to query a table without Spark."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from resources.dialects.dialect import SqlSyntax, clock


class DataFusion(SqlSyntax):
    """Literals with Arrow's types: those of plain SQL have other units, and lose digits."""

    def __init__(self, read_columns: frozenset[str] = frozenset()) -> None:
        """Read the values of ``read_columns`` instead of their statistics.

        DataFusion uses statistics only for a bare column name.
        """
        self._read_columns = read_columns

    def name(self, column: str) -> str:
        """Return the name in double quotes; for ``read_columns``, in a form that ignores statistics."""
        name = '"' + column.replace('"', '""') + '"'
        return f"coalesce({name}, NULL)" if column in self._read_columns else name

    def text(self, value: str) -> str:
        """Return the text in single quotes, with each quote in it doubled; a backslash stands for itself."""
        return "'" + value.replace("'", "''") + "'"

    def instant(self, value: datetime) -> str:
        """Return the instant in UTC."""
        return f"arrow_cast('{clock(value)}', 'Timestamp(Microsecond, Some(\"UTC\"))')"

    def local(self, value: datetime) -> str:
        """Return a time without zone."""
        return f"arrow_cast('{clock(value)}', 'Timestamp(Microsecond, None)')"

    def number(self, value: float | Decimal) -> str:
        """Return the number; a decimal keeps all of its digits."""
        if not isinstance(value, Decimal):
            return super().number(value)
        scale = max(0, -int(value.as_tuple().exponent))
        return f"arrow_cast('{value:f}', 'Decimal128(38, {scale})')"


DATAFUSION = DataFusion()
