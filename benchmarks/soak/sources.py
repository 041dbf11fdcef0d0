"""The arrivals of a soak, files and rows of a database, and the rows expected at the end."""

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

FileWriter = Callable[[str, bytes], None]
Rows = Counter[tuple[object, ...]]
"""Rows by their values, with their counts; the first value is the id."""

_LATE = 20.0
"""Seconds by which a late file's name lies behind the newest name, at least."""

HOURS = 12
"""Hours of rows that the database has at the beginning."""

GRACE_HOURS = 6
_CHANGING = timedelta(hours=3)
"""The highest age of a row that arrives, changes or is deleted: less than the grace, by more than any soak lasts."""

UNITS = ("a", "b", "c")


def file_writer(folder: Path) -> FileWriter:
    """Return a function that puts files into a folder, each by a rename."""

    def write_file(path: str, data: bytes) -> None:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f".{file.name}.part")
        draft.write_bytes(data)
        draft.rename(file)

    return write_file


@dataclass
class Files:
    """Files whose names begin with the time, in a folder for each minute.

    Attributes:
        name: name of the dataflow.
        put: writes a whole file.
        begun: the time of the first name.
        random: draws sizes and times.
        ids: ids of all rows that the table must hold once.
        repaired: the correct content of bad files, by path.
    """

    name: str
    write_file: FileWriter
    start: datetime
    random: Random
    ids: list[int] = field(default_factory=list)
    repaired: dict[str, bytes] = field(default_factory=dict)
    files: int = 0
    late: int = 0
    bad: int = 0

    def arrive(self, at: float) -> None:
        """Write a file in its order."""
        path, data = self._file(at)
        self.write_file(path, data)

    def come_late(self, at: float) -> None:
        """Write a file that sorts before existing ones."""
        path, data = self._file(self.random.uniform(0, max(at - _LATE, 0)), "-late")
        self.write_file(path, data)
        self.late += 1

    def come_bad(self, at: float) -> None:
        """Write a file with a bad record, or one that is cut short."""
        path, data = self._file(at, "-bad")
        self.repaired[path] = data
        self.bad += 1
        if path.endswith(".gz"):
            self.write_file(path, data[: len(data) // 2])
        else:
            self.write_file(path, data + b'{"id": "none"}\n')

    def repair(self, path: str) -> None:
        """Write the correct content under the same name."""
        if data := self.repaired.pop(path, None):
            self.write_file(path, data)

    @property
    def expected(self) -> Rows:
        """Return the rows that the table must hold."""
        return Counter((row_id,) for row_id in self.ids)

    def _file(self, at: float, kind: str = "") -> tuple[str, bytes]:
        """Return path and data of a file of new ids, whose rows must be in the table at the end."""
        time = self.start + timedelta(seconds=at)
        rows = self.random.randint(1, 40)
        ids = range(len(self.ids), len(self.ids) + rows)
        self.ids += ids
        self.files += 1
        data = "".join(f"{json.dumps({'id': row_id, 'text': f'row {row_id}'})}\n" for row_id in ids).encode()
        packed = self.random.random() < 0.3
        name = f"{time.timestamp() * 1000:.0f}-{self.files:06d}{kind}.ndjson{'.gz' if packed else ''}"
        return f"date={time:%Y-%m-%d}/{time:%H%M}/{name}", gzip.compress(data) if packed else data


@dataclass
class Table:
    """A table of PostgreSQL whose rows arrive late, change, move to other windows, and are deleted.

    Attributes:
        start: when the soak began, a full minute.
        end: the end of the last window.
        changed: the time of the last change.
    """

    server: Postgres
    start: datetime
    end: datetime
    random: Random
    name: str = "events"
    rows: int = 0
    late: int = 0
    corrections: int = 0
    changed: datetime = field(init=False)

    def make(self) -> None:
        """Create the table with half a day of rows."""
        self.server.ask(
            "CREATE TABLE events (id bigint PRIMARY KEY, at timestamptz, unit text, value bigint)"
        )
        self._insert([self.start - timedelta(hours=HOURS * self.random.random()) for _ in range(500)])

    def arrive(self) -> None:
        """Insert rows, most of them of now."""
        now, late = datetime.now(UTC), self.random.random() < 0.25
        count = self.random.randint(1, 8)
        self.late += count if late else 0
        self._insert(
            [now - self.random.random() * (_CHANGING if late else timedelta(0)) for _ in range(count)]
        )

    def correct(self) -> None:
        """Change, move or delete a few rows."""
        since = datetime.now(UTC) - _CHANGING
        ids = self.server.ask("SELECT id FROM events WHERE at >= %s ORDER BY id", since)
        for (row_id,) in self.random.sample(ids, min(len(ids), self.random.randint(1, 5))):
            self._change(row_id, since)
            self.corrections += 1
        self.changed = datetime.now(UTC)

    def _change(self, row_id: int, since: datetime) -> None:
        chance = self.random.random()
        if chance < 0.15:
            self.server.ask("DELETE FROM events WHERE id = %s", row_id)
        elif chance < 0.35:
            at = since + self.random.random() * (datetime.now(UTC) - since)
            self.server.ask(
                "UPDATE events SET at = %s, unit = %s WHERE id = %s", at, self.random.choice(UNITS), row_id
            )
        else:
            self.server.ask("UPDATE events SET value = value + 1 WHERE id = %s", row_id)

    @property
    def expected(self) -> Rows:
        """Return the rows that the target must hold: this table's, up to the end of the last window."""
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
