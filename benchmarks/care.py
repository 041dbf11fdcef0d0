"""Measure what a thousand small commits cost a reader, and what is left of that after the table's care (docs/maintenance.md).

Each commit is one of the product's: the write of a tick with 100 rows, without the tick's own work.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from benchmarks.measure import median, report
from partitions.load import Append
from platform_assets.installation import cache_folder
from resources.connect_server import connect_server
from resources.places import Place
from resources.spark import SparkEngine
from resources.tables.delta.table import DeltaLakeTable
from resources.tables.table import Tag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TICKS = 1_000
ROWS = 100
READS = 5


def run() -> None:
    """Write, read, care, read again."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place(str(Path(folder) / "table"))
        with connect_server(
            SparkEngine(master="local[2]", cache=cache_folder()), Path(folder) / "connect.log"
        ) as url:
            spark = SparkEngine(remote=url).session()
            writing = [_tick(spark, place, number) for number in range(1, TICKS + 1)]
            before = _reads(spark, place)
            started = time.monotonic()
            DeltaLakeTable(place).optimize(lambda: spark)
            took = time.monotonic() - started
            after = _reads(spark, place)
    rows = [
        {
            "reader": reader,
            "before": before[reader],
            "after": after[reader],
            "ratio": before[reader] / after[reader],
        }
        for reader in before
    ]
    report(
        "care",
        rows,
        [
            f"{TICKS:,} ticks of {ROWS} rows: {sum(writing):.0f} s; a tick at the beginning {median(writing[:50]):.2f} s, at the end {median(writing[-50:]):.2f} s",
            f"optimize: {took:.1f} s",
        ],
    )


def _tick(spark: SparkSession, place: Place, number: int) -> float:
    rows = spark.range(number * ROWS, (number + 1) * ROWS, numPartitions=1).selectExpr("id", "id % 7 AS kind")
    started = time.monotonic()
    DeltaLakeTable(place).write(
        rows, Append(), Tag("app", number, f"intent {number}"), "{}", base=None if number == 1 else number - 2
    )
    return time.monotonic() - started


def _reads(spark: SparkSession, place: Place) -> dict[str, float]:
    """Median seconds of each reader, the first read left out."""
    url = place.spark_url

    def aggregate() -> object:
        return spark.sql(f"SELECT kind, count(*), sum(id) FROM delta.`{url}` GROUP BY kind").collect()

    def find() -> object:
        return spark.sql(f"SELECT * FROM delta.`{url}` WHERE id = {TICKS * ROWS // 2}").collect()

    def load() -> object:
        return DeltaTable(place.url).to_pyarrow_table().num_rows

    readers: dict[str, Callable[[], object]] = {
        "Spark: an aggregate of all rows": aggregate,
        "Spark: one row by its id": find,
        "delta-rs: all rows": load,
    }
    return {name: median([_seconds(read) for _ in range(READS + 1)][1:]) for name, read in readers.items()}


def _seconds(read: Callable[[], object]) -> float:
    started = time.monotonic()
    read()
    return time.monotonic() - started
