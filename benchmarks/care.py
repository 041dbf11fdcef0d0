"""Measures what a thousand small commits cost a reader, and how much remains after maintenance.

See docs/how-to/maintenance.md. Each commit is one of the product's: the write of a tick with 100 rows, without
the tick's own work.
It also measures what ``cluster_by`` changes for a reader of one customer's rows, in files of 8 MB that
stand for the larger
ones of a larger table.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from benchmarks.measure import median, report
from partitions.loads import Append
from platform_assets.installation import cache_folder
from resources.connections.places import Place
from resources.spark.connect_server import connect_server
from resources.spark.engine import SparkEngine
from resources.tables.contract.commits import Tag
from resources.tables.delta.table import DeltaLakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TICKS = 1_000
ROWS = 100
READS = 5
SOLD, CUSTOMERS, BATCHES = 4_000_000, 50_000, 8


def run() -> None:
    """Write, read, maintain, and read again."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place(str(Path(folder) / "table"))
        with connect_server(
            SparkEngine(master="local[2]", cache=cache_folder()), Path(folder) / "connect.log"
        ) as url:
            spark = SparkEngine(remote=url).session()
            writing = [_tick(spark, place, number) for number in range(1, TICKS + 1)]
            before = _reads(spark, place)
            started = time.monotonic()
            DeltaLakeTable(place).maintenance.optimize(lambda: spark, ())
            took = time.monotonic() - started
            after = _reads(spark, place)
            sold = _sold(spark, Place(str(Path(folder) / "sold")))
    rows = [
        {
            "reader": reader,
            "before": before[reader],
            "after": after[reader],
            "ratio": before[reader] / after[reader],
        }
        for reader in before
    ]
    rows.append({"reader": "Spark: one customer's rows; cluster_by", **sold.seconds})
    report(
        "care",
        rows,
        [
            f"{TICKS:,} ticks of {ROWS} rows: {sum(writing):.0f} s; a tick at the beginning {median(writing[:50]):.2f} s, at the end {median(writing[-50:]):.2f} s",
            f"optimize: {took:.1f} s",
            f"files that may hold one customer's rows: {sold.files['before']} of {sold.files['joined']} before cluster_by, {sold.files['after']} of {sold.files['clustered']} after it",
            f"optimize with cluster_by, {SOLD:,} rows: {sold.took:.1f} s; a write of {ROWS} rows {sold.writes['before']:.2f} s before it, {sold.writes['after']:.2f} s after it",
        ],
    )


@dataclass(frozen=True)
class _Sold:
    seconds: dict[str, float]
    files: dict[str, int]
    writes: dict[str, float]
    took: float


def _sold(spark: SparkSession, place: Place) -> _Sold:
    """Return how long one customer's rows take to read, in joined files and in clustered ones."""
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(8 * 2**20))
    batch_rows = SOLD // BATCHES
    for number in range(BATCHES):
        rows = spark.range(number * batch_rows, (number + 1) * batch_rows, numPartitions=2)
        rows = rows.selectExpr(
            "id", f"pmod(hash(id), {CUSTOMERS}) AS customer", "sha2(string(id), 256) AS note"
        )
        rows.write.format("delta").mode("append").save(place.spark_url)

    def read() -> object:
        return spark.sql(f"SELECT * FROM delta.`{place.spark_url}` WHERE customer = 4711").collect()

    def seconds() -> float:
        return median([_seconds(read) for _ in range(READS + 1)][1:])

    def files() -> int:
        spans = DeltaTable(place.url).get_add_actions(flatten=True)
        bounds = zip(spans["min.customer"].to_pylist(), spans["max.customer"].to_pylist(), strict=True)
        return sum(lower <= 4711 <= upper for lower, upper in bounds)

    def write(number: int) -> float:
        rows = spark.range(ROWS).selectExpr("id", "int(id) AS customer", "'new' AS note").coalesce(1)
        table = DeltaLakeTable(place)
        base, started = table.contents.newest_version(), time.monotonic()
        table.write(rows, Append(), Tag("app", number, f"intent {number}"), "{}", base=base)
        return time.monotonic() - started

    table = DeltaLakeTable(place)
    spark.sql(
        f"OPTIMIZE delta.`{place.spark_url}`"
    ).collect()  # Delta's own, which makes files of the same size
    before, few, joined = seconds(), files(), len(DeltaTable(place.url).file_uris())
    writes = [write(number) for number in range(1, 6)]
    started = time.monotonic()
    table.maintenance.optimize(lambda: spark, ("customer",))
    took = time.monotonic() - started
    after, clustered_files = seconds(), len(DeltaTable(place.url).file_uris())
    seconds_by_layout = {"before": few, "joined": joined, "after": files(), "clustered": clustered_files}
    clustered = [write(number) for number in range(6, 11)]
    return _Sold(
        {"before": before, "after": after, "ratio": before / after},
        seconds_by_layout,
        {"before": median(writes[1:]), "after": median(clustered[1:])},
        took,
    )


def _tick(spark: SparkSession, place: Place, number: int) -> float:
    rows = spark.range(number * ROWS, (number + 1) * ROWS, numPartitions=1).selectExpr("id", "id % 7 AS kind")
    started = time.monotonic()
    DeltaLakeTable(place).write(
        rows, Append(), Tag("app", number, f"intent {number}"), "{}", base=None if number == 1 else number - 2
    )
    return time.monotonic() - started


def _reads(spark: SparkSession, place: Place) -> dict[str, float]:
    """Return the median seconds of each reader, without the first read."""
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
