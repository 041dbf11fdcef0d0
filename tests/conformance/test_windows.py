"""windows.json and units.json."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import pytest

from partitions.errors import SourceError
from partitions.instants import Instant, milliseconds, zone_of
from partitions.plan import Plan
from partitions.request import DUE, Forced, Request
from partitions.window.definition import WindowWatermark
from partitions.window.grace import cutoff
from partitions.window.plan import plan
from partitions.window.secondary_input import SecondaryInput
from partitions.window.slices import WindowSlice
from partitions.window.state import WindowState
from partitions.window.units import NO_UNIT, distinct_identities, identity, list_units, unit_of
from partitions.window.work_unit import FailedUnit, WorkUnit
from tests.conformance.common import Case, answer
from tests.support.windows import with_high

NOW = "2020-02-01T00:00:00+00:00"
DAY = 86_400_000
EVERYTHING = 1_000_000


@pytest.mark.cases("windows", "duration_parse")
def test_duration_parse(case: Case) -> None:
    inputs = case["input"]
    result = answer(
        case, lambda: Instant.parse(inputs["text"], zone_of(inputs["tz"])).at(_clock(inputs["now"]))
    )
    assert result is None or result == case["expected"]["ms"]


@pytest.mark.cases("windows", "partitions")
def test_partitions(case: Case) -> None:
    inputs, expected = case["input"], case["expected"]
    result = answer(case, lambda: list(_definition(inputs).windows(_clock(inputs["now"]), clipped=False)))
    if result is None:
        return
    assert len(result) == expected["count"]
    for window, expected_window in zip(
        _listed(result, expected, "ranges"), _expected_work(expected, "ranges"), strict=True
    ):
        assert (window.start, window.end) == (expected_window["start_ms"], expected_window["end_ms"])
        assert (window.start, window.end) == (_ms(expected_window["start"]), _ms(expected_window["end"]))


@pytest.mark.cases("windows", "cutoff")
def test_cutoff(case: Case) -> None:
    inputs = case["input"]
    periods = inputs["grace_days"] * DAY, inputs["abstinent_days"] * DAY
    result = answer(case, lambda: cutoff(map(_ms, inputs["last_highs"]), _ms(inputs["from"]), *periods))
    assert result is None or result == case["expected"]["effective_cutoff_ms"]


@pytest.mark.cases("windows", "execute")
def test_execute(case: Case) -> None:
    inputs, expected = case["input"], case["expected"]
    state = WindowState()
    for partition_state in inputs["partition_states"]:
        if partition_state["high"] is not None:
            state = with_high(state, NO_UNIT, _ms(partition_state["start"]), _ms(partition_state["high"]))
    for high in map(_ms, inputs["other_state_highs"]):
        state = with_high(state, '{"gone":true}', high - 1, high)
    result = answer(case, lambda: _plan(_definition(inputs), state, (NO_UNIT,), inputs["now"]))
    if result is None:
        return
    works = _works(result)
    assert len(works) == expected["execute_count"]
    _check(works, [], expected["executes"])
    highest = state.highest
    if "job_cutoff" in expected:
        job_cutoff = expected["job_cutoff"]
        assert (None if highest is None else highest - inputs["grace_days"] * DAY) == (
            job_cutoff and _ms(job_cutoff)
        )


@pytest.mark.cases("windows", "multi_run")
def test_multi_run(case: Case) -> None:
    inputs, expected = case["input"], case["expected"]
    state = WindowState()
    for run, expected_run in zip(inputs["runs"], expected["runs"], strict=True):
        raw = {**inputs, **{key: run[key] for key in ("from", "to", "partition", "units") if key in run}}
        units = distinct_identities(raw.get("units") or ({},))
        chosen = Forced() if run.get("backfill") else DUE
        result = _plan(_definition(raw), state, units, run["now"], chosen)
        failing = {(_ms(failure["start"]), identity(failure.get("unit", {}))) for failure in run["fail"]}
        failed = [work for work in _works(result) if work.key in failing]
        for piece in result.slices:
            bad = [FailedUnit(work, "failed") for work in piece.works if work in failed]
            state = WindowState.of(piece.without(bad).advance(state.watermark()))
        assert len(_works(result)) == expected_run["executed_count"]
        _check(
            _works(result),
            failed,
            _expected_work(expected_run, "executed"),
            any_order="parallelism" in inputs,
        )
    for final_high in expected.get("final_highs", ()):
        assert state.high(identity(final_high.get("unit", {})), _ms(final_high["start"])) == _ms(
            final_high["high"]
        )


@pytest.mark.cases("units", "unit_watermark")
def test_unit_watermark(case: Case) -> None:
    inputs, expected = case["input"], case["expected"]
    result = answer(case, lambda: _unit_plan(inputs))
    if result is None:
        return
    units, works = result
    assert list(map(unit_of, units)) == expected["units"]
    assert [list(map(type, unit_of(unit).values())) for unit in units] == [
        list(map(type, unit.values())) for unit in expected["units"]
    ]
    assert len(works) == expected["work_unit_count"]
    for work, expected_work in zip(
        _listed(works, expected, "work_units"), _expected_work(expected, "work_units"), strict=True
    ):
        assert (work.start, work.end) == (_ms(expected_work["start"]), _ms(expected_work["end"]))
        assert (unit_of(work.unit), list(work.key)) == (expected_work["unit"], expected_work["key"])


@pytest.mark.cases("units", "bad_input")
def test_bad_input(case: Case) -> None:
    answer(case, lambda: _unit_plan(case["input"]))


def _unit_plan(inputs: Mapping[str, Any]) -> tuple[tuple[str, ...], list[WorkUnit]]:
    names = {
        "watermark": "definition",
        "partition": "window",
        "tz": "timezone",
        "grace_days": "grace",
        "abstinent_days": "abstinent",
    }
    same_names = ("parallelism", "min_units", "partial", "secondary_input")
    raw = {names.get(key, key): value for key, value in inputs.items() if key in names or key in same_names}
    definition = WindowWatermark.of({**raw, "max_slices": EVERYTHING})

    def read(secondary_input: SecondaryInput) -> Iterable[Mapping[str, Any]]:
        if secondary_input.path not in inputs["files"]:
            raise SourceError(f"no such table: {secondary_input.path}")
        rows: list[dict[str, Any]] = inputs["files"][secondary_input.path]
        return rows

    units = list_units(definition.units, definition.secondary_input, read)
    return units, _works(_plan(definition, WindowState(), units, inputs["now"]))


def _definition(inputs: Mapping[str, Any]) -> WindowWatermark:
    system = {"name": "system", "type": "datetime", "range": {"from": inputs["from"], "to": inputs["to"]}}
    raw = {
        "definition": [system],
        "window": inputs["partition"],
        "timezone": inputs["tz"],
        "partial": inputs["partial"],
        "grace": inputs.get("grace_days", 0),
        "abstinent": inputs.get("abstinent_days", 0),
        "max_slices": EVERYTHING,
    }
    return WindowWatermark.of(
        raw | ({"parallelism": inputs["parallelism"]} if inputs.get("parallelism") else {})
    )


def _plan(
    definition: WindowWatermark,
    state: WindowState,
    units: tuple[str, ...],
    now: str,
    chosen: Request = DUE,
) -> Plan[WindowSlice]:
    clock = datetime.fromisoformat(now)
    return plan(definition, state, units, clock, dataflow="case", state_number=0, request=chosen)


def _works(result: Plan[WindowSlice]) -> list[WorkUnit]:
    """Return the work units in planning order: those that failed before are in slices of their own."""
    works = [work for piece in result.slices for work in piece.works]
    return sorted(works, key=lambda work: work.start or 0)


def _check(
    works: list[WorkUnit],
    failed: list[WorkUnit],
    expected_works: list[dict[str, Any]],
    *,
    any_order: bool = False,
) -> None:
    def described(work: WorkUnit) -> tuple[Any, ...]:
        return work.start, work.end, work.lower, work.end, unit_of(work.unit), work in failed

    expected = [
        (
            *(_ms(expected_work[name]) for name in ("start", "end", "effective_from", "effective_to")),
            expected_work.get("unit", {}),
            expected_work.get("outcome") == "failed",
        )
        for expected_work in expected_works
    ]
    actual = list(map(described, works if len(works) == len(expected_works) else [works[0], works[-1]]))
    assert sorted(actual, key=str) == sorted(expected, key=str) if any_order else actual == expected


def _expected_work(expected: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    return expected[name] if name in expected else [expected["first"], expected["last"]]


def _listed(items: list[Any], expected: Mapping[str, Any], name: str) -> list[Any]:
    return items if name in expected else [items[0], items[-1]]


def _clock(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _ms(text: str | None) -> Any:
    return None if text is None else milliseconds(datetime.fromisoformat(text))
