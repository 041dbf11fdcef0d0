"""``strandline why`` of files: from the log as runs leave it, and the files at the source."""

from __future__ import annotations

from pathlib import Path

import pytest

from partitions.instants import time_text
from partitions.why_answer import WhyAnswer
from resources.kinds.path.explaining import explain_file, unloaded_files
from resources.kinds.path.file_decisions import CAME_LATE
from resources.watermarks.entry import Entry
from resources.watermarks.lists import INGESTED_FILES, QUARANTINED_FILES, StoredList
from tests.support.arrivals import NOW, Arrivals


@pytest.fixture
def arrivals(tmp_path: Path) -> Arrivals:
    return Arrivals(tmp_path)


def why(arrivals: Arrivals, path: str) -> WhyAnswer:
    return explain_file(arrivals.platform, arrivals.flow, path, NOW)


def set_aside(arrivals: Arrivals, reason: str) -> Entry:
    """Append an entry with two rows of ``a``; it has put ``b`` into quarantine."""
    arrivals.put("a.ndjson", "b.ndjson")
    log, rows = arrivals.platform.log, [["a.ndjson", 1, "v", 0, None], ["b.ndjson", 1, "v", 0, reason]]
    held = StoredList(QUARANTINED_FILES, [["b.ndjson", 1, "v", 0, reason, False]])
    return arrivals.commit(
        ["a.ndjson", "b.ndjson"],
        file_list=log.put_list("arrivals", "0000000001-y", StoredList(INGESTED_FILES, rows)),
        quarantine=log.put_list("arrivals", "x", held, "quarantine"),
        files=1,
        quarantined=1,
        rows=2,
    )


class TestInQuarantine:
    def test_it_has_no_rows_and_is_repaired_before_it_is_released(self, arrivals: Arrivals) -> None:
        entry = set_aside(arrivals, "line 1: torn")
        answer = why(arrivals, "b.ndjson")
        assert answer.lines == [
            "arrivals b.ndjson: in quarantine: line 1: torn. Repair it at the source, then release it",
            f"entry 1 (run) of {time_text(entry.time)}: 0 of its 2 rows (left the file out)",
        ]
        assert answer.choices == ("strandline files release arrivals b.ndjson",)

    def test_a_file_that_only_came_late_needs_no_repair(self, arrivals: Arrivals) -> None:
        set_aside(arrivals, CAME_LATE)
        assert why(arrivals, "b.ndjson").summary == "in quarantine: came late"

    def test_without_a_subject_the_repair_comes_first_too(self, arrivals: Arrivals) -> None:
        entry = set_aside(arrivals, "line 1: torn")
        (reason,) = unloaded_files(arrivals.platform.log, arrivals.flow, entry, NOW)
        assert reason.line == (
            "1 file in quarantine, such as b.ndjson: line 1: torn. Repair it at the source, then release it"
        )

    def test_the_file_that_was_loaded_beside_it_has_the_rows(self, arrivals: Arrivals) -> None:
        entry = set_aside(arrivals, "line 1: torn")
        assert why(arrivals, "a.ndjson").lines[1] == f"entry 1 (run) of {time_text(entry.time)}: 2 rows"
