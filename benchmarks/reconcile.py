"""Measures a comparison of source and table, and its repair, against a full outer join in Spark.

The source is a table of PostgreSQL with 10,000,000 rows, the table is Delta. Both differ in 0, 3 or 100,000
rows: a third of them is missing in the table, a third is extra, and a third has another value. Bare Spark reads
both sides whole, joins them by their key, and counts what differs; a ``count(*)`` of each side says what any
look at all rows costs.

A side is read at most three times. That is a matter of counting, not of time: PostgreSQL counts the rows that
its scans have read, and each pass over the table is one call.

``--rows N`` measures with N rows; ``--rounds N`` with other than 3 rounds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import alternate, median, ratio, report
from partitions.dataflow import Dataflow
from partitions.reconcile.result import Reconciliation
from platform_assets.installation import cache_folder
from platform_assets.project import Project, load_project
from resources.connections.jdbc import JdbcConnection
from resources.platform.platform import Platform
from resources.reconcile.options import ReconcileOptions
from resources.reconcile.reconciling import reconcile
from resources.reconcile.repairing import plan_repair, repair
from resources.reconcile.spark_side import SparkSide
from resources.spark.connect_server import connect_server
from resources.spark.engine import SparkEngine
from resources.spark_runtime import ICEBERG_PACKAGE
from scripts import postgres as pg

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS, ROUNDS, WARM_UP = 10_000_000, 3, 1
DIFFERENCES = (0, 3, 100_000)
MAX_SCANS = 3
_ROW = (
    "n AS id, timestamptz '2021-01-01 00:00:00+00' + n * interval '3 seconds' AS at, (n % 9973)::int AS customer,"
    " (n % 100000) / 100.0 AS amount, 'order number ' || n AS note"
)
_PARTS = 4
_OURS, _JOIN = "reconcile --rows", "full outer join in Spark"
_FLOW = "orders"


@dataclass(frozen=True)
class Sides:
    """A source and a table of the same rows.

    Attributes:
        server: PostgreSQL with the source.
        platform: resources of the project.
        spark: session of bare Spark.
        rows: rows of the source.
        project: the project of the dataflow.
    """

    server: pg.Postgres
    platform: Platform
    spark: SparkSession
    rows: int
    project: Project

    @property
    def dataflow(self) -> Dataflow:
        """The definition."""
        return self.project.dataflows[_FLOW]

    @property
    def url(self) -> str:
        """Where bare Spark reads the source."""
        return f"jdbc:postgresql://127.0.0.1:{self.server.port}/postgres"

    def load(self) -> None:
        """Load the table."""
        outcome = self.platform.loop(self.dataflow, datetime.now(UTC)).run()
        assert outcome.error is None, outcome.error
        assert outcome.rows == self.rows, outcome

    def differ(self, count: int) -> None:
        """Let as many rows differ, all over the table: missing, extra and different ones in turn."""
        if not count:
            return
        step = max(3, self.rows // count)
        chosen = f"id % {step} = 0 AND id < {step * count}"
        sort = f"(id / {step}) % 3"
        self.server.ask(f"DELETE FROM orders WHERE {chosen} AND {sort} = 0")
        self.server.ask(f"UPDATE orders SET note = note || '!' WHERE {chosen} AND {sort} = 1")
        self.server.ask(f"UPDATE orders SET id = -id WHERE {chosen} AND {sort} = 2")
        self.server.ask("VACUUM ANALYZE orders")

    def compare(self) -> Reconciliation:
        """Compare all columns."""
        options = ReconcileOptions(rows=True)
        return reconcile(self.platform, self.dataflow, options, datetime.now(UTC))

    def repair(self) -> float:
        """Repair all that differs; return the seconds without those of the comparison."""
        now, options = datetime.now(UTC), ReconcileOptions(rows=True, repairs="all")
        plan = plan_repair(self.platform, self.dataflow, options, now)
        started = time.monotonic()
        outcome = repair(self.platform, plan, "a benchmark", now)
        assert outcome.error is None, outcome.error
        return time.monotonic() - started

    def source(self, columns: str = "*") -> DataFrame:
        """Return all rows of the source, read over four connections."""
        step = -(-self.rows // _PARTS)
        parts = [f"abs(id) >= {n * step} AND abs(id) < {(n + 1) * step}" for n in range(_PARTS)]
        properties = {
            "user": "postgres",
            "password": self.server.password,
            "fetchsize": "10000",
            "driver": "org.postgresql.Driver",
            "sessionInitStatement": "SET TIME ZONE 'UTC'",
        }
        return self.spark.read.jdbc(
            self.url, f"(SELECT {columns} FROM orders) AS o", predicates=parts, properties=properties
        )

    def table(self) -> DataFrame:
        """Return the table as bare Spark reads it."""
        return self.spark.read.format("delta").load(self.platform.lake.child(self.dataflow.table).spark_url)

    def join(self) -> int:
        """Return how many rows differ, by a full outer join of both sides."""
        source, table = self.source().alias("s"), self.table().alias("t")
        differs = " OR ".join(f"NOT (s.{name} <=> t.{name})" for name in ("at", "customer", "amount", "note"))
        return source.join(table, "id", "full_outer").where(differs).count()


def main(arguments: list[str]) -> int:
    """Run and report the measurement."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks reconcile", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args(arguments)
    run(options.rows, options.rounds)
    return 0


def run(rows: int = ROWS, rounds: int = ROUNDS) -> None:
    """Measure all numbers of differences in turn."""
    reported: list[dict[str, Any]] = []
    notes: list[str] = []
    for count in DIFFERENCES:
        if count * 3 > rows:
            continue
        with _sides(rows) as sides:
            sides.load()
            sides.differ(count)
            scans = _scans(sides)
            figures = _measured(sides, count, rounds)
        name = f"{count:,} differences"
        reported += [
            {"side": f"{name}, {side}", "seconds": median(values), "min": min(values), "max": max(values)}
            for side, values in figures.items()
        ]
        notes.append(f"{name}: {_OURS} / {_JOIN}: {ratio(figures, _OURS, _JOIN):.2f}; {scans}")
    report("reconcile", reported, [f"{rows:,} rows", *notes])


def _measured(sides: Sides, count: int, rounds: int) -> dict[str, list[float]]:
    def ours() -> float:
        started = time.monotonic()
        result = sides.compare()
        seconds = time.monotonic() - started
        _check(result, count)
        return seconds

    def join() -> float:
        started = time.monotonic()
        found = sides.join()
        seconds = time.monotonic() - started
        assert found == _joined(count), (found, count)
        return seconds

    def counted_source() -> float:
        started = time.monotonic()
        sides.server.ask("SELECT count(*) FROM orders")
        return time.monotonic() - started

    def counted_table() -> float:
        started = time.monotonic()
        sides.table().where("id IS NOT NULL").count()
        return time.monotonic() - started

    measured: dict[str, Callable[[], float]] = {
        _OURS: ours,
        _JOIN: join,
        "count(*) of the source": counted_source,
        "count(*) of the table": counted_table,
    }
    alternate(WARM_UP, **measured)
    figures = alternate(rounds, **measured)
    if count:
        seconds = sides.repair()
        result = sides.compare()
        assert result.is_equal, result.totals
        figures["the repair itself"] = [seconds]
    return figures


def _check(result: Reconciliation, count: int) -> None:
    """Check the counts: a row with another key is missing, and the row of its old key extra."""
    deleted, changed, renamed = _thirds(count)
    totals = result.totals
    found = totals.missing, totals.extra, totals.different
    assert found == (renamed, deleted + renamed, changed), (found, count)


def _thirds(count: int) -> tuple[int, int, int]:
    """Return how many rows are deleted, changed and renamed at the source."""
    return tuple(len(range(sort, count, 3)) for sort in range(3))  # type: ignore[return-value]


def _joined(count: int) -> int:
    deleted, changed, renamed = _thirds(count)
    return deleted + changed + 2 * renamed


def _scans(sides: Sides) -> str:
    """Return how often a comparison has read each side, after a check that it was at most three times."""
    with _counted_passes() as passes:
        before = _rows_read(sides.server)
        sides.compare()
        read = _rows_read(sides.server) - before
    scans = read / sides.rows
    assert scans <= MAX_SCANS + 0.1, f"PostgreSQL has read {scans:.2f} times the rows of its table"
    assert len(passes) <= MAX_SCANS, passes
    return f"{scans:.1f} scans of the source, {len(passes)} of the table"


def _rows_read(server: pg.Postgres) -> int:
    """Return how many rows the scans of the table have read so far; sessions report it when they end."""
    time.sleep(2)
    ((rows,),) = server.ask(
        "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = 'orders'"
    )
    return int(rows)


@contextmanager
def _counted_passes() -> Iterator[list[str]]:
    """Count the passes of Spark over the table inside the block."""
    passes: list[str] = []
    originals = {name: getattr(SparkSide, name) for name in ("cells", "rows", "lowest")}

    def counting(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            passes.append(name)
            return original(*arguments, **named)

        return counted

    for name, original in originals.items():
        setattr(SparkSide, name, counting(name, original))
    try:
        yield passes
    finally:
        for name, original in originals.items():
            setattr(SparkSide, name, original)


@contextmanager
def _sides(rows: int) -> Iterator[Sides]:
    """Yield a source and a project that loads it; nothing is loaded yet."""
    with tempfile.TemporaryDirectory() as folder, pg.running() as server:
        root = Path(folder)
        server.ask(
            "CREATE TABLE orders (id bigint, at timestamptz, customer int, amount numeric(12, 2), note text)"
        )
        server.ask(f"INSERT INTO orders SELECT {_ROW} FROM generate_series(0, {rows - 1}) n")
        server.ask("ALTER TABLE orders ADD PRIMARY KEY (id)")
        server.ask("CREATE INDEX ON orders (at)")
        server.ask("VACUUM ANALYZE orders")
        connection = JdbcConnection.parse(
            f"jdbc:postgresql://127.0.0.1:{server.port}/postgres", "postgres", server.password
        )
        local = SparkEngine(master="local[2]", cache=cache_folder()).with_places(
            [connection], [ICEBERG_PACKAGE]
        )
        with connect_server(local, root / "connect.log") as url:
            engine = SparkEngine(remote=url)
            project = _project(root / "project", server)
            platform = Platform(
                project.state, project.lake, engine, project.source_place, lineage=project.lineage
            )
            yield Sides(server, platform, engine.session(), rows, project)


def _project(folder: Path, server: pg.Postgres) -> Project:
    (folder / "dataflows").mkdir(parents=True)
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/postgres"
    erp = {"type": "jdbc", "url": url, "user": "postgres", "password": {"env": "PG"}}
    settings = {"state": "./state", "lake": "./lake", "connections": {"erp": erp}}
    (folder / "platform.yaml").write_text(json.dumps(settings))
    flow = {
        "source": {"type": "jdbc", "connection": "erp", "table": "orders"},
        "watermark": {"type": "column", "columns": ["at"]},
        "target": {"load": "merge_upsert", "merge_keys": ["id"]},
    }
    (folder / f"dataflows/{_FLOW}.yaml").write_text(json.dumps(flow))
    return load_project(folder, environment={"PG": server.password})
