"""PostgreSQL's SQL."""

from __future__ import annotations

from datetime import datetime

from partitions import sql_text
from resources.dialects.dialect import Dialect, clock

_LAST, _FIRST = "9999-12-31 23:59:59.999999", "0001-01-01 00:00:00"


class PostgreSQL(Dialect):
    """Names in double quotes, so that they are what they are; texts without a type, so that they fit uuid and enum, too."""

    reading = sql_text.POSTGRESQL

    def name(self, column: str) -> str:
        """In double quotes, which are doubled inside."""
        return '"' + column.replace('"', '""') + '"'

    def text(self, value: str) -> str:
        """With ``E`` if a backslash is in it: what that is without depends on standard_conforming_strings."""
        quoted = value.replace("'", "''")
        return "E'" + quoted.replace("\\", "\\\\") + "'" if "\\" in value else f"'{quoted}'"

    def instant(self, value: datetime) -> str:
        """With its offset, so that the session's zone does not matter."""
        return f"TIMESTAMPTZ '{clock(value)}+00'"

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
