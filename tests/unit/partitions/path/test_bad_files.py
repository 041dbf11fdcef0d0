"""What a run does with a file that it cannot load."""

from __future__ import annotations

import pytest

from partitions.path.bad_files import (
    CHANGED_WHILE_READ,
    FILE_CHANGED,
    FILE_VANISHED,
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
