"""A lake table of readings with times and airports, which anyone may change, and windows over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from tests.support.commits import IcebergUpstream, Upstream
from tests.support.iceberg import foreign_table, iceberg_rows

TABLE = "bronze/events"
COLUMNS = ("id", "at", "airport", "v")
START = datetime(2026, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 11, tzinfo=UTC)

Reading = tuple[int, datetime, str, str]
"""Id, time, airport and value."""


def reading(id_: int, day: float, airport: str = "EWR", v: str = "a") -> Reading:
    """Return a reading some days after the start."""
    return id_, START + timedelta(days=day), airport, v


def days_of_readings(**changes: Any) -> dict[str, Any]:
    """Return the definition of days over the readings, per airport, that are loaded again if they change."""
    definition = [
        {"name": "day", "type": "datetime", "range": {"from": "2026-01-01", "to": "-"}},
        {"name": "airport", "type": "unit", "units": "EWR,JFK"},
    ]
    source = {"type": "table", "table": TABLE, "window_column": "at", "unit_columns": {"airport": "airport"}}
    base: dict[str, Any] = {
        "layer": "silver",
        "source": source,
        "watermark": {"type": "window", "definition": definition, "window": "daily", "refresh": "changed"},
        "target": {
            "load": "merge_overwrite",
            "replace_by_watermark": True,
            "table": "silver/days",
            "origin_columns": False,
        },
    }
    for key, value in changes.items():
        base[key] = {**base[key], **value} if isinstance(value, dict) else value
    return base


def without_units(**changes: Any) -> dict[str, Any]:
    """Return the definition of days over all readings."""
    days = days_of_readings(**changes)
    days["source"].pop("unit_columns")
    days["watermark"]["definition"] = days["watermark"]["definition"][:1]
    return days


class Readings(Upstream):
    """A Delta table of readings that deltalake writes."""

    def append(self, *rows: Reading) -> None:  # type: ignore[override]
        """Commit rows."""
        write_deltalake(str(self.folder), _arrow(rows), mode="append")

    def overwrite(self, *rows: Reading) -> None:  # type: ignore[override]
        """Replace all rows in one commit."""
        write_deltalake(str(self.folder), _arrow(rows), mode="overwrite")

    def merge(self, *rows: Reading) -> None:  # type: ignore[override]
        """Update the rows with these ids, and insert new ones, in one commit."""
        merger = self._table.merge(_arrow(rows), "t.id = s.id", source_alias="s", target_alias="t")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    def rows(self, version: int | None = None) -> list[Reading]:  # type: ignore[override]
        """Return the rows, sorted."""
        table = DeltaTable(str(self.folder), version=version).to_pyarrow_table()
        return sorted(tuple(row[name] for name in COLUMNS) for row in table.to_pylist())


@dataclass
class IcebergReadings(IcebergUpstream):
    """The same as an Iceberg table that Spark writes, with deletes and updates in files of their own."""

    def _frame(self, rows: Sequence[Reading]) -> tuple[Any, str]:
        """Return rows and the table's name, of one session."""
        spark = self.engine.session()
        schema = "id long, at timestamp, airport string, v string"
        frame = spark.createDataFrame(list(rows), schema).coalesce(1)
        return frame, foreign_table(spark, self.folder)

    def append(self, *rows: Reading) -> None:  # type: ignore[override]
        """Commit rows."""
        frame, name = self._frame(rows)
        if (self.folder / "metadata").is_dir():
            frame.writeTo(name).append()
            return
        modes = {f"write.{what}.mode": "merge-on-read" for what in ("delete", "update", "merge")}
        writer = frame.writeTo(name).using("iceberg").tableProperty("format-version", "2")
        for key, value in modes.items():
            writer = writer.tableProperty(key, value)
        writer.create()

    def overwrite(self, *rows: Reading) -> None:  # type: ignore[override]
        """Replace all rows in one commit."""
        from pyspark.sql import functions as F

        frame, name = self._frame(rows)
        frame.writeTo(name).overwrite(F.lit(True))

    def merge(self, *rows: Reading) -> None:  # type: ignore[override]
        """Update the rows with these ids, and insert new ones, in one commit."""
        values = ", ".join(
            f"({id_}L, TIMESTAMP '{at:%Y-%m-%d %H:%M:%S.%f}+00:00', '{airport}', '{v}')"
            for id_, at, airport, v in rows
        )
        self._sql(
            f"MERGE INTO {{table}} t USING (SELECT * FROM VALUES {values} AS x(id, at, airport, v)) s"
            " ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    def rows(self, version: int | None = None) -> list[Reading]:  # type: ignore[override]
        """Return the rows, sorted."""
        assert version is None
        return sorted(tuple(row[name] for name in COLUMNS) for row in iceberg_rows(self.folder, COLUMNS))


READINGS: Mapping[str, Callable[..., Readings | IcebergReadings]] = {
    "delta": Readings,
    "iceberg": IcebergReadings,
}


def _arrow(rows: Sequence[Reading]) -> pa.Table:
    ids, times, airports, values = zip(*rows, strict=True) if rows else ((), (), (), ())
    columns = {
        "id": pa.array(ids, pa.int64()),
        "at": pa.array(times, pa.timestamp("us", "UTC")),
        "airport": pa.array(airports, pa.string()),
        "v": pa.array(values, pa.string()),
    }
    return pa.table(columns)
