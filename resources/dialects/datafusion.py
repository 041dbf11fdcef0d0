"""DataFusion's SQL, in which deltalake answers questions about a table without Spark."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from resources.dialects.dialect import SqlSyntax, clock


class DataFusion(SqlSyntax):
    """Literals of Arrow's types: those of plain SQL have other units, and lose digits."""

    def __init__(self, read_columns: frozenset[str] = frozenset()) -> None:
        """Compare the values of some columns alone, and never their bounds in statistics, which DataFusion finds for a bare column only."""
        self._read_columns = read_columns

    def name(self, column: str) -> str:
        """In double quotes, which are doubled inside."""
        name = '"' + column.replace('"', '""') + '"'
        return f"coalesce({name}, NULL)" if column in self._read_columns else name

    def text(self, value: str) -> str:
        """In quotes, which are doubled inside; a backslash is itself."""
        return "'" + value.replace("'", "''") + "'"

    def instant(self, value: datetime) -> str:
        """In UTC."""
        return f"arrow_cast('{clock(value)}', 'Timestamp(Microsecond, Some(\"UTC\"))')"

    def local(self, value: datetime) -> str:
        """A time without zone."""
        return f"arrow_cast('{clock(value)}', 'Timestamp(Microsecond, None)')"

    def number(self, value: float | Decimal) -> str:
        """A decimal keeps all of its digits."""
        if not isinstance(value, Decimal):
            return super().number(value)
        scale = max(0, -int(value.as_tuple().exponent))
        return f"arrow_cast('{value:f}', 'Decimal128(38, {scale})')"


DATAFUSION = DataFusion()
