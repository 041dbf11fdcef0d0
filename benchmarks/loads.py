"""Measures each load against bare Spark in the same session.

Merges, replacements and scd2 go into Delta and Iceberg, appends into each format. The rows come as Parquet
files. Bare Spark
gets their names, merges or overwrites in one statement, and writes the same columns; it keeps no state,
plans nothing and
finds no duplicates. Rounds that warm the engine up come first and do not count.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from benchmarks.measure import alternate, median, ratio, report
from partitions.target import COMMIT_COLUMN
from platform_assets.installation import cache_folder
from platform_assets.project import load_project
from resources.outcome import Outcome
from resources.platform.platform import Platform
from resources.spark.connect_server import connect_server
from resources.spark.engine import SparkEngine
from resources.spark_runtime import ICEBERG_PACKAGE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROUNDS, WARM_UP = 7, 2
APPENDED = 500_000
FIRST_DAY = date(2020, 1, 1)
DAYS = 100
SCHEMA = "id long, at timestamp, customer int, amount decimal(12, 2), note string"
_ORIGIN = ("_source_file", "_ingested_at", "_run_id")
_COLUMNS = ("id", "at", "customer", "amount", "note")
_CATALOG = "bare"


@dataclass(frozen=True)
class Size:
    """The rows of a table, the rows that change, and the highest ratio allowed."""

    name: str
    rows: int
    changes: int
    aim: float


SIZES = (Size("large", 5_000_000, 50_000, 1.10), Size("small", 100_000, 1_000, 1.30))


@dataclass(frozen=True)
class Side:
    """Two runs of the same load.

    Attributes:
        arrive: creates the input of the next round of both sides.
        product: loads it with Strandline; seconds.
        bare: loads it with bare Spark; seconds.
    """

    arrive: Callable[[], None]
    product: Callable[[], float]
    bare: Callable[[], float]


class LoadProject:
    """A project of one dataflow."""

    def __init__(self, folder: Path, engine: SparkEngine, flow: dict[str, Any]) -> None:
        (folder / "dataflows").mkdir(parents=True)
        (folder / "platform.yaml").write_text(json.dumps({"state": "./state", "lake": "./lake"}))
        (folder / "dataflows/orders.yaml").write_text(json.dumps(flow))
        self._project, self._engine = load_project(folder, environment={}), engine

    def run(self, now: datetime | None = None) -> float:
        """Load the new rows; return the seconds."""
        project = self._project
        platform = Platform(
            project.state, project.lake, self._engine, project.source_place, lineage=project.lineage
        )
        started = time.monotonic()
        outcome: Outcome = platform.loop(project.dataflows["orders"], now or datetime.now(UTC)).run()
        seconds = time.monotonic() - started
        assert outcome.error is None, outcome.error
        assert outcome.rows, outcome
        return seconds


class Bare:
    """A table that Spark writes without Strandline."""

    def __init__(self, spark: SparkSession, kind: str, folder: Path, name: str) -> None:
        self.spark, self.kind = spark, kind
        self.sql = f"{_CATALOG}.raw.{name}" if kind == "iceberg" else f"delta.`{folder / name}`"
        self._path = str(folder / name)

    def create(self, rows: DataFrame) -> None:
        """Create the table with its first rows."""
        if self.kind == "iceberg":
            rows.writeTo(self.sql).using("iceberg").create()
        else:
            rows.write.format(self.kind).save(self._path)

    def append(self, rows: DataFrame) -> None:
        """Add rows."""
        if self.kind == "iceberg":
            rows.writeTo(self.sql).append()
        else:
            rows.write.format(self.kind).mode("append").save(self._path)

    def replace(self, rows: DataFrame, where: str) -> None:
        """Replace the rows that fit a condition."""
        if self.kind == "iceberg":  # its overwrite takes no part of a file
            self.spark.sql(f"DELETE FROM {self.sql} WHERE {where}").collect()
            rows.writeTo(self.sql).append()
        else:
            rows.write.format("delta").mode("overwrite").option("replaceWhere", where).save(self._path)


def run() -> None:
    """Measure all loads."""
    figures: dict[str, list[float]] = {}
    notes: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        local = SparkEngine(master="local[2]", cache=cache_folder()).with_places((), [ICEBERG_PACKAGE])
        with connect_server(local, root / "connect.log") as url:
            engine = SparkEngine(remote=url)
            spark = _session(engine, root)
            for name, side, aim in _sides(root, engine, spark):
                measured = _measured(side)
                figures |= {f"{name}, {who}": seconds for who, seconds in measured.items()}
                notes.append(
                    f"{name}, ours / bare Spark: {ratio(measured, 'ours', 'bare'):.2f} (aim: at most {aim})"
                )
    rows = [
        {"side": side, "seconds": median(values), "min": min(values), "max": max(values)}
        for side, values in figures.items()
    ]
    report("loads", rows, notes)


def _session(engine: SparkEngine, root: Path) -> SparkSession:
    """Return a session with bare Spark's catalog of Iceberg tables."""
    spark = engine.session()
    settings = {"type": "hadoop", "warehouse": str(root / "bare"), "cache-enabled": "false"}
    # Iceberg asks a file system for its scheme, and the one of Strandline's sessions has none.
    settings |= {
        "hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
        "hadoop.fs.file.impl.disable.cache": "true",
    }
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{_CATALOG}.{key}", value)
    spark.conf.set(f"spark.sql.catalog.{_CATALOG}", "org.apache.iceberg.spark.SparkCatalog")
    return spark


def _sides(root: Path, engine: SparkEngine, spark: SparkSession) -> Iterator[tuple[str, Side, float]]:
    loads = {
        "merge": _merging,
        "merge_overwrite": _overwriting,
        "replace": _replacing,
        "scd2": _versioning,
    }
    for kind in ("delta", "iceberg"):
        for size in SIZES:
            for load, build_side in loads.items():
                name = f"{load}_{kind}_{size.name}"
                label = f"{load} of {size.changes:,} into {size.rows:,} rows, {kind}"
                yield label, build_side(root / name, engine, spark, kind, size), size.aim
    for kind in ("delta", "iceberg", "parquet"):
        side = _appending(root / f"append_{kind}", engine, spark, kind)
        yield f"append of {APPENDED:,} rows, {kind}", side, 1.05
    side = _appending(root / "append_committed", engine, spark, "iceberg", COMMIT_COLUMN)
    yield f"append of {APPENDED:,} rows, iceberg, {COMMIT_COLUMN} by bare Spark, too", side, 1.05


def _measured(side: Side) -> dict[str, list[float]]:
    def product() -> float:
        side.arrive()
        return side.product()

    sides = {"ours": product, "bare": side.bare}
    alternate(WARM_UP, **sides)
    return alternate(ROUNDS, **sides)


class Landing:
    """Files that arrive, each with its rows; a round loads the last one."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder, self.spark, self.files = folder, spark, 0
        folder.mkdir(parents=True)

    def write_files(self, rows: DataFrame, name: str | None = None, parts: int = 1) -> list[str]:
        """Write Parquet files; return their paths."""
        self.files += 1
        stem = name or f"{self.files:06d}"
        drafts = self.folder.parent / f"draft_{self.files}"
        rows.repartition(parts).write.parquet(str(drafts))
        (self.folder / stem).parent.mkdir(parents=True, exist_ok=True)
        paths: list[str] = []
        for number, draft in enumerate(sorted(drafts.glob("*.parquet"))):
            target = self.folder / f"{stem}_{number:03d}.parquet"
            draft.rename(target)
            paths.append(str(target))
        return paths

    def read(self, paths: Sequence[str]) -> DataFrame:
        """Read files as bare Spark does."""
        return self.spark.read.schema(SCHEMA).parquet(*paths)


def _merging(folder: Path, engine: SparkEngine, spark: SparkSession, kind: str, size: Size) -> Side:
    """Return a merge of changed keys scattered over the whole table; a tenth of them is new."""

    def merge(bare: Bare) -> None:
        spark.sql(
            f"MERGE INTO {bare.sql} t USING changes s ON t.id = s.id"
            " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ).collect()

    return _by_keys(folder, engine, spark, kind, size, "merge_upsert", merge)


def _overwriting(folder: Path, engine: SparkEngine, spark: SparkSession, kind: str, size: Size) -> Side:
    """Return the same changes, with the old rows of their keys deleted first.

    A key may come with another number of rows than it had.
    """

    def overwrite(bare: Bare) -> None:
        spark.sql(
            f"MERGE INTO {bare.sql} t USING (SELECT DISTINCT id FROM changes) s ON t.id = s.id WHEN MATCHED THEN DELETE"
        ).collect()
        bare.append(spark.table("changes"))

    return _by_keys(folder, engine, spark, kind, size, "merge_overwrite", overwrite)


def _by_keys(
    folder: Path,
    engine: SparkEngine,
    spark: SparkSession,
    kind: str,
    size: Size,
    load: str,
    change: Callable[[Bare], None],
) -> Side:
    """Return a load of changes that arrive as a file; ``change`` applies the view ``changes``."""
    target = {"format": kind, "load": load, "merge_keys": ["id"]}
    landing, product = _landed(folder, engine, spark, target)
    bare = Bare(spark, kind, folder.parent / "bare", folder.name)
    first = landing.write_files(_rows(spark, "id", 0, size.rows), parts=4)
    product.run()
    bare.create(_with_origin(landing.read(first)))
    files: list[str] = []

    def arrive() -> None:
        files[:] = landing.write_files(_changes(spark, size, landing.files))

    def bare_load() -> None:
        _with_origin(landing.read(files)).createOrReplaceTempView("changes")
        change(bare)

    return Side(arrive, product.run, lambda: _timed(bare_load))


def _versioning(folder: Path, engine: SparkEngine, spark: SparkSession, kind: str, size: Size) -> Side:
    """Return the same changes as new versions; bare Spark assumes that none is late."""
    target = {"format": kind, "load": "scd2", "merge_keys": ["id"], "effective_column": "at"}
    landing, product = _landed(folder, engine, spark, target)
    bare = Bare(spark, kind, folder.parent / "bare", f"scd2_{kind}_{size.name}")
    first = landing.write_files(_rows(spark, "id", 0, size.rows), parts=4)
    product.run()
    bare.create(
        _with_origin(landing.read(first)).selectExpr(
            "*", "at AS _valid_from", "CAST(NULL AS timestamp) AS _valid_to", "true AS _is_current"
        )
    )
    files: list[str] = []
    facts = ("customer", "amount", "note")
    differ = " OR ".join(f"NOT t.{fact} <=> s.{fact}" for fact in facts)
    names = (*_COLUMNS, *_ORIGIN)

    def arrive() -> None:
        files[:] = landing.write_files(_changes(spark, size, landing.files))

    def merge() -> None:
        _with_origin(landing.read(files)).createOrReplaceTempView("changes")
        spark.sql(
            f"""
            MERGE INTO {bare.sql} t USING (
              SELECT id AS merge_key, * FROM changes
              UNION ALL SELECT NULL, s.* FROM changes s JOIN {bare.sql} t ON t.id = s.id WHERE t._is_current AND ({differ})
            ) s ON t.id = s.merge_key AND t._is_current
            WHEN MATCHED AND ({differ}) THEN UPDATE SET _valid_to = s.at, _is_current = false
            WHEN NOT MATCHED THEN INSERT ({", ".join(names)}, _valid_from, _valid_to, _is_current)
              VALUES ({", ".join(f"s.{name}" for name in names)}, s.at, NULL, true)
            """
        ).collect()

    return Side(arrive, product.run, lambda: _timed(merge))


def _replacing(folder: Path, engine: SparkEngine, spark: SparkSession, kind: str, size: Size) -> Side:
    """Return a load of a new day, and of the day before it again: half of the rows each."""
    a_day = size.changes // 2
    days = size.rows // a_day
    flow = {
        "source": {"type": "files", "path": "./landing/{start:%Y-%m-%d}", "format": "parquet", "schema": SCHEMA},
        "watermark": {
            "type": "window", "window": "daily", "partial": False, "grace": "P1D", "checkpoint": {"interval_windows": days},
            "definition": [{"name": "day", "type": "datetime", "range": {"from": FIRST_DAY.isoformat(), "to": "-"}}],
        },
        "target": {"format": kind, "load": "merge_overwrite", "replace_by_watermark": True, "origin_columns": False},
        "unknown_fields": "ignore",
    }  # fmt: skip
    product = LoadProject(folder, engine, flow)
    landing = Landing(folder / "landing", spark)
    bare = Bare(spark, kind, folder.parent / "bare", f"replace_{kind}_{size.name}")
    last = FIRST_DAY + timedelta(days=days)
    first = _days(landing, spark, FIRST_DAY, days, a_day)
    now = datetime(last.year, last.month, last.day, 0, 5, tzinfo=UTC)
    product.run(now)
    bare.create(_with_window(landing.read(first)))
    files: list[str] = []

    def arrive() -> None:
        nonlocal last, now
        (before,) = (folder / "landing" / f"{last - timedelta(days=1)}").glob("*.parquet")
        files[:] = [str(before), *_days(landing, spark, last, 1, a_day)]
        last, now = last + timedelta(days=1), now + timedelta(days=1)

    def replace() -> None:
        where = (
            f"_window_start >= timestamp'{last - timedelta(days=2)}' AND _window_start < timestamp'{last}'"
        )
        bare.replace(_with_window(landing.read(files)), where)

    return Side(arrive, lambda: product.run(now), lambda: _timed(replace))


def _appending(
    folder: Path, engine: SparkEngine, spark: SparkSession, kind: str, marked: str | None = None
) -> Side:
    """Return a load of new rows; if ``marked`` names a column, bare Spark adds it with one value."""
    target = {"format": kind, "load": "append", "origin_columns": False}
    landing, product = _landed(folder, engine, spark, target)
    bare = Bare(spark, kind, folder.parent / "bare", folder.name)
    first = landing.write_files(_rows(spark, "id", 0, APPENDED))
    product.run()
    files: list[str] = []

    def read() -> DataFrame:
        rows = landing.read(files or first)
        return rows.selectExpr("*", f"'{uuid4().hex}:1' AS {marked}") if marked else rows

    bare.create(read())

    def arrive() -> None:
        start = landing.files * APPENDED
        files[:] = landing.write_files(_rows(spark, "id", start, start + APPENDED))

    return Side(arrive, product.run, lambda: _timed(lambda: bare.append(read())))


def _landed(
    folder: Path, engine: SparkEngine, spark: SparkSession, target: dict[str, Any]
) -> tuple[Landing, LoadProject]:
    flow = {
        "source": {"type": "files", "path": "./landing", "format": "parquet", "schema": SCHEMA},
        "watermark": {"type": "path"},
        "target": target,
        "unknown_fields": "ignore",
        "late_files": "alert",  # an older file that came late would replace rows, which is refused of one load
    }
    product = LoadProject(folder, engine, flow)
    return Landing(folder / "landing", spark), product


def _rows(spark: SparkSession, key: str, start: int, end: int, version: int = 0) -> DataFrame:
    """Return numbered rows, each with a key made from its number."""
    return spark.range(start, end, 1, 4).selectExpr(
        f"{key} AS id",
        f"timestamp_seconds(1577836800 + {version} * 10000000 + id) AS at",
        "CAST(id % 9973 AS int) AS customer",
        f"CAST((id + {version}) % 100000 / 100 AS decimal(12, 2)) AS amount",
        f"concat('order number ', id, ' of {version}') AS note",
    )


def _changes(spark: SparkSession, size: Size, version: int) -> DataFrame:
    updates = size.changes * 9 // 10
    step = size.rows // updates
    new = size.rows + version * size.changes
    key = f"IF(id < {updates}, id * {step} + {version % step}, {new} + id)"
    return _rows(spark, key, 0, size.changes, version)


def _days(landing: Landing, spark: SparkSession, first: date, count: int, rows: int) -> list[str]:
    """Write a file for each day, in its folder; return the paths."""
    paths: list[str] = []
    begin = int(datetime(first.year, first.month, first.day, tzinfo=UTC).timestamp())
    all_rows = spark.range(0, count * rows, 1, 4).selectExpr(
        "id",
        f"timestamp_millis({begin}000 + id DIV {rows} * 86400000 + id % {rows} * (86400000 DIV {rows})) AS at",
        "CAST(id % 9973 AS int) AS customer", "CAST(id % 100000 / 100 AS decimal(12, 2)) AS amount",
        "concat('order number ', id) AS note", f"CAST(id DIV {rows} AS int) AS day",
    )  # fmt: skip
    landing.files += 1
    drafts = landing.folder.parent / f"draft_{landing.files}"
    all_rows.repartition("day").write.partitionBy("day").parquet(str(drafts))
    for number in range(count):
        (draft,) = (drafts / f"day={number}").glob("*.parquet")
        target = landing.folder / f"{first + timedelta(days=number)}" / "rows.parquet"
        target.parent.mkdir()
        draft.rename(target)
        paths.append(str(target))
    return paths


def _with_origin(rows: DataFrame) -> DataFrame:
    """Return rows with the origin columns that a merge of files needs."""
    return rows.selectExpr(
        *_COLUMNS,
        "_metadata.file_path AS _source_file",
        "current_timestamp() AS _ingested_at",
        "'' AS _run_id",
    )


def _with_window(rows: DataFrame) -> DataFrame:
    """Return rows with the columns of their window and unit."""
    return rows.selectExpr(*_COLUMNS, "date_trunc('day', at) AS _window_start", "'{}' AS _unit")


def _timed(act: Callable[[], object]) -> float:
    started = time.monotonic()
    act()
    return time.monotonic() - started
