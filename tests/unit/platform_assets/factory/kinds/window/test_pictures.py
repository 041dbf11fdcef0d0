"""The ledger as Dagster shows it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from partitions.instants import DAY, HOUR, milliseconds
from partitions.window.calendar_grid import Grid
from partitions.window.definition import WindowWatermark
from partitions.window.ledger import Ledger, ledger
from partitions.window.state import WindowState
from partitions.window.work_outcomes import LoadedUnit
from platform_assets.factory.kinds.window.pictures import ledger_metadata, ledger_picture
from tests.support.images import chart_of

START = datetime(2020, 1, 1, tzinfo=UTC)
FIRST = milliseconds(START)
DAILY = Grid("daily")


def _unit(name: str) -> str:
    return f'{{"id":"{name}"}}'


def _done(day: float, unit: str = "a", width: float = 1) -> LoadedUnit:
    start = FIRST + int(day * DAY)
    return LoadedUnit(start, start + int(width * DAY), start, _unit(unit), width < 1, DAILY)


def _ledger(state: WindowState, *units: str, days: float = 5, **changes: Any) -> Ledger:
    entry = {"name": "t", "type": "datetime", "range": {"from": "2020-01-01", "to": "-"}}
    definition = WindowWatermark.of({"definition": [entry], "window": "daily", **changes})
    return ledger(definition, state, tuple(map(_unit, units)), START + timedelta(days=days), dataflow="flow")


def test_units_that_lack_something_come_first_and_equal_ones_share_a_row() -> None:
    state = WindowState(DAILY).after(
        [
            *(_done(day, unit) for day in range(60) for unit in "ace" if day != 5 or unit != "e"),
            _done(0, "gone"),
        ],
        [(_unit("e"), FIRST + 5 * DAY, "no")],
    )
    drawn = chart_of(ledger_picture(_ledger(state, *"abce", days=60)))
    assert dict(zip(drawn.names, drawn.cells, strict=True)) == {
        "b": "M" * 60,
        "gone": "L" + "M" * 59,
        "e": "LLLLLF" + "L" * 54,
        "a and 1 more": "L" * 60,
    }
    assert drawn.names[0] == "b"


def test_the_scale_has_round_times_that_lie_within_the_picture() -> None:
    for days, ticks in {
        3: ["Jan 1", "Jan 2", "Jan 3", "Jan 4"],
        60: ["Jan 1", "Jan 15", "Jan 29", "Feb 12", "Feb 26"],
        400: ["2020", "Apr", "Jul", "Oct", "2021"],
        1500: ["2020", "2021", "2022", "2023", "2024"],
    }.items():
        drawn = chart_of(ledger_picture(_ledger(WindowState(DAILY).after([_done(0)]), "a", days=days)))
        assert drawn.ticks == ticks
        assert all(left >= 0 and right <= drawn.width for left, right in drawn.places)
        assert drawn.width <= 470, "the column of metadata on a page of 1,500 pixels"


def test_hours_are_cells_of_their_own() -> None:
    hours = [
        LoadedUnit(start, start + HOUR, start, _unit("a"), False, Grid("hourly"))
        for start in range(FIRST, FIRST + 3 * DAY, HOUR)
        if start != FIRST + 30 * HOUR
    ]
    state = WindowState(Grid("hourly")).after(hours)
    drawn = chart_of(ledger_picture(_ledger(state, "a", days=3, window="hourly")))
    assert drawn.cells == ["L" * 30 + "M" + "L" * 41]


def test_the_legend_names_the_colours_that_are_drawn_and_the_zone() -> None:
    state = WindowState(DAILY).after([_done(day) for day in range(5)])
    assert ledger_picture(_ledger(state, "a")).endswith("\n\nGreen is loaded. Times in UTC.")
    ended = ledger_picture(_ledger(state, "a", "b"))
    assert ended.endswith("\n\nGreen is loaded, grey missing. Times in UTC.")


def test_many_different_units_share_the_last_row_which_shows_the_worst() -> None:
    units = [f"u{number:02}" for number in range(30)]
    done = [
        _done(day, unit) for day in range(60) for number, unit in enumerate(units) if day not in (number, 59)
    ]
    failed = [(_unit("u29"), FIRST + 29 * DAY, "no")]
    drawn = chart_of(ledger_picture(_ledger(WindowState(DAILY).after(done, failed), *units, days=60)))
    assert drawn.names[-1].endswith(" others")
    others = int(drawn.names[-1].removesuffix(" others"))
    assert len(drawn.names) - 1 + others == 30
    assert "F" in drawn.cells[-1] or "F" in "".join(drawn.cells)


def test_a_picture_of_forty_units_and_four_hundred_days_stands_on_the_page_itself() -> None:
    units = [f"U{number:02}" for number in range(40)]
    done = [
        _done(day, unit)
        for day in range(400)
        for number, unit in enumerate(units)
        if not (number == 3 and 200 <= day < 220)
        and not (number == 7 and day > 350)
        and (number != 9 or day % 9)
    ]
    failed = [(_unit("U03"), FIRST + day * DAY, "no") for day in range(200, 220)]
    drawn = ledger_picture(_ledger(WindowState(DAILY).after(done, failed), *units, days=400))
    assert chart_of(drawn).names == ["U09", "U07", "U03", "U00 and 36 more"]
    assert len(drawn) < 1000, "longer texts stand behind a click on the asset's page"


def test_without_units_a_row_has_no_name() -> None:
    state = WindowState(DAILY).after([LoadedUnit(FIRST, FIRST + DAY, FIRST, "{}", False, DAILY)])
    entry = {"name": "t", "type": "datetime", "range": {"from": "2020-01-01", "to": "-"}}
    definition = WindowWatermark.of({"definition": [entry], "window": "daily"})
    whole = ledger(definition, state, ("{}",), START + timedelta(days=1), dataflow="flow")
    assert chart_of(ledger_picture(whole)).names == []
    assert ledger_metadata(whole)["loaded"] == "nothing is missing"


def test_the_first_line_says_how_many_units_lack_what() -> None:
    state = WindowState(DAILY).after(
        [*(_done(day) for day in range(5)), _done(0, "b")], [(_unit("b"), FIRST + DAY, "no")]
    )
    assert ledger_metadata(_ledger(state, "a", "b"))["loaded"] == (
        "1 of 2 units without a gap; 1 stretch of time failed, 1 stretch of time missing"
    )


def test_nothing_is_drawn_if_nothing_is_known() -> None:
    assert ledger_picture(_ledger(WindowState(), days=-1)) == ""
    assert "ledger" not in ledger_metadata(_ledger(WindowState(), days=-1))


def test_the_table_of_gaps_holds_the_first_of_them_with_their_reasons() -> None:
    state = WindowState(DAILY).after([_done(day) for day in range(1, 500, 2)])
    shown = ledger_metadata(_ledger(state, "a", days=500))
    assert (shown["gaps"], shown["complete_up_to"]) == (250, "nothing yet")
    records = shown["missing"].records
    assert len(records) == 100
    assert records[0].data == {
        "unit": "id a",
        "from": "2020-01-01T00:00:00+00:00",
        "to": "2020-01-02T00:00:00+00:00",
        "why": "never loaded",
    }


def test_a_loaded_window_whose_last_read_failed_is_not_missing() -> None:
    state = WindowState(DAILY).after([_done(day) for day in range(5)])
    state = state.after([], [(_unit("a"), FIRST + DAY, "no answer")])
    shown = ledger_metadata(_ledger(state, "a"))
    assert (shown["gaps"], "missing" in shown) == (0, False)
    (record,) = shown["loaded, to read again"].records
    assert (record.data["unit"], record.data["from"]) == ("id a", "2020-01-02T00:00:00+00:00")
    assert shown["loaded"] == ("1 of 1 unit without a gap; 1 work unit loaded, but not read again")


def test_the_table_of_units_says_of_each_how_far_it_is_complete() -> None:
    state = WindowState(DAILY).after([_done(0), _done(2), _done(0, "gone")])
    shown = ledger_metadata(_ledger(state, "a", "b", days=3))
    assert [record.data for record in shown["by_unit"].records] == [
        {"unit": "id a", "complete up to": "2020-01-02T00:00:00+00:00", "gaps": 1, "overlaps": 0},
        {"unit": "id b", "complete up to": "-", "gaps": 1, "overlaps": 0},
        {
            "unit": "id gone (no longer listed)",
            "complete up to": "2020-01-02T00:00:00+00:00",
            "gaps": 0,
            "overlaps": 0,
        },
    ]
