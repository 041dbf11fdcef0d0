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
    given = case["input"]
    found = answer(case, lambda: Instant.parse(given["text"], zone_of(given["tz"])).at(_clock(given["now"])))
    assert found is None or found == case["expected"]["ms"]


@pytest.mark.cases("windows", "partitions")
def test_partitions(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    found = answer(case, lambda: list(_definition(given).windows(_clock(given["now"]), clipped=False)))
    if found is None:
        return
    assert len(found) == expected["count"]
    for window, wanted in zip(_listed(found, expected, "ranges"), _wanted(expected, "ranges"), strict=True):
        assert (window.start, window.end) == (wanted["start_ms"], wanted["end_ms"])
        assert (window.start, window.end) == (_ms(wanted["start"]), _ms(wanted["end"]))


@pytest.mark.cases("windows", "cutoff")
def test_cutoff(case: Case) -> None:
    given = case["input"]
    periods = given["grace_days"] * DAY, given["abstinent_days"] * DAY
    found = answer(case, lambda: cutoff(map(_ms, given["last_highs"]), _ms(given["from"]), *periods))
    assert found is None or found == case["expected"]["effective_cutoff_ms"]


@pytest.mark.cases("windows", "execute")
def test_execute(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    state = WindowState()
    for one in given["partition_states"]:
        if one["high"] is not None:
            state = with_high(state, NO_UNIT, _ms(one["start"]), _ms(one["high"]))
    for high in map(_ms, given["other_state_highs"]):
        state = with_high(state, '{"gone":true}', high - 1, high)
    made = answer(case, lambda: _plan(_definition(given), state, (NO_UNIT,), given["now"]))
    if made is None:
        return
    works = _works(made)
    assert len(works) == expected["execute_count"]
    _check(works, [], expected["executes"])
    highest = state.highest
    if "job_cutoff" in expected:
        wanted = expected["job_cutoff"]
        assert (None if highest is None else highest - given["grace_days"] * DAY) == (wanted and _ms(wanted))


@pytest.mark.cases("windows", "multi_run")
def test_multi_run(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    state = WindowState()
    for run, wanted in zip(given["runs"], expected["runs"], strict=True):
        raw = {**given, **{key: run[key] for key in ("from", "to", "partition", "units") if key in run}}
        units = distinct_identities(raw.get("units") or ({},))
        chosen = Forced() if run.get("backfill") else DUE
        made = _plan(_definition(raw), state, units, run["now"], chosen)
        failing = {(_ms(one["start"]), identity(one.get("unit", {}))) for one in run["fail"]}
        failed = [one for one in _works(made) if one.key in failing]
        for piece in made.slices:
            bad = [FailedUnit(one, "failed") for one in piece.works if one in failed]
            state = WindowState.of(piece.without(bad).advance(state.watermark()))
        assert len(_works(made)) == wanted["executed_count"]
        _check(_works(made), failed, _wanted(wanted, "executed"), any_order="parallelism" in given)
    for one in expected.get("final_highs", ()):
        assert state.high(identity(one.get("unit", {})), _ms(one["start"])) == _ms(one["high"])


@pytest.mark.cases("units", "unit_watermark")
def test_unit_watermark(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    found = answer(case, lambda: _unit_plan(given))
    if found is None:
        return
    units, works = found
    assert list(map(unit_of, units)) == expected["units"]
    assert [list(map(type, unit_of(unit).values())) for unit in units] == [
        list(map(type, unit.values())) for unit in expected["units"]
    ]
    assert len(works) == expected["work_unit_count"]
    for one, wanted in zip(
        _listed(works, expected, "work_units"), _wanted(expected, "work_units"), strict=True
    ):
        assert (one.start, one.end) == (_ms(wanted["start"]), _ms(wanted["end"]))
        assert (unit_of(one.unit), list(one.key)) == (wanted["unit"], wanted["key"])


@pytest.mark.cases("units", "bad_input")
def test_bad_input(case: Case) -> None:
    answer(case, lambda: _unit_plan(case["input"]))


def _unit_plan(given: Mapping[str, Any]) -> tuple[tuple[str, ...], list[WorkUnit]]:
    names = {
        "watermark": "definition",
        "partition": "window",
        "tz": "timezone",
        "grace_days": "grace",
        "abstinent_days": "abstinent",
    }
    kept = ("parallelism", "min_units", "partial", "secondary_input")
    raw = {names.get(key, key): value for key, value in given.items() if key in names or key in kept}
    definition = WindowWatermark.of({**raw, "max_slices": EVERYTHING})

    def read(one: SecondaryInput) -> Iterable[Mapping[str, Any]]:
        if one.path not in given["files"]:
            raise SourceError(f"no such table: {one.path}")
        rows: list[dict[str, Any]] = given["files"][one.path]
        return rows

    units = list_units(definition.units, definition.secondary_input, read)
    return units, _works(_plan(definition, WindowState(), units, given["now"]))


def _definition(given: Mapping[str, Any]) -> WindowWatermark:
    system = {"name": "system", "type": "datetime", "range": {"from": given["from"], "to": given["to"]}}
    raw = {
        "definition": [system],
        "window": given["partition"],
        "timezone": given["tz"],
        "partial": given["partial"],
        "grace": given.get("grace_days", 0),
        "abstinent": given.get("abstinent_days", 0),
        "max_slices": EVERYTHING,
    }
    return WindowWatermark.of(
        raw | ({"parallelism": given["parallelism"]} if given.get("parallelism") else {})
    )


def _plan(
    definition: WindowWatermark,
    state: WindowState,
    units: tuple[str, ...],
    now: str,
    chosen: Request = DUE,
) -> Plan[WindowSlice]:
    clock = datetime.fromisoformat(now)
    return plan(definition, state, units, clock, dataflow="case", number=0, request=chosen)


def _works(made: Plan[WindowSlice]) -> list[WorkUnit]:
    """In planning order: what failed before stands in slices of its own."""
    works = [one for piece in made.slices for one in piece.works]
    return sorted(works, key=lambda one: one.start or 0)


def _check(
    works: list[WorkUnit], failed: list[WorkUnit], wanted: list[dict[str, Any]], *, any_order: bool = False
) -> None:
    def told(one: WorkUnit) -> tuple[Any, ...]:
        return one.start, one.end, one.lower, one.end, unit_of(one.unit), one in failed

    expected = [
        (
            *(_ms(one[name]) for name in ("start", "end", "effective_from", "effective_to")),
            one.get("unit", {}),
            one.get("outcome") == "failed",
        )
        for one in wanted
    ]
    found = list(map(told, works if len(works) == len(wanted) else [works[0], works[-1]]))
    assert sorted(found, key=str) == sorted(expected, key=str) if any_order else found == expected


def _wanted(expected: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    return expected[name] if name in expected else [expected["first"], expected["last"]]


def _listed(found: list[Any], expected: Mapping[str, Any], name: str) -> list[Any]:
    return found if name in expected else [found[0], found[-1]]


def _clock(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _ms(text: str | None) -> Any:
    return None if text is None else milliseconds(datetime.fromisoformat(text))
