"""Requests: what is asked holds at least what is wanted, and no value leads anywhere else."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.api.requests import ApiRequest, request_for, requests_above
from partitions.column.predicates import ColumnRange, ranges_of, rows_in_ranges
from partitions.errors import ConfigurationError, PlanError
from partitions.instants import milliseconds, zone_of
from partitions.predicate import EVERYTHING, NOTHING, AllOf, Among, AnyOf, Between
from partitions.sources import ApiSource
from partitions.window.extent import Extent

MAPPED = {"watermark_param_mapping": {"at": "since"}, "watermark_to_param": "until"}


def source(**given: Any) -> ApiSource:
    return ApiSource.model_validate({"type": "api", "connection": "shop", "path": "/rows", **given})


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def extent(lower: str, upper: str, **unit: Any) -> Extent:
    return Extent(milliseconds(at(lower)), milliseconds(at(upper)), (unit,))


def test_bounds_are_parameters_and_without_a_lower_bound_there_is_none() -> None:
    lower, upper = at("2026-01-01"), at("2026-01-02")
    ((first, _),) = requests_above(source(**MAPPED), [ColumnRange("at", None, upper)], UTC)
    ((then, _),) = requests_above(
        source(**MAPPED, params={"kind": "all"}), [ColumnRange("at", lower, upper)], UTC
    )
    assert first.params == {"until": "2026-01-02T00:00:00+00:00"}
    assert then.params == {
        "kind": "all",
        "since": "2026-01-01T00:00:00+00:00",
        "until": "2026-01-02T00:00:00+00:00",
    }


def test_bounds_in_a_body_stand_in_its_objects_and_keep_what_is_there() -> None:
    api = source(
        method="POST",
        body={"filter": {"kind": "all"}, "n": 1},
        watermark_param_location="body",
        watermark_param_mapping={"at": "filter.since"},
        watermark_to_param="filter.until.day",
        watermark_param_format="date",
    )
    ranges = [ColumnRange("at", date(2026, 1, 1), date(2026, 1, 2))]
    ((request, _),) = requests_above(api, ranges, UTC)
    filters = {"kind": "all", "since": "2026-01-01", "until": {"day": "2026-01-02"}}
    assert (request.body, request.params) == ({"filter": filters, "n": 1}, {})
    assert api.body == {"filter": {"kind": "all"}, "n": 1}


def test_how_far_numbers_go_is_never_sent() -> None:
    api = source(watermark_param_mapping={"id": "since_id"}, watermark_to_param="to_id")
    asked = [requests_above(api, [ColumnRange("id", 3, upper)], UTC)[0][0] for upper in (None, 9)]
    assert asked[0] == asked[1] == ApiRequest("GET", "/rows", {"since_id": "3"})


def test_each_column_is_asked_by_itself_and_without_bound_for_all() -> None:
    api = source(watermark_param_mapping={"id": "since_id", "at": "since"})
    ranges = [ColumnRange("id", 3, None), ColumnRange("at", at("2026-01-01"), None)]
    asked = requests_above(api, ranges, UTC)
    assert [(dict(request.params), range_) for request, range_ in asked] == [
        ({"since_id": "3"}, ranges[0]),
        ({"since": "2026-01-01T00:00:00+00:00"}, ranges[1]),
    ]
    assert requests_above(api, [ranges[0], ColumnRange("other", 1, None)], UTC) == [
        (ApiRequest("GET", "/rows"), None)
    ]


def test_the_ranges_of_a_predicate_are_those_that_it_was_made_of() -> None:
    one, other = ColumnRange("a", 1, 2), ColumnRange("b", None, 5)
    null = AllOf((Among("a", (None,)),))
    assert ranges_of(rows_in_ranges([one])) == [one]
    assert ranges_of(rows_in_ranges([one, other])) == [one, other]
    assert ranges_of(AnyOf((rows_in_ranges([one, other]), null))) == [one, other]
    assert ranges_of(EVERYTHING) == ranges_of(NOTHING) == ranges_of(AnyOf((EVERYTHING, null))) == []
    assert ranges_of(AnyOf((rows_in_ranges([one]), Among("a", (1,))))) == []
    assert ranges_of(Between("a", 1, None, lower_inclusive=False)) == [
        ColumnRange("a", 1, None, upper_inclusive=False)
    ]


def test_a_window_and_a_unit_stand_in_path_and_params() -> None:
    api = source(path="/{unit.shop}/days/{start:%Y/%m/%d}", params={"to": "{end}", "n": 5, "flag": True})
    request = request_for(
        api, extent("2026-01-01T23:00", "2026-01-02T23:00", shop="a b"), zone_of("Europe/Berlin")
    )
    assert request.path == "/a%20b/days/2026/01/02"
    assert request.params == {"to": "2026-01-03T00:00:00+01:00", "n": "5", "flag": "true"}


@given(st.text(min_size=1))
def test_the_value_of_a_unit_is_one_part_of_a_path(value: str) -> None:
    api, asked = source(path="/x/{unit.u}/y"), extent("2026-01-01", "2026-01-02", u=value)
    if value in (".", ".."):
        with pytest.raises(PlanError, match="can be part of a path"):
            request_for(api, asked, UTC)
        return
    path = request_for(api, asked, UTC).path
    first, second, *rest = path.removeprefix("/").split("/")
    assert (first, unquote(second), rest) == ("x", value, ["y"])
    assert not set("?#") & set(path)


def test_ends_of_windows_go_out_further_if_rows_are_filtered() -> None:
    asked = extent("2026-01-01T10:00", "2026-01-02T11:00")
    filtered = source(**MAPPED, watermark_param_format="date", window_column="at")
    assert request_for(filtered, asked, UTC).params == {"since": "2026-01-01", "until": "2026-01-03"}
    with pytest.raises(PlanError, match="a format that can express the bound 2026-01-01T10:00:00"):
        request_for(source(**MAPPED, watermark_param_format="date"), asked, UTC)
    inclusive = source(**MAPPED, watermark_param_format="datetime", watermark_param_exclusive="1s")
    assert request_for(inclusive, asked, UTC).params == {
        "since": "2026-01-01T10:00:00",
        "until": "2026-01-02T10:59:59",
    }


def test_a_unit_without_the_value_that_is_asked_for_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="a unit with a value shop, found other"):
        request_for(source(path="/{unit.shop}"), extent("2026-01-01", "2026-01-02", other=1), UTC)


def test_a_form_that_cannot_say_the_end_asks_for_more_if_rows_tell_their_time() -> None:
    params = {"from": "{start:%Y-%m-%d}", "to": "{end:%Y-%m-%d}"}
    asked = extent("2026-01-01T10:00", "2026-01-02T11:00")
    filtered = source(params=params, window_column="at")
    assert request_for(filtered, asked, UTC).params == {"from": "2026-01-01", "to": "2026-01-03"}
    whole = extent("2026-01-01", "2026-01-02")
    assert request_for(source(params=params), whole, UTC).params == {"from": "2026-01-01", "to": "2026-01-02"}


@pytest.mark.parametrize(
    ("params", "moment"),
    [
        ({"to": "{end:%Y-%m-%d}"}, "2026-01-02T11:00:00"),
        ({"from": "{start:%Y-%m-%d}", "to": "{end}"}, "2026-01-01T10:00:00"),
    ],
)
def test_a_form_without_an_end_needs_rows_with_times(params: dict[str, str], moment: str) -> None:
    with pytest.raises(PlanError, match=f"that can write {moment}.*window_column"):
        request_for(source(params=params), extent("2026-01-01T10:00", "2026-01-02T11:00"), UTC)
