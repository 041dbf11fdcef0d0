"""``strandline why`` of files: from the log as runs leave it, and the files at the source."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from partitions.errors import BadFile
from partitions.instants import time_text
from partitions.why_answer import WhyAnswer
from resources.kinds.path.explaining import explain_file, unloaded_files
from resources.kinds.path.file_decisions import CAME_LATE
from resources.notes.last_run import last_attempt, note_attempt
from resources.outcome import Outcome
from resources.watermarks.entry import Entry
from resources.watermarks.lists import INGESTED_FILES, QUARANTINED_FILES, StoredList
from tests.support.arrivals import NOW, Arrivals


@pytest.fixture
def arrivals(tmp_path: Path) -> Arrivals:
    return Arrivals(tmp_path)


def why(arrivals: Arrivals, path: str) -> WhyAnswer:
    return explain_file(arrivals.platform, arrivals.flow, path, NOW)


def set_aside(arrivals: Arrivals, reason: str, *, is_released: bool = False) -> Entry:
    """Append an entry with two rows of ``a``; it has put ``b`` into quarantine, or released it from there."""
    arrivals.put("a.ndjson", "b.ndjson")
    log, rows = arrivals.platform.log, [["a.ndjson", 1, "v", 0, None], ["b.ndjson", 1, "v", 0, reason]]
    held = StoredList(QUARANTINED_FILES, [["b.ndjson", 1, "v", 0, reason, is_released]])
    return arrivals.commit(
        ["a.ndjson", "b.ndjson"],
        file_list=log.put_list("arrivals", "0000000001-y", StoredList(INGESTED_FILES, rows)),
        quarantine=log.put_list("arrivals", "x", held, "quarantine"),
        files=1,
        quarantined=1,
        rows=2,
        why="release" if is_released else "run",
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

    def test_one_command_releases_all_files_whatever_their_reasons(self, arrivals: Arrivals) -> None:
        log = arrivals.platform.log
        paths = ["b 1.ndjson", "c.ndjson", "d.ndjson", "e.ndjson", "f.ndjson"]
        held = StoredList(
            QUARANTINED_FILES,
            [[path, 1, "v", 0, f"line {number}: torn", False] for number, path in enumerate(paths)],
        )
        entry = arrivals.commit(
            ["a.ndjson"], quarantine=log.put_list("arrivals", "x", held, "quarantine"), quarantined=5
        )
        reasons = unloaded_files(log, arrivals.flow, entry, NOW)
        assert [reason.what for reason in reasons] == [
            f"1 file in quarantine, such as {path}" for path in paths
        ]
        release = "strandline files release arrivals 'b 1.ndjson' c.ndjson d.ndjson e.ndjson f.ndjson"
        assert {reason.choices for reason in reasons} == {(release,)}

    def test_without_a_subject_the_repair_comes_first_too(self, arrivals: Arrivals) -> None:
        entry = set_aside(arrivals, "line 1: torn")
        (reason,) = unloaded_files(arrivals.platform.log, arrivals.flow, entry, NOW)
        assert reason.line == (
            "1 file in quarantine, such as b.ndjson: line 1: torn. Repair it at the source, then release it"
        )

    def test_the_file_that_was_loaded_beside_it_has_the_rows(self, arrivals: Arrivals) -> None:
        entry = set_aside(arrivals, "line 1: torn")
        assert why(arrivals, "a.ndjson").lines[1] == f"entry 1 (run) of {time_text(entry.time)}: 2 rows"


def fails(arrivals: Arrivals, message: str) -> str:
    """Note a run that failed with this message, and return its time."""
    log = arrivals.platform.log
    error = BadFile(f"dataflow arrivals: {message}", path="b.ndjson", choices=["strandline doctor"])
    note_attempt(log, Outcome("arrivals", "run-1", {}, 0, error=error))
    attempt = last_attempt(log, "arrivals")
    assert attempt is not None
    return attempt.time


class TestAtWhichTheLastRunFailed:
    @pytest.mark.parametrize(
        "message",
        [
            "file b.ndjson, line 1: expected a JSON object",
            "6 of 10 files of the slice are bad, more than half. The first bad file is b.ndjson: torn. Repair it",
            "6 of 10 files are bad. The first bad file is a.ndjson: torn. The other bad files are c.ndjson, b.ndjson. Repair",
            "file a.ndjson, line 1: bad. Bad records are also in b.ndjson.",
        ],
    )
    def test_it_is_failing_with_the_reason_of_the_attempt(self, arrivals: Arrivals, message: str) -> None:
        arrivals.put("a.ndjson", "b.ndjson")
        time = fails(arrivals, message)
        answer = why(arrivals, "b.ndjson")
        assert (answer.status, answer.lines) == (
            "failing",
            [
                "arrivals b.ndjson: not loaded: the last attempt failed at it, and the next run tries it again",
                f"the last attempt failed: {message}, since {time_text(time)}, run run-1",
            ],
        )
        assert answer.choices == ("strandline doctor", "strandline run arrivals")

    @pytest.mark.parametrize("path", ["ab.ndjson", "b.ndjson.gz", "d=1/b.ndjson", "b.ndjson/c.ndjson"])
    def test_another_file_with_a_similar_name_is_due(self, arrivals: Arrivals, path: str) -> None:
        arrivals.put(path)
        fails(arrivals, "file b.ndjson, line 1: bad")
        assert why(arrivals, path).status == "due"

    def test_a_file_that_was_repaired_since_is_due(self, arrivals: Arrivals) -> None:
        arrivals.put("b.ndjson")
        fails(arrivals, "file b.ndjson, line 1: bad")
        later = datetime.now(UTC).timestamp() + 60
        os.utime(arrivals.landing / "b.ndjson", (later, later))
        assert why(arrivals, "b.ndjson").summary == "not loaded yet: the next run loads it, in slice 1 of 1"

    def test_a_file_whose_release_came_since_is_due_until_a_run_fails_at_it(self, arrivals: Arrivals) -> None:
        fails(arrivals, "file b.ndjson, line 1: bad")
        set_aside(arrivals, "line 1: bad", is_released=True)
        assert why(arrivals, "b.ndjson").status == "due"
        fails(arrivals, "file b.ndjson, line 1: bad")
        assert why(arrivals, "b.ndjson").status == "failing"
