"""Reasons alike are one reason with an example; reasons that differ in more than a name stay apart."""

from __future__ import annotations

from datetime import UTC

import pytest

from partitions.instants import DAY
from partitions.window.alike_reasons import describe_failures, kind_of_reason
from partitions.window.slices import WindowSlice
from partitions.window.work_unit import FailedUnit, WorkUnit

EWR, JFK = '{"airport":"EWR"}', '{"airport":"JFK"}'
HINT = "found none. If a missing folder means an empty window, set missing: empty"


def missing(number: int, unit: str, name: str) -> FailedUnit:
    work = WorkUnit(number * DAY, (number + 1) * DAY, unit, number * DAY, "new")
    return FailedUnit(work, f"expected files in s3://land/1970-01-{number + 1:02}/{name}, {HINT}")


@pytest.mark.parametrize(
    ("first", "second", "is_alike"),
    [
        ("file 2026-01-03/EWR/a.ndjson, line 3: torn", "file 2026-01-04/JFK/b2.ndjson, line 7: torn", False),
        ("file 2026-01-03/EWR/a.ndjson, line 3: torn", "file 2026-01-04/JFK/a.ndjson, line 17: torn", True),
        ("GET https://x/rows?airport=EWR&day=2026-01-03: 404", "GET https://x/rows?airport=JFK&day=2026-01-04: 404", True),
        ("GET https://x/rows?day=2026-01-03: 404", "GET https://x/rows?day=2026-01-03: 500", False),
        ("no rows of EWR at 2026-01-03 05:00:00", "no rows of JFK at 2026-01-04 06:00:00", True),
        ("EWRA has no rows", "JFKA has no rows", False),
        ("value 12 of id is no date", "value 13 of id is no date", False),
    ],
)  # fmt: skip
def test_reasons_are_alike_if_only_units_and_digits_of_names_differ(
    first: str, second: str, is_alike: bool
) -> None:
    assert (kind_of_reason(first, EWR) == kind_of_reason(second, JFK)) is is_alike


def test_a_unit_with_the_name_of_a_common_word_is_alike_in_paths() -> None:
    reasons = [
        kind_of_reason(
            f"expected files in /is_a_folder/2020-01-0{number}/{unit}, {HINT}", f'{{"u":"{unit}"}}'
        )
        for number, unit in ((2, "b"), (3, "a"), (4, "7"))
    ]
    assert len(set(reasons)) == 1


def test_missing_folders_are_one_reason_with_their_ranges_and_the_hint_once() -> None:
    failed = [missing(number, *unit) for number in range(20) for unit in ((EWR, "EWR"), (JFK, "JFK"))]
    whole = "[1970-01-01T00:00:00+00:00, 1970-01-21T00:00:00+00:00)"
    assert describe_failures(failed, UTC) == [
        (
            f"{whole} airport EWR, {whole} airport JFK",
            f"40 alike, such as: expected files in s3://land/1970-01-01/EWR, {HINT}",
        )
    ]


def test_the_failed_work_units_of_several_slices_are_one_line_for_each_reason() -> None:
    torn = FailedUnit(missing(2, JFK, "JFK").work, "torn")
    first = WindowSlice((), UTC, failed=(missing(0, EWR, "EWR"), torn))
    second = WindowSlice((), UTC, failed=(missing(1, EWR, "EWR"),))
    owners = {unit.work.key: slice_ for slice_ in (first, second) for unit in slice_.failed}
    assert first.failure_lines(owners) == [
        (
            "[1970-01-01T00:00:00+00:00, 1970-01-03T00:00:00+00:00) airport EWR: "
            f"2 alike, such as: expected files in s3://land/1970-01-01/EWR, {HINT}"
        ),
        "[1970-01-03T00:00:00+00:00, 1970-01-04T00:00:00+00:00) airport JFK: torn",
    ]
