"""The planner of column watermarks: what a run reads of each column, and that every row is read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.column.definition import ColumnWatermark
from partitions.column.plan import plan, ranges_to_read
from partitions.column.slices import ColumnSlice
from partitions.column.source import SourceObservation
from partitions.column.state import EXCLUSIVE, ColumnState
from partitions.errors import ConfigurationError, PlanError
from partitions.plan import Plan
from partitions.predicate import matches

NOW = datetime(2026, 3, 8, 14, 30, tzinfo=UTC)


def watermark(*columns: str, **keys: Any) -> ColumnWatermark:
    return ColumnWatermark.model_validate({"type": "column", "columns": columns or ("u",), **keys})


def seen(
    kind: Any = "instant", highest: Any = ..., *, now: datetime = NOW, nulls: int | None = None
) -> SourceObservation:
    return SourceObservation(now, {"u": kind}, {} if highest is ... else {"u": highest}, nulls)


def made(
    definition: ColumnWatermark, stored: Mapping[str, Any], observed: SourceObservation, **keys: Any
) -> Plan[ColumnSlice]:
    state = ColumnState.of(stored)
    ranges = ranges_to_read(definition, state, observed, observed.now)
    return plan(definition, state, ranges, observed, observed.now, dataflow="flow", state_number=0, **keys)


def only(plan_: Plan[ColumnSlice]) -> ColumnSlice:
    (slice_,) = plan_.slices
    return slice_


def test_a_time_to_settle_is_no_longer_than_a_calendar() -> None:
    with pytest.raises(ValueError, match="at most 365,000 days"):
        watermark(settle="P999999D")


def test_a_first_run_reads_up_to_now_less_settle_by_the_source_s_clock() -> None:
    slice_ = only(made(watermark(settle="PT5M"), {}, seen()))
    assert slice_.words == "(u <= 2026-03-08 14:25:00+00:00) or (u is NULL)"
    assert slice_.lower is None
    assert slice_.upper == {"u": NOW - timedelta(minutes=5)}


def test_a_known_maximum_below_the_clock_is_the_bound() -> None:
    highest = NOW - timedelta(days=1)
    assert only(made(watermark(), {}, seen(highest=highest))).upper == {"u": highest}


def test_a_bound_that_only_the_fetched_rows_will_tell_stays_open() -> None:
    slice_ = only(made(watermark(), {"u": 10}, seen("whole")))
    assert (slice_.words, slice_.upper) == ("u > 10", {})
    assert slice_.advance({"u": 10}) == {"u": 10}


def test_a_maximum_in_the_future_is_not_read_before_its_time() -> None:
    assert only(made(watermark(), {}, seen(highest=NOW + timedelta(days=1)))).upper == {"u": NOW}


def test_nothing_is_due_where_the_maximum_is_the_stored_value() -> None:
    plan_ = made(watermark(), {"u": NOW}, seen(highest=NOW))
    assert not plan_.due
    assert [skip.why for skip in plan_.skips] == ["no row lies above 2026-03-08 14:30:00+00:00"]


def test_a_stored_value_is_read_again_only_at_an_inclusive_boundary() -> None:
    stored, observed = {"u": 10}, seen("whole", 12)
    assert [
        only(made(watermark(boundary=each), stored, observed)).words for each in ("exclusive", "inclusive")
    ] == [
        "u > 10 and u <= 12",
        "u >= 10 and u <= 12",
    ]


def test_a_run_begins_at_a_value_that_was_saved_as_exclusive() -> None:
    slice_ = only(made(watermark(), {"u": 10, EXCLUSIVE: ["u"]}, seen("whole", 12)))
    assert slice_.words == "u >= 10 and u <= 12"
    assert slice_.advance({"u": 10, EXCLUSIVE: ["u"]}) == {"u": 12}


def test_a_day_is_read_when_it_is_over() -> None:
    slice_ = only(made(watermark(settle="PT20H"), {"u": date(2026, 3, 1)}, seen("day")))
    assert slice_.words == "u > 2026-03-01 and u < 2026-03-07"
    after = slice_.advance({"u": date(2026, 3, 1)})
    assert after == {"u": date(2026, 3, 7), EXCLUSIVE: ["u"]}
    assert not made(watermark(settle="PT20H"), after, seen("day")).due


def test_today_is_read_again_by_each_run_at_an_inclusive_boundary() -> None:
    slice_ = only(made(watermark(boundary="inclusive"), {"u": date(2026, 3, 8)}, seen("day")))
    assert slice_.words == "u >= 2026-03-08 and u <= 2026-03-08"


def test_local_times_end_at_the_clock_of_the_definition_s_zone() -> None:
    slice_ = only(made(watermark(timezone="Asia/Tokyo"), {}, seen("local")))
    assert slice_.upper == {"u": datetime.fromisoformat("2026-03-08T23:30")}


def test_a_look_back_moves_the_lower_bound_and_never_the_stored_value() -> None:
    stored = {"u": NOW - timedelta(hours=1)}
    slice_ = only(made(watermark(backward={"days": 7}), stored, seen(highest=NOW - timedelta(days=1))))
    assert slice_.lower == {"u": NOW - timedelta(days=7, hours=1)}
    assert slice_.upper == stored  # a maximum that fell does not pull the bound down
    assert slice_.advance(stored) == stored


@pytest.mark.parametrize(
    ("hour", "first"),
    [(3, datetime(2026, 2, 1, 5, tzinfo=UTC)), (5, datetime(2026, 3, 1, 5, tzinfo=UTC))],
)
def test_days_of_a_closing_month_are_of_the_definitions_zone(hour: int, first: datetime) -> None:
    definition = watermark(backward={"closing_day": 10}, timezone="America/New_York")
    now = datetime(2026, 3, 11, hour, tzinfo=UTC)
    slice_ = only(made(definition, {"u": NOW}, seen(highest=NOW, now=now)))
    assert slice_.lower == {"u": first}


@pytest.mark.parametrize(
    ("policy", "stored", "expected"),
    [
        ("skip", {}, ["3 rows without a value left out (nulls: skip)"]),
        ("skip", {"u": 9}, ["3 rows without a value left out (nulls: skip)"]),
        ("first", {}, []),
        (
            "first",
            {"u": 9},
            ["3 rows without a value left out (nulls: first: only the first run reads them)"],
        ),
        ("read", {"u": 9}, []),
    ],
)
def test_rows_without_a_value_are_counted(policy: str, stored: dict[str, Any], expected: list[str]) -> None:
    definition = watermark(nulls=policy)
    assert [skip.why for skip in made(definition, stored, seen("whole", 10, nulls=3)).skips] == expected
    if stored and policy != "read":
        found = made(definition, {"u": 10}, seen("whole", 10, nulls=3))
        assert (found.due, [skip.why for skip in found.skips]) == (False, ["no row lies above 10", *expected])


@pytest.mark.parametrize(
    ("keys", "again"),
    [
        ({"backward": {"days": 3}}, "the look-back again (P3D)"),
        ({"backward": {"months": 1, "hours": 6}}, "the look-back again (P1MT6H)"),
        ({"backward": {"closing_day": 5}}, "the look-back again (closing_day 5)"),
        ({"boundary": "inclusive"}, "rows at the watermark again (boundary: inclusive)"),
    ],
)
def test_without_new_rows_the_plan_says_that_it_only_reads_again(keys: dict[str, Any], again: str) -> None:
    highest = NOW - timedelta(days=1)
    planned = made(watermark(**keys), {"u": highest}, seen(highest=highest))
    assert planned.why == f"nothing new; the next run reads {again}"
    assert only(planned).repeats


def test_flat_units_of_a_look_back_are_those_of_the_nested_block() -> None:
    assert watermark(backward_days=7, backward={"months": 1}) == watermark(backward={"days": 7, "months": 1})
    with pytest.raises(ValueError, match="backward_weeks"):
        watermark(backward_weeks=1)


@pytest.mark.parametrize(
    ("nulls", "first", "later"), [("first", True, False), ("read", True, True), ("skip", False, False)]
)
def test_rows_without_a_value_are_read_as_the_policy_says(nulls: str, first: bool, later: bool) -> None:
    definition = watermark(nulls=nulls)
    assert only(made(definition, {}, seen("whole", 5))).reads_nulls is first
    assert only(made(definition, {"u": 3}, seen("whole", 5))).reads_nulls is later


def test_rows_without_a_value_alone_begin_no_state_so_that_no_run_is_the_first_twice() -> None:
    assert not made(watermark(), {}, seen("whole", None, nulls=3)).due


def test_only_the_first_slice_of_a_first_run_reads_rows_without_a_value() -> None:
    slices = made(watermark(), {}, seen("whole", 9), cuts=[3, 6]).slices
    assert [(slice_.words, slice_.reads_nulls) for slice_ in slices] == [
        ("(u <= 3) or (u is NULL)", True),
        ("u > 3 and u <= 6", False),
        ("u > 6 and u <= 9", False),
    ]


def test_a_slice_has_as_many_parts_as_are_read_at_once() -> None:
    slices = made(watermark(), {}, seen("whole", 9), cuts=[1, 2, 3, 4, 5], parts=4).slices
    assert [(slice_.upper, slice_.cuts) for slice_ in slices] == [({"u": 4}, (1, 2, 3)), ({"u": 9}, (5,))]


def test_a_rewind_makes_room_up_to_where_rows_were_loaded() -> None:
    slices = made(
        watermark(), {}, seen("whole", 9), cuts=[3, 6], replace_until=ColumnState.of({"u": 5})
    ).slices
    assert [slice_.replaces for slice_ in slices] == [True, True, False]
    slices = made(
        watermark(), {}, seen("whole", 9), cuts=[3, 6], replace_until=ColumnState.of({"u": 2})
    ).slices
    assert [slice_.replaces for slice_ in slices] == [True, False, False]


@pytest.mark.parametrize("highest", [..., None, 3])
def test_a_rewind_that_replaces_reads_at_least_up_to_where_rows_were_loaded(highest: Any) -> None:
    until = ColumnState.of({"u": 5})
    observed, definition = seen("whole", highest), watermark()
    ranges = ranges_to_read(definition, ColumnState(), observed, NOW, until)
    slice_ = only(
        plan(
            definition,
            ColumnState(),
            ranges,
            observed,
            NOW,
            dataflow="flow",
            state_number=0,
            replace_until=until,
        )
    )
    assert (slice_.upper, slice_.replaces) == ({"u": 5}, True)


@pytest.mark.parametrize(
    ("kind", "found"),
    [("flag", "found u, which is true or false"), (None, "found no column u. Name a column of the rows")],
)
def test_a_column_that_has_no_order_is_refused(kind: Any, found: str) -> None:
    with pytest.raises(PlanError, match=found):
        made(watermark(), {}, SourceObservation(NOW, {"u": kind} if kind else {}, {}))


def test_a_stored_value_of_another_type_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="cannot compare"):
        made(watermark(), {"u": 5}, seen("instant"))


_VALUES = st.one_of(st.none(), st.integers(0, 20))


@given(
    st.lists(st.tuples(st.lists(_VALUES, max_size=6), st.lists(st.integers(0, 20), max_size=4))),
    st.booleans(),
)
def test_every_row_is_read_once_whatever_slices_it_falls_into(
    steps: list[tuple[list[int | None], list[int]]], indexed: bool
) -> None:
    """Rows come at and above what was read before, or without a value in the beginning; the run between sees them."""
    definition, state = watermark(), ColumnState()
    rows: list[dict[str, Any]] = []
    read: list[int] = []
    for number, (values, cuts) in enumerate(steps):
        reached = state.bounds["u"].value if state.bounds else -1
        for value in values:
            if value is None and state.bounds:
                continue  # policy: never after the first run
            rows.append({"id": len(rows), "u": None if value is None else reached + 1 + value})
        highest = max((row["u"] for row in rows if row["u"] is not None), default=None)
        above = highest if highest is not None and highest > reached else None
        observed = replace(seen("whole", highest), maxima={"u": highest if indexed else above})
        inside = sorted({reached + 1 + cut for cut in cuts if highest is None or reached + 1 + cut < highest})
        ranges = ranges_to_read(definition, state, observed, NOW)
        plan_ = plan(
            definition,
            state,
            ranges,
            observed,
            NOW,
            dataflow="flow",
            state_number=number,
            cuts=inside,
            parts=2,
        )
        for slice_ in plan_.slices:
            read += [row["id"] for row in rows if matches(slice_.rows, row)]
            state = ColumnState.of(slice_.advance(state.watermark()))
    if state.bounds:
        assert sorted(read) == [row["id"] for row in rows]


def test_all_that_a_look_back_reads_is_planned_beside_max_slices_above_the_watermark() -> None:
    stored = {"u": NOW - timedelta(hours=10)}
    definition = watermark(backward={"hours": 4}, max_slices=2)
    cuts = [NOW - timedelta(hours=hours) for hours in range(13, 0, -1)]
    plan_ = made(definition, stored, seen(highest=NOW), cuts=cuts)
    assert [slice_.repeats for slice_ in plan_.slices] == [True, True, True, True, False, False]
    assert [slice_.upper["u"] for slice_ in plan_.slices] == cuts[:6]
    assert [skip.why for skip in plan_.skips] == [
        "rows above 2026-03-08 06:30:00+00:00 wait for the next run (max_slices: 2)"
    ]


def test_a_slice_that_reaches_above_the_watermark_is_new_and_one_at_it_is_not() -> None:
    stored, definition = {"u": 10}, watermark(boundary="inclusive", max_slices=1)
    slices = made(definition, stored, seen("whole", 30), cuts=[10, 20]).slices
    assert [(slice_.words, slice_.repeats) for slice_ in slices] == [
        ("u >= 10 and u <= 10", True),
        ("u > 10 and u <= 20", False),
    ]


def test_a_run_of_a_rewind_repeats_nothing() -> None:
    until = ColumnState.of({"u": 30})
    state, observed = ColumnState.of({"u": 10}), seen("whole", 30)
    ranges = ranges_to_read(watermark(), state, observed, NOW, until)
    plan_ = plan(
        watermark(), state, ranges, observed, NOW, dataflow="flow", state_number=1, replace_until=until
    )
    assert not only(plan_).repeats


@pytest.mark.parametrize(
    ("kind", "back", "words"),
    [
        ("whole", {"days": 3}, r"expected \{by: 1000\}, .*, found \{days: 3\} beside numbers in u"),
        ("instant", {"by": 5}, r"expected days, .*, found \{by: 5\} beside times in u"),
    ],
)
def test_a_look_back_that_moves_no_column_is_refused(kind: Any, back: Any, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        made(watermark(backward=back), {}, seen(kind))


def test_numbers_are_read_again_by_value_and_beside_a_time_either_unit_will_do() -> None:
    definition = watermark(backward={"by": 1000, "days": 1})
    assert only(made(definition, {"u": 5000}, seen("whole", 6000))).words == "u > 4000 and u <= 6000"
    both = watermark("n", "u", backward={"days": 1})
    observed = SourceObservation(NOW, {"n": "whole", "u": "instant"}, {"n": 7, "u": NOW})
    assert only(made(both, {"n": 5, "u": NOW}, observed)).lower == {"n": 5, "u": NOW - timedelta(days=1)}
