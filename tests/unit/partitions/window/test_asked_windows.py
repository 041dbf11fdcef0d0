"""Windows and units as users name them: what a text means, and what names nothing."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest

from partitions.errors import ConfigurationError
from partitions.instants import milliseconds
from partitions.window.asked_windows import parse_asked_windows

EWR, JFK, GONE = '{"airport":"EWR"}', '{"airport":"JFK"}', '{"airport":"OLD"}'
NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
NEW_YORK = ZoneInfo("America/New_York")


def at(text: str, zone: tzinfo = UTC) -> int:
    return milliseconds(datetime.fromisoformat(text).replace(tzinfo=zone))


@pytest.mark.parametrize(
    ("text", "start", "end", "units"),
    [
        ("2026", at("2026-01-01"), at("2027-01-01"), (EWR, JFK)),
        ("2026-12", at("2026-12-01"), at("2027-01-01"), (EWR, JFK)),
        ("2026-01-03", at("2026-01-03"), at("2026-01-04"), (EWR, JFK)),
        ("2026-01-03T05", at("2026-01-03T05:00"), at("2026-01-03T06:00"), (EWR, JFK)),
        ("2026-01-03T05:30", at("2026-01-03T05:30"), None, (EWR, JFK)),
        ("2026-01-03T05:00:00+00:00", at("2026-01-03T05:00"), None, (EWR, JFK)),
        ("2026-01-03/EWR", at("2026-01-03"), at("2026-01-04"), (EWR,)),
        ("2026-01-03/OLD", at("2026-01-03"), at("2026-01-04"), (GONE,)),
        ("[2026-01-03T00:00:00+00:00, 2026-01-05T00:00:00+00:00)", at("2026-01-03"), at("2026-01-05"), (EWR, JFK)),
        ("JFK|2026-01-03T00:00:00+00:00", at("2026-01-03"), None, (JFK,)),
        ("JFK|2026-01-03", at("2026-01-03"), at("2026-01-04"), (JFK,)),
        ("2026-01-01..2026-01-03", at("2026-01-01"), at("2026-01-03"), (EWR, JFK)),
        ("2026-01-01..2026-01-03/JFK", at("2026-01-01"), at("2026-01-03"), (JFK,)),
        ("2026-01-01T05:30..2026-01-01T06:00:00Z", at("2026-01-01T05:30"), at("2026-01-01T06:00"), (EWR, JFK)),
        ("2026-01..2026-02", at("2026-01-01"), at("2026-02-01"), (EWR, JFK)),
        ("P7D..-", at("2026-01-03"), at("2026-01-10T12:00"), (EWR, JFK)),
        ("2026-01-01T00:00:00Europe/Berlin", at("2025-12-31T23:00"), None, (EWR, JFK)),
        ("2026-01-01T00:00:00Europe/Berlin/JFK", at("2025-12-31T23:00"), None, (JFK,)),
        ("[2026-01-01...2026-01-03]", at("2026-01-01"), at("2026-01-04"), (EWR, JFK)),
        ("[JFK|2026-01-01...JFK|2026-01-03]", at("2026-01-01"), at("2026-01-04"), (JFK,)),
        ('2026-01-03/{"airport": "JFK"}', at("2026-01-03"), at("2026-01-04"), (JFK,)),
        ("JFK", None, None, (JFK,)),
        ("airport JFK", None, None, (JFK,)),
        (JFK, None, None, (JFK,)),
    ],
)  # fmt: skip
def test_a_text_names_windows_units_or_both(
    text: str, start: int | None, end: int | None, units: tuple[str, ...]
) -> None:
    asked = parse_asked_windows(text, [EWR, JFK], [GONE], ["airport"], UTC, "flow", NOW)
    assert (asked.start, asked.end, asked.units) == (start, end, units)


def test_a_day_is_one_of_the_definitions_zone() -> None:
    asked = parse_asked_windows("2026-03-08", ["{}"], [], [], NEW_YORK, "flow", NOW)
    assert (asked.start, asked.end) == (at("2026-03-08", NEW_YORK), at("2026-03-09", NEW_YORK))
    assert asked.end is not None
    assert asked.start is not None
    assert (asked.end - asked.start) == 23 * 3_600_000, "clocks are put forward"


def test_a_unit_of_several_values_is_named_by_all_or_by_one_of_them() -> None:
    units = ['{"a":"x","b":1}', '{"a":"x","b":2}', '{"a":"y","b":1}']
    for text, expected in (
        ("x,2", units[1:2]),
        ("x/2", units[1:2]),
        ("x", units[:2]),
        ("a y, b 1", units[2:]),
    ):
        asked = parse_asked_windows(text, units, [], ["a", "b"], UTC, "flow", NOW)
        assert list(asked.units) == expected


@pytest.mark.parametrize(
    ("text", "units", "message"),
    [
        ("2026-01-03/EWX", [EWR, JFK], "did you mean EWR?, found 'EWX'"),
        ("2026-13-03", [EWR, JFK], "there are 2 units, found '2026-13-03'"),
        ("yesterday", ["{}"], "it has no units, found 'yesterday'"),
        ("2026-01-05..2026-01-03", ["{}"], "expected a START before END, found '2026-01-05..2026-01-03'"),
        ("[2026-01-05, 2026-01-03)", ["{}"], "expected a START before END, found '[2026-01-05, 2026-01-03)'"),
    ],
)
def test_a_text_that_names_nothing_is_refused(text: str, units: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_asked_windows(text, units, [], ["airport"], UTC, "flow", NOW)
    assert str(refused.value).endswith(message)
    assert str(refused.value).startswith("dataflow flow: expected ")
