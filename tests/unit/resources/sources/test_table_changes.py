"""Which times and units of a Delta table commits have changed: exactly those whose rows differ, or more where nothing tells them."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from partitions.errors import NeedsDecision
from partitions.instants import HOUR, milliseconds
from partitions.unit_values import ValueType
from partitions.window.source_changes import ChangedStretch, unit_key
from resources.connections.places import Place
from resources.sources.table_changes import ChangedTimes
from resources.tables.contract.changed_file import ChangedFile
from resources.tables.contract.commit_log import LoggedCommit, ReadPosition
from resources.tables.delta.changed_values import described_files
from resources.tables.delta.commit_log import DeltaCommits
from resources.tables.delta.log import DeltaLog
from tests.support.readings import START, Reading, Readings, reading

ALL = [(-(2**62), 2**62)]
Cell = tuple[datetime, str]


def commits_of(folder: Path) -> DeltaCommits:
    return DeltaCommits(DeltaLog(Place(str(folder))))


def stretches(
    folder: Path,
    since: int = 0,
    time: str = "at",
    data_type: ValueType = "instant",
    zone: str = "UTC",
    units: Sequence[str] = ("airport",),
    relevant: Sequence[tuple[int, int]] = ALL,
    **types: ValueType,
) -> list[ChangedStretch]:
    commits = commits_of(folder)
    of_units = {name: name for name in units}
    times = ChangedTimes(commits, str(folder), time, {time: data_type, **types}, of_units, ZoneInfo(zone))
    return times.stretches(commits.since(ReadPosition(since)).commits, relevant)


def cells(folder: Path, since: int = 0) -> set[Cell]:
    """Return the hours of airports that have changed after a version."""
    keys = {unit_key({"airport": name}, UTC): name for name in ("EWR", "JFK")}
    return {
        (datetime.fromtimestamp(start // 1000 // 3600 * 3600, UTC), keys[unit or ""])
        for unit, start, _, _ in stretches(folder, since)
    }


def differing(upstream: Readings, since: int) -> set[Cell]:
    """Return the hours of airports whose rows some commit after a version has changed."""
    changed: set[Cell] = set()
    for version in range(since + 1, upstream.version + 1):
        before, after = (Counter(upstream.rows(number)) for number in (version - 1, version))
        for row in (*(before - after), *(after - before)):
            changed.add((row[1].replace(minute=0), row[2]))
    return changed


_ROWS = st.lists(
    st.builds(
        lambda id_, quarter, airport, v: reading(id_, quarter / 96, airport, v),
        st.integers(0, 5),
        st.integers(0, 20),
        st.sampled_from(["EWR", "JFK"]),
        st.sampled_from("ab"),
    ),
    min_size=1,
    max_size=3,
)
_ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), _ROWS),
        st.tuples(st.just("overwrite"), _ROWS),
        st.tuples(st.just("delete"), st.integers(0, 5)),
        st.tuples(st.just("update"), st.integers(0, 5)),
        st.tuples(st.just("restore"), st.integers(1, 2)),
        st.tuples(st.just("compact"), st.none()),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=15, deadline=None)
@given(_ROWS, _ACTS)
def test_the_hours_of_airports_that_commits_changed_are_told_exactly(
    first: list[Reading], acts: list[tuple[str, Any]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        upstream = Readings(Path(folder), None)  # type: ignore[arg-type]
        upstream.append(*first)
        for what, argument in acts:
            match what:
                case "append" | "overwrite":
                    getattr(upstream, what)(*argument)
                case "update":
                    upstream.update(argument, "c")
                case "compact":
                    upstream.compact()
                case "restore":
                    upstream.restore(min(argument, upstream.version)) if upstream.version else None
                case _:
                    getattr(upstream, what)(argument)
        assert cells(upstream.folder) == differing(upstream, 0)


@pytest.fixture
def upstream(tmp_path: Path) -> Readings:
    """Readings of three days in one file."""
    table = Readings(tmp_path, None)  # type: ignore[arg-type]
    table.append(*[reading(day, day + 0.5) for day in range(3)])
    return table


def test_what_lies_outside_the_loaded_stretches_is_not_read(upstream: Readings) -> None:
    upstream.append(reading(10, 5))
    start = milliseconds(START)
    assert stretches(upstream.folder, relevant=[(start, start + 72 * HOUR)]) == []
    (found,) = stretches(upstream.folder, relevant=[(start, start + 200 * HOUR)])
    assert (found.start, found.commit) == (start + 120 * HOUR, "version 1")


def test_a_file_that_is_gone_is_told_by_its_bounds(upstream: Readings) -> None:
    upstream.append(reading(10, 1.1), reading(11, 1.2))
    file = newest_file(upstream)
    upstream.compact()
    file.unlink()
    (found,) = stretches(upstream.folder)
    start = milliseconds(START)
    assert (found.unit, found.start) == (None, start + int(26.4 * HOUR))
    assert found.end - start == pytest.approx(28.8 * HOUR, abs=5)


def test_a_file_that_is_gone_and_without_bounds_stops(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for at in (1, 2):
        rows = pa.table({"at": [datetime(2026, 1, at, tzinfo=UTC)], "airport": ["EWR"]})
        write_deltalake(
            str(table), rows, mode="append", configuration={"delta.dataSkippingNumIndexedCols": "0"}
        )
    (path,) = set(DeltaTable(str(table)).file_uris()) - set(DeltaTable(str(table), version=0).file_uris())
    Path(path).unlink()
    with pytest.raises(NeedsDecision, match="does not tell the times of its rows") as caught:
        stretches(table)
    assert caught.value.code == "versions_gone"


def newest_file(upstream: Readings) -> Path:
    table = DeltaTable(str(upstream.folder))
    before = DeltaTable(str(upstream.folder), version=table.version() - 1)
    (path,) = set(table.file_uris()) - set(before.file_uris())
    return Path(path)


def test_days_and_local_times_belong_to_the_windows_of_their_zone(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for number in range(2):
        rows = pa.table(
            {
                "day": [date(2026, 1, 2 + number)],
                "at": [datetime(2026, 1, 2 + number, 5)],  # noqa: DTZ001 - of no zone
            }
        )
        write_deltalake(str(table), rows, mode="append")
    (day,) = stretches(table, time="day", data_type="day", zone="America/New_York", units=())
    midnight = milliseconds(datetime(2026, 1, 4, 5, tzinfo=UTC))
    assert (day.start, day.end) == (midnight - 1, midnight)
    (at,) = stretches(table, time="at", data_type="local", zone="America/New_York", units=())
    assert (at.start, at.unit) == (milliseconds(datetime(2026, 1, 3, 10, tzinfo=UTC)), "")


def test_partition_columns_tell_days_and_units_without_the_file(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for number in range(2):
        rows = pa.table({"day": [date(2026, 1, 2 + number)], "airport": ["EWR"], "v": [1]})
        write_deltalake(str(table), rows, mode="append", partition_by=["day", "airport"])
    (found,) = stretches(table, time="day", data_type="day")
    assert (found.unit, found.end) == (
        unit_key({"airport": "EWR"}, UTC),
        milliseconds(datetime(2026, 1, 4, tzinfo=UTC)),
    )


def test_a_unit_that_is_a_time_is_told_to_the_microsecond_in_any_zone(tmp_path: Path) -> None:
    batch, zone = datetime(2026, 1, 1, 12, 0, 30, 123456, tzinfo=UTC), ZoneInfo("Europe/Berlin")
    for number in range(2):
        rows = pa.table(
            {
                "at": pa.array([START + timedelta(hours=number)], pa.timestamp("us", "UTC")),
                "batch": pa.array([batch], pa.timestamp("us", "UTC")),
            }
        )
        write_deltalake(str(tmp_path / "t"), rows, mode="append")
        write_deltalake(str(tmp_path / "parts"), rows, mode="append", partition_by="batch")
    options: dict[str, Any] = {"units": ("batch",), "zone": "Europe/Berlin", "batch": "instant"}
    (found,) = stretches(tmp_path / "t", **options)
    assert found.unit == unit_key({"batch": batch.isoformat()}, zone)
    (in_folder,) = stretches(tmp_path / "parts", **options)
    assert in_folder.unit is None


def test_rows_with_lists_and_structs_are_compared_too(tmp_path: Path) -> None:
    table = tmp_path / "t"

    def write(mode: Any, *tags: list[int]) -> None:
        times = [datetime(2026, 1, day + 1, tzinfo=UTC) for day in range(len(tags))]
        rows = pa.table(
            {
                "at": pa.array(times, pa.timestamp("us", "UTC")),
                "tags": list(tags),
                "s": [{"a": 0.0}] * len(tags),
            }
        )
        write_deltalake(str(table), rows, mode=mode)

    write("append", [1], [2], [3])
    write("overwrite", [1], [2, 2], [3])
    (found,) = stretches(table, units=())
    assert found.start == milliseconds(datetime(2026, 1, 2, tzinfo=UTC))


def test_a_time_without_a_value_changes_no_window(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for at in (datetime(2026, 1, 1, tzinfo=UTC), None):
        rows = pa.table({"at": pa.array([at], pa.timestamp("us", "UTC")), "airport": ["EWR"]})
        write_deltalake(str(table), rows, mode="append")
    assert stretches(table) == []


def test_a_column_that_a_file_lacks_makes_everything_changed(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_deltalake(str(table), pa.table({"v": [1]}))
    write_deltalake(str(table), pa.table({"v": [2]}), mode="append")
    (found,) = stretches(table, units=())
    assert (found.unit, found.start, found.end) == (None, *ALL[0])


def test_many_times_are_told_by_the_minute(tmp_path: Path) -> None:
    table = tmp_path / "t"
    start = datetime(2026, 1, 1, tzinfo=UTC)
    write_deltalake(str(table), pa.table({"at": pa.array([start], pa.timestamp("us", "UTC"))}))
    times = [start + timedelta(milliseconds=20 * number) for number in range(100_001)]
    write_deltalake(str(table), pa.table({"at": pa.array(times, pa.timestamp("us", "UTC"))}), mode="append")
    (found,) = stretches(table, units=())
    assert (found.start, found.end) == (milliseconds(start), milliseconds(start) + 34 * 60_000)


def test_two_commits_of_one_number_are_told_apart(
    upstream: Readings, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream.delete(1)
    upstream.append(reading(1, 1.5))  # together they change nothing
    log = commits_of(upstream.folder)
    went, came = log.since(ReadPosition(0)).commits
    numbers = {went._replace(version=9): went, came._replace(version=9): came}  # as after a rollback

    def changed_files(_: DeltaCommits, commits: Sequence[LoggedCommit]) -> list[ChangedFile]:
        files = [file for commit in commits for file in described_files(log.log, [numbers[commit]])]
        return [replace(file, version=9) for file in files]

    monkeypatch.setattr(DeltaCommits, "changed_files", changed_files)
    times = ChangedTimes(log, "one number", "at", {"at": "instant"}, {}, UTC)
    together = times.stretches(list(numbers), ALL)
    assert [stretch.start for stretch in together] == [milliseconds(START) + 36 * HOUR] * 2
