"""The arrivals as Dagster shows them."""

from __future__ import annotations

from datetime import date

from partitions.path.ledger import FileCounts
from partitions.path.ledger_partitions import FilePlace, PartitionNames
from platform_assets.factory.kinds.path.pictures import (
    arrivals_metadata,
    arrivals_picture,
    partitions_metadata,
)
from resources.kinds.path.arrivals import DayArrivals
from tests.support.images import cells_of, chart_of

TODAY = date(2026, 1, 20)


def test_a_bar_is_a_day_as_high_as_its_files_and_days_without_a_file_are_empty() -> None:
    drawn = arrivals_picture({"2026-01-19": DayArrivals(10), "2026-01-20": DayArrivals(5)}, TODAY)
    assert cells_of(drawn) == ["M" * 12 + "LM"] * 5 + ["M" * 12 + "LL"] * 5
    assert drawn.endswith("\n\nGreen is loaded. Files by day in UTC, 15 files in all.")
    drawn_chart = chart_of(drawn)
    assert (drawn_chart.names, drawn_chart.ticks) == (["10 files", "0"], ["Jan 13", "Jan 20"])


def test_late_and_quarantined_files_stand_above_the_others_however_few_they_are() -> None:
    drawn = arrivals_picture({"2026-01-20": DayArrivals(998, 1, 1)}, TODAY)
    assert [row[-1] for row in cells_of(drawn)] == ["F", "P", *"LLLLLLLL"]


def test_sixty_days_are_drawn_at_most_and_the_picture_stands_on_the_page_itself() -> None:
    days = {
        f"2025-{month:02d}-{day:02d}": DayArrivals(month * day, day % 3)
        for month in range(1, 13)
        for day in range(1, 29)
    }
    drawn = arrivals_picture(days, TODAY)
    assert {len(row) for row in cells_of(drawn)} == {60}
    assert len(drawn) < 1000  # longer ones are hidden behind a click


def test_a_day_after_today_by_the_clock_of_its_run_is_drawn() -> None:
    assert cells_of(arrivals_picture({"2026-01-21": DayArrivals(1)}, TODAY))[0][-1] == "L"


def test_before_the_first_file_there_is_no_picture() -> None:
    assert arrivals_metadata({}, TODAY) == {}


def test_the_newest_partitions_are_a_table_with_the_command_for_all() -> None:
    partition = PartitionNames().partition_of(FilePlace("date=2026-01-02"))
    metadata = partitions_metadata("flights", [(partition, FileCounts(files=2, bytes=9, duplicates=1))])
    (record,) = metadata["partitions"].records
    assert record.data == {
        "partition": "date=2026-01-02",
        "files": 2,
        "bytes": 9,
        "skipped": 0,
        "duplicates": 1,
    }
    assert metadata["all_partitions"] == "strandline ledger flights"
    assert partitions_metadata("flights", []) == {}
