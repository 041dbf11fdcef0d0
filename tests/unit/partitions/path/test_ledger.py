"""The ledger of partitions: how files get one, and which periods are missing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.errors import ConfigurationError
from partitions.ledger_bounds import LedgerBounds
from partitions.path.definition import PathWatermark
from partitions.path.expected import EXPECTED, Expected, missing_ranges
from partitions.path.ledger import FileCounts, file_ledger
from partitions.path.ledger_partitions import FilePlace, PartitionNames
from partitions.path.time_template import TimeTemplate

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)


def day(number: int, hour: int = 0) -> datetime:
    return datetime(2026, 1, number, hour, tzinfo=UTC)


@pytest.mark.parametrize(
    ("folder", "start", "group"),
    [
        ("date=2026-01-02", day(2), ""),
        ("2026-01-02", day(2), ""),
        ("20260102/07", day(2, 7), ""),
        ("region=north/date=2026-01-02/hour=7", day(2, 7), "region=north"),
        ("year=2026/month=1/day=2", day(2), ""),
        ("2026/01/02/x", day(2), "x"),
        ("2026-01", day(1), ""),
        ("date=2026-02-30", None, "date=2026-02-30"),
        ("batch=7", None, "batch=7"),
    ],
)
def test_a_folder_is_a_partition_with_the_time_of_its_name(
    folder: str, start: datetime | None, group: str
) -> None:
    partition = PartitionNames().partition_of(FilePlace(folder))
    assert (partition.name, partition.by, partition.start, partition.group) == (
        folder,
        "folder",
        start,
        group,
    )


def test_a_template_joins_the_folders_below_it() -> None:
    names = PartitionNames(TimeTemplate("*/date=%Y-%m-%d"))
    partitions = [names.partition_of(FilePlace(f"north/date=2026-01-02{more}")) for more in ("", "/part=1")]
    assert partitions[0] == partitions[1]
    assert (partitions[0].name, partitions[0].start, partitions[0].group) == (
        "north/date=2026-01-02",
        day(2),
        "north",
    )


def test_files_at_the_root_have_the_partition_of_their_day_of_arrival() -> None:
    partition = PartitionNames().partition_of(FilePlace("", "2026-01-02"))
    assert (partition.name, partition.by, partition.start) == ("2026-01-02", "arrival", day(2))


def _next(expected: Expected, time: datetime) -> datetime:
    match expected:
        case "hourly" | "daily" | "weekly":
            return (
                time + {"hourly": timedelta(hours=1), "daily": timedelta(1), "weekly": timedelta(7)}[expected]
            )
        case "monthly":
            return (time.replace(day=28) + timedelta(5)).replace(day=1)
    return time.replace(year=time.year + 1)


def _floor(expected: Expected, time: datetime) -> datetime:
    time = time.replace(minute=0)
    if expected == "hourly":
        return time
    time = time.replace(hour=0)
    if expected == "weekly":
        return time - timedelta(time.weekday())
    if expected == "daily":
        return time
    return time.replace(day=1) if expected == "monthly" else time.replace(month=1, day=1)


@given(
    st.sampled_from(EXPECTED),
    st.lists(st.integers(0, 62 * 24), min_size=1, max_size=6),
    st.integers(31 * 24, 79 * 24),
)
def test_missing_periods_are_those_that_a_walk_through_time_meets(
    expected: Expected, start_hours: list[int], now_hour: int
) -> None:
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    starts = [begin + timedelta(hours=hour) for hour in start_hours]
    now = begin + timedelta(hours=now_hour, minutes=30)
    present = {_floor(expected, start) for start in starts}
    time, walked = min(present), []
    while _next(expected, time) <= now:
        if time not in present:
            walked.append(time)
        time = _next(expected, time)
    ranges = list(missing_ranges(expected, {"": starts}, now))
    times = []
    for missing in ranges:
        time = missing.start
        for _ in range(missing.periods):
            times.append(time)
            time = _next(expected, time)
        assert time == missing.end
    assert times == walked


def test_bounds_cut_missing_ranges_and_each_group_counts_for_itself() -> None:
    starts = {"north": [day(1)], "south": [day(8)]}
    assert [tuple(missing) for missing in missing_ranges("daily", starts, NOW, day(3), day(6))] == [
        ("north", day(3), day(6), 3)
    ]
    assert [tuple(missing) for missing in missing_ranges("daily", starts, NOW)] == [
        ("north", day(2), day(10), 8),
        ("south", day(9), day(10), 1),
    ]


def test_counts_of_several_origins_add_up_and_unknown_ones_are_none() -> None:
    record = {
        FilePlace("date=2026-01-02"): FileCounts(files=2, bytes=9),
        FilePlace("date=2026-01-09"): FileCounts(files=1),
    }
    late = {FilePlace("date=2026-01-02"): FileCounts(late=1)}
    ledger = file_ledger(
        PartitionNames(),
        [record, late],
        frozenset({"rows"}),
        "daily",
        NOW,
        LedgerBounds.parse("2026-01-02", "2026-01-05"),
    )
    (only,) = ledger.as_json()["partitions"]
    assert (only["partition"], only["files"], only["bytes"], only["late"], only["rows"]) == (
        "date=2026-01-02", 2, 9, 1, None,
    )  # fmt: skip
    assert ledger.as_json()["missing"] == [
        {"group": "", "start": "2026-01-03T00:00:00+00:00", "end": "2026-01-05T00:00:00+00:00", "periods": 2}
    ]


def test_bounds_are_instants_or_names_and_their_end_is_exclusive() -> None:
    by_time = LedgerBounds.parse("2026-01-02", "2026-01-03")
    assert [by_time.holds("x", start) for start in (day(1), day(2), day(3), None)] == [
        False,
        True,
        False,
        False,
    ]
    by_name = LedgerBounds.parse("a", None)
    assert [by_name.holds(name, None) for name in ("A", "a", "b")] == [False, True, True]
    for start, end in (("a", "2026-01-01"), ("2026-01-02", "2026-01-02"), ("b", "a")):
        with pytest.raises(ConfigurationError, match="expected"):
            LedgerBounds.parse(start, end)


def test_no_shorter_period_is_expected_than_the_template_reads() -> None:
    with pytest.raises(ValueError, match="expected `expected: daily` or a longer period, found hourly"):
        PathWatermark(type="path", expected="hourly", time_template="date=%Y-%m-%d")
    assert PathWatermark(type="path", expected="weekly", time_template="date=%Y-%m-%d").expected == "weekly"
