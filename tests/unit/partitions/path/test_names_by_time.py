from __future__ import annotations

import pytest

from partitions.path.names_by_time import examine, sorts_by_time


@pytest.mark.parametrize(
    "name",
    [
        "1706450400.parquet",
        "1706450400123.ndjson.gz",
        "1706450400123456-x",
        "1706450400123456789-x",
        "01926abc-def0.parquet",
        "01926abc-def0-7123-8567-89abcdef0123.parquet",
        "01926ABCDEF07123856789ABCDEF0123.parquet",
        "01HQZX3J8K9M2N4P5Q6R7S8T9V.parquet",
        "2024-01-28T14-00-00.parquet",
        "2024-01-28.parquet",
        "20240128T140000Z.parquet",
        "20240128140000.parquet",
        "20240128140000123.parquet",
        "2024_01_28_x.csv",
        "2024-01.csv",
        "2024-W05-1.csv",
    ],
)
def test_a_name_with_its_time_in_front_sorts_by_time(name: str) -> None:
    assert sorts_by_time(name)


@pytest.mark.parametrize(
    "name",
    [
        "550e8400-e29b-41d4-a716-446655440000.parquet",
        "01926abc-def0-4123-8567-89abcdef0123.parquet",  # version 4, whatever its first digits
        "part-00000-5c2a7b1e.snappy.parquet",
        "file-1706450400.parquet",
        "28-01-2024.csv",
        "2024-1-28.csv",
        "2024-13-01.csv",
        "100.parquet",
        "17064504001.parquet",
        "0000000001.parquet",
        "00000101.parquet",
        "d41d8cd98f00b204e9800998ecf8427e",
        "",
    ],
)
def test_a_name_without_its_time_in_front_does_not(name: str) -> None:
    assert not sorts_by_time(name)


def test_padded_numbers_and_times_are_not_reported() -> None:
    assert examine(["hour=09/001.json", "hour=10/002.json", "hour=10/010.json"]).sorts
    assert examine(["date=2026-01-28/1706450400-a.json", "date=2026-01-29/1706450500-b.json"]).sorts


@pytest.mark.parametrize(
    "paths",
    [
        ["orders_2024-01-01.csv"],
        ["orders_2024-01-01.csv", "orders_2024-01-02.csv"],
        ["d=1/sales.eu-1706450400.json", "d=1/sales.eu-1706450401.json", "d=2/1706450402.json"],
    ],
)
def test_names_that_all_begin_alike_sort_by_the_time_that_follows(paths: list[str]) -> None:
    assert examine(paths).findings == ()


def test_root_files_are_in_no_way_of_partition_watermarks() -> None:
    assert examine(["001.json", "d=1/001.json"], by_partition=True).sorts


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        *(
            (paths, "do not start with a time or a number")
            for paths in (
                ["2024-01-01.csv", "orders_2024-01-01.csv"],
                ["part-00000-5c2a7b1e.json"],
                ["d=1/event-ab.json"],
            )
        ),
        (["hour=9/001.json", "hour=10/001.json"], "not padded"),
        (["d=1/100.json", "d=1/1000.json"], "differ in length"),
        (["001.json", "d=1/001.json"], "files at the root"),
    ],
)
def test_what_makes_the_order_differ_from_time_is_reported(paths: list[str], said: str) -> None:
    (finding,) = examine(paths).findings
    assert said in finding


@pytest.mark.parametrize(
    ("paths", "expected", "example"),
    [
        (
            ["orders_2024-01-01.csv", "orders_again.csv"],
            "'orders_' and a time, like the others",
            "orders_again.csv",
        ),
        (
            ["a_2024-01-01.csv", "b_2024-01-01.csv", "b_2024-01-02.csv"],
            "'b_' and a time, like the others",
            "a_2024-01-01.csv",
        ),
        (["7.csv", "b_2024-01-01.csv", "b_2024-01-02.csv"], "'b_' and a time, like the others", "7.csv"),
        (["2024-01-01.csv", "orders_2024-01-01.csv"], "a time or a number", "orders_2024-01-01.csv"),
        (["d=1/b_2024-01-01.csv", "d=2/x.csv"], "a time or a number", "d=2/x.csv"),
    ],
)
def test_the_example_is_a_name_that_differs_from_most(paths: list[str], expected: str, example: str) -> None:
    (finding,) = examine(paths).findings
    assert finding.startswith(f"1 of {len(paths)} names do not start with {expected} (such as {example!r})")
