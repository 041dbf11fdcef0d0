"""PostgreSQL's SQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from partitions import sql_text
from partitions.errors import ConfigurationError
from resources.dialects.dialect import Dialect, clock

_LAST, _FIRST = "9999-12-31 23:59:59.999999", "0001-01-01 00:00:00"


class PostgreSQL(Dialect):
    """Names in double quotes, so that they are what they are; texts without a type, so that they fit uuid and enum, too."""

    reading = sql_text.POSTGRESQL
    clock = "SELECT clock_timestamp()"

    def name(self, column: str) -> str:
        """In double quotes, which are doubled inside."""
        return '"' + column.replace('"', '""') + '"'

    def text(self, value: str) -> str:
        """With ``E`` if a backslash is in it: what that is without depends on standard_conforming_strings.

        Raises:
            ConfigurationError: for a NUL, at which the server would take the query to end.
        """
        if "\x00" in value:
            raise ConfigurationError(
                f"expected text that PostgreSQL can hold, found a NUL in {value[:80]!r}; set the watermark to another value"
            )
        quoted = value.replace("'", "''")
        return "E'" + quoted.replace("\\", "\\\\") + "'" if "\\" in value else f"'{quoted}'"

    def ordered(self, column: str) -> str:
        """In the collation of bytes."""
        return f'{self.name(column)} COLLATE "C"'

    def instant(self, value: datetime) -> str:
        """With its offset, so that the session's zone does not matter."""
        return f"TIMESTAMPTZ '{clock(value)}+00'"

    def known_columns(self, parts: Sequence[str]) -> str:
        """From the catalog. Only a B-tree over all rows gives the highest value, and an order."""
        return f"""
            SELECT a.attname, bool_or(i.indexrelid IS NOT NULL), a.attnotnull
            FROM pg_attribute a
            JOIN pg_class t ON t.oid = a.attrelid AND t.relkind IN ('r', 'p', 'm')
            LEFT JOIN (pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam AND m.amname = 'btree')
              ON i.indrelid = a.attrelid AND i.indkey[0] = a.attnum AND i.indisvalid AND i.indpred IS NULL
            WHERE a.attrelid = to_regclass({self.text(self.relation(parts))}) AND a.attnum > 0 AND NOT a.attisdropped
            GROUP BY a.attname, a.attnotnull"""  # noqa: S608 - the name is a literal

    def for_driver(self, query: str) -> str:
        """With the operator ``?`` doubled: the driver takes a single one for a parameter."""
        return sql_text.replaced_in_code(query, "?", "??", self.reading)

    def finite(self, column: str) -> str:
        """Neither infinite nor of a year with five digits."""
        return f"{self.name(column)} < '10000-01-01'"

    def moment(self, value: datetime) -> str:
        """Without a type: beside an instant its offset counts, beside a local time or a date the local time does."""
        return self.text(value.isoformat(timespec="milliseconds"))

    def readable(self, column: str, *, is_instant: bool) -> str:
        """Infinity is the last moment that Spark knows."""
        name = self.name(column)
        local = f"{name} AT TIME ZONE 'UTC'" if is_instant else name
        ends = f"WHEN 'infinity' THEN TIMESTAMP '{_LAST}' WHEN '-infinity' THEN TIMESTAMP '{_FIRST}'"
        return f"CAST(CASE {local} {ends} ELSE {local} END AS text) AS {name}"


POSTGRESQL = PostgreSQL()
