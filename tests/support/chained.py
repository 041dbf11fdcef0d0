"""Chains of window dataflows without a JVM: hours of units, days of hours, weeks of days.

The product's real planning, loop, log and tables, with rows in Arrow (:mod:`tests.support.jvmless`). A row
of the hours is a value of a unit in an hour. A row of the days sums the values of a day, and a row of the
weeks those of a week. The column ``_source_file`` names the cell that a row belongs to, and a load replaces
the rows of its cells.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import yaml
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from partitions.dataflow import Dataflow
from partitions.instants import HOUR, milliseconds
from partitions.lineage import Lineage
from partitions.predicate import Among, Predicate
from partitions.request import DUE, Request
from partitions.sentinels import canonical
from partitions.window.ledger import Ledger
from partitions.window.slices import WindowSlice
from partitions.window.state import WindowState
from partitions.window.units import unit_of
from partitions.window.work_unit import WorkUnit
from platform_assets.project import load_project
from resources.connections.places import Place
from resources.kinds.contract.kind import Kind
from resources.kinds.window.bad_parts import WindowBadParts
from resources.kinds.window.failures import bad_units
from resources.kinds.window.opening import open_windows
from resources.kinds.window.reading import WindowReading
from resources.kinds.window.unit_ledger import unit_ledger
from resources.kinds.window.writing import WindowWriting
from resources.loop.inputs import InputTables
from resources.outcome import Outcome
from resources.platform.stores import Stores
from resources.sources.registry import Source
from resources.sources.table import TableRows
from resources.spark.engine import SparkEngine
from resources.staging import Staging
from resources.tables.contract.commits import Version
from resources.user_functions import UserCode
from resources.watermarks.entry import Entry
from tests.support.arrow import SCHEMA, ArrowTable, Rows, Session
from tests.support.jvmless import JvmlessEngine, Killed, MortalPlatform, Process

START = datetime(2026, 1, 5, tzinfo=UTC)
"""A Monday."""

REPLACED = {"load": "merge_overwrite", "replace_by_watermark": True, "origin_columns": False}
_PINNED = json.dumps({"columns": {"type": "struct", "fields": [
    {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in (("id", "long"), ("_source_file", "string"))
]}, "folders": []})  # fmt: skip


@dataclass
class Scene:
    """The source of the hours, and what may happen while a process works.

    Attributes:
        values: by unit and start of an hour, the values of its rows.
        broken: units and hours that cannot be read.
        kill: what kills the next process: when, what, and at which occurrence.
        meanwhile: called once when the days look up the version that they read.
    """

    values: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    broken: set[tuple[str, int]] = field(default_factory=set)
    kill: tuple[str, str, int] | None = None
    meanwhile: Callable[[], object] | None = None

    def process(self) -> Process:
        """Return a process that dies as ``kill`` says."""
        seen: Counter[tuple[str, str]] = Counter()
        kill, self.kill = self.kill, None

        def hear(point: tuple[str, str], write: object) -> None:
            seen[point] += 1
            if kill is not None and (*point, seen[point]) == kill:
                raise Killed

        return Process(hear)


def cell(work: WorkUnit) -> str:
    """Return the name of a work unit's cell."""
    return cell_of(work.unit, work.start or 0)


def cell_of(unit: str, start: int) -> str:
    """Return the name of the cell of a unit at a start, epoch milliseconds."""
    name = unit_of(unit).get("airport", "")
    return f"{name}|{datetime.fromtimestamp(start / 1000, UTC):%Y-%m-%dT%H}"


@dataclass(frozen=True)
class CellReading(WindowReading):
    """Reads the values of hours, or the sums of the rows of another table."""

    scene: Scene
    upstream: Path | None

    def pin(self, spark: SparkSession, pending: Sequence[WindowSlice]) -> str | None:
        return _PINNED

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Accept it: there is only one schema."""

    def read(self, spark: SparkSession, slice_: WindowSlice | None, pinned: str) -> DataFrame:
        works = slice_.works if slice_ else ()
        bad = {work: "no answer" for work in works if work.key[::-1] in self.scene.broken}
        if bad and self.upstream is None:
            raise bad_units(bad, self.dataflow.window.zone)
        rows = self._cells(slice_, works) if slice_ else []
        table = pa.Table.from_pylist(rows, schema=SCHEMA)
        return cast("DataFrame", Rows(table, cast("Session", spark).hear))

    def _cells(self, slice_: WindowSlice, works: Sequence[WorkUnit]) -> list[dict[str, Any]]:
        if self.upstream is None:
            return [
                {"id": value, "_source_file": cell(work)}
                for work in works
                for value in self.scene.values.get((work.unit, work.start or 0), ())
            ]
        assert isinstance(slice_.version, int)
        sums = sums_of(cells_of(self.upstream, slice_.version), works)
        return [{"id": total, "_source_file": name} for name, total in sums.items()]


def sums_of(rows: Sequence[tuple[str, int]], works: Sequence[WorkUnit]) -> dict[str, int]:
    """Return the batch query: by cell, the sum of the rows in a window of a unit; none without a row."""
    sums: dict[str, int] = {}
    for work in works:
        name = unit_of(work.unit).get("airport")
        inside = [
            value
            for key, value in rows
            if (work.start or 0) <= start_of(key) < (work.end or 0) and name in (None, key.partition("|")[0])
        ]
        if inside:
            sums[cell(work)] = sum(inside)
    return sums


def start_of(name: str) -> int:
    """Return the start of a cell, epoch milliseconds."""
    return milliseconds(datetime.fromisoformat(name.partition("|")[2] + ":00+00:00"))


def cells_of(table: Path, version: int) -> list[tuple[str, int]]:
    """Return cell and value of each row of a table at a version."""
    rows = DeltaTable(str(table), version=version).to_pyarrow_table().to_pylist()
    return [(row["_source_file"], row["id"]) for row in rows]


@dataclass(frozen=True)
class CellWriting(WindowWriting):
    """Replaces the rows of cells."""

    def _replaced(self, slice_: WindowSlice, rows: DataFrame) -> Predicate:
        return Among("_source_file", tuple(dict.fromkeys(map(cell, slice_.works))))

    def check_rows(self, rows: DataFrame) -> None:
        """Accept them."""

    def observe(self, rows: DataFrame, slice_: WindowSlice) -> tuple[DataFrame, Callable[[], Any]]:
        return rows, dict


class _Watched(TableRows):
    """A table during whose look-up something may happen."""

    scene: Scene

    def version(self) -> Version:
        happens, self.scene.meanwhile = self.scene.meanwhile, None
        if happens is not None and self._bound_version is None:
            happens()
        return super().version()


class _UnreadInputs(InputTables):
    """Inputs whose versions are fixed, and whose rows nobody reads."""

    def read(self, spark: SparkSession, versions: Mapping[str, Version]) -> dict[str, DataFrame]:
        return {}


@dataclass(frozen=True)
class ChainPlatform(MortalPlatform):
    """The resources of a process that runs dataflows of a chain."""

    scene: Scene = field(default_factory=Scene)

    def engine(self, dataflow: Dataflow) -> SparkEngine:
        return JvmlessEngine(self.process)

    def table(self, dataflow: Dataflow) -> ArrowTable:
        arrow_table = ArrowTable(self.lake.child(dataflow.table), ())
        arrow_table.hear = lambda when, write: self.process.reach(when, "commit", write)
        return arrow_table

    def open_source(self, dataflow: Dataflow, staging: Staging) -> Source:
        if dataflow.source.lake_table is None:
            return super().open_source(dataflow, staging)
        table = self.table(dataflow.model_copy(update={"target": dataflow.target.model_copy(update={"table": dataflow.source.lake_table})}))  # fmt: skip
        watched = _Watched(table, cast("Any", dataflow.source), dataflow.zone)
        watched.scene = self.scene
        return watched

    def inputs(self, dataflow: Dataflow) -> InputTables:
        return _UnreadInputs(super().inputs(dataflow).tables)

    def kind(self, dataflow: Dataflow, staging: Staging | None = None) -> Kind[Any]:
        kind = open_windows(cast("Stores", self), dataflow, staging)
        source = kind.reading.source  # type: ignore[attr-defined]
        read = dataflow.source.lake_table
        upstream = self.lake.child(read).local if read else None
        columns = kind.writing.window_columns  # type: ignore[attr-defined]
        reading = CellReading(dataflow, source, columns, self.scene, upstream)
        return replace(
            kind,
            reading=reading,
            writing=CellWriting(dataflow, columns),
            bad_parts=WindowBadParts(dataflow, source, reading),
        )


def _watermark(name: str, window: str, to: str, units: Sequence[str], **more: Any) -> dict[str, Any]:
    entries: list[dict[str, Any]] = [
        {"name": name, "type": "datetime", "range": {"from": "2026-01-05", "to": to}}
    ]
    if units:
        entries.append({"name": "airport", "type": "unit", "units": list(units)})
    return {"type": "window", "definition": entries, "window": window, **more}


@dataclass
class Chain:
    """Hours, days and weeks below a folder, and a clock.

    Attributes:
        units: the units of the hours.
        days: keys of the watermark of the days.
        day_units: the units of the days; none: each day has all units.
        hours: keys of the watermark of the hours.
        waits_for_weather: whether the days wait for hours of the weather, too, an input without units.
    """

    root: Path
    units: tuple[str, ...] = ("EWR", "JFK")
    days: Mapping[str, Any] = field(default_factory=dict)
    day_units: tuple[str, ...] = ()
    hours: Mapping[str, Any] = field(default_factory=dict)
    waits_for_weather: bool = False
    scene: Scene = field(default_factory=Scene)
    now: datetime = START

    def write_project(self) -> None:
        """Write the files of the project."""
        columns: dict[str, Any] = {"window_column": "at"}
        by_unit = {"unit_columns": {"airport": "airport"}}
        flows: dict[str, dict[str, Any]] = {
            "hours": {
                "source": {"type": "python", "function": "rows:hours", **columns, **by_unit},
                "watermark": _watermark("hour", "hourly", "-", self.units, partial=False) | dict(self.hours),
            },
            "days": {
                "layer": "gold",
                "source": {
                    "type": "table",
                    "table": "bronze/hours",
                    **columns,
                    **(by_unit if self.day_units else {}),
                },
                "watermark": _watermark("day", "daily", "upstream", self.day_units, **self.days),
            },
            "weeks": {
                "layer": "gold",
                "source": {"type": "table", "table": "gold/days", **columns},
                "watermark": _watermark("week", "weekly", "upstream", ()),
            },
        }
        if self.waits_for_weather:
            flows["weather"] = {
                "source": {"type": "python", "function": "rows:weather", **columns},
                "watermark": _watermark("hour", "hourly", "-", (), partial=False),
            }
            flows["days"] |= {"inputs": {"weather": "bronze/weather"}, "transform": "steps:same"}
            flows["days"]["watermark"]["wait_for"] = {"weather": "at"}
        (self.root / "dataflows").mkdir(exist_ok=True, parents=True)
        (self.root / "platform.yaml").write_text("{}")
        for name, flow in flows.items():
            text = yaml.safe_dump({**flow, "target": REPLACED})
            (self.root / "dataflows" / f"{name}.yaml").write_text(text)

    @cached_property
    def _flows(self) -> dict[tuple[Any, ...], dict[str, Dataflow]]:
        return {}

    @property
    def flows(self) -> dict[str, Dataflow]:
        """The dataflows by name."""
        key = (self.units, self.day_units)
        if key not in self._flows:
            self.write_project()
            project = load_project(self.root, environment={})
            self._flows[key] = {
                flow.name: flow.model_copy(update={"transform": None})  # which would need Spark
                for flow in project.named(())
            }
        return self._flows[key]

    def platform(self, process: Process | None = None) -> ChainPlatform:
        """Return the platform of a new process."""
        process = process or Process()
        return ChainPlatform(
            state=Place(str(self.root / "state")),
            lake=Place(str(self.root / "lake")),
            spark=JvmlessEngine(process),
            source_of=lambda flow: UserCode(self.root),
            lineage=Lineage(self.flows.values()),
            process=process,
            scene=self.scene,
        )

    def arrive(self, unit: str, hour: int, *values: int) -> None:
        """Set the values of an hour of a unit at the source, by the number of the hour."""
        self.scene.values[key_of(unit, hour)] = list(values)

    def run(self, name: str, request: Request = DUE) -> Outcome | None:
        """Run a dataflow in a process of its own; None if it was killed."""
        try:
            return self.platform(self.scene.process()).loop(self.flows[name], self.now, request).run()
        except Killed:
            return None

    def plan(self, name: str) -> Any:
        """Return the plan of a dataflow."""
        return self.platform().plan(self.flows[name], self.now)

    def ledger(self, name: str) -> Ledger:
        """Return the ledger of a dataflow."""
        return unit_ledger(self.platform(), self.flows[name], self.now)

    def newest(self, name: str) -> Entry | None:
        """Return the newest entry of a dataflow."""
        return self.platform().log.newest(name)

    def state(self, name: str) -> WindowState:
        """Return the newest state of a dataflow."""
        entry = self.newest(name)
        return WindowState.of(entry.state() if entry else None)

    def rows(self, name: str) -> list[tuple[str, int]]:
        """Return cell and value of each row of a table, as its newest entry knows it."""
        entry = self.newest(name)
        if entry is None or not isinstance(entry.table_version, int):
            return []
        return sorted(cells_of(self.root / "lake" / self.flows[name].table, entry.table_version))

    def newest_rows(self, name: str) -> list[tuple[str, int]]:
        """Return cell and value of each row of a table, with those of a commit that no entry records yet."""
        table = self.root / "lake" / self.flows[name].table
        has_commit = any((table / "_delta_log").glob("*.json"))
        return cells_of(table, DeltaTable(str(table)).version()) if has_commit else []

    def expected(self, name: str, rows: Sequence[tuple[str, int]]) -> dict[str, dict[str, int]]:
        """Return, by unit, the batch query over the windows that the ledger of a dataflow counts as loaded.

        Args:
            name: the dataflow.
            rows: the rows of the table that it reads.
        """
        flow = self.flows[name]
        windows = flow.window.windows(self.now)
        expected: dict[str, dict[str, int]] = {}
        for unit in self.ledger(name).units:
            covered = [
                WorkUnit(start, end, unit.unit, start, "new")
                for start, end in windows
                if any(lower <= start and end <= upper for lower, upper in unit.current)
            ]
            expected[unit.unit] = {cell(work): 0 for work in covered} | sums_of(rows, covered)
        return expected


def key_of(unit: str, hour: int) -> tuple[str, int]:
    """Return the unit's identity and the start of an hour, by its number."""
    return canonical({"airport": unit}), milliseconds(START) + hour * HOUR


def at(hours: float) -> datetime:
    """Return the instant some hours after the start."""
    return START + timedelta(hours=hours)
