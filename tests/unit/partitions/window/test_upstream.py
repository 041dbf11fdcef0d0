"""Windows that wait for the dataflow whose table they read: which are due, which wait and for what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from partitions.errors import ConfigurationError
from partitions.instants import DAY, HOUR
from partitions.request import Forced
from partitions.window.definition import WindowWatermark
from partitions.window.expired import ExpiredRows
from partitions.window.ledger import ledger
from partitions.window.state import WindowState
from partitions.window.upstream import Maker, UpstreamTables
from partitions.window.work_outcomes import LoadedUnit
from partitions.window.work_unit import FailedUnit
from tests.support.upstreams import (
    ONE,
    START,
    after,
    book_of,
    days,
    definition,
    due,
    hours,
    instant,
    planned,
    unit,
)

EWR, JFK = unit("EWR"), unit("JFK")
BOTH = (EWR, JFK)
SAME = {"airport": "airport"}
CHANGED = "out of date since bronze/flights changed"


def test_a_day_waits_for_each_hour_of_each_unit_and_later_days_load() -> None:
    plan = planned(hours(4, {EWR: [53], JFK: [48, 71]}, units=BOTH))
    assert due(plan) == [("01", ONE, "new"), ("02", ONE, "new"), ("04", ONE, "new")]
    waits = "waits for 3 of 48 hours of bronze/flights: JFK 2026-01-03 00:00, EWR 2026-01-03 05:00, JFK 2026-01-03 23:00"
    assert plan.why == f"3 work units of 4 windows x 1 unit due: 3 new; 2026-01-03 {waits}"
    assert (plan.skips[0].subject, plan.skips[0].why) == (
        "[2026-01-03T00:00:00+00:00, 2026-01-04T00:00:00+00:00)",
        waits,
    )
    assert plan.waiting_for_upstream == 1


def test_a_unit_needs_the_same_unit_upstream_and_others_need_all() -> None:
    lacking = {EWR: [30]}
    same = planned(hours(2, lacking, names=SAME, units=BOTH), units=(EWR, JFK))
    assert due(same) == [("01", EWR, "new"), ("01", JFK, "new"), ("02", JFK, "new")]
    carriers = tuple(unit(name, "carrier") for name in ("AA", "UA"))
    others = planned(hours(2, lacking, units=BOTH), units=carriers)
    assert {day for day, _, _ in due(others)} == {"01"}
    assert others.waiting_for_upstream == 2


def test_spelling_matters_not_and_an_unlisted_unit_waits() -> None:
    upstream = hours(1, names={"id": "id"}, units=(unit("01", "id"),))
    listed, unlisted = unit("1", "id"), unit("7", "id")
    plan = planned(upstream, units=(listed, unlisted))
    assert due(plan) == [("01", listed, "new")]
    assert plan.skips[0].why == "waits for bronze/flights: flights lists no such unit"


@pytest.mark.parametrize(
    ("incomplete", "now", "expected"),
    [
        ("wait", 3, ["01"]),
        ("load", 2.1, ["01", "02"]),
        ({"load_after": "PT6H"}, 2.24, ["01"]),
        ({"load_after": "PT6H"}, 2.26, ["01", "02"]),
    ],
)
def test_the_policy_says_when_an_incomplete_window_loads(incomplete: Any, now: float, expected: Any) -> None:
    plan = planned(hours(now, {ONE: [30]}), of=days(incomplete=incomplete))
    assert [day for day, _, _ in due(plan) if day < "03"] == expected


def test_an_incomplete_load_is_known_and_loaded_again_once_it_is_complete() -> None:
    policy = days(incomplete={"load_after": "PT6H"})
    early = planned(hours(2.1, {ONE: [30, 31]}), of=policy)
    assert early.why.endswith("2026-01-02 07:00; it is loaded without them from 2026-01-03 06:00 on")
    later = hours(2.5, {ONE: [30, 31]}, position=2)
    state = after(planned(later, after(early), of=policy), after(early))
    (book,) = book_of(later, state, of=policy).units
    assert [gap.why for gap in book.gaps] == ["lacks 2 of 24 hours of bronze/flights"]
    assert book.complete_up_to == START + DAY
    nearly = planned(hours(2.6, {ONE: [31]}, since=[(ONE, 30)], position=3), state, of=policy)
    assert (due(nearly), nearly.waiting_for_upstream) == ([], 1)
    assert nearly.why == (
        "no work unit is due; 2026-01-02 lacks 1 of 24 hours of bronze/flights: 2026-01-02 07:00;"
        " it is loaded again once they are there"
    )
    complete = hours(2.7, since=[(ONE, 30), (ONE, 31)], position=4)
    again = planned(complete, state, of=policy)
    assert due(again) == [("02", ONE, "upstream")]
    assert again.slices[0].replaces
    (book,) = book_of(hours(2.7, position=4), after(again, state), of=policy).units
    assert (book.gaps, book.complete_up_to) == ([], START + 2 * DAY)


def test_a_changed_hour_makes_its_day_due_until_a_slice_has_read_it() -> None:
    state = after(planned(hours(3)))
    upstream = hours(3, since=[(ONE, 5), (ONE, 50)], position=2)
    capped = planned(upstream, state, of=days(parallelism=1))
    assert due(capped) == [("01", ONE, "upstream")]
    (work,) = capped.slices[0].works
    assert work.lower == work.start
    halfway = after(capped, state)
    assert halfway.changed == {ONE: [[START + 50 * HOUR, START + 51 * HOUR]]}
    assert halfway.upstream == {"flights": [2, "id2"]}
    (book,) = book_of(hours(3, position=2), halfway).units
    assert [tuple(gap) for gap in book.outdated] == [(START + 2 * DAY, START + 3 * DAY, CHANGED)]
    assert (book.gaps, book.complete_up_to) == ([], START + 3 * DAY)
    assert book.current == [(START, START + 2 * DAY)]
    rest = planned(hours(3, position=2), halfway)
    assert due(rest) == [("03", ONE, "upstream")]
    assert after(rest, halfway).changed == {}


def test_all_slices_of_a_plan_know_the_same_and_forget_only_what_they_read() -> None:
    state = after(planned(hours(3)))
    one_each = days(checkpoint={"interval_windows": 1})
    plan = planned(hours(3, since=[(ONE, 0), (ONE, 24)], position=2), state, of=one_each)
    assert len(plan.slices) == 2
    for slice_ in plan.slices:  # in any order: a slice may fail
        first = WindowState.of(slice_.advance(state.watermark()))
        assert len(first.changed[ONE]) == 1
    assert after(plan, state).changed == {}


def test_a_slice_that_saw_no_upstream_forgets_no_change() -> None:
    state = after(planned(hours(1)))
    noted = after(planned(hours(2, since=[(ONE, 5)], position=2), state, of=days(parallelism=1)), state)
    assert noted.changed == {ONE: [[START + 5 * HOUR, START + 6 * HOUR]]}
    (slice_,) = planned(hours(1), None).slices
    promoted = WindowState.of(slice_.__class__(slice_.works, slice_.zone).advance(noted.watermark()))
    assert promoted.changed == noted.changed


def test_an_unknown_position_makes_every_loaded_day_due() -> None:
    state = after(planned(hours(2)))
    assert due(planned(hours(2, since=None, position=9), state)) == [
        ("01", ONE, "upstream"),
        ("02", ONE, "upstream"),
    ]


def test_what_the_retention_has_deleted_is_neither_waited_for_nor_read_again() -> None:
    state = after(planned(hours(1)))
    expired = hours(
        3, since=[(ONE, 1), (ONE, 30)], position=2, expired=ExpiredRows("bronze/flights", START + DAY + HOUR)
    )
    plan = planned(expired, state)
    assert due(plan) == [("03", ONE, "new")]
    assert plan.why.endswith("2026-01-02 waits for rows that the retention of bronze/flights has deleted")
    (book,) = book_of(expired, state).units
    assert book.covered == [(START, START + DAY)]


def test_unknown_changes_are_those_of_days_before_the_upstream_begins_too() -> None:
    state = after(planned(hours(2)))
    later = {"name": "at", "type": "datetime", "range": {"from": "2026-01-02", "to": "-"}}
    from_second_day = WindowWatermark.of({"definition": [later], "window": "hourly"})
    plan = planned(hours(2, since=None, position=9, watermark=from_second_day), state)
    assert due(plan) == [("01", ONE, "upstream"), ("02", ONE, "upstream")]


def test_a_forced_day_whose_rows_the_retention_has_deleted_upstream_stays() -> None:
    state = after(planned(hours(3)))
    expired = hours(3, position=2, expired=ExpiredRows("bronze/flights", START + DAY + HOUR))
    plan = planned(expired, state, request=Forced())
    assert due(plan) == [("03", ONE, "forced")]
    assert [(skip.subject, skip.why) for skip in plan.skips] == [
        (
            "[2026-01-01T00:00:00+00:00, 2026-01-03T00:00:00+00:00)",
            "2 windows loaded, and kept: the retention upstream has deleted rows",
        )
    ]


def test_a_loaded_day_whose_upstream_went_back_is_no_longer_complete() -> None:
    state = after(planned(hours(2)))
    back = hours(2, {ONE: [3]}, position=2)
    plan = planned(back, state)
    assert (due(plan), plan.waiting_for_upstream) == ([], 1)
    (book,) = book_of(back, state).units
    assert book.covered == [(START + DAY, START + 2 * DAY)]


def test_forced_windows_wait_too() -> None:
    upstream = hours(2, {ONE: [30]})
    assert due(planned(upstream, request=Forced())) == [("01", ONE, "forced")]


def test_a_failed_day_waits_and_a_changed_one_that_failed_is_replaced_as_a_whole() -> None:
    state = after(planned(hours(2)))
    (slice_,) = planned(hours(2, since=[(ONE, 5)], position=2), state).slices
    failed = slice_.without([FailedUnit(slice_.works[0], "no answer")])
    later = WindowState.of(failed.advance(state.watermark()))
    assert due(planned(hours(2, {ONE: [9]}, position=3), later)) == []
    (again,) = planned(hours(2, position=3), later).slices
    assert (again.replaces, [work.reason for work in again.works]) == (True, ["upstream"])
    assert WindowState.of(again.advance(later.watermark())).failed == {}


def test_nothing_after_the_end_of_the_upstream_is_due() -> None:
    short = definition("hourly", "2026-01-02T12:00:00")
    assert due(planned(hours(5, watermark=short))) == [("01", ONE, "new")]
    behind = definition("hourly", "P1D")
    assert due(planned(hours(3, watermark=behind))) == [("01", ONE, "new"), ("02", ONE, "new")]


def test_days_go_on_after_the_last_window_of_one_of_several_dataflows_of_their_table() -> None:
    """Old days come from a dataflow that ends for good, and new ones from another."""
    archive = replace(
        hours(5, watermark=definition("hourly", "2026-01-02")).makers[0], name="archive", has_fixed_end=True
    )
    live = hours(4, {ONE: [30, 60]}).makers[0]
    plan = planned(UpstreamTables((archive, live)), now=4)
    assert due(plan) == [("01", ONE, "new"), ("04", ONE, "new")]
    later_archive = hours(5, watermark=definition("hourly", "2026-01-03")).makers[0]
    both = UpstreamTables((archive, replace(later_archive, name="later", has_fixed_end=True)))
    assert due(planned(both, now=5)) == [("01", ONE, "new"), ("02", ONE, "new")]
    weather = replace(archive, name="weather", table="bronze/weather")
    assert due(planned(UpstreamTables((live, weather)), now=4)) == [("01", ONE, "new")]


@pytest.mark.parametrize("partial", [True, False])
def test_days_wait_for_a_week_that_is_not_over(partial: bool) -> None:
    weeks = definition("weekly", "-", partial=partial)
    first_week = hours(9, {ONE: range(7 * 24, 9 * 24)}, watermark=weeks)
    plan = planned(first_week)
    assert [day for day, _, _ in due(plan)] == [f"0{day}" for day in range(1, 8)]
    assert plan.skips[0].why == "waits for 1 of 1 week of bronze/flights: 2026-01-08"


def test_time_before_the_upstream_begins_is_not_waited_for() -> None:
    entry = {"name": "at", "type": "datetime", "range": {"from": "2026-01-01T05:00:00", "to": "-"}}
    late = WindowWatermark.of({"definition": [entry], "window": "hourly"})
    assert due(planned(hours(1, {ONE: range(5)}, watermark=late))) == [("01", ONE, "new")]


def test_a_day_waits_for_each_of_several_tables() -> None:
    flights = hours(3, {ONE: [30]})
    weather = replace(hours(3, {ONE: [30, 60]}).makers[0], name="weather", table="bronze/weather")
    both = UpstreamTables((*flights.makers, weather))
    plan = planned(both)
    assert due(plan) == [("01", ONE, "new")]
    assert [skip.why for skip in plan.skips[:2]] == [
        (
            "waits for 1 of 24 hours of bronze/flights: 2026-01-02 06:00; and for 1 of 24 hours of bronze/weather:"
            " 2026-01-02 06:00"
        ),
        "waits for 1 of 24 hours of bronze/weather: 2026-01-03 12:00",
    ]
    assert after(plan).upstream == {"flights": [1, "id1"], "weather": [1, "id1"]}


def test_a_table_that_is_not_the_one_of_the_log_is_waited_for() -> None:
    plan = planned(hours(1, problem="it is another table"))
    assert (due(plan), plan.skips[0].why) == ([], "waits for bronze/flights: it is another table")


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"partial": True}, "partial: expected false beside to: upstream"),
        ({"grace": "P1D"}, "grace: expected none beside to: upstream"),
        ({"window": "none"}, "window: expected windows such as daily beside to: upstream"),
        ({"incomplete": "later"}, "incomplete: .*expected wait, load or .load_after: PT6H., found 'later'"),
        ({"incomplete": {"load_after": "PT0S"}}, "load_after: .*expected a duration above zero"),
    ],
)
def test_a_definition_that_cannot_wait_is_refused(more: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigurationError, match=fault):
        definition(**{"window": "daily", "to": "upstream", **more})


@pytest.mark.parametrize("more", [{"incomplete": "load"}, {"wait_for": {"weather": "at"}}])
def test_what_needs_an_upstream_is_refused_without_one(more: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="expected no such key without to: upstream"):
        definition("daily", "-", **more)


def test_a_unit_waits_only_for_the_makers_that_list_it() -> None:
    newark = hours(2, {EWR: [30]}, units=(EWR,), names=SAME).makers[0]
    kennedy = replace(hours(2, units=(JFK,), names=SAME).makers[0], name="kennedy")
    table = UpstreamTables((newark, kennedy))
    plan = planned(table, units=(EWR, JFK))
    assert due(plan) == [("01", EWR, "new"), ("01", JFK, "new"), ("02", JFK, "new")]
    assert plan.skips[0].why == "waits for 1 of 24 hours of bronze/flights: EWR 2026-01-02 06:00"
    assert planned(table, units=(unit("LGA"),)).skips[0].why == (
        "waits for bronze/flights: flights lists no such unit"
    )


def test_a_unit_that_moved_to_another_maker_waits_for_that_one() -> None:
    before = hours(2, {EWR: range(24, 48)}, units=(EWR,), names=SAME).makers[0]
    removed = [replace(of_unit, is_removed=True) for of_unit in before.ledger.units]
    former = replace(before, ledger=replace(before.ledger, units=removed))
    new = replace(hours(2, units=(EWR,), names=SAME).makers[0], name="others")
    plan = planned(UpstreamTables((former, new)), units=(EWR,))
    assert [day for day, _, _ in due(plan)] == ["01", "02"]


def test_a_short_window_that_the_upstream_never_loads_is_not_waited_for() -> None:
    weeks = {"weekly": ["2026-01-01", "2026-01-10"], "daily": ["2026-01-10", "-"]}
    upstream = loaded(definition(weeks, "-", partial=False), 12)
    assert upstream.makers[0].ledger.missing == []
    plan = planned(upstream)
    assert [day for day, _, _ in due(plan)] == [f"{day:02}" for day in range(1, 13)]
    assert plan.waiting_for_upstream == 0


@pytest.mark.parametrize(("rows_at_start", "expected"), [(False, ["01", "02"]), (True, ["01"])])
def test_a_day_waits_until_a_window_whose_rows_lie_at_its_start_is_whole(
    rows_at_start: bool, expected: list[str]
) -> None:
    """The day ends five hours after the upstream's day began, whose rows all lie at its start."""
    upstream = loaded(definition("daily", "-"), 2.3, rows_at_start=rows_at_start)
    plan = planned(upstream, of=days(timezone="America/New_York"))
    assert [day for day, _, _ in due(plan)] == expected
    later = loaded(definition("daily", "-"), 3.3, rows_at_start=rows_at_start)
    assert len(due(planned(later, of=days(timezone="America/New_York")))) == len(expected) + 1


def loaded(watermark: WindowWatermark, now: float, **more: Any) -> UpstreamTables:
    """Return an upstream that has loaded all its windows, also the one that still grows."""
    windows = watermark.windows(instant(now))
    done = [
        LoadedUnit(*windows[index], windows.starts[index], ONE, index in windows.open, windows.grid(index))
        for index in range(len(windows))
    ]
    state = WindowState().rebased(watermark.default_grid).after(done)
    book = ledger(watermark, state, (ONE,), instant(now), dataflow="flights")
    return UpstreamTables((Maker("flights", "bronze/flights", watermark, book, [1, "id1"], **more),))
