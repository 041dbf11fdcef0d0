"""Measures replays of a year, into an isolated table and in place, and their promotes.

The source is a table of PostgreSQL with 5,000,000 rows of a year and an index on their time. A replay in
twelve chunks is
measured against one chunk, one in place, and bare Spark, which reads month by month over four connections,
as the replay does,
and appends each month to a Delta table. A promote copies the isolated rows into the live table, so that
one commit changes
what readers see; bare Spark overwrites the same rows of a table with those of another. A replay in place
deletes and adds a
month with each commit. All sides of a round share a session; rounds that warm the engine up come first and
do not count.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import alternate, median, ratio, report
from platform_assets.installation import cache_folder
from platform_assets.project import load_project
from resources.connections.jdbc import JdbcConnection
from resources.platform.platform import Platform
from resources.replay.in_place import replay_in_place
from resources.replay.isolated.promoting import promote_replay
from resources.replay.isolated.replaying import replay_isolated
from resources.replay.options import ReplayOptions
from resources.spark.connect_server import connect_server
from resources.spark.engine import SparkEngine
from resources.spark_runtime import ICEBERG_PACKAGE
from scripts import postgres as pg

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, RUNS, WARM_UP = 5_000_000, 3, 1
YEAR, NEXT = 2021, 2022
_SECONDS = 365 * 86_400 / ROWS
_ROW = (
    f"n AS id, timestamptz '{YEAR}-01-01 00:00:00+00' + (n * {_SECONDS}) * interval '1 second' AS at, (n % 9973)::int AS customer,"
    " (n % 100000) / 100.0 AS amount, 'order number ' || n AS note"
)
_PARTS = 4
_BARE = "bare"


class Source:
    """A table of PostgreSQL with the rows of a year."""

    def __init__(self, server: pg.Postgres) -> None:
        self.password = server.password
        self.url = f"jdbc:postgresql://127.0.0.1:{server.port}/postgres"
        server.ask(
            "CREATE TABLE orders (id bigint, at timestamptz, customer int, amount numeric(12, 2), note text)"
        )
        server.ask(f"INSERT INTO orders SELECT {_ROW} FROM generate_series(0, {ROWS - 1}) n")
        server.ask("CREATE INDEX ON orders (at)")
        server.ask("VACUUM ANALYZE orders")

    def read(self, spark: SparkSession, lower: datetime, upper: datetime) -> Any:
        """Return the rows of a range, read over four connections."""
        step = (upper - lower) / _PARTS
        cuts = [*(lower + number * step for number in range(_PARTS)), upper]
        parts = [f"at >= '{start.isoformat()}' AND at < '{end.isoformat()}'" for start, end in pairwise(cuts)]
        properties = {
            "user": "postgres",
            "password": self.password,
            "fetchsize": "10000",
            "driver": "org.postgresql.Driver",
            "sessionInitStatement": "SET TIME ZONE 'UTC'",
        }
        return spark.read.jdbc(self.url, "orders", predicates=parts, properties=properties)


class ReplayProject:
    """A project whose dataflows have loaded the table into Delta and into Iceberg."""

    def __init__(self, folder: Path, engine: SparkEngine, source: Source) -> None:
        (folder / "dataflows").mkdir(parents=True)
        erp = {"type": "jdbc", "url": source.url, "user": "postgres", "password": {"env": "PG"}}
        (folder / "platform.yaml").write_text(
            json.dumps({"state": "./state", "lake": "./lake", "connections": {"erp": erp}})
        )
        for kind in ("delta", "iceberg"):
            flow = {
                "source": {"type": "jdbc", "connection": "erp", "table": "orders"},
                "watermark": {"type": "column", "columns": ["at"]},
                "target": {"format": kind, "load": "append", "table": f"bronze/{kind}"},
            }
            (folder / f"dataflows/{kind}.yaml").write_text(json.dumps(flow))
        self._project, self._engine = load_project(folder, environment={"PG": source.password}), engine
        self._tables = count(1)

    def load(self, name: str) -> None:
        """Load the live table."""
        outcome = self._platform.loop(self._project.dataflows[name], datetime.now(UTC)).run()
        assert outcome.error is None, outcome.error
        assert outcome.rows == ROWS, outcome

    def replay(self, name: str, every: str | None) -> tuple[float, str]:
        """Replay the year into a new table; return the seconds and the table."""
        table = f"aside/r{next(self._tables)}"
        options = ReplayOptions(f"{YEAR}-01-01", f"{NEXT}-01-01", table, every)
        started = time.monotonic()
        result = replay_isolated(self._platform, self._project.dataflows[name], options, datetime.now(UTC))
        seconds = time.monotonic() - started
        assert result.outcome.error is None, result.outcome.error
        assert result.outcome.rows == ROWS, result.outcome
        return seconds, table

    def replay_in_place(self, name: str, every: str) -> float:
        """Replay the year into the live table; return the seconds."""
        options = ReplayOptions(f"{YEAR}-01-01", f"{NEXT}-01-01", every=every, replace=True)
        started = time.monotonic()
        result = replay_in_place(self._platform, self._project.dataflows[name], options, datetime.now(UTC))
        seconds = time.monotonic() - started
        assert result.outcome.error is None, result.outcome.error
        assert sum(chunk["rows"] for chunk in result.reports) == ROWS, result.reports
        return seconds

    def promote(self, name: str, table: str) -> float:
        """Promote a replay; return the seconds."""
        started = time.monotonic()
        result = promote_replay(
            self._platform, self._project.dataflows[name], table, "a benchmark", datetime.now(UTC)
        )
        seconds = time.monotonic() - started
        assert result.entry.rows == ROWS, result.entry
        return seconds

    @property
    def _platform(self) -> Platform:
        project = self._project
        return Platform(
            project.state, project.lake, self._engine, project.source_place, lineage=project.lineage
        )


def run() -> None:
    """Measure all sides in turn."""
    with tempfile.TemporaryDirectory() as folder, pg.running() as server:
        root, source = Path(folder), Source(server)
        connection = JdbcConnection.parse(source.url, "postgres", source.password)
        local = SparkEngine(master="local[2]", cache=cache_folder()).with_places(
            [connection], [ICEBERG_PACKAGE]
        )
        with connect_server(local, root / "connect.log") as url:
            engine = SparkEngine(remote=url)
            spark = _session(engine, root)
            product = ReplayProject(root / "ours", engine, source)
            for kind in ("delta", "iceberg"):
                product.load(kind)
            figures = _replays(root, product, spark, source)
            for kind in ("delta", "iceberg"):
                figures |= _promotes(root, product, spark, source, kind)
    rows = [
        {"side": side, "seconds": median(values), "min": min(values), "max": max(values)}
        for side, values in figures.items()
    ]
    pairs = (
        ("replay of 12 months, ours", "replay of 12 months, bare Spark", "aim: at most 1.10"),
        ("replay of 12 months, ours", "replay in one chunk, ours", "what chunks cost"),
        ("replay of 12 months in place, ours", "replay of 12 months, ours", "what is deleted beside"),
        ("promote, delta, ours", "promote, delta, bare Spark", "the copy that it makes"),
        ("promote, iceberg, ours", "promote, iceberg, bare Spark", "the copy that it makes"),
    )
    report("replay", rows, [f"{a} / {b}: {ratio(figures, a, b):.2f} ({why})" for a, b, why in pairs])


def _replays(
    root: Path, product: ReplayProject, spark: SparkSession, source: Source
) -> dict[str, list[float]]:
    tables = count(1)
    months = [datetime(YEAR, month, 1, tzinfo=UTC) for month in range(1, 13)]
    months.append(datetime(NEXT, 1, 1, tzinfo=UTC))

    def bare() -> float:
        target, started = root / f"bare_{next(tables)}", time.monotonic()
        rows = sum(
            _appended(source.read(spark, lower, upper), str(target)) for lower, upper in pairwise(months)
        )
        seconds = time.monotonic() - started
        assert rows == ROWS, rows
        return seconds

    sides: dict[str, Callable[[], float]] = {
        "replay of 12 months, ours": lambda: product.replay("delta", "1 month")[0],
        "replay of 12 months, bare Spark": bare,
        "replay in one chunk, ours": lambda: product.replay("delta", None)[0],
        "replay of 12 months in place, ours": lambda: product.replay_in_place("delta", "1 month"),
    }
    alternate(WARM_UP, **sides)
    return alternate(RUNS, **sides)


def _promotes(
    root: Path, product: ReplayProject, spark: SparkSession, source: Source, kind: str
) -> dict[str, list[float]]:
    """Measure promotes over a live table that has only the rows of the year."""
    from pyspark.sql import functions as F

    bounds = datetime(YEAR, 1, 1, tzinfo=UTC), datetime(NEXT, 1, 1, tzinfo=UTC)
    where = f"at >= timestamp '{YEAR}-01-01 00:00:00+00:00' AND at < timestamp '{NEXT}-01-01 00:00:00+00:00'"
    live, aside = f"{_BARE}.db.live", f"{_BARE}.db.aside"
    folders = root / "delta_live", root / "delta_aside"
    for table, folder in ((live, folders[0]), (aside, folders[1])):
        rows = source.read(spark, *bounds)
        if kind == "iceberg":
            rows.writeTo(table).using("iceberg").create()
        else:
            rows.write.format("delta").save(str(folder))

    def bare() -> float:
        started = time.monotonic()
        if kind == "iceberg":
            spark.table(aside).where(where).writeTo(live).overwrite(F.expr(where))
        else:
            rows = spark.read.format("delta").load(str(folders[1])).where(where)
            rows.write.format("delta").mode("overwrite").option("replaceWhere", where).save(str(folders[0]))
        return time.monotonic() - started

    sides: dict[str, Callable[[], float]] = {
        f"promote, {kind}, ours": lambda: product.promote(kind, product.replay(kind, "1 month")[1]),
        f"promote, {kind}, bare Spark": bare,
    }
    alternate(WARM_UP, **sides)
    return alternate(RUNS, **sides)


def _appended(rows: Any, target: str) -> int:
    """Append rows to a Delta table; return their number, learned with the highest time in the same job."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    observation = Observation()
    watched = rows.observe(observation, F.count(F.lit(1)).alias("rows"), F.max("at").alias("at"))
    watched.write.format("delta").mode("append").save(target)
    return int(observation.get["rows"])


def _session(engine: SparkEngine, root: Path) -> SparkSession:
    """Return a session with bare Spark's catalog of Iceberg tables."""
    spark = engine.session()
    key = f"spark.sql.catalog.{_BARE}"
    settings = {"type": "hadoop", "warehouse": str(root / "bare"), "cache-enabled": "false"}
    # Iceberg asks a file system for its scheme, and the one of Strandline's sessions has none.
    settings |= {
        "hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
        "hadoop.fs.file.impl.disable.cache": "true",
    }
    for name, value in settings.items():
        spark.conf.set(f"{key}.{name}", value)
    spark.conf.set(key, "org.apache.iceberg.spark.SparkCatalog")
    return spark
