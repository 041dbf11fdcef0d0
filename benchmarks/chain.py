"""Measures a dataflow that reads its upstream table by commits, against bare Spark in the same session.

Four parts: a look at a table of many commits, with ``plan`` and with the sensor; one new commit of a table of
many commits; changed rows that a keyed load applies, read from the change data feed or from the files; a first
read. Bare Spark keeps no state and gets the names of the files, or the version. Both sides write the same
columns.

The figures are CPU seconds of this process and of the Connect server, since other work on the machine
stretches the wall time of one side or the other. A side has what it leaves running, too: the next one begins
when the server is idle.

``--rows N`` measures with tables of N rows in place of 5,000,000, and a long log of ten times as many;
``--commits N`` with another length of that log; ``--rounds N`` with other than 7 rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from deltalake import DeltaTable, write_deltalake

from benchmarks.landing import pretend_loaded
from benchmarks.long_log import some_rows, write_long_log
from benchmarks.measure import alternate, median, ratio, report, script
from platform_assets.installation import cache_folder
from platform_assets.project import load_project
from resources.connections.places import Place
from resources.outcome import Outcome
from resources.platform.platform import Platform
from resources.spark.connect_server import ConnectServer
from resources.spark.engine import SparkEngine
from resources.spark_runtime import ICEBERG_PACKAGE
from resources.tables.delta.log import DeltaLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = ("delta", "iceberg")
SHORT_LOG = 1_000
NEW_ROWS = 1_000
WARM_UP = 3
_COLUMNS = ("id", "at", "note")
_IDLE, _PAUSE = 0.03, 0.15
"""A server that uses less CPU than the first within the second is idle; both in seconds."""


@dataclass(frozen=True)
class Size:
    """The size of all tables.

    Attributes:
        rows: rows of the table that is read first, or changed.
        commits: commits of the long log, which has ten times as many rows.
        rounds: rounds that count.
    """

    rows: int = 5_000_000
    commits: int = 20_000
    rounds: int = 7

    @property
    def changes(self) -> int:
        """Rows that change in a round."""
        return self.rows // 100


@dataclass
class Meter:
    """Measures what a side costs.

    Attributes:
        server: the Connect server.
        walls: wall seconds of each round, by side.
    """

    server: psutil.Process
    walls: dict[str, list[float]] = field(default_factory=dict)

    def measured(self, name: str, side: Callable[[], object]) -> float:
        """Run a side; return its CPU seconds, with what the server does until it is idle."""
        self._settle()
        cpu, started = self._cpu(), time.monotonic()
        side()
        self.walls.setdefault(name, []).append(time.monotonic() - started)
        self._settle()
        return self._cpu() - cpu

    def _cpu(self) -> float:
        times = os.times()
        return times.user + times.system + self._of_server()

    def _of_server(self) -> float:
        used = self.server.cpu_times()
        return float(used.user + used.system)

    def _settle(self) -> None:
        before = self._of_server()
        while True:
            time.sleep(_PAUSE)
            after = self._of_server()
            if after - before < _IDLE:
                return
            before = after


@dataclass(frozen=True)
class Pair:
    """A load by Strandline, and the same one by bare Spark.

    Attributes:
        name: what is loaded.
        arrive: creates the input of the next round.
        sides: loads, by who makes them: ``bare`` and others.
        aims: the highest ratio allowed of each side over ``bare``.
    """

    name: str
    arrive: Callable[[], None]
    sides: Mapping[str, Callable[[], object]]
    aims: Mapping[str, float]


class Lake:
    """A lake with the tables of all pairs.

    Attributes:
        root: folder of everything.
        engine: Strandline's Spark.
        spark: a session of the same Spark.
    """

    def __init__(self, root: Path, engine: SparkEngine) -> None:
        self.root, self.engine, self.spark = root, engine, engine.session()
        for key, value in _catalog(root / "lake").items():
            self.spark.conf.set(f"spark.sql.catalog.bare{key}", value)

    def folder(self, table: str) -> Path:
        """Return the folder of a table ``<layer>/<name>``."""
        return self.root / "lake" / table

    def sql(self, table: str, kind: str) -> str:
        """Return the SQL name of a table ``<layer>/<name>``."""
        return f"bare.{table.replace('/', '.')}" if kind == "iceberg" else f"delta.`{self.folder(table)}`"

    def create(self, rows: DataFrame, table: str, kind: str) -> None:
        """Create a table with bare Spark."""
        if kind == "iceberg":
            rows.writeTo(self.sql(table, kind)).using("iceberg").create()
        else:
            rows.write.format(kind).save(str(self.folder(table)))

    def append(self, rows: DataFrame, table: str, kind: str) -> None:
        """Append rows with bare Spark."""
        if kind == "iceberg":
            rows.writeTo(self.sql(table, kind)).append()
        else:
            rows.write.format(kind).mode("append").save(str(self.folder(table)))

    def loader(self, name: str, source: dict[str, Any], target: dict[str, Any]) -> Callable[[], Outcome]:
        """Return the run of a dataflow that reads a table by commits into ``silver/<name>``."""
        folder = self.root / "projects" / name
        flow = {
            "layer": "silver",
            "source": {"type": "table", **source},
            "watermark": {"type": "offset"},
            "target": {"table": f"silver/{name}", "origin_columns": False, **target},
        }
        _write_project(folder, str(self.root / "lake"), flow)
        project = load_project(folder, environment={})

        def run() -> Outcome:
            platform = Platform(
                project.state, project.lake, self.engine, project.source_place, lineage=project.lineage
            )
            outcome: Outcome = platform.loop(project.dataflows["copy"], datetime.now(UTC)).run()
            assert outcome.error is None, outcome.error
            return outcome

        return run


def run() -> None:
    """Measure all parts at full size."""
    main([])


def main(arguments: Sequence[str]) -> int:
    """Measure with options; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks chain")
    for name, default in (("rows", Size.rows), ("commits", Size.commits), ("rounds", Size.rounds)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--only", default="", help="measure the parts whose names contain this text")
    options = parser.parse_args(arguments)
    size = Size(options.rows, options.commits, options.rounds)
    rows, notes = measure(size, options.only)
    report("chain", rows, notes)
    return 0


def measure(size: Size, only: str = "") -> tuple[list[dict[str, Any]], list[str]]:
    """Measure the parts whose names contain a text; return the table's rows and the notes."""
    rows: list[dict[str, Any]] = []
    notes = [f"load of the machine at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        if only in "look":
            _add_looks(root / "looks", size, rows, notes)
        with _running(root) as (lake, meter):
            for name, build in _pairs(size).items():
                if only in name:
                    _add_pair(build(lake, size, name), meter, size, rows, notes)
    notes.append(f"load of the machine at the end: {os.getloadavg()[0]:.1f}")
    return rows, notes


@contextmanager
def _running(root: Path) -> Iterator[tuple[Lake, Meter]]:
    local = SparkEngine(master="local[2]", cache=cache_folder()).with_places((), [ICEBERG_PACKAGE])
    server = ConnectServer(local, root / "connect.log", patience=600.0)
    server.start()
    try:
        assert server.process is not None
        yield Lake(root, SparkEngine(remote=server.url)), Meter(psutil.Process(server.process.pid))
    finally:
        server.stop()


def _add_looks(root: Path, size: Size, rows: list[dict[str, Any]], notes: list[str]) -> None:
    """Look at a short log and at a long one, whose last commit is new; add the CPU of each look."""
    figures = {}
    for commits in (SHORT_LOG, size.commits):
        folder = root / str(commits)
        write_long_log(folder / "lake/bronze/events", commits, size.rows * 10 * commits // size.commits)
        flow = {"layer": "silver", "source": {"type": "table", "table": "bronze/events"}}
        flow |= {"watermark": {"type": "offset"}, "target": {"load": "append"}}
        _write_project(folder, "./lake", flow)
        pretend_loaded(folder, _position(folder, commits - 2))
        figures[commits] = script("chain_look", folder)
    for look in ("plan", "tick"):
        short, long = (figures[commits][look] for commits in (SHORT_LOG, size.commits))
        rows += [
            {"side": f"{look} above {commits:,} commits", "cpu s": cpu}
            for commits, cpu in ((SHORT_LOG, short), (size.commits, long))
        ]
        notes.append(
            f"{look} above {size.commits:,} commits: {long * 1000:.1f} ms of CPU (aim: at most 50), {long / short:.2f}x of"
            f" {SHORT_LOG:,} commits (aim: flat)"
        )


def _position(folder: Path, version: int) -> dict[str, Any]:
    log = DeltaLog(Place(str(folder / "lake/bronze/events")))
    table = DeltaTable(log.place.url).metadata().id
    return {"offset": {"table": str(table), "version": version, "commit": log.read(version).id}}


def _add_pair(pair: Pair, meter: Meter, size: Size, rows: list[dict[str, Any]], notes: list[str]) -> None:
    """Measure a pair in turn; rounds that warm the engine up do not count."""

    def arriving(name: str, side: Callable[[], object], *, first: bool) -> Callable[[], float]:
        def run() -> float:
            if first:
                pair.arrive()
            return meter.measured(f"{pair.name}, {name}", side)

        return run

    sides = {
        name: arriving(name, side, first=number == 0)
        for number, (name, side) in enumerate(pair.sides.items())
    }
    alternate(WARM_UP, **sides)
    figures = alternate(size.rounds, **sides)
    walls = {name: meter.walls[f"{pair.name}, {name}"][-size.rounds :] for name in sides}
    rows += [
        {
            "side": f"{pair.name}, {name}",
            "cpu s": median(values),
            "min": min(values),
            "max": max(values),
            "wall s": median(walls[name]),
        }
        for name, values in figures.items()
    ]
    notes += [
        f"{pair.name}, {name} / bare Spark: {ratio(figures, name, 'bare'):.2f} of its CPU (aim: at most {aim}),"
        f" {ratio(walls, name, 'bare'):.2f} of its time"
        for name, aim in pair.aims.items()
    ]


Build = Callable[[Lake, Size, str], Pair]


def _pairs(size: Size) -> dict[str, Build]:
    pairs: dict[str, Build] = {}
    for kind in FORMATS:
        pairs[f"commit of {NEW_ROWS:,} rows, {kind}"] = _appending(kind)
    for kind in FORMATS:
        pairs[f"first read of {size.rows:,} rows, {kind}"] = _first_read(kind)
    pairs[f"{size.changes:,} changed rows of {size.rows:,}, delta"] = _changing
    return pairs


def _appending(kind: str) -> Build:
    """Return a load of one new commit: the upstream of Delta has a long log, that of Iceberg a short one."""

    def build(lake: Lake, size: Size, name: str) -> Pair:
        upstream, number = f"bronze/new_{kind}", 0
        files: list[str] = []
        if kind == "delta":
            write_long_log(lake.folder(upstream), size.commits, size.rows * 10)
        else:
            lake.create(lake.spark.createDataFrame(some_rows(0, NEW_ROWS)), upstream, kind)
        product = lake.loader(
            f"new_{kind}", {"table": upstream, "from": "latest"}, {"load": "append", "format": kind}
        )
        product()
        schema = lake.spark.createDataFrame(some_rows(0, 1)).schema
        lake.create(lake.spark.createDataFrame([], schema), f"silver/bare_{kind}", kind)

        def arrive() -> None:
            nonlocal number
            number += 1
            before = set(lake.folder(upstream).rglob("*.parquet")) if kind == "iceberg" else set()
            new = some_rows(number * NEW_ROWS, NEW_ROWS)
            if kind == "delta":
                write_deltalake(str(lake.folder(upstream)), new, mode="append")
                newest = DeltaLog(Place(str(lake.folder(upstream))))
                actions = newest.actions(newest.versions(size.commits - 1)[-1], b'{"add"')
                files[:] = [str(lake.folder(upstream) / action["add"]["path"]) for action in actions]
            else:
                lake.append(lake.spark.createDataFrame(new).coalesce(1), upstream, kind)
                files[:] = map(str, set(lake.folder(upstream).rglob("*.parquet")) - before)

        def ours() -> None:
            outcome = product()
            assert outcome.rows == NEW_ROWS, outcome

        def bare() -> None:
            lake.append(lake.spark.read.schema(schema).parquet(*files), f"silver/bare_{kind}", kind)

        return Pair(name, arrive, {"ours": ours, "bare": bare}, {"ours": 1.1})

    return build


def _first_read(kind: str) -> Build:
    """Return a first read of a whole table into a new one."""

    def build(lake: Lake, size: Size, name: str) -> Pair:
        upstream, number = f"bronze/first_{kind}", 0
        lake.create(_rows(lake.spark, size.rows), upstream, kind)

        def arrive() -> None:
            nonlocal number
            number += 1

        def ours() -> None:
            target = {"load": "append", "format": kind}
            outcome = lake.loader(f"first_{kind}_{number}", {"table": upstream}, target)()
            assert outcome.rows == size.rows, outcome

        def bare() -> None:
            whole = lake.spark.sql(f"SELECT * FROM {lake.sql(upstream, kind)}")
            lake.create(whole, f"silver/first_bare_{kind}_{number}", kind)

        return Pair(name, arrive, {"ours": ours, "bare": bare}, {"ours": 1.05})

    return build


def _changing(lake: Lake, size: Size, name: str) -> Pair:
    """Return changes of rows scattered over the whole table; of two upstreams one has a change data feed."""
    feeds = {"feed": "true", "files": "false"}
    products: dict[str, Callable[[], Outcome]] = {}
    number = 0
    for feed, is_on in feeds.items():
        upstream = f"bronze/changed_{feed}"
        rows = _rows(lake.spark, size.rows)
        rows.write.format("delta").option("delta.enableChangeDataFeed", is_on).save(
            str(lake.folder(upstream))
        )
        products[feed] = lake.loader(
            f"changed_{feed}", {"table": upstream}, {"load": "merge_upsert", "merge_keys": ["id"]}
        )
        products[feed]()
    lake.create(_rows(lake.spark, size.rows), "silver/changed_bare", "delta")

    def arrive() -> None:
        nonlocal number
        number += 1
        _changes(lake.spark, size, number).createOrReplaceTempView("changes")
        for feed in feeds:
            lake.spark.sql(
                f"MERGE INTO {lake.sql(f'bronze/changed_{feed}', 'delta')} t USING changes s ON t.id = s.id"
                " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            ).collect()

    def ours(feed: str) -> Callable[[], None]:
        def run() -> None:
            outcome = products[feed]()
            assert outcome.rows == size.changes, outcome

        return run

    def bare() -> None:
        reader = lake.spark.read.format("delta").option("readChangeFeed", "true")
        changes = reader.option("startingVersion", number).option("endingVersion", number)
        changes.load(str(lake.folder("bronze/changed_feed"))).where(
            "_change_type <> 'update_preimage'"
        ).createOrReplaceTempView("feed")
        values = ", ".join(f"t.{column} = s.{column}" for column in _COLUMNS)
        inserted = ", ".join(f"s.{column}" for column in _COLUMNS)
        lake.spark.sql(
            f"MERGE INTO {lake.sql('silver/changed_bare', 'delta')} t USING feed s ON t.id = s.id"
            " WHEN MATCHED AND s._change_type = 'delete' THEN DELETE"
            f" WHEN MATCHED THEN UPDATE SET {values}"
            f" WHEN NOT MATCHED AND s._change_type <> 'delete' THEN INSERT ({', '.join(_COLUMNS)}) VALUES ({inserted})"
        ).collect()

    sides = {"by the feed": ours("feed"), "by the files": ours("files"), "bare": bare}
    return Pair(name, arrive, sides, {"by the feed": 1.1, "by the files": 1.5})


def _rows(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(0, count, 1, 4).selectExpr(*_values(0))


def _changes(spark: SparkSession, size: Size, version: int) -> DataFrame:
    """Return changed rows; a tenth of them is new."""
    updates = size.changes * 9 // 10
    step = size.rows // updates
    new = size.rows + version * size.changes
    key = f"IF(id < {updates}, id * {step} + {version % step}, {new} + id) AS id"
    return spark.range(0, size.changes, 1, 4).selectExpr(key).selectExpr(*_values(version))


def _values(version: int) -> tuple[str, ...]:
    return (
        "id",
        f"timestamp_seconds(1577836800 + {version} * 10000000 + id) AS at",
        f"concat('order number ', id, ' of {version}') AS note",
    )


def _write_project(folder: Path, lake: str, flow: dict[str, Any]) -> None:
    (folder / "dataflows").mkdir(parents=True)
    (folder / "platform.yaml").write_text(json.dumps({"state": "./state", "lake": lake}))
    (folder / "dataflows/copy.yaml").write_text(json.dumps(flow))


def _catalog(warehouse: Path) -> dict[str, str]:
    """Return the settings of bare Spark's catalog of Iceberg tables."""
    # Iceberg asks a file system for its scheme, and the one of Strandline's sessions has none.
    return {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "hadoop",
        ".warehouse": str(warehouse),
        ".cache-enabled": "false",
        ".hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
        ".hadoop.fs.file.impl.disable.cache": "true",
    }
