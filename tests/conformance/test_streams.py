"""streams.json: the operators of Strandline's engine, and Structured Streaming on a real Spark."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.spark_stream.batch_progress import BatchProgress
from partitions.stream.epoch import close_epoch, open_epoch
from partitions.stream.global_watermark import global_watermark
from partitions.stream.operators import (
    Aggregate,
    DropDuplicates,
    DropDuplicatesWithinWatermark,
    Join,
    Operator,
    Union,
)
from partitions.stream.over import OverCall
from partitions.stream.split_changes import assign_watermarks
from partitions.stream.splits import SplitOptions
from partitions.stream.state import Split, StreamState
from partitions.stream.windows import Hop
from resources.connections.places import Place
from resources.kinds.spark_stream.folder import StreamFolder
from resources.kinds.spark_stream.inputs import Inputs
from resources.kinds.spark_stream.planning import SparkStreamPlanning
from resources.kinds.spark_stream.reading import SparkStreamReading
from resources.spark.engine import SparkEngine
from resources.staging import Staging
from resources.watermarks.blobs import open_blobs
from resources.watermarks.log import WatermarkLog
from tests.conformance.common import Case
from tests.support.stream_oracle.filter import sift
from tests.support.stream_oracle.merger import Merger
from tests.support.stream_oracle.ordering import Order, Row
from tests.support.stream_oracle.over import Over
from tests.support.stream_oracle.sessions import SessionBuffer
from tests.support.stream_oracle.sort import SortBuffer
from tests.support.stream_oracle.windows import WindowBuffer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.cases("streams", "watermark_filter")
def test_watermark_filter(case: Case) -> None:
    inputs = case["input"]
    watermark, delay = _time(inputs["watermark"]), inputs["delay"]
    for step, expected in zip(inputs["steps"], case["expected"]["steps"], strict=True):
        delay = step.get("set_delay", delay)
        rows = [(name, _time(at)) for name, at in step.get("rows", ())]
        timeout = _span(delay, like=[watermark, *(at for _, at in rows)])
        sifted = sift(rows, lambda row: row[1], watermark, timeout)
        watermark = sifted.watermark
        rows_by_place = {"kept": sifted.on_time, "late": sifted.late, "quarantined": sifted.quarantined}
        for place, placed_rows in rows_by_place.items():
            assert [name for name, _ in placed_rows] == expected[place]
        assert watermark == _time(expected["watermark"])


@pytest.mark.cases("streams", "merger")
def test_merger(case: Case) -> None:
    assert _globals(case["input"]) == [_time(value) for value in case["expected"]["global_after_each"]]


@pytest.mark.cases("streams", "sort")
def test_sort(case: Case) -> None:
    inputs, expected = case["input"], case["expected"]
    run = _Sorting(inputs)
    assert [run.step(step) for step in inputs["steps"]] == _timed(expected["emitted"], run)
    if "buffered" in expected:
        assert [run.listed(row) for row in run.buffer.order.sorted(run.buffer.rows)] == _timed(
            [expected["buffered"]], run
        )[0]


class _Sorting:
    """A sort and the operator above it; each is a value, so a restart takes up those of the last commit."""

    def __init__(self, inputs: dict[str, Any]) -> None:
        self.columns, self.time = inputs["columns"], inputs["ts"]
        self.measure = str((inputs.get("operator") or {}).get("column"))
        order = Order(inputs["ts"], tuple(inputs["key"]))
        self.buffer, self.operator = SortBuffer(order), _operator(inputs, order)
        self.commit = (self.buffer, self.operator)

    def step(self, step: dict[str, Any]) -> list[list[Any]]:
        match step:
            case {"rows": rows}:
                self.buffer = self.buffer.took(self.read(row) for row in rows)
            case {"watermark": at}:
                self.buffer, rows = self.buffer.drained(_time(at))
                return self.applied(rows, _time(at))
            case {"commit": True}:
                self.commit = (self.buffer, self.operator)
            case {"recover": True}:
                self.buffer, self.operator = self.commit
        return []

    def applied(self, rows: tuple[Row, ...], at: Any) -> list[list[Any]]:
        match self.operator:
            case WindowBuffer():
                self.operator, closing = self.operator.took(rows).closed(at)
                return [[start, self.highest(rows_)] for (start, _), rows_ in closing]
            case SessionBuffer():
                self.operator, sessions = self.operator.took(rows).closed(at)
                ended = [
                    {**row, "first": session.first, "last": session.last}
                    for session in sessions
                    for row in session.rows
                ]
                return [self.listed(row, ("first", "last")) for row in self.buffer.order.sorted(ended)]
            case Over():
                self.operator, out = self.operator.advanced(rows)
                return [self.listed(row, self.operator.calls) for row in out]
        return [self.listed(row) for row in rows]

    def highest(self, rows: tuple[Row, ...]) -> Any:
        return max((row[self.measure] for row in rows if row[self.measure] is not None), default=None)

    def read(self, row: list[Any]) -> Row:
        named = dict(zip(self.columns, row, strict=True))
        return {**named, self.time: _time(named[self.time])}

    def listed(self, row: Row, more: Iterable[str] = ()) -> list[Any]:
        return [row[name] for name in (*self.columns, *more)]


def _operator(inputs: dict[str, Any], order: Order) -> Over | WindowBuffer | SessionBuffer | None:
    operator = inputs.get("operator") or {"kind": None}
    times = [
        row[inputs["columns"].index(order.event_time)]
        for step in inputs["steps"]
        for row in step.get("rows", ())
    ]
    like = [_time(at) for at in times]
    match operator["kind"]:
        case "over":
            calls = {
                f"call {number}": OverCall(**_call(call)) for number, call in enumerate(operator["calls"])
            }
            return Over(tuple(operator["partition_by"]), calls, order)
        case "tumble":
            size = _span(operator["size_s"], like)
            return WindowBuffer(Hop(size, size), order)
        case "session":
            return SessionBuffer(_span(operator["gap_s"], like), tuple(operator["partition_by"]), order)
    return None


def _call(call: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if name == "frame" else value for name, value in call.items()}


@pytest.mark.cases("streams", "scaling")
def test_scaling(case: Case) -> None:
    _SCALING[case["input"]["kind"]](case["input"], case["expected"])


@pytest.mark.full
@pytest.mark.cases("streams", "spark_watermark")
def test_spark_watermark(case: Case, spark_engine: SparkEngine, tmp_path: Path) -> None:
    inputs, expected = case["input"], case["expected"]
    if inputs["kind"] == "epochs":
        _check_epochs(inputs, expected)
        return
    _ON_SPARK[inputs["kind"]](inputs, expected, spark_engine.session(), tmp_path)


def _check_query(inputs: Case, expected: Case, session: SparkSession, folder: Path) -> None:
    stream = _Streaming(inputs, session, folder)
    for rows, step in zip(inputs["additions"], expected["steps"], strict=True):
        stream.add(rows if len(stream.sources) > 1 else [rows])
        batches = stream.run()
        assert sorted(stream.written(batches), key=str) == sorted(step["out"], key=str)
        assert stream.watermark == step["watermark_s"]
        if "dropped" in step:
            assert sum(batch.dropped_by_watermark for batch in batches) == step["dropped"]
        if "batches" in step:
            assert [_progress(batch) for batch in batches] == [_reported(batch) for batch in step["batches"]]


def _check_backlog(inputs: Case, expected: Case, session: SparkSession, folder: Path) -> None:
    stream = _Streaming(inputs, session, folder)
    for rows in inputs["files"]:
        stream.add([rows])
    batches = stream.run()
    assert [[batch.batch_id, *row] for batch in batches for row in stream.written([batch])] == expected["out"]
    data = [batch for batch in batches if batch.rows_in]
    assert [_seconds(batch) for batch in data] == expected["watermark_s_per_batch"]
    assert [batch.dropped_by_watermark for batch in data] == expected["dropped_per_batch"]


def _check_probe(inputs: Case, expected: Case, session: SparkSession, folder: Path) -> None:
    rows = {"row": ["ts"], "output": ["ts"], "operators": [], "output_mode": "append"}
    stream, watermarks = _Streaming({**rows, **inputs}, session, folder), []
    for step in inputs["steps"]:
        match step:
            case {"add": added}:
                stream.add(added)
                stream.run()
            case {"restart": True}:
                stream.define(inputs["policy_after_restart"])
            case {"probe": True}:
                stream.add([[1], []])
                stream.run()
                watermarks.append(stream.watermark)
    assert watermarks == expected["probe_watermark_s"]


def _check_config(inputs: Case, expected: Case, session: SparkSession, folder: Path) -> None:
    for config in inputs["configs"]:
        with pytest.raises((ConfigurationError, ValidationError)) as refused:
            _Streaming(
                {
                    "row": list(inputs.get("schema") or {"ts": "timestamp"}),
                    "schema": inputs.get("schema"),
                    "output": [],
                    "operators": [],
                    "output_mode": config.get("output_mode", "append"),
                    "policy": config.get("policy", "min"),
                    "event_time": config.get("event_time", "ts"),
                    "delays": [config["delay"]],
                    "trigger": config.get("trigger"),
                },
                session,
                folder,
            ).check()
        assert expected.get("message", "") in str(refused.value)


_TARGETS: dict[str, Any] = {
    "update": {"load": "merge_upsert", "merge_keys": ["window_start"]},
    "complete": {"load": "overwrite"},
}


class _Streaming:
    """A dataflow over folders of JSON lines, one a source; its kind reads them, and nothing is committed."""

    def __init__(self, inputs: Case, session: SparkSession, folder: Path) -> None:
        self.delays = inputs.get("delays") or [f"{delay} seconds" for delay in inputs["delays_s"]]
        self.session, self.folder, self.inputs = session, folder, inputs
        self.watermark, self.count = 0, 0
        self.sources = [folder / f"source{number}" for number in range(len(self.delays))]
        for source in self.sources:
            source.mkdir(exist_ok=True)
        self.define(inputs["policy"])
        session.conf.set("spark.sql.shuffle.partitions", "1")

    def define(self, policy: str) -> None:
        """Declare the dataflow, as a new process finds it."""
        trigger, mode = self.inputs.get("trigger"), self.inputs["output_mode"]
        watermark = {
            "type": "stream",
            "engine": "structured_streaming",
            "event_time": self.inputs.get("event_time", "ts"),
            "timeout": self.delays[0],
            "policy": policy,
            "output_mode": mode,
            "checkpoint": {"interval_files": self.inputs.get("max_files_per_trigger")},
        } | ({"trigger": trigger} if trigger is not None else {})
        target = _TARGETS.get(mode, {})
        dataflow = Dataflow.model_validate(
            {
                "name": "case",
                "source": self.declared_sources,
                "watermark": watermark,
                "operators": self.operators,
                "target": target,
            }
        )
        places = [Place(str(source)) for source in self.sources]
        log = WatermarkLog(open_blobs(Place(str(self.folder / "state"))))
        lives, staging = Place(str(self.folder / "lives")), Staging(Place(str(self.folder / "staging")))
        inputs = Inputs.of(dataflow, places, staging, self.folder)
        self.planning = SparkStreamPlanning(dataflow, inputs, lives, log)
        self.reading = SparkStreamReading(inputs, lives)

    @property
    def declared_sources(self) -> Any:
        types = self.inputs.get("schema") or {"ts": "timestamp"}
        schema = ", ".join(f"{name} {types.get(name, 'string')}" for name in self.inputs["row"])
        files = {"type": "files", "format": "ndjson", "schema": schema}
        if len(self.sources) == 1:
            return {"path": str(self.sources[0]), **files}
        return [
            {"name": source.name, "path": str(source), "timeout": delay, **files}
            for source, delay in zip(self.sources, self.delays, strict=True)
        ]

    @property
    def operators(self) -> list[Operator]:
        declared = [_declared(operator) for operator in self.inputs["operators"]]
        if len(self.sources) == 1 or any(isinstance(operator, Join) for operator in declared):
            return declared
        return [Union(type="union"), *declared]

    def add(self, rows: list[list[Any]]) -> None:
        """Write a file for each source; Spark reads files by their modification time."""
        for source, added in zip(self.sources, rows, strict=True):
            self.count += 1
            file = source / f"{self.count}.ndjson"
            file.write_text("".join(json.dumps(self.named(row)) + "\n" for row in added))
            os.utime(file, (1_700_000_000 + self.count,) * 2)

    def named(self, row: Any) -> dict[str, Any]:
        values = row if isinstance(row, list) else [row]
        named = dict(zip(self.inputs["row"], values, strict=True))
        return {**named, "ts": datetime.fromtimestamp(named["ts"], UTC).isoformat()}

    def check(self) -> None:
        """Have Spark look at the query, and read nothing."""
        self.reading.pin(self.session, ())

    @property
    def life(self) -> StreamFolder:
        """Return the folder of the state that nothing was committed to."""
        return StreamFolder(Place(str(self.folder / "lives/first")))

    def run(self) -> list[BatchProgress]:
        """Have Spark read what is new, and return what it says of each batch."""
        before = self.life.newest()
        assert self.planning.run_ahead(self.session, None) is None
        batches = [self.life.report(number) for number in range(before + 1, self.life.newest() + 1)]
        reports = [batch for batch in batches if batch is not None]
        self.watermark = _seconds(reports[-1]) if reports else self.watermark
        return reports

    def written(self, batches: list[BatchProgress]) -> list[list[Any]]:
        """Return the rows of the batches in the outbox.

        Numbers in columns without a known type are texts there.
        """
        places = [self.life.rows_of(batch.batch_id) for batch in batches]
        folders = [str(place.local) for place in places if place is not None]
        columns = [name for name in self.inputs["output"] if name != "batch"]
        rows = self.session.read.parquet(*folders).select(*columns).collect() if folders else []
        return [[_plain(value) for value in row] for row in rows]


def _declared(inputs: Case) -> Operator:
    """Return an operator of a case as a definition has it."""
    match inputs:
        case {"kind": "window_count", "size_s": size}:
            return Aggregate.model_validate({"window": _tumbling(size), "aggregates": {"count": "count(*)"}})
        case {"kind": "window_count_sum", "size_s": size, "of": of}:
            counts = {"count": "count(*)", "sum": f"sum({of})"}
            return Aggregate.model_validate({"window": _tumbling(size), "aggregates": counts})
        case {"kind": "session_count_sum", "gap_s": gap, "of": of}:
            counts = {"count": "count(*)", "sum": f"sum({of})"}
            window = {"type": "session", "gap": timedelta(seconds=gap)}
            return Aggregate.model_validate({"window": window, "aggregates": counts})
        case {"kind": "inner_join", "on": on}:
            return Join.model_validate({"type": "join", "on": on if isinstance(on, list) else [on]})
        case {"kind": "drop_duplicates", "keys": keys}:
            return DropDuplicates.model_validate({"type": "drop_duplicates", "keys": keys})
        case {"kind": "drop_duplicates_within_watermark", "keys": keys}:
            return DropDuplicatesWithinWatermark.model_validate(
                {"type": "drop_duplicates_within_watermark", "keys": keys}
            )
    raise AssertionError(inputs)


def _tumbling(size: int) -> Case:
    return {"type": "tumble", "size": timedelta(seconds=size)}


def _progress(batch: BatchProgress) -> list[Any]:
    counts = [
        (operator.state_rows, operator.updated, operator.removed, operator.dropped_by_watermark)
        for operator in batch.operators
    ]
    return [batch.rows_in, _seconds(batch), counts]


def _reported(batch: Case) -> list[Any]:
    names = ("state_rows", "updated", "removed", "dropped_by_watermark")
    return [
        batch["rows_in"],
        batch["watermark_s"],
        [tuple(operator[name] for name in names) for operator in batch["operators"]],
    ]


def _seconds(batch: BatchProgress) -> int:
    return int(batch.watermark.timestamp()) if batch.watermark else 0


def _plain(value: Any) -> Any:
    return int(value.replace(tzinfo=UTC).timestamp()) if isinstance(value, datetime) else value


def _check_epochs(inputs: Case, expected: Case) -> None:
    splits = SplitOptions(
        timeout=_span(inputs["delay_s"], like=_times(inputs["epochs"])), declared=frozenset(inputs["splits"])
    )
    state, values = StreamState(), []
    for epoch in inputs["epochs"]:
        tops = {name: max(map(_time, times)) for name, times in epoch.items() if times}
        state = close_epoch(open_epoch(state, splits, tops), splits, tops)
        values.append(state.value)
    assert values == [_time(value) for value in expected["global_after_each"]]


_ON_SPARK = {"query": _check_query, "backlog": _check_backlog, "probe": _check_probe, "config": _check_config}


def _times(epochs: list[dict[str, list[Any]]]) -> list[Any]:
    return [_time(at) for epoch in epochs for times in epoch.values() for at in times]


def _assign(inputs: dict[str, Any], expected: dict[str, Any]) -> None:
    before = {name: _time(at) for name, at in inputs["before"].items()}
    start = _time(inputs["global_before"])
    watermarks = assign_watermarks(before, inputs["after"], inputs["mode"], start)
    assert watermarks == {name: _time(at) for name, at in expected["watermarks"].items()}
    if "global" in expected:
        assert global_watermark(start, watermarks) == _time(expected["global"])
    for name, times in inputs.get("rows", {}).items():
        _check_sifted(
            times, watermarks[name], {place: expected[place].get(name, []) for place in ("kept", "late")}
        )


def _merge(inputs: dict[str, Any], expected: dict[str, Any]) -> None:
    assert _globals(inputs) == [_time(value) for value in expected["global_after_each"]]


def _idle(inputs: dict[str, Any], expected: dict[str, Any]) -> None:
    name = inputs["idle"]
    before = {split: _time(at) for split, at in inputs["before"].items()}
    policy = SplitOptions(
        timeout=_span(0, like=list(before.values())), idle=inputs["policy"], idle_after=inputs["idle_after"]
    )
    state = StreamState({split: Split(at) for split, at in before.items()})
    other_splits = {split: at for split, at in before.items() if split != name}
    for watermark in expected["watermark_after_each"]:
        state = close_epoch(open_epoch(state, policy, other_splits), policy, other_splits)
        assert state.splits[name].watermark == _time(watermark)
    _check_sifted(inputs["rows"], state.bound(name), expected)


def _buffers(inputs: dict[str, Any], expected: dict[str, Any]) -> None:
    buffer = SortBuffer(Order("ts", ("key",)))
    for rows in inputs["buffers"].values():
        buffer = buffer.took({"ts": _time(at), "key": key} for at, key in rows)
    buffer, _ = buffer.drained(_time(inputs["global_before"]))
    _, out = buffer.drained(_time(inputs["global_next"]))
    assert [[row["ts"], row["key"]] for row in out] == [[_time(at), key] for at, key in expected["emitted"]]


def _globals(inputs: dict[str, Any]) -> list[Any]:
    """G after each step of a case."""
    merger, values = Merger(dict.fromkeys(inputs["inputs"])), []
    for step in inputs["steps"]:
        match step:
            case {"input": name, "watermark": at}:
                merger = merger.heard({name: _time(at)})
            case {"idle": name}:
                merger = merger.slept([name])
            case {"active": name}:
                merger = merger.woken([name])
            case {"add": name}:
                merger = merger.added([name])
            case {"remove": name}:
                merger = merger.removed([name])
        values.append(merger.value)
    return values


def _check_sifted(times: list[Any], watermark: Any, expected: dict[str, Any]) -> None:
    """Rows of one chunk, each only an event time; the timeout makes no difference to it."""
    rows = [_time(at) for at in times]
    sifted = sift(rows, lambda at: at, watermark, _span(0, like=rows))
    assert [list(sifted.on_time), list(sifted.late)] == [
        [_time(at) for at in expected[place]] for place in ("kept", "late")
    ]


_SCALING = {"assign": _assign, "merge": _merge, "idle": _idle, "buffers": _buffers}


def _timed(emitted: list[list[list[Any]]], run: _Sorting) -> list[list[list[Any]]]:
    """Return the expected rows with their times parsed.

    Those are the event time, a window's start, or a session's ends.
    """
    places = {
        WindowBuffer: {0},
        SessionBuffer: {run.columns.index(run.time), len(run.columns), len(run.columns) + 1},
    }.get(type(run.operator), {run.columns.index(run.time)})
    return [
        [[_time(value) if at in places else value for at, value in enumerate(row)] for row in rows]
        for rows in emitted
    ]


def _time(value: Any) -> Any:
    """Return an event time of a case: an int, or a datetime without offset."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def _span(delay: int, like: list[Any]) -> Any:
    """Return a delay of a case: units of ints, or seconds of datetimes."""
    return timedelta(seconds=delay) if any(isinstance(value, datetime) for value in like) else delay
