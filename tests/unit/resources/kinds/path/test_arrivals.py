"""How many files came on which day, by the log and a note beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resources.kinds.path.arrivals import DayArrivals, arrivals
from resources.watermarks.blobs.local import LocalBlobs
from resources.watermarks.entry import Entry, next_entry
from resources.watermarks.log import WatermarkLog


class Days:
    """A log to which entries of chosen days are appended."""

    def __init__(self, folder: Path) -> None:
        self.log = WatermarkLog(LocalBlobs(folder))
        self.newest: Entry | None = None

    def append(self, day: str, **changes: Any) -> None:
        entry = next_entry(
            self.newest,
            time=f"{day}T10:00:00.000+00:00",
            **{"why": "run", "kind": "path", "fingerprint": "f", "app_id": "a", **changes},
        )
        self.newest = self.log.append("flow", entry, expected=self.newest.number if self.newest else 0)

    @property
    def counted(self) -> dict[str, DayArrivals]:
        return arrivals(self.log, "flow", self.newest)


@pytest.fixture
def days(tmp_path: Path) -> Days:
    return Days(tmp_path)


def test_each_day_has_its_files_those_that_were_late_and_those_in_quarantine(days: Days) -> None:
    assert days.counted == {}
    days.append("2026-01-01", files=3, quarantined=1)
    days.append("2026-01-01", files=2)
    days.append("2026-01-03", files=4, why="late")
    days.append("2026-01-04", why="accept")
    assert days.counted == {"2026-01-01": DayArrivals(5, 0, 1), "2026-01-03": DayArrivals(0, 4, 0)}


def test_an_entry_is_counted_once_with_or_without_the_note(days: Days) -> None:
    for number in range(1, 6):
        days.append(f"2026-01-0{number}", files=number)
        if number != 3:
            assert days.counted == days.counted
    noted = days.counted
    assert noted == {f"2026-01-0{number}": DayArrivals(number) for number in range(1, 6)}
    days.log.put_note("flow", "arrivals", {"number": "spoilt"})
    assert days.counted == noted


def test_the_newest_sixty_days_with_files_are_kept(days: Days) -> None:
    for number in range(70):
        days.append(f"2026-{1 + number // 28:02d}-{1 + number % 28:02d}", files=1)
    assert len(days.counted) == 60
    assert min(days.counted) == "2026-01-11"


def test_a_note_ahead_of_a_log_that_was_put_back_counts_as_none(days: Days) -> None:
    days.append("2026-01-01", files=3)
    days.log.put_note("flow", "arrivals", {"number": 9, "days": {"2026-02-02": [9, 9, 9]}})
    assert days.counted == {"2026-01-01": DayArrivals(3)}
