"""A dataflow of windows on real parts: a table of the lake, written with deltalake, or PostgreSQL.

Belongs here: definitions, rows at the source, and what a run has read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from partitions.window.work_unit import WorkUnit
from resources.spark.engine import SparkEngine
from resources.watermarks.work_units import WORK_UNITS, loaded_units
from scripts.postgres import Postgres
from tests.support.feed import NAME, Feed, Row

REPLACED = {"load": "merge_overwrite", "replace_by_watermark": True}
BY_COLUMNS = {"window_column": "at", "unit_columns": {"u": "unit"}}
EVENTS = pa.schema(
    [("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("unit", pa.string()), ("value", pa.int64())]
)


def instant(text: str) -> datetime:
    """Return an instant of text such as ``2020-01-31T10:00``; UTC unless it has another offset."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def event(number: int, at: str | datetime, unit: str | None = "a", value: int = 0) -> dict[str, Any]:
    """Return a row of a source."""
    return {"id": number, "at": instant(at) if isinstance(at, str) else at, "unit": unit, "value": value}


def watermark(start: str = "2020-01-01", to: str = "-", units: object = "a,b", **more: Any) -> dict[str, Any]:
    """Return daily windows from a day on, of some units; ``more`` are keys of the watermark."""
    entries: list[dict[str, Any]] = [
        {"name": "system", "type": "datetime", "range": {"from": start, "to": to}},
        {"name": "u", "type": "unit", "units": units},
    ]
    return {"type": "window", "definition": entries if units else entries[:1], "window": "daily"} | more


@dataclass
class LakeTable:
    """A table of the lake that another writer writes."""

    path: Path
    schema: pa.Schema = EVENTS
    rows: dict[int, Row] = field(default_factory=dict)
    partition_by: Sequence[str] = ()

    def put(self, *rows: Row) -> None:
        """Add rows, or replace rows with the same ``id``."""
        self.rows |= {row["id"]: row for row in rows}
        self._write()

    def drop(self, *numbers: int) -> None:
        """Delete rows."""
        for number in numbers:
            del self.rows[number]
        self._write()

    def add(self, *rows: Row) -> None:
        """Add rows in a file of their own."""
        self.rows |= {row["id"]: row for row in rows}
        write_deltalake(str(self.path), self._arrow(rows), mode="append")

    def files(self) -> dict[Path, list[int]]:
        """Return the files of the newest version, with the ``id`` of each row."""
        paths = [Path(uri.removeprefix("file://")) for uri in DeltaTable(str(self.path)).file_uris()]
        return {path: pq.read_table(path).column("id").to_pylist() for path in paths}

    @property
    def version(self) -> int:
        """Return the newest version."""
        return int(DeltaTable(str(self.path)).version())

    @contextmanager
    def without(self, *numbers: int) -> Iterator[None]:
        """Make the files with some of these rows unreadable inside the block; without numbers all files."""
        hidden = [path for path, ids in self.files().items() if not numbers or set(ids) & set(numbers)]
        for path in hidden:
            path.rename(path.with_suffix(".hidden"))
        try:
            yield
        finally:
            for path in hidden:
                path.with_suffix(".hidden").rename(path)

    @contextmanager
    def spoilt(self, *numbers: int) -> Iterator[None]:
        """Replace the files with some of these rows by garbage inside the block: only reading them fails."""
        contents = {path: path.read_bytes() for path, ids in self.files().items() if set(ids) & set(numbers)}
        for path, content in contents.items():
            path.write_bytes(bytes(len(content)))
        try:
            yield
        finally:
            for path, content in contents.items():
                path.write_bytes(content)

    def _write(self) -> None:
        write_deltalake(
            str(self.path),
            self._arrow(self.rows.values()),
            mode="overwrite",
            partition_by=list(self.partition_by) or None,
        )

    def _arrow(self, rows: Iterable[Row]) -> pa.Table:
        return pa.Table.from_pylist([dict(row) for row in rows], self.schema)


@dataclass
class Windows:
    """A dataflow of windows, with its source.

    Attributes:
        feed: the dataflow.
        table: its source in the lake; rows of PostgreSQL are written by statements.
    """

    feed: Feed
    table: LakeTable

    def run(self, now: str, **options: Any) -> list[tuple[str, str]]:
        """Run at an instant, require success, and return what was read."""
        outcome = self.feed.run(now=instant(now), **options)
        if outcome.error is not None:
            raise outcome.error
        return self.read(*[commit.entry.number for commit in outcome.committed])

    def fail(self, now: str) -> Any:
        """Run at an instant; return the error."""
        return self.feed.run(now=instant(now)).error

    def read(self, *numbers: int) -> list[tuple[str, str]]:
        """Return start and unit of each work unit that these slices have read, in order."""
        return [(_day(work.start), work.unit) for number in numbers for work in works(self.feed, number)]

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """Return ``id`` and ``value`` of all rows of the target."""
        return self.feed.rows("id", "value")


def works(feed: Feed, number: int) -> Sequence[WorkUnit]:
    """Return the work units that a slice was to read, without those that it passed over."""
    log = feed.platform.log
    intent = log.intent(NAME, number)
    assert intent is not None
    return list(loaded_units(log.get_list(intent.file_list, WORK_UNITS)))


def on_lake(
    folder: Path,
    engine: SparkEngine,
    *,
    schema: pa.Schema = EVENTS,
    source: Row = BY_COLUMNS,
    **definition: Any,
) -> Windows:
    """Return windows on a table of the lake, replaced unless the definition says otherwise."""
    table_source = {"type": "table", "table": "raw/events", **source}
    feed = Feed(
        folder, engine, {"watermark": watermark(), "target": REPLACED, **definition, "source": table_source}
    )
    return Windows(feed, LakeTable(folder / "lake" / "raw" / "events", schema))


@dataclass
class DatabaseTable:
    """A table of PostgreSQL with the columns of :func:`event`, in a schema of its own."""

    server: Postgres
    schema: str = field(default_factory=lambda: f"src_{uuid4().hex[:10]}")

    def __post_init__(self) -> None:
        """Create it."""
        self.ask("CREATE SCHEMA {s}")
        self.ask("CREATE TABLE {s}.events (id bigint, at timestamptz, unit text, value bigint)")

    def ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement; ``{s}`` stands for the schema."""
        return self.server.ask(statement, *values, s=self.schema)

    def put(self, *rows: Row) -> None:
        """Add or change rows."""
        for row in rows:
            self.ask("DELETE FROM {s}.events WHERE id = %s", row["id"])
            self.ask("INSERT INTO {s}.events VALUES (%s, %s, %s, %s)", *row.values())


def reaching(server: Postgres) -> tuple[dict[str, Any], dict[str, str]]:
    """Return settings with the connection ``erp``, and the environment with its password."""
    erp = {
        "type": "jdbc",
        "url": f"jdbc:postgresql://127.0.0.1:{server.port}/postgres",
        "user": "postgres",
        "password": {"env": "ERP_PASSWORD"},
    }
    return {"connections": {"erp": erp}}, {"ERP_PASSWORD": server.password}


def on_postgres(
    folder: Path, engine: SparkEngine, table: DatabaseTable, source: Mapping[str, Any], **definition: Any
) -> Feed:
    """Return windows on PostgreSQL, replaced unless the definition says otherwise."""
    table_source = {"type": "jdbc", "connection": "erp", **source}
    return Feed(
        folder,
        engine,
        {"watermark": watermark(), "target": REPLACED, **definition, "source": table_source},
        *reaching(table.server),
    )


def _day(start: int | None) -> str:
    if start is None:
        return "-"
    text = datetime.fromtimestamp(start / 1000, UTC).isoformat()
    return text.removesuffix("+00:00").removesuffix(":00").removesuffix("T00:00")
