"""The ledger as Dagster shows it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from partitions.instants import DAY, milliseconds
from partitions.window.calendar_grid import Grid
from partitions.window.definition import WindowWatermark
from partitions.window.ledger import Ledger, ledger
from partitions.window.state import WindowState
from partitions.window.work_outcomes import LoadedUnit
from platform_assets.factory.kinds.window.pictures import ledger_metadata, ledger_picture
from tests.support.images import cells_of

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


def test_a_row_is_a_unit_and_a_cell_a_day() -> None:
    state = WindowState(DAILY).after(
        [_done(0), _done(1), _done(4, width=0.5), _done(0, "gone")], [(_unit("a"), FIRST + 2 * DAY, "no")]
    )
    drawn = ledger_picture(_ledger(state, "a", "b"))
    assert cells_of(drawn) == ["LLFMP", "MMMMM", "LMMMM"]
    assert drawn.splitlines()[2:] == [
        "green: loaded, yellow: in part, red: failed, grey: missing; from 2020-01-01T00:00:00+00:00 to 2020-01-06T00:00:00+00:00",
        "",
        "from the top: id a, id b, id gone (no longer listed)",
    ]
    assert len(drawn) < 1000, "longer texts stand behind a click on the asset's page"


def test_a_long_time_and_many_units_are_drawn_more_coarsely() -> None:
    state = WindowState(DAILY).after([_done(day) for day in range(0, 600, 2)])
    drawn = ledger_picture(_ledger(state, "a", *(f"u{number}" for number in range(99)), days=600))
    cells = cells_of(drawn)
    assert (cells[0], len(cells)) == ("P" * 60, 40)
    assert drawn.endswith("60 more units are not drawn")


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
