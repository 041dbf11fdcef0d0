"""streams.json: the operators of our own engine; what runs on Spark's watermark is an expected failure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from partitions.stream.epoch import closed, opened
from partitions.stream.filter import sift
from partitions.stream.merger import Merger
from partitions.stream.scaling import assigned
from partitions.stream.splits import Splits
from partitions.stream.state import Split, StreamState
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


_SCALING = {"assign": _assign, "merge": _merge, "idle": _idle}


def _time(value: Any) -> Any:
    """An event time of a case: an int, or a datetime without offset."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def _span(delay: int, like: list[Any]) -> Any:
    """A delay of a case: units of ints, or seconds of datetimes."""
    return timedelta(seconds=delay) if any(isinstance(value, datetime) for value in like) else delay
