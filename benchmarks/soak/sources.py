"""What arrives during a soak: files in landing zones and rows of a database, and what therefore must be in the tables at the end."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import psycopg

from scripts.postgres import Postgres

Put = Callable[[str, bytes], None]
Rows = Counter[tuple[object, ...]]
"""Rows by their values, each with how often it is there; the first value is the id."""

_LATE = 20.0
"""Seconds that a late file's name lies behind the newest one's at least."""

HOURS = 12
"""Of rows that the database has at the beginning."""

GRACE_HOURS = 6
_CHANGING = timedelta(hours=3)
"""How old a row may be when it comes, changes or goes: less than the grace, by more than any soak lasts."""

UNITS = ("a", "b", "c")


def at_landing(folder: Path) -> Put:
    """Puts files into a folder, each by a rename."""

    def put(path: str, data: bytes) -> None:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f".{file.name}.part")
        draft.write_bytes(data)
        draft.rename(file)

    return put


@dataclass
class Files:
    """Files whose names begin with the time, in a folder for each minute.

    Attributes:
        name: of the dataflow.
        put: puts a file, as a whole.
        begun: the time of the first name.
        random: draws sizes and times.
        ids: of all rows that must be in the table once.
        repaired: the content that bad files should have had, by path.
    """

    name: str
    put: Put
    begun: datetime
    random: Random
    ids: list[int] = field(default_factory=list)
    repaired: dict[str, bytes] = field(default_factory=dict)
    files: int = 0
    late: int = 0
    bad: int = 0

    def arrive(self, at: float) -> None:
        """A file comes in its order."""
        path, data = self._file(at)
        self.put(path, data)

    def come_late(self, at: float) -> None:
        """A file comes that sorts before others that are there."""
        path, data = self._file(self.random.uniform(0, max(at - _LATE, 0)), "-late")
        self.put(path, data)
        self.late += 1

    def come_bad(self, at: float) -> None:
        """A file comes that cannot be read: one of its records, or nothing of its end."""
        path, data = self._file(at, "-bad")
        self.repaired[path] = data
        self.bad += 1
        if path.endswith(".gz"):
            self.put(path, data[: len(data) // 2])
        else:
            self.put(path, data + b'{"id": "none"}\n')

    def repair(self, path: str) -> None:
        """Put what should have come, under the same name."""
        if data := self.repaired.pop(path, None):
            self.put(path, data)

    @property
    def expected(self) -> Rows:
        """What must be in the table."""
        return Counter((one,) for one in self.ids)

    def _file(self, at: float, kind: str = "") -> tuple[str, bytes]:
        """A file of new ids. Whatever happens to it: in the end its rows must be there."""
        time = self.begun + timedelta(seconds=at)
        rows = self.random.randint(1, 40)
        ids = range(len(self.ids), len(self.ids) + rows)
        self.ids += ids
        self.files += 1
        data = "".join(f"{json.dumps({'id': one, 'text': f'row {one}'})}\n" for one in ids).encode()
        packed = self.random.random() < 0.3
        name = f"{time.timestamp() * 1000:.0f}-{self.files:06d}{kind}.ndjson{'.gz' if packed else ''}"
        return f"date={time:%Y-%m-%d}/{time:%H%M}/{name}", gzip.compress(data) if packed else data


@dataclass
class Table:
    """A table of PostgreSQL whose rows come late, change, move to other windows and units, and go.

    Attributes:
        begun: when the soak began, a full minute.
        end: of the last window.
        changed: when something happened last.
    """

    server: Postgres
    begun: datetime
    end: datetime
    random: Random
    name: str = "events"
    rows: int = 0
    late: int = 0
    corrections: int = 0
    changed: datetime = field(init=False)

    def make(self) -> None:
        """Make it, with half a day of rows."""
        self.server.ask(
            "CREATE TABLE events (id bigint PRIMARY KEY, at timestamptz, unit text, value bigint)"
        )
        self._insert([self.begun - timedelta(hours=HOURS * self.random.random()) for _ in range(500)])

    def arrive(self) -> None:
        """Rows come, most of them of now."""
        now, late = datetime.now(UTC), self.random.random() < 0.25
        count = self.random.randint(1, 8)
        self.late += count if late else 0
        self._insert(
            [now - self.random.random() * (_CHANGING if late else timedelta(0)) for _ in range(count)]
        )

    def correct(self) -> None:
        """A few rows change, move, or go."""
        since = datetime.now(UTC) - _CHANGING
        found = self.server.ask("SELECT id FROM events WHERE at >= %s ORDER BY id", since)
        for (one,) in self.random.sample(found, min(len(found), self.random.randint(1, 5))):
            self._change(one, since)
            self.corrections += 1
        self.changed = datetime.now(UTC)

    def _change(self, one: int, since: datetime) -> None:
        chance = self.random.random()
        if chance < 0.15:
            self.server.ask("DELETE FROM events WHERE id = %s", one)
        elif chance < 0.35:
            at = since + self.random.random() * (datetime.now(UTC) - since)
            self.server.ask(
                "UPDATE events SET at = %s, unit = %s WHERE id = %s", at, self.random.choice(UNITS), one
            )
        else:
            self.server.ask("UPDATE events SET value = value + 1 WHERE id = %s", one)

    @property
    def expected(self) -> Rows:
        """What must be in the target: what is in the table now, and not of a time after the last window."""
        with psycopg.connect(self.server.url()) as connection:
            return Counter(
                connection.execute(
                    "SELECT id, at, unit, value FROM events WHERE at < %s", (self.end,)
                ).fetchall()
            )

    def _insert(self, times: list[datetime]) -> None:
        rows = [(self.rows + number, at, self.random.choice(UNITS)) for number, at in enumerate(times)]
        self.rows += len(rows)
        with psycopg.connect(self.server.url()) as connection:
            connection.cursor().executemany("INSERT INTO events VALUES (%s, %s, %s, 0)", rows)
        self.changed = datetime.now(UTC)
