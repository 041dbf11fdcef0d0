"""What a run does with a file that it cannot load."""

from __future__ import annotations

import pytest

from partitions.path.bad_files import (
    CHANGED_WHILE_READ,
    FILE_CHANGED,
    FILE_VANISHED,
    BadFileCount,
    is_loaded,
    is_outdated,
    is_skipped,
)


@pytest.mark.parametrize(
    ("code", "skipped", "outdated", "loaded"),
    [
        ("bad_record", True, False, False),
        (FILE_VANISHED, True, True, False),
        (FILE_CHANGED, False, True, False),
        (CHANGED_WHILE_READ, False, False, True),
    ],
)
def test_quarantine_passes_over_what_time_does_not_mend(
    code: str, skipped: bool, outdated: bool, loaded: bool
) -> None:
    assert is_skipped("quarantine", code) is skipped
    assert not is_skipped("stop", code)
    assert (is_outdated(code), is_loaded(code)) == (outdated, loaded)


@pytest.mark.parametrize(
    ("count", "limit", "exceeds"),
    [
        (BadFileCount(1, 1), None, False),
        (BadFileCount(1, 1, before=2), None, False),
        (BadFileCount(1, 1, before=3), None, True),
        (BadFileCount(1, 1, is_first=True), None, True),
        (BadFileCount(2, 2), None, True),
        (BadFileCount(3, 4), None, False),
        (BadFileCount(3, 4, before=9, is_first=True), None, False),
        (BadFileCount(4, 5), None, True),
        (BadFileCount(5, 10), None, False),
        (BadFileCount(6, 10), None, True),
        (BadFileCount(2, 9), 1, True),
        (BadFileCount(9, 9, is_first=True), 9, False),
        (BadFileCount(1, 1, before=2), 2, True),
        (BadFileCount(2, 9, before=2), 2, False),
    ],
)
def test_half_of_a_slice_or_three_files_or_one_alone_may_be_bad(
    count: BadFileCount, limit: int | None, exceeds: bool
) -> None:
    assert count.exceeds(limit) is exceeds


@pytest.mark.parametrize(
    ("count", "limit", "text"),
    [
        (BadFileCount(6, 10), None, "6 of 10 files of the slice are bad, more than half"),
        (BadFileCount(2, 2), None, "all 2 files of the slice are bad"),
        (
            BadFileCount(1, 1, is_first=True),
            None,
            "the only file of the slice is bad, and no file has been loaded yet",
        ),
        (
            BadFileCount(1, 1, before=3),
            None,
            "the only file of the slice is bad, after 3 bad ones right before",
        ),
        (BadFileCount(4, 9), 3, "4 of 9 files of the slice are bad, and max_bad_files is 3"),
    ],
)
def test_too_many_bad_files_are_counted_in_words(count: BadFileCount, limit: int | None, text: str) -> None:
    assert count.describe(limit) == text
