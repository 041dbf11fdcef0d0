from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from partitions.errors import ConfigurationError
from partitions.instants import DAY, milliseconds
from partitions.window.calendar_grid import Grid
from partitions.window.definition import WindowWatermark
from partitions.window.time_range import MAX_WINDOWS
from partitions.window.units import list_units
from partitions.window.windows import Stretch

TIME = {"name": "system", "type": "datetime", "range": {"from": "2017-01-02", "to": "-"}}
UNIT = {"name": "surveyId", "type": "unit", "units": "id1,id2,id3"}
NOW = datetime(2020, 2, 21, 9, 30, 59, tzinfo=UTC)


def _of(definition: Any = (TIME,), **changes: Any) -> WindowWatermark:
    return WindowWatermark.of(
        {"definition": list(definition) if isinstance(definition, tuple) else definition, **changes}
    )


def _ranged(start: str, end: str, **changes: Any) -> WindowWatermark:
    return _of(({**TIME, "range": {"from": start, "to": end}},), **changes)


def _ms(text: str) -> int:
    return milliseconds(datetime.fromisoformat(text))


def test_the_array_is_accepted_as_it_stands_and_as_text() -> None:
    found = _of((TIME, UNIT))
    assert found == _of(json.dumps([TIME, UNIT]))
    assert found.units == ({"surveyId": "id1"}, {"surveyId": "id2"}, {"surveyId": "id3"})
    assert found.unit_fields == ("surveyId",)
    assert found.time_entry is not None
    assert (found.time_entry.name, found.time_entry.range.from_, found.time_entry.range.to) == (
        "system",
        "2017-01-02",
        "-",
    )


def test_an_empty_array_is_one_unit_without_time() -> None:
    found = _of(())
    assert (found.units, found.time_entry, found.unit_entry, found.unit_fields) == (({},), None, None, ())
    with pytest.raises(ConfigurationError, match="datetime entry"):
        found.time_range.start(NOW)


def test_an_object_in_the_list_of_units_is_the_unit() -> None:
    given = [{"id": "a", "region": "x"}, {"region": "x", "id": "a"}, {"id": "b", "region": None}]
    found = _of((TIME, UNIT | {"units": json.dumps(given)}))
    assert found == _of((TIME, UNIT | {"units": given}))
    assert found.units == ({"id": "a", "region": "x"}, {"id": "b", "region": None})
    assert found.unit_fields == ("id", "region")
    mixed = _of((TIME, UNIT | {"units": ["id1", {"surveyId": "id1"}, {"surveyId": 1}]}))
    assert mixed.unit_fields == ("surveyId",)
    assert list_units(mixed.units, (), lambda one: ()) == ('{"surveyId":"id1"}', '{"surveyId":1}')


def test_units_of_a_secondary_input_are_not_known_yet() -> None:
    given = [{"table": "silver/a", "fields": ["x", "y"]}, {"path": "./b", "fields": ["y", "z"]}]
    found = _of(secondary_input=given)
    assert (found.units, found.unit_fields) == (None, ("x", "y", "z"))


@pytest.mark.parametrize(
    ("definition", "changes", "key"),
    [
        ([TIME, TIME], {}, "definition"),
        ([UNIT, {**UNIT, "name": "b"}], {}, "definition"),
        ([TIME | {"more": 1}], {}, "definition.0.datetime.more"),
        ([{"name": "a", "type": "range"}], {}, "definition.0"),
        ([{"type": "unit", "units": "a"}], {}, "definition.0.unit.name"),
        ([{"name": "a", "type": "datetime"}], {}, "definition.0.datetime.range"),
        ([{**TIME, "range": {"from": "2017-01-02"}}], {}, "definition.0.datetime.range.to"),
        ([{**TIME, "range": {"from": "-", "to": "-"}}], {}, "definition.range.from"),
        ([{**TIME, "range": {"from": "2020-02-30", "to": "-"}}], {}, "definition.range.from"),
        ([{**TIME, "range": {"from": "2020-02-02", "to": "2020-02-01"}}], {}, "definition.range"),
        ([{"name": "a", "type": "unit"}], {}, "definition.0.unit.units"),
        ([{"name": "a", "type": "unit", "units": ""}], {}, "definition.0.unit.units"),
        ("[", {}, "definition"),
        ("5", {}, "definition"),
        ([TIME], {"window": "dayly"}, "window"),
        ([TIME], {"window": "{"}, "window"),
        ([TIME], {"window": {}}, "window"),
        ([TIME], {"window": "{}"}, "window"),
        ([TIME, {**UNIT, "units": [{}]}], {}, "definition.1.unit.units"),
        ([TIME], {"window": {"dayly": ["2020-01-01", "-"]}}, "window"),
        ([TIME], {"window": {"daily": ["2020-01-01"]}}, "window"),
        ([TIME], {"window": {"daily": ["2020-01-01", "tomorrow"]}}, "window.daily.1"),
        ([TIME], {"window": {"daily": ["2020-01-01", "2019-01-01"]}}, "window.daily"),
        ([TIME], {"grace": -1}, "grace"),
        ([TIME], {"grace": "P1M"}, "grace"),
        ([TIME], {"grace": 1.5}, "grace"),
        # Longer ago than a calendar has days, at which each run would end.
        ([TIME], {"grace": "P999999D"}, "grace"),
        ([TIME], {"grace": 10**12}, "grace"),
        ([TIME], {"abstinent": True}, "abstinent"),
        ([TIME], {"timezone": "Nowhere"}, "timezone"),
        ([TIME], {"parallelism": 0}, "parallelism"),
        ([TIME], {"parallelism": "x"}, "parallelism"),
        ([TIME], {"min_units": -1}, "min_units"),
        ([TIME], {"partial": "maybe"}, "partial"),
        ([TIME], {"max_slices": 0}, "max_slices"),
        ([TIME], {"checkpoint": {"interval_windows": 0}}, "checkpoint.interval_windows"),
        ([TIME, UNIT], {"secondary_input": [{"table": "silver/a", "fields": ["x"]}]}, "secondary_input"),
        ([TIME], {"secondary_input": [{"table": "silver/a"}]}, "secondary_input.0.fields"),
        ([TIME], {"unknown": 1}, "unknown"),
    ],
)
def test_a_wrong_key_is_refused_with_its_path(definition: Any, changes: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigurationError) as found:
        _of(definition, **changes)
    assert key in found.value.message


@pytest.mark.parametrize(
    ("value", "wanted"),
    [(3, 3 * DAY), ("3", 3 * DAY), ("P3D", 3 * DAY), ("PT6H", DAY // 4), (timedelta(hours=1), DAY // 24)],
)
def test_periods_are_whole_days_of_24_hours_or_durations(value: Any, wanted: int) -> None:
    found = _of(grace=value, abstinent=value)
    assert (found.grace_ms, found.abstinent_ms) == (wanted, wanted)


def test_inverted_ranges_that_depend_on_now_are_no_error() -> None:
    assert len(_ranged("2030-01-01", "-").windows(NOW)) == 0
    assert len(_ranged("P1D", "P7D").windows(NOW)) == 0


def test_windows_end_at_now_floored_to_the_minute_unless_they_are_asked_for_whole() -> None:
    definition = _ranged("2020-02-20", "2020-02-25", window="daily")
    assert list(definition.windows(NOW))[-1] == (
        _ms("2020-02-21T00:00:00+00:00"),
        _ms("2020-02-21T09:30:00+00:00"),
    )
    assert list(definition.windows(NOW, clipped=False))[-1] == (
        _ms("2020-02-24T00:00:00+00:00"),
        _ms("2020-02-25T00:00:00+00:00"),
    )
    assert len(definition.windows(None)) == 5


def test_a_composite_is_clipped_and_overlaps_are_the_firsts() -> None:
    window = {
        "daily": ["2020-02-01", "P3D"],
        "monthly": ["2019-01-01", "2020-02-05"],
        "weekly": ["2020-01-10", "2020-01-20"],
    }
    found = _ranged("2019-12-01", "P1D", window=window).windows(NOW)
    assert found.stretches == (
        Stretch(Grid("monthly"), _ms("2019-12-01T00:00:00+00:00"), _ms("2020-02-05T00:00:00+00:00"), True),
        Stretch(Grid("daily"), _ms("2020-02-05T00:00:00+00:00"), _ms("2020-02-18T00:00:00+00:00"), False),
    )


def test_a_range_inside_another_does_not_bring_back_what_lies_behind_it() -> None:
    window = {
        "monthly": ["2020-01-01", "2020-02-15"],
        "hourly": ["2020-01-05", "2020-01-06"],
        "daily": ["2020-01-10", "-"],
    }
    found = _ranged("2020-01-01", "-", window=window).windows(NOW)
    assert [stretch.grid.grain for stretch in found.stretches] == ["monthly", "daily"]
    assert found.stretches[1].start == _ms("2020-02-15T00:00:00+00:00")


def test_the_grid_of_a_definition_is_that_of_its_last_range() -> None:
    assert _of(window="daily", timezone="Europe/Berlin").default_grid == Grid("daily", "Europe/Berlin")
    assert _of(window={"monthly": ["2017-01-01", "P9D"], "daily": ["P9D", "-"]}).default_grid == Grid("daily")
    assert _of().default_grid == Grid("none")


def test_more_windows_than_anybody_has_are_a_mistake() -> None:
    with pytest.raises(ConfigurationError, match=f"{MAX_WINDOWS:,}"):
        _ranged("0002-01-01", "-", window="hourly").windows(NOW)
    composite = {"hourly": ["0002-01-01", "2020-01-01"], "daily": ["2020-01-01", "-"]}
    with pytest.raises(ConfigurationError, match=f"{MAX_WINDOWS:,}"):
        _ranged("0002-01-01", "-", window=composite).windows(NOW)


def test_a_range_that_begins_before_from_neither_leaves_a_gap_nor_overlaps() -> None:
    found = _ranged("2020-01-05", "2020-02-01", window={"daily": ["2020-01-01", "2020-02-01"]})
    assert found.time_range.gaps_and_overlaps(NOW) == ([], [])
    assert _ranged("2020-01-05", "2020-02-01", window="daily").time_range.gaps_and_overlaps(NOW) == ([], [])


@pytest.mark.parametrize(
    ("window", "start", "moves"),
    [
        ("weekly", "2020-01-01", []),
        ("weekly", "P30D", ["P30D"]),
        ("monthly", "P30D", ["P30D"]),
        ("yearly", "P800D", ["P800D"]),
        ("none", "P7D", ["P7D"]),
        ("daily", "P30D", []),
        ("daily", "P30D.UTC", []),
        ("daily", "P30D.America/Los_Angeles", ["P30D.America/Los_Angeles"]),
        ("daily", "P0DT6H", ["P0DT6H"]),
        ("hourly", "P0DT6H", []),
        ("hourly", "P30D.America/Los_Angeles", []),
        ("hourly", "P0DT6H30M", ["P0DT6H30M"]),
        # Half an hour is put forward and back there: a full hour of summer is none of winter.
        ("hourly", "P0DT6H.Australia/Lord_Howe", ["P0DT6H.Australia/Lord_Howe"]),
        ("hourly", "P0DT6H.Asia/Kathmandu", []),
        ({"daily": ["P30D", "-"]}, "2020-01-01", []),
        ({"weekly": ["P30D", "-"]}, "2020-01-01", ["P30D"]),
        ({"monthly": ["2010-01-01", "2020-01-01"], "daily": ["2020-01-01", "-"]}, "2010-01-01", []),
        ({"monthly": ["2010-01-01", "2020-01-01"], "daily": ["2020-01-01", "-"]}, "P9000D", ["P9000D"]),
        ({"monthly": ["2010-01-01", "P30D"], "daily": ["P30D", "-"]}, "2010-01-01", ["P30D", "-"]),
        ({"monthly": ["2010-01-01", "P30D"], "daily": ["2019-01-01", "-"]}, "2010-01-01", ["P30D"]),
    ],
)
def test_what_counts_from_now_cuts_anew_unless_it_starts(window: Any, start: str, moves: list[str]) -> None:
    entry = {"name": "t", "type": "datetime", "range": {"from": start, "to": "-"}}
    definition = WindowWatermark.of({"definition": [entry], "window": window})
    assert [text for _, text in definition.time_range.moving_bounds()] == moves


@pytest.mark.parametrize("zone", ["America/Santiago", "Africa/Cairo", "America/Havana", "Atlantic/Azores"])
def test_days_from_now_start_alike_where_midnight_is_skipped(zone: str) -> None:
    entry = {"name": "t", "type": "datetime", "range": {"from": "P10D", "to": "P0D"}}
    definition = WindowWatermark.of({"definition": [entry], "window": "daily", "timezone": zone})
    known: set[int] = set()
    for day in range(365):
        starts = definition.windows(NOW + timedelta(days=day)).starts
        assert not known or len(set(starts) - known) == 1
        known.update(starts)


def test_windows_that_follow_a_watermark_are_whole_and_end_where_it_is_stable() -> None:
    followed = _ranged("2020-01-01", "watermark", window="daily")
    assert (followed.follows, followed.partial) == (True, False)
    reached = followed.up_to(datetime(2020, 1, 3, 0, 0, 0, 1, tzinfo=UTC))
    assert [window.end for window in reached.windows(NOW)] == [
        _ms("2020-01-02T00:00:00+00:00"),
        _ms("2020-01-03T00:00:00+00:00"),
    ]
    assert list(followed.up_to(datetime(2020, 1, 1, 23, 59, tzinfo=UTC)).windows(NOW)) == []
    assert list(followed.up_to(None).windows(NOW)) == []
    assert followed.identity() == _ranged("2020-01-01", "-", window="daily").identity()


def test_windows_that_follow_no_watermark_are_the_same_wherever_one_is_stable() -> None:
    definition = _ranged("2020-01-01", "-", window="daily")
    assert definition.up_to(datetime(2020, 1, 3, tzinfo=UTC)) is definition


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"window": "daily", "partial": True}, "partial"),
        ({"window": "daily", "grace": "P1D"}, "grace"),
        ({}, "window"),
    ],
)
def test_a_watermark_is_followed_once_and_by_whole_windows(changes: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{key}: expected .* beside to: watermark"):
        _ranged("2020-01-01", "watermark", **changes)
