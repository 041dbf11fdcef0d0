"""A stream over a table of readings, and a plain reading of its rules in Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from partitions.loads import Append, Load, Replace
from partitions.predicate import Among
from resources.connections.places import Place
from resources.tables.contract.commits import Tag
from resources.tables.registry import find_table, open_table
from tests.support.feed import Feed
from tests.support.iceberg import foreign_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = datetime(2026, 1, 1, tzinfo=UTC)


class Reading(NamedTuple):
    """A row; ``at`` is in minutes after ``START``."""

    id: int
    device: str | None
    at: int | None


def moment(at: int | None) -> datetime | None:
    """Return the event time of a reading."""
    return None if at is None else START + timedelta(minutes=at)


def minutes(at: datetime | None) -> int | None:
    """Return an event time in a reading's minutes."""
    return None if at is None else int((at - START) / timedelta(minutes=1))


def definition(
    *operators: dict[str, Any], source: dict[str, Any] | None = None, **watermark: Any
) -> dict[str, Any]:
    """Return a dataflow's definition."""
    declared = {
        "type": "stream",
        "event_time": "ts",
        "split": "device",
        "timeout": "PT5M",
        "order_by": ["id"],
    }
    return {
        "layer": "silver",
        "source": source or {"type": "table", "table": "bronze/events"},
        "watermark": declared | watermark,
        "operators": list(operators),
        "target": {"load": "append", "table": "silver/readings"},
    }


@dataclass
class Stream:
    """A dataflow over ``bronze/events``.

    Attributes:
        feed: the dataflow.
    """

    feed: Feed
    written: list[list[Reading]] = field(default_factory=list)

    @property
    def source(self) -> Path:
        """Return the folder of the source's table."""
        return self.feed.folder / "lake" / "bronze" / "events"

    def append(self, *rows: Reading | tuple[int, str | None, int | None], **how: Any) -> None:
        """Append a version; ``how`` are arguments of deltalake."""
        readings = [Reading(*row) for row in rows]
        self.written.append(readings)
        columns = {
            "id": pa.array([row.id for row in readings], pa.int64()),
            "device": pa.array([row.device for row in readings], pa.string()),
            "ts": pa.array([moment(row.at) for row in readings], pa.timestamp("us", "UTC")),
        }
        write_deltalake(str(self.source), pa.table(columns), mode="append", **how)

    def compact(self) -> None:
        """Merge the source's small files, which changes no row."""
        DeltaTable(str(self.source)).optimize.compact()

    def delete(self, id_: int, *, beside: bool = False) -> None:
        """Delete a row of the source; with ``beside`` by a file of its own, if the format can."""
        DeltaTable(str(self.source)).delete(f"id = {id_}")

    def clean(self) -> None:
        """Remove all versions of the source but the newest."""
        DeltaTable(str(self.source)).create_checkpoint()
        for file in sorted((self.source / "_delta_log").glob("*.json"))[:-1]:
            file.unlink()

    def go_back(self) -> None:
        """Set the source back to its first version, as restoring an old copy does, and let it grow again."""
        for file in sorted((self.source / "_delta_log").glob("*.json"))[1:]:
            file.unlink()

    def table(self, name: str = "") -> list[dict[str, Any]]:
        """Return the rows of the stream's table, or of a side table."""
        folder = self.feed.folder / "lake" / "silver" / f"readings{name}"
        if (folder / "_delta_log").is_dir():
            table_rows: list[dict[str, Any]] = DeltaTable(str(folder)).to_pyarrow_table().to_pylist()
            return table_rows
        table = find_table(Place(str(folder))) if folder.is_dir() else None
        if table is None or not table.exists():
            return []
        rows = table.contents.read(self.feed.engine.session(), table.contents.newest_version())
        return list(rows.toArrow().to_pylist())

    def sorted(self) -> list[tuple[int, int | None, int]]:
        """Return id, event time and epoch of the sorted rows, by epoch and event time."""
        rows = [(row["id"], minutes(row["ts"]), row["_epoch"]) for row in self.table()]
        return sorted(rows, key=lambda row: (row[2], row[1], row[0]))

    def ids(self, name: str = "") -> list[int]:
        """Return the ids in a table."""
        return sorted(row["id"] for row in self.table(name))

    def buffered(self) -> list[int]:
        """Return the ids of the buffered rows, from the newest state."""
        state = self.feed.watermark or {"segments": [], "global": None}
        lowest = {int(segment["name"]): segment["lowest"] for segment in state["segments"]}
        return sorted(
            row["id"]
            for row in self.table("__buffer")
            if row["_epoch"] in lowest and row["ts"] >= lowest[row["_epoch"]]
        )

    def places(self) -> dict[str, list[int]]:
        """Return the ids by the place where they are."""
        return {
            "sorted": self.ids(),
            "late": self.ids("__late"),
            "quarantine": self.ids("__quarantine"),
            "buffer": self.buffered(),
        }


class ParquetStream(Stream):
    """The same over a Parquet table of Strandline."""

    def append(self, *rows: Reading | tuple[int, str | None, int | None], **how: Any) -> None:
        """Append a version."""
        readings = [Reading(*row) for row in rows]
        self.written.append(readings)
        plain = [
            (row.id, row.device, None if (at := moment(row.at)) is None else int(at.timestamp()))
            for row in readings
        ]
        frame = self.feed.engine.session().createDataFrame(plain, "id long, device string, s long")
        self._load(frame.selectExpr("id", "device", "timestamp_seconds(s) AS ts"), Append())

    def delete(self, id_: int, *, beside: bool = False) -> None:
        """Delete a row of the source."""
        rows = self.feed.engine.session().createDataFrame([], "id long, device string, ts timestamp")
        self._load(rows, Replace(Among("id", (id_,))))

    def _load(self, rows: DataFrame, load: Load) -> None:
        self.source.parent.mkdir(parents=True, exist_ok=True)
        table = open_table("parquet", Place(str(self.source)))
        base = table.contents.newest_version() if table.exists() else None
        number = 1 + int(base or 0)
        table.write(rows, load, Tag("source", number, f"owner-{number}"), "{}", base=base)


class IcebergStream(Stream):
    """The same over an Iceberg table, to which another writer of the same Spark appends."""

    def _opened(self) -> tuple[SparkSession, str]:
        """Return a session, and the table's name in it."""
        spark = self.feed.engine.session()
        return spark, foreign_table(spark, self.source)

    def append(self, *rows: Reading | tuple[int, str | None, int | None], **how: Any) -> None:
        """Append a snapshot."""
        readings = [Reading(*row) for row in rows]
        self.written.append(readings)
        times = [moment(row.at) for row in readings]
        plain = [
            (row.id, row.device, None if at is None else int(at.timestamp()))
            for row, at in zip(readings, times, strict=True)
        ]
        spark, name = self._opened()
        frame = spark.createDataFrame(plain, "id long, device string, s long").selectExpr(
            "id", "device", "timestamp_seconds(s) AS ts"
        )
        if (self.source / "metadata").is_dir():
            frame.writeTo(name).append()
        else:
            frame.coalesce(1).writeTo(name).using("iceberg").create()

    def compact(self) -> None:
        """Merge the source's small files, which changes no row."""
        spark, name = self._opened()
        catalog, _, table = name.partition(".")
        arguments = f"table => '{table.replace('`', '')}', options => map('min-input-files', '2')"
        spark.sql(f"CALL {catalog}.system.rewrite_data_files({arguments})").collect()

    def delete(self, id_: int, *, beside: bool = False) -> None:
        """Delete a row of the source; with ``beside`` by a file of its own."""
        spark, name = self._opened()
        if beside:
            spark.sql(
                f"ALTER TABLE {name} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"
            ).collect()
        spark.sql(f"DELETE FROM {name} WHERE id = {id_}").collect()

    def clean(self) -> None:
        """Expire all snapshots but the newest."""
        spark, name = self._opened()
        catalog, _, table = name.partition(".")
        arguments = f"table => '{table.replace('`', '')}', older_than => TIMESTAMP '2099-01-01 00:00:00', retain_last => 1"
        spark.sql(f"CALL {catalog}.system.expire_snapshots({arguments})").collect()

    def go_back(self) -> None:
        """Roll the source back to its first snapshot."""
        spark, name = self._opened()
        catalog, _, table = name.partition(".")
        first = spark.sql(f"SELECT snapshot_id FROM {name}.history ORDER BY made_current_at").first()
        assert first is not None
        arguments = f"'{table.replace('`', '')}', {first[0]}"
        spark.sql(f"CALL {catalog}.system.rollback_to_snapshot({arguments})").collect()


class FileStream(Stream):
    """The same over files: each append is one file."""

    def append(self, *rows: Reading | tuple[int, str | None, int | None], **how: Any) -> None:
        """Put a file; ``how`` may name its ``path``, else files are numbered."""
        readings = [Reading(*row) for row in rows]
        self.written.append(readings)
        path = how.get("path", f"{len(self.written):04d}.ndjson")
        lines = [
            {"id": row.id, "device": row.device, "ts": None if row.at is None else str(moment(row.at))}
            for row in readings
        ]
        self.feed.put(path, *lines)


FILES = {
    "type": "files",
    "path": "./landing",
    "format": "ndjson",
    "schema": "id long, device string, ts timestamp",
}
"""The source of a :class:`FileStream`."""


class Judged(NamedTuple):
    """All rows by a plain reading of the rules: ids by place, and the global watermark in minutes."""

    sorted: list[int]
    late: list[int]
    quarantine: list[int]
    buffer: list[int]
    value: int | None


def plainly(versions: Iterable[Sequence[Reading]], timeout: int, declared: Sequence[str]) -> Judged:
    """Return the places of all versions' rows with declared splits under ``stall``.

    The boundaries of epochs make no difference.
    """
    marks: dict[str, int | None] = dict.fromkeys(declared)
    kept_readings: list[Reading] = []
    late: list[int] = []
    bad: list[int] = []
    for rows in versions:
        before = dict(marks)
        for row in rows:
            if row.at is None or row.device is None:
                bad.append(row.id)
                continue
            watermark = before[row.device]
            if watermark is not None and row.at < watermark:
                late.append(row.id)
            else:
                kept_readings.append(row)
            now = marks[row.device]
            marks[row.device] = row.at - timeout if now is None else max(now, row.at - timeout)
    known_marks = [mark for mark in marks.values() if mark is not None]
    value = min(known_marks) if len(known_marks) == len(marks) else None
    out = [row.id for row in kept_readings if value is not None and row.at is not None and row.at < value]
    rest = [row.id for row in kept_readings if row.id not in set(out)]
    return Judged(sorted(out), sorted(late), sorted(bad), sorted(rest), value)
