"""Queries with as many records as an API gives at most: their halves have all of their records, each once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.api.query_halving import CannotHalve, Query
from partitions.api.requests import request_for, requests_above
from partitions.column.predicates import ColumnRange
from partitions.instants import milliseconds
from partitions.sources import ApiSource
from partitions.window.extent import Extent

BERLIN = ZoneInfo("Europe/Berlin")
BY_TIME = {"watermark_param_mapping": {"at": "since"}, "watermark_to_param": "until"}
BY_ID = {"watermark_param_mapping": {"id": "since"}, "watermark_to_param": "until"}
IN_BODY = {"method": "POST", "watermark_param_location": "body"}


def source(**more: Any) -> ApiSource:
    """An API of rows."""
    return ApiSource.model_validate({"type": "api", "connection": "c", "path": "/rows", **more})


def of_range(api: ApiSource, range_: ColumnRange) -> Query:
    """The query of a range."""
    ((request, _),) = requests_above(api, [range_], UTC)
    return Query(request, range_)


def bounds_of(part: Query) -> Mapping[str, Any]:
    """The bounds that a request says, in the one place where they stand."""
    return part.request.params if part.request.method == "GET" else part.request.body or {}


def cut_up(api: ApiSource, query: Query, values: list[Any], most: int) -> list[Any]:
    """Ask for a query in parts, of an API that has these values, and knows neither order nor more than so many at once."""
    waiting, loaded = [query], list[Any]()
    while waiting:
        part = waiting.pop()
        params = bounds_of(part)
        since, until = (int(params[name]) if name in params else None for name in ("since", "until"))
        came = [
            value
            for value in values
            if (since is None or value >= since) and (until is None or value <= until)
        ]
        came = came[:most]
        mine = [value for value in came if part.column is None or part.contains(value, UTC)]
        if len(came) == most:
            waiting += part.halves(api, UTC, min(mine, default=None), max(mine, default=None))
        else:
            loaded += mine
    return sorted(loaded)


@given(
    st.sets(st.integers(-1000, 1000), max_size=60),
    st.one_of(st.none(), st.integers(-1200, 1200)),
    st.integers(4, 9),
    st.sampled_from([{}, IN_BODY]),
)
def test_parts_have_each_record_of_the_whole_once(
    values: set[int], lower: int | None, most: int, place: dict[str, Any]
) -> None:
    """The API's end is inclusive, so that the value at a cut comes twice."""
    api = source(**BY_ID, **place, max_records=most)
    rows = sorted(values, key=lambda value: value * 7919 % 101)
    wanted = sorted(value for value in values if lower is None or value >= lower)
    query = of_range(api, ColumnRange("id", lower, None))
    assert cut_up(api, query, rows, most) == wanted


@pytest.mark.parametrize("place", [{}, IN_BODY], ids=["params", "body"])
def test_parts_of_a_time_range_meet_at_a_bound_that_the_api_can_be_told(place: dict[str, Any]) -> None:
    lower, upper = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 4, 12, tzinfo=UTC)
    api = source(**BY_TIME, **place, watermark_param_format="date")
    low, high = of_range(api, ColumnRange("at", lower, upper, True, False)).halves(api, UTC, None, None)
    assert bounds_of(low) == {"since": "2026-01-01", "until": "2026-01-02"}
    assert bounds_of(high) == {"since": "2026-01-02", "until": "2026-01-05"}
    middle = datetime(2026, 1, 2, tzinfo=UTC)
    for value, is_low in ((middle, False), (middle - timedelta(microseconds=1), True), (None, True)):
        assert (low.contains(value, UTC), high.contains(value, UTC)) == (is_low, not is_low)
    with pytest.raises(CannotHalve, match="cannot express a value in between"):
        low.halves(api, UTC, None, None)


def test_a_first_range_is_cut_at_the_values_that_came() -> None:
    upper = datetime(2026, 1, 5, tzinfo=UTC)
    api = source(**BY_TIME)
    query = of_range(api, ColumnRange("at", None, upper, True, False))
    low, high = query.halves(api, UTC, datetime(2026, 1, 1, tzinfo=UTC), None)
    assert low.request.params == {"until": "2026-01-03T00:00:00+00:00"}
    assert high.request.params == {"since": "2026-01-03T00:00:00+00:00", "until": "2026-01-05T00:00:00+00:00"}
    with pytest.raises(CannotHalve, match="no record has a value"):
        query.halves(api, UTC, None, None)


def test_days_are_cut_at_days() -> None:
    api = source(**BY_TIME, watermark_param_format="date")
    low, high = of_range(api, ColumnRange("at", date(2026, 1, 1), date(2026, 1, 9))).halves(
        api, UTC, None, None
    )
    assert (low.below, high.above) == (date(2026, 1, 5), date(2026, 1, 5))
    assert low.contains(date(2026, 1, 4), UTC)
    assert not low.contains(date(2026, 1, 5), UTC)


@pytest.mark.parametrize(
    ("more", "range_", "why"),
    [
        ({"watermark_param_mapping": {"id": "since"}}, ColumnRange("id", 1, None), "watermark_to_param"),
        ({}, ColumnRange("id", 1, None), "watermark_param_mapping"),
        (BY_ID, ColumnRange("id", "a", "z"), "text has no middle"),
        (BY_ID, ColumnRange("id", 5, 7, False, False), "cannot express a value in between"),
        (BY_ID, ColumnRange("id", None, None), "no record has a value"),
    ],
)
def test_what_cannot_be_cut_says_why(more: dict[str, Any], range_: ColumnRange, why: str) -> None:
    api = source(**more)
    with pytest.raises(CannotHalve, match=why):
        of_range(api, range_).halves(api, UTC, None, None)


def of_window(api: ApiSource, lower: datetime, upper: datetime) -> Query:
    """The query of a window."""
    extent = Extent(milliseconds(lower), milliseconds(upper), ({},))
    return Query(request_for(api, extent, BERLIN), extent=extent)


@pytest.mark.parametrize(
    ("form", "hours", "middle"),
    [
        ("", 42, datetime(2026, 1, 1, 20, tzinfo=UTC)),
        (":%Y-%m-%dT%H", 41, datetime(2026, 1, 1, 19, tzinfo=UTC)),
        (":%Y-%m-%d", 72, datetime(2026, 1, 1, 23, tzinfo=UTC)),
    ],
)
def test_a_window_is_cut_at_a_moment_that_its_forms_can_say(form: str, hours: int, middle: datetime) -> None:
    api = source(params={"from": f"{{start{form}}}", "to": f"{{end{form}}}"})
    lower = datetime(2026, 1, 1, tzinfo=BERLIN)
    # An end that the forms cannot say is for request_for to refuse; this one they can.
    low, high = of_window(api, lower, lower + timedelta(hours=hours)).halves(api, BERLIN, None, None)
    assert low.extent is not None
    assert high.extent is not None
    assert (low.extent.upper, high.extent.lower) == (milliseconds(middle),) * 2


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (
            {"params": {"from": "{start:%Y-%m-%d}", "to": "{end:%Y-%m-%d}"}},
            "cannot express a time in between",
        ),
        ({"params": {"day": "{start:%Y-%m-%d}"}}, "do not have both ends"),
        ({"window_column": "at"}, "do not have both ends"),
    ],
)
def test_a_window_that_cannot_be_cut_says_why(more: dict[str, Any], why: str) -> None:
    api = source(**more)
    lower = datetime(2026, 1, 1, tzinfo=BERLIN)
    with pytest.raises(CannotHalve, match=why):
        of_window(api, lower, lower + timedelta(days=1)).halves(api, BERLIN, None, None)


def test_a_time_without_zone_in_an_hour_that_comes_twice_may_belong_to_either_part() -> None:
    api = source(**BY_TIME, window_column="at")
    lower = datetime(2026, 10, 25, tzinfo=BERLIN)
    low, high = of_window(api, lower, lower + timedelta(hours=4)).halves(api, BERLIN, None, None)
    assert (low.below, high.above) == (datetime(2026, 10, 25, 0, 30, tzinfo=UTC), low.below)
    twice = datetime(2026, 10, 25, 2, 40)  # noqa: DTZ001 - as a record has it
    assert (low.contains(twice, BERLIN), high.contains(twice, BERLIN)) == (False, True)
    twice = datetime(2026, 10, 25, 2, 20)  # noqa: DTZ001 - as a record has it
    assert (low.contains(twice, BERLIN), high.contains(twice, BERLIN)) == (True, True)
    assert not high.contains(datetime(2026, 10, 25, 1, 59), BERLIN)  # noqa: DTZ001 - as a record has it
