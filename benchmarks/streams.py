"""Measures streams over splits: against a plain sort, Spark's watermark, and at larger scales.

It sorts the same rows plainly and with Spark's own watermark, then loads a thousand epochs, and ten
thousand splits. The source
is a Delta table of 8,000,000 rows of 100 splits in 20 versions, ten minutes of event time each. A few
splits have most rows;
split n runs n % 10 times six minutes behind, and rows are up to four minutes out of order. All sides read
it in the same
session of one Connect server, whose CPU time counts. Rounds that warm the engine up come first and do not
count.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import median, report
from partitions.stream.state import StreamState
from platform_assets.installation import cache_folder
from platform_assets.project import load_project
from resources.outcome import Outcome
from resources.platform.platform import Platform
from resources.spark.connect_server import ConnectServer, free_port
from resources.spark.engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS, VERSIONS, SPLITS, ROUNDS = 8_000_000, 20, 100, 3
EPOCHS, OF_AN_EPOCH, COMPARED, WARMING = 1_000, 2_000, 100, 15
MANY_SPLITS, MANY_ROWS = 10_000, 200_000
START = 1_767_225_600
"""Seconds: the first event time."""
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass
class Spent:
    """The seconds of a side: wall time, and CPU time of this process, the server and its children."""

    wall: float = 0.0
    cpu: float = 0.0


@dataclass(frozen=True)
class Engine:
    """A Spark Connect server of the benchmark's own."""

    spark: SparkEngine
    pid: int

    @contextmanager
    def measured(self) -> Iterator[Spent]:
        """Measure the block."""
        spent, wall, cpu = Spent(), time.monotonic(), self._cpu()
        yield spent
        spent.wall, spent.cpu = time.monotonic() - wall, self._cpu() - cpu

    def _cpu(self) -> float:
        own = sum(os.times()[:4])
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return own + sum(map(int, fields[11:15])) / _TICKS_A_SECOND


class Readings:
    """A Delta table of readings below a lake, and dataflows over it."""

    def __init__(self, folder: Path, engine: Engine, splits: int = SPLITS) -> None:
        self.folder, self.engine, self.splits, self.versions, self.rows = folder, engine, splits, 0, 0
        (folder / "dataflows").mkdir(parents=True)
        (folder / "platform.yaml").write_text(json.dumps({"state": "./state", "lake": "./lake"}))

    @property
    def source(self) -> str:
        """Return the table's address."""
        return f"file:{self.folder / 'lake/bronze/events'}"

    def grow(self, rows: int) -> None:
        """Append a version with ten minutes of event time."""
        spark, first = self.engine.spark.session(), self.versions * rows
        base = START + self.versions * 600
        # a square makes few splits large
        numbers = spark.range(first, first + rows, 1, 2).selectExpr(
            "id",
            f"IF(id % 4 = 0, id DIV 4 % {self.splits}, CAST(floor(pow(pmod(hash(id, 1), 10000) / 10000D, 2) * {self.splits}) AS long)) AS split",
            "pmod(hash(id, 2), 100000) / 100 AS value",
            "pmod(hash(id, 3), 240000000) AS behind",
            f"{base}000000L + (id - {first}) * (600000000L DIV {rows}) AS at",
        )
        rows_ = numbers.selectExpr(
            "id", "concat('device-', lpad(split, 5, '0')) AS device",
            "timestamp_micros(at - behind - split % 10 * 360000000L) AS ts", "value",
        )  # fmt: skip
        rows_.write.format("delta").mode("append").save(self.source)
        self.versions += 1
        self.rows += rows

    def grow_little(self, rows: int) -> None:
        """Append a version of one file with ten minutes of event time, without Spark."""
        import pyarrow as pa
        from deltalake import write_deltalake

        first, base = self.versions * rows, START + self.versions * 600
        ids = range(first, first + rows)
        times = [(base + (at - first) * 0.3 - at % 10 * 60) * 1_000_000 for at in ids]
        columns = {
            "id": pa.array(ids, pa.int64()),
            "device": [f"device-{at % self.splits}" for at in ids],
            "ts": pa.array(map(int, times), pa.timestamp("us", "UTC")),
            "value": [at / 7 for at in ids],
        }
        write_deltalake(self.source, pa.table(columns), mode="append")
        self.versions += 1
        self.rows += rows

    def flow(self, name: str, **watermark: Any) -> Dataflow:
        """Return a stream over the table."""
        declared = {
            "type": "stream", "event_time": "ts", "split": "device", "timeout": "PT5M", "order_by": ["id"],
            "buffer": {"max_drift": "P1D"}, **watermark,
        }  # fmt: skip
        definition = {
            "layer": "silver",
            "source": {"type": "table", "table": "bronze/events"},
            "watermark": declared,
        }
        (self.folder / f"dataflows/{name}.yaml").write_text(json.dumps(definition))
        return Dataflow(self, name)


@dataclass(frozen=True)
class Dataflow:
    """A dataflow of the project."""

    readings: Readings
    name: str

    def run(self) -> Outcome:
        """Load the new versions."""
        project, engine = load_project(self.readings.folder, environment={}), self.readings.engine.spark
        platform = Platform(
            project.state, project.lake, engine, project.source_place, lineage=project.lineage
        )
        outcome = platform.loop(project.dataflows[self.name], datetime.now(UTC)).run()
        assert outcome.error is None, outcome.error
        return outcome

    @property
    def buffer(self) -> int:
        """Return the bytes of the buffer's newest version."""
        import pyarrow as pa
        from deltalake import DeltaTable

        lake = self.readings.folder / f"lake/silver/{self.name}__buffer"
        return (
            sum(pa.table(DeltaTable(str(lake)).get_add_actions()).column("size_bytes").to_pylist())
            if lake.exists()
            else 0
        )


def run() -> None:
    """Measure all parts, and report each when it is done: together they take most of an hour."""
    parts = {
        "streams": against_spark,
        "streams_epochs": over_epochs,
        "streams_splits": with_many_splits,
    }
    for name, measure in parts.items():
        with served() as (engine, root):
            report(name, *measure(engine, root))


@contextmanager
def served() -> Iterator[tuple[Engine, Path]]:
    """Serve Spark, and a folder to write to."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        local = SparkEngine(master="local[2]", cache=cache_folder())
        server = ConnectServer(local, root / "connect.log", free_port(), 120.0)
        server.start()
        try:
            assert server.process is not None
            yield Engine(SparkEngine(remote=server.url), server.process.pid), root
        finally:
            server.stop()


def against_spark(
    engine: Engine, root: Path, rounds: int = ROUNDS, rows: int = ROWS
) -> tuple[list[dict[str, Any]], list[str]]:
    """Sort all rows at once and version by version: plainly, over splits, and with deduplication."""
    readings = Readings(root / "large", engine)
    for _ in range(VERSIONS):
        readings.grow(rows // VERSIONS)
    spark, figures = engine.spark.session(), dict[str, dict[str, Any]]()
    sides: dict[str, Callable[[int], dict[str, Any]]] = {
        "all at once, ours": lambda number: _run_product(readings, f"whole_{number}"),
        "all at once, plain sort": lambda number: _sorted(spark, readings, root / f"sorted_{number}"),
        "20 epochs, ours": lambda number: _run_product(
            readings, f"cut_{number}", checkpoint={"interval_files": 2}
        ),
        "20 batches, dropDuplicatesWithinWatermark": lambda number: _deduplicated(
            spark, readings, root / f"deduplicated_{number}"
        ),
    }
    spent: dict[str, list[Spent]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, side in sides.items():
            with engine.measured() as seconds:
                figures[name] = side(number)
            if number:
                spent[name].append(seconds)
    lines = [_line(name, spent[name], figures[name]) for name in sides]
    notes = [
        f"all at once, ours / plain sort: {_ratio(spent, 'all at once, ours', 'all at once, plain sort')} (aim: at most 1.5)",
        f"20 epochs, ours / deduplication: {_ratio(spent, '20 epochs, ours', '20 batches, dropDuplicatesWithinWatermark')} (aim: below 1)",
    ]
    return lines, notes


def _run_product(readings: Readings, name: str, **watermark: Any) -> dict[str, Any]:
    flow = readings.flow(name, **watermark)
    outcome = flow.run()
    state = StreamState.of(outcome.after)
    return {
        "epochs": len(outcome.committed),
        "rows lost": outcome.late,
        "rows that wait": state.buffered,
        "state MiB": len(outcome.newest.watermark if outcome.newest else "") / 2**20,
        "rows that wait, MiB": flow.buffer / 2**20,
    }


def _sorted(spark: SparkSession, readings: Readings, target: Path) -> dict[str, Any]:
    rows = spark.read.format("delta").load(readings.source)
    rows.repartitionByRange("ts", "id").sortWithinPartitions("ts", "id").write.format("delta").save(
        f"file:{target}"
    )
    return {"epochs": 1, "rows lost": 0}


def _deduplicated(spark: SparkSession, readings: Readings, target: Path) -> dict[str, Any]:
    """Run Structured Streaming, a batch a version, with its state in RocksDB."""
    settings = {
        "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        "fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",  # RocksDB's files are copied by it alone
        "fs.file.impl.disable.cache": "true",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    stream: DataFrame = (
        spark.readStream.format("delta").option("maxFilesPerTrigger", "2").load(readings.source)
    )
    rows = stream.withWatermark("ts", "5 minutes").dropDuplicatesWithinWatermark(["id"])
    checkpoint = Path(f"{target}_checkpoint")
    writer = rows.writeStream.format("delta").option("checkpointLocation", f"file:{checkpoint}")
    query = writer.trigger(availableNow=True).start(f"file:{target}")
    query.awaitTermination()
    progress = [json.loads(batch.json) if hasattr(batch, "json") else batch for batch in query.recentProgress]
    operators = [operator for progress in progress for operator in progress["stateOperators"]]
    kept_rows = spark.read.format("delta").load(f"file:{target}").count()
    files = [file for file in checkpoint.rglob("*") if file.is_file()]
    return {
        "epochs": len(progress),
        "rows lost": readings.rows - kept_rows,
        "rows that wait": max(operator["numRowsTotal"] for operator in operators),
        "state MiB": max(operator["memoryUsedBytes"] for operator in operators) / 2**20,
        "checkpoint MiB": sum(file.stat().st_size for file in files) / 2**20,
    }


def over_epochs(
    engine: Engine, root: Path, epochs: int = EPOCHS, compared: int = COMPARED
) -> tuple[list[dict[str, Any]], list[str]]:
    """Load many small versions, an epoch each, in runs of a hundred."""
    readings = Readings(root / "epochs", engine, splits=20)
    for name in ("cold", "warm"):
        small_epochs(readings, name, WARMING)
    spent, sizes = list[Spent](), list[float]()
    for _ in range(epochs // compared):
        of_run, size = small_epochs(readings, "small", compared)
        spent.append(of_run)
        sizes.append(size)
    first, last = spent[0], spent[-1]
    line = _line(f"{compared:,} of {epochs:,} epochs of {OF_AN_EPOCH:,} rows", spent, {"epochs": epochs})
    ratios = f"{last.cpu / first.cpu:.2f} in processor time, {last.wall / first.wall:.2f} by the clock, {sizes[-1] / sizes[0]:.2f} in the state's size"
    seconds_text = ", ".join(f"{run.cpu:.0f}" for run in spent)
    notes = [
        f"an epoch, last {compared} / first {compared}: {ratios} (aim: at most 1.2)",
        f"seconds of the processor of each {compared} epochs: {seconds_text}",
    ]
    return [line], notes


def small_epochs(readings: Readings, name: str, epochs: int) -> tuple[Spent, float]:
    """Append small versions and load them in one run, an epoch each.

    Returns:
        the run's cost, and the median size of the states.
    """
    flow = readings.flow(name, checkpoint={"interval_files": 1}, max_slices=epochs)
    for _ in range(epochs):
        readings.grow_little(OF_AN_EPOCH)
    with readings.engine.measured() as spent:
        outcome = flow.run()
    assert len(outcome.committed) == epochs, len(outcome.committed)
    return spent, median([len(commit.entry.watermark) for commit in outcome.committed])


def with_many_splits(engine: Engine, root: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Load versions of ten thousand splits, one after another."""
    readings = Readings(root / "many", engine, splits=MANY_SPLITS)
    flow = readings.flow("many")
    spent, figures = list[Spent](), dict[str, Any]()
    for _ in range(4):
        readings.grow(MANY_ROWS)
        with engine.measured() as seconds:
            outcome = flow.run()
        spent.append(seconds)
        state = StreamState.of(outcome.after)
        figures = {"epochs": 1, "rows lost": outcome.late, "rows that wait": state.buffered, "splits": len(state.splits), "state MiB": len(outcome.newest.watermark if outcome.newest else "") / 2**20}  # fmt: skip
    return [_line(f"{MANY_SPLITS:,} splits, an epoch of {MANY_ROWS:,} rows", spent[1:], figures)], []


def _line(name: str, spent: Sequence[Spent], figures: dict[str, Any]) -> dict[str, Any]:
    walls = [run.wall for run in spent]
    line = {"side": name, "seconds": median(walls), "min": min(walls), "max": max(walls)}
    return line | {"CPU seconds": median([run.cpu for run in spent])} | figures


def _ratio(spent: dict[str, list[Spent]], over: str, under: str) -> str:
    pairs = list(zip(spent[over], spent[under], strict=True))
    wall = median([first.wall / second.wall for first, second in pairs])
    cpu = median([first.cpu / second.cpu for first, second in pairs])
    return f"{wall:.2f} by the clock, {cpu:.2f} in processor time"
