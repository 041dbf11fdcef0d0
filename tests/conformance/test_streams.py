"""streams.json: the operators of our own engine; what runs on Spark's watermark is an expected failure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest

from partitions.stream.drain import SortBuffer
from partitions.stream.epoch import closed, opened
from partitions.stream.filter import sift
from partitions.stream.merger import Merger
from partitions.stream.ordering import Order, Row
from partitions.stream.over import Call, Over
from partitions.stream.scaling import assigned
from partitions.stream.sessions import SessionBuffer
from partitions.stream.splits import Splits
from partitions.stream.state import Split, StreamState
from partitions.stream.windows import Hop, WindowBuffer
from tests.conformance.common import Case


@pytest.mark.cases("streams", "watermark_filter")
def test_watermark_filter(case: Case) -> None:
    given = case["input"]
    watermark, delay = _time(given["watermark"]), given["delay"]
    for step, expected in zip(given["steps"], case["expected"]["steps"], strict=True):
        delay = step.get("set_delay", delay)
        rows = [(name, _time(at)) for name, at in step.get("rows", ())]
        timeout = _span(delay, like=[watermark, *(at for _, at in rows)])
        sifted = sift(rows, lambda row: row[1], watermark, timeout)
        watermark = sifted.watermark
        for place in ("kept", "late", "quarantined"):
            assert [name for name, _ in getattr(sifted, place)] == expected[place]
        assert watermark == _time(expected["watermark"])


@pytest.mark.cases("streams", "merger")
def test_merger(case: Case) -> None:
    assert _globals(case["input"]) == [_time(value) for value in case["expected"]["global_after_each"]]


@pytest.mark.cases("streams", "sort")
def test_sort(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    run = _Sorting(given)
    assert [run.step(step) for step in given["steps"]] == _timed(expected["emitted"], run)
    if "buffered" in expected:
        assert [run.listed(row) for row in run.buffer.order.sorted(run.buffer.rows)] == _timed(
            [expected["buffered"]], run
        )[0]


class _Sorting:
    """A sort and the operator above it; each is a value, so a restart takes up those of the last commit."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.columns, self.time = given["columns"], given["ts"]
        self.measure = str((given.get("operator") or {}).get("column"))
        order = Order(given["ts"], tuple(given["key"]))
        self.buffer, self.operator = SortBuffer(order), _operator(given, order)
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
                self.operator, done = self.operator.took(rows).closed(at)
                return [[start, self.highest(held)] for (start, _), held in done]
            case SessionBuffer():
                self.operator, sessions = self.operator.took(rows).closed(at)
                ended = [
                    {**row, "first": found.first, "last": found.last}
                    for found in sessions
                    for row in found.rows
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


def _operator(given: dict[str, Any], order: Order) -> Over | WindowBuffer | SessionBuffer | None:
    operator = given.get("operator") or {"kind": None}
    times = [
        row[given["columns"].index(order.event_time)]
        for step in given["steps"]
        for row in step.get("rows", ())
    ]
    like = [_time(at) for at in times]
    match operator["kind"]:
        case "over":
            calls = {f"call {number}": Call(**_call(call)) for number, call in enumerate(operator["calls"])}
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


@pytest.mark.cases("streams", "spark_watermark")
def test_spark_watermark(case: Case) -> None:
    given = case["input"]
    if given["kind"] != "epochs":
        pytest.xfail("structured_streaming: not built yet")
    splits = Splits(
        timeout=_span(given["delay_s"], like=_times(given["epochs"])), declared=frozenset(given["splits"])
    )
    state, found = StreamState(), []
    for epoch in given["epochs"]:
        tops = {name: max(map(_time, times)) for name, times in epoch.items() if times}
        state = closed(opened(state, splits, tops), splits, tops)
        found.append(state.value)
    assert found == [_time(value) for value in case["expected"]["global_after_each"]]


def _times(epochs: list[dict[str, list[Any]]]) -> list[Any]:
    return [_time(at) for epoch in epochs for times in epoch.values() for at in times]


def _assign(given: dict[str, Any], expected: dict[str, Any]) -> None:
    before = {name: _time(at) for name, at in given["before"].items()}
    start = _time(given["global_before"])
    watermarks = assigned(before, given["after"], given["mode"], start)
    assert watermarks == {name: _time(at) for name, at in expected["watermarks"].items()}
    if "global" in expected:
        assert Merger(watermarks, value=start).settled().value == _time(expected["global"])
    for name, times in given.get("rows", {}).items():
        _check_sifted(
            times, watermarks[name], {place: expected[place].get(name, []) for place in ("kept", "late")}
        )


def _merge(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert _globals(given) == [_time(value) for value in expected["global_after_each"]]


def _idle(given: dict[str, Any], expected: dict[str, Any]) -> None:
    name = given["idle"]
    before = {split: _time(at) for split, at in given["before"].items()}
    policy = Splits(
        timeout=_span(0, like=list(before.values())), idle=given["policy"], idle_after=given["idle_after"]
    )
    state = StreamState({split: Split(at) for split, at in before.items()})
    others = {split: at for split, at in before.items() if split != name}
    for wanted in expected["watermark_after_each"]:
        state = closed(opened(state, policy, others), policy, others)
        assert state.splits[name].watermark == _time(wanted)
    _check_sifted(given["rows"], state.bound(name), expected)


def _buffers(given: dict[str, Any], expected: dict[str, Any]) -> None:
    buffer = SortBuffer(Order("ts", ("key",)))
    for rows in given["buffers"].values():
        buffer = buffer.took({"ts": _time(at), "key": key} for at, key in rows)
    buffer, _ = buffer.drained(_time(given["global_before"]))
    _, out = buffer.drained(_time(given["global_next"]))
    assert [[row["ts"], row["key"]] for row in out] == [[_time(at), key] for at, key in expected["emitted"]]


def _globals(given: dict[str, Any]) -> list[Any]:
    """G after each step of a case."""
    merger, found = Merger(dict.fromkeys(given["inputs"])), []
    for step in given["steps"]:
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
        found.append(merger.value)
    return found


def _check_sifted(times: list[Any], watermark: Any, expected: dict[str, Any]) -> None:
    """Rows of one chunk, each only an event time; the timeout makes no difference to it."""
    rows = [_time(at) for at in times]
    sifted = sift(rows, lambda at: at, watermark, _span(0, like=rows))
    assert [list(sifted.kept), list(sifted.late)] == [
        [_time(at) for at in expected[place]] for place in ("kept", "late")
    ]


_SCALING = {"assign": _assign, "merge": _merge, "idle": _idle, "buffers": _buffers}


def _timed(emitted: list[list[list[Any]]], run: _Sorting) -> list[list[list[Any]]]:
    """Expected rows with their times read: those of the event-time column, of a window's start, of a session's ends."""
    places = {
        WindowBuffer: {0},
        SessionBuffer: {run.columns.index(run.time), len(run.columns), len(run.columns) + 1},
    }.get(type(run.operator), {run.columns.index(run.time)})
    return [
        [[_time(value) if at in places else value for at, value in enumerate(row)] for row in rows]
        for rows in emitted
    ]


def _time(value: Any) -> Any:
    """An event time of a case: an int, or a datetime without offset."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def _span(delay: int, like: list[Any]) -> Any:
    """A delay of a case: units of ints, or seconds of datetimes."""
    return timedelta(seconds=delay) if any(isinstance(value, datetime) for value in like) else delay
