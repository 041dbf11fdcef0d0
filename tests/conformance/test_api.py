"""api.json."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from partitions.api.calendar_ranges import split_range
from partitions.api.parameters import format_parameter, inclusive_end, parameter_zone
from tests.conformance.common import Case, answer, decode, fails, same


@pytest.mark.cases("api", "api_watermark_format")
def test_watermark_format(case: Case) -> None:
    inputs = case["input"]
    result = answer(case, lambda: format_parameter(decode(inputs["value"]), inputs["format"]))
    assert fails(case) or result == case["expected"]


@pytest.mark.cases("api", "api_ranges")
def test_ranges(case: Case) -> None:
    inputs = case["input"]
    result = answer(
        case,
        lambda: split_range(decode(inputs["from"]), decode(inputs["to"]), inputs["amount"], inputs["unit"]),
    )
    assert fails(case) or same([list(bounds) for bounds in result], decode(case["expected"]))


@pytest.mark.cases("api", "api_exclusive_offset")
def test_exclusive_offset(case: Case) -> None:
    inputs = case["input"]
    result = answer(
        case, lambda: inclusive_end(datetime.fromisoformat(inputs["upper"]), inputs["mode"]).isoformat()
    )
    assert fails(case) or result == case["expected"]


@pytest.mark.cases("api", "api_timezone")
def test_timezone(case: Case) -> None:
    zone = answer(case, lambda: parameter_zone(case["input"]["timezone"]))
    if not fails(case):
        minutes = case["expected"]["utc_offset_minutes_on_2026_01_01"]
        assert datetime(2026, 1, 1, tzinfo=zone).utcoffset() == timedelta(minutes=minutes)
