"""Measures a column watermark: increments and a first load, against bare Spark and dlt.

The source is a table of PostgreSQL with 5,000,000 rows and an index on its time, and a Delta table with
the same rows. Both
sides of a pair write Delta tables of their own in one session, and both learn the highest value by an
observation of their
write. Rounds that warm the engine up come first and do not count: whoever is first in a session has the
JVM compile what both
need. New rows are also read once before either side does, since PostgreSQL notes at a row's first read
that its transaction
has ended.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import CHECKOUT, alternate, command, median, ratio, report
from platform_assets.installation import cache_folder
from platform_assets.project import load_project
from resources.connections.jdbc import JdbcConnection
from resources.outcome import Outcome
from resources.platform.platform import Platform
from resources.spark.connect_server import ConnectServer, free_port
from resources.spark.engine import SparkEngine
from scripts import postgres as pg

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DLT = CHECKOUT / ".strandline/cache/dlt"
ROWS, INCREMENT, SLICE = 5_000_000, 50_000, 1_000_000
RUNS, WARM_UP, LOADS = 21, 4, 5
START = datetime(2020, 1, 1, tzinfo=UTC)
_ROW = "n AS id, timestamptz '2020-01-01 00:00:00+00' + n * interval '1 second' AS at, (n % 9973)::int AS customer, (n % 100000) / 100.0 AS amount, 'order number ' || n AS note"
_OPTIONS = {
    "fetchsize": "10000",
    "driver": "org.postgresql.Driver",
    "sessionInitStatement": "SET TIME ZONE 'UTC'",
}


class Source:
    """A table of PostgreSQL that grows by increments."""

    def __init__(self, server: pg.Postgres) -> None:
        self.server, self.rows = server, 0
        self.connection = JdbcConnection.parse(
            f"jdbc:postgresql://127.0.0.1:{server.port}/postgres", "postgres", server.password
        )
        server.ask(
            "CREATE TABLE orders (id bigint, at timestamptz, customer int, amount numeric(12, 2), note text)"
        )
        self.grow(ROWS)
        server.ask("CREATE INDEX ON orders (at)")
        server.ask("VACUUM (ANALYZE) orders")  # as autovacuum leaves it a minute later

    def grow(self, count: int) -> None:
        """Add rows above all others."""
        first, last = self.rows + 1, self.rows + count
        self.server.ask(f"INSERT INTO orders SELECT {_ROW} FROM generate_series({first}, {last}) n")
        self.server.ask(f"SELECT count(note) FROM orders WHERE at > '{self.at(first - 1).isoformat()}'")
        self.rows = last

    def at(self, number: int) -> datetime:
        """Return the time of a row."""
        return START + timedelta(seconds=number)


class ColumnProject:
    """A project of one dataflow with a watermark on ``at``."""

    def __init__(
        self, folder: Path, engine: SparkEngine, source: dict[str, Any], password: str, url: str
    ) -> None:
        (folder / "dataflows").mkdir(parents=True)
        erp = {"type": "jdbc", "url": url, "user": "postgres", "password": {"env": "PG"}}
        (folder / "platform.yaml").write_text(
            json.dumps({"state": "./state", "lake": "./lake", "connections": {"erp": erp}})
        )
        watermark = {"type": "column", "columns": ["at"], "checkpoint": {"interval_rows": SLICE}}
        flow = {"source": source, "watermark": watermark, "target": {"load": "append"}}
        (folder / "dataflows/orders.yaml").write_text(json.dumps(flow))
        self._project, self._engine = load_project(folder, environment={"PG": password}), engine

    def run(self, expected: int) -> float:
        """Load the new rows; return the seconds."""
        project = self._project
        platform = Platform(
            project.state, project.lake, self._engine, project.source_place, lineage=project.lineage
        )
        started = time.monotonic()
        outcome: Outcome = platform.loop(project.dataflows["orders"], datetime.now(UTC)).run()
        seconds = time.monotonic() - started
        assert outcome.error is None, outcome.error
        assert outcome.rows == expected, outcome.rows
        return seconds


def run() -> None:
    """Measure all sides in turn."""
    with tempfile.TemporaryDirectory() as folder, pg.running() as server:
        root, source = Path(folder), Source(server)
        engine = SparkEngine(master="local[2]", cache=cache_folder()).with_places([source.connection])
        spark_server = ConnectServer(engine, root / "connect.log", free_port(), 120.0)
        spark_server.start()
        try:
            remote = SparkEngine(remote=spark_server.url)
            assert spark_server.process is not None
            rows, notes = _measured(root, source, remote, spark_server.process.pid)
        finally:
            spark_server.stop()
    report("columns", rows, notes)


def _measured(
    root: Path, source: Source, engine: SparkEngine, pid: int
) -> tuple[list[dict[str, Any]], list[str]]:
    spark = engine.session()
    loads, memory = _first_loads(root, source, engine, spark, pid)
    increments = _increments(root, source, engine, spark)
    lake = _lake(root, source, engine, spark)
    figures = {**loads, **increments, **lake}
    rows = [
        {
            "side": side,
            "seconds": median(values),
            "min": min(values),
            "max": max(values),
            "peak MiB": memory.get(side),
        }
        for side, values in figures.items()
    ]
    pairs = (
        ("first load", "at most 1.10"),
        ("increment from PostgreSQL", "at most 1.10"),
        ("increment from Delta", "at most 1.10"),
    )
    notes = [
        f"{name}, ours / bare Spark: {ratio(figures, f'{name}, ours', f'{name}, bare Spark'):.2f} (aim: {aim})"
        for name, aim in pairs
    ]
    notes.append(
        f"increment from PostgreSQL, ours / dlt: {ratio(figures, 'increment from PostgreSQL, ours', 'increment from PostgreSQL, dlt'):.2f} (aim: below 1)"
    )
    return rows, notes


def _first_loads(
    root: Path, source: Source, engine: SparkEngine, spark: SparkSession, pid: int
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Load all rows in slices of a million, by four connections, against one write of the same parts."""
    peaks: dict[str, list[float]] = {"first load, ours": [], "first load, bare Spark": []}
    fresh = _numbers()

    def run_product() -> float:
        flow = _make_project(root / f"first_{next(fresh)}", source, engine)
        return _with_peak(pid, peaks["first load, ours"], lambda: flow.run(ROWS))

    def bare() -> float:
        cuts = [source.at(number) for number in range(0, ROWS + 1, SLICE // 4)]
        parts = [
            f"at > '{lower.isoformat()}' AND at <= '{upper.isoformat()}'" for lower, upper in pairwise(cuts)
        ]
        target = root / f"first_bare_{next(fresh)}"
        return _with_peak(
            pid,
            peaks["first load, bare Spark"],
            lambda: _bare(lambda: _jdbc(spark, source, parts), target, ROWS),
        )

    sides = {"first load, ours": run_product, "first load, bare Spark": bare}
    alternate(1, **sides)
    figures = alternate(LOADS, **sides)
    return figures, {side: max(values) for side, values in peaks.items()}


def _increments(
    root: Path, source: Source, engine: SparkEngine, spark: SparkSession
) -> dict[str, list[float]]:
    """Load new rows again and again; the first rounds warm up and do not count."""
    flow, bare_table = _make_project(root / "increments", source, engine), root / "increments_bare"
    flow.run(source.rows)
    _bare(lambda: _jdbc(spark, source, [f"id <= {source.rows}"]), bare_table, source.rows)
    dlt = _dlt(root / "dlt", source)

    def grown(side: Callable[[int], float]) -> Callable[[], float]:
        return lambda: side(INCREMENT)

    def run_product(count: int) -> float:
        source.grow(INCREMENT)
        return flow.run(count)

    def bare(count: int) -> float:
        after, up_to = source.at(source.rows - INCREMENT), source.at(source.rows)
        part = [f"at > '{after.isoformat()}' AND at <= '{up_to.isoformat()}'"]
        return _bare(lambda: _jdbc(spark, source, part), bare_table, count)

    sides = {
        "increment from PostgreSQL, ours": grown(run_product),
        "increment from PostgreSQL, bare Spark": grown(bare),
        "increment from PostgreSQL, dlt": grown(dlt),
    }
    alternate(WARM_UP, **sides)
    return alternate(RUNS, **sides)


def _lake(root: Path, source: Source, engine: SparkEngine, spark: SparkSession) -> dict[str, list[float]]:
    """Load the same rows from a Delta table whose files follow each other in time."""
    flow = ColumnProject(
        root / "from_lake",
        engine,
        {"type": "table", "table": "raw/orders"},
        source.server.password,
        source.connection.url,
    )
    raw, bare_table = root / "from_lake/lake/raw/orders", root / "lake_bare"
    row_count = 0

    def grow(count: int) -> None:
        nonlocal row_count
        numbers = spark.range(row_count + 1, row_count + count + 1, 1, max(1, count // 250_000))
        numbers.selectExpr(
            "id", "timestamp_seconds(1577836800 + id) AS at", "CAST(id % 9973 AS int) AS customer",
            "CAST((id % 100000) / 100 AS decimal(12, 2)) AS amount", "concat('order number ', id) AS note",
        ).write.format("delta").mode("append").save(str(raw))  # fmt: skip
        row_count += count

    grow(ROWS)
    flow.run(ROWS)
    _bare(lambda: spark.read.format("delta").load(str(raw)), bare_table, ROWS)

    def run_product() -> float:
        grow(INCREMENT)
        return flow.run(INCREMENT)

    def bare() -> float:
        bounds = f"at > '{source.at(row_count - INCREMENT).isoformat()}' AND at <= '{source.at(row_count).isoformat()}'"
        return _bare(lambda: spark.read.format("delta").load(str(raw)).where(bounds), bare_table, INCREMENT)

    sides = {"increment from Delta, ours": run_product, "increment from Delta, bare Spark": bare}
    alternate(WARM_UP, **sides)
    return alternate(RUNS, **sides)


def _make_project(folder: Path, source: Source, engine: SparkEngine) -> ColumnProject:
    table_source = {"type": "jdbc", "connection": "erp", "table": "orders"}
    return ColumnProject(folder, engine, table_source, source.server.password, source.connection.url)


def _jdbc(spark: SparkSession, source: Source, parts: list[str]) -> DataFrame:
    properties = {**_OPTIONS, "user": "postgres", "password": source.server.password}
    return spark.read.jdbc(source.connection.url, "orders", predicates=parts, properties=properties)


def _bare(rows: Callable[[], DataFrame], target: Path, expected: int) -> float:
    """Append rows with bare Spark, and learn their highest time and number in the same job."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    started, observation = time.monotonic(), Observation()
    watched = rows().observe(observation, F.max("at").alias("at"), F.count(F.lit(1)).alias("rows"))
    watched.write.format("delta").mode("append").save(str(target))
    assert observation.get["rows"] == expected, observation.get
    return time.monotonic() - started


def _dlt(folder: Path, source: Source) -> Callable[[int], float]:
    """Return a run of dlt's sql_database into Delta, in its own environment; seconds without imports."""
    python = DLT / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(DLT)], check=True)
    requirements = ["dlt[filesystem,deltalake,parquet]", "sqlalchemy", "psycopg2-binary"]
    subprocess.run([str(python), "-m", "pip", "install", "-q", *requirements], check=True)
    url = source.server.url().replace("postgresql://", "postgresql+psycopg2://")

    begins = source.at(source.rows).isoformat()

    def load(expected: int) -> float:
        cost = command(
            [str(python), str(CHECKOUT / "benchmarks/scripts/columns_dlt.py"), str(folder), url, begins]
        )
        assert cost.code == 0, cost.output
        result = json.loads(cost.output.strip().splitlines()[-1])
        assert result["rows"] == expected, result
        return float(result["seconds"])

    return load


def _with_peak(pid: int, peaks: list[float], act: Callable[[], float]) -> float:
    """Run something, and record the server's peak memory meanwhile."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    seconds = act()
    (line,) = [
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")
    ]
    peaks.append(int(line.split()[1]) / 1024)
    return seconds


def _numbers() -> Iterator[int]:
    number = 0
    while True:
        number += 1
        yield number
