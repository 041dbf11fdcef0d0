"""What every backend promises of a log that is compacted: numbers stay taken, and nothing that is needed goes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from partitions.errors import Conflict, CorruptWatermark
from resources.connections.places import Place
from resources.watermarks.blobs import Blobs, open_blobs
from resources.watermarks.compaction import RetentionPolicy, compact_log
from resources.watermarks.entry import Entry, next_entry
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.lists import INGESTED_FILES, QUARANTINED_FILES, StoredList
from resources.watermarks.log import WatermarkLog
from resources.watermarks.stored_objects import QUARANTINE
from tests.support import writers
from tests.support.writers import intent

FLOW = "flow"
NOW = datetime(2026, 6, 1, tzinfo=UTC)
OLD = (NOW - timedelta(days=91)).isoformat()


class Noting:
    """Blobs, and the keys of those that were read."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self.read: list[str] = []

    def get(self, key: str) -> bytes | None:
        """Read one."""
        self.read.append(key)
        return self._blobs.get(key)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._blobs, name)


@pytest.fixture
def log(place: Place) -> WatermarkLog:
    return WatermarkLog(open_blobs(place))


def append(log: WatermarkLog, time: str = OLD, **changes: Any) -> Entry:
    """An entry with a list of one file and an intent, as a run leaves it."""
    last = log.newest(FLOW)
    number = last.number + 1 if last else 1
    log.put_intent(intent(number))
    key = log.put_list(
        FLOW, f"{number:010d}-x", StoredList(INGESTED_FILES, [[f"{number:04}.json", 1, "v", 0, None]])
    )
    first = {} if last else {"kind": "path", "app_id": "app", "fingerprint": "f"}
    entry = next_entry(last, **{"why": "run", "time": time, "file_list": key, **first, **changes})
    return log.append(FLOW, entry, expected=entry.previous)


def compact(log: WatermarkLog, entries: int = 3, merge_every: int = 1) -> None:
    compact_log(log, FLOW, log.newest(FLOW), RetentionPolicy(entries, timedelta(days=90), merge_every), NOW)


def numbers(log: WatermarkLog) -> list[int]:
    return [entry.number for entry in log.history(FLOW)]


class TestPolicy:
    def test_entries_beyond_the_number_and_the_age_go_with_their_intents(self, log: WatermarkLog) -> None:
        for _ in range(8):
            append(log)
        compact(log)
        assert numbers(log) == [8, 7, 6]
        assert [log.intent(FLOW, number) is not None for number in range(1, 9)] == [False] * 5 + [True] * 3
        assert log.floor(FLOW) == 5

    def test_young_entries_stay_however_many_there_are(self, log: WatermarkLog) -> None:
        for _ in range(3):
            append(log)
        for _ in range(5):
            append(log, time=NOW.isoformat())
        compact(log)
        assert numbers(log) == [8, 7, 6, 5, 4]

    def test_the_newest_stays_whatever_the_policy(self, log: WatermarkLog) -> None:
        append(log)
        append(log)
        compact(log, entries=1)
        assert numbers(log) == [2]

    def test_an_open_intent_stays(self, log: WatermarkLog) -> None:
        for _ in range(5):
            append(log)
        begun = log.put_intent(intent(6))
        compact(log, entries=1)
        assert log.intent(FLOW, 6) == begun

    def test_what_was_ingested_is_still_known_when_the_entries_are_gone(self, log: WatermarkLog) -> None:
        for _ in range(8):
            append(log)
            compact(log)
        known = IngestedFiles(log, FLOW, log.newest(FLOW)).find_handled(
            [f"{number:04}.json" for number in range(12)]
        )
        assert known == {f"{number:04}.json" for number in range(1, 9)}

    def test_an_entry_whose_files_are_not_merged_yet_stays(self, log: WatermarkLog) -> None:
        for _ in range(8):
            append(log)
        compact(log, merge_every=100)
        assert numbers(log) == [8, 7, 6, 5, 4, 3, 2, 1]

    def test_a_run_reads_no_list_before_it_merges_some(self, log: WatermarkLog, place: Place) -> None:
        for _ in range(5):
            append(log)
        noting = Noting(open_blobs(place))
        compact_log(WatermarkLog(noting), FLOW, log.newest(FLOW), RetentionPolicy(merge_every=32), NOW)
        assert [key for key in noting.read if "/files/" in key] == []
        assert len([key for key in noting.read if "/entries/" in key]) <= 2
        known = IngestedFiles(log, FLOW, log.newest(FLOW)).find_handled(
            ["0001.json", "0005.json", "0006.json"]
        )
        assert known == {"0001.json", "0005.json"}

    def test_the_quarantine_that_the_newest_entry_names_stays(self, log: WatermarkLog) -> None:
        stored = StoredList(QUARANTINED_FILES, [["bad.json", 1, "v", 0, "why", False]])
        kept = log.put_list(FLOW, "0000000001-q", stored, QUARANTINE)
        gone = log.put_list(FLOW, "0000000001-p", stored, QUARANTINE)
        append(log, quarantine=kept)
        for _ in range(7):
            append(log)
        compact(log)
        assert log.get_list(kept, QUARANTINED_FILES) == stored
        with pytest.raises(CorruptWatermark):
            log.get_list(gone, QUARANTINED_FILES)


class TestUsedNumbers:
    def test_a_writer_that_slept_gets_a_conflict_and_changes_nothing(self, log: WatermarkLog) -> None:
        for _ in range(8):
            append(log)
        compact(log)
        with pytest.raises(Conflict):
            log.append(FLOW, writers.entry(3, 99), expected=2)
        assert numbers(log) == [8, 7, 6]
        assert log.find(FLOW, 3) is None
        append(log)
        assert numbers(log) == [9, 8, 7, 6]

    def test_a_writer_between_numbers_that_jumped_gets_a_conflict(self, log: WatermarkLog) -> None:
        append(log)
        jumped = append(log, number=57)
        assert (jumped.previous, numbers(log)) == (1, [57, 1])
        with pytest.raises(Conflict):
            log.append(FLOW, writers.entry(2, 99), expected=1)
        assert numbers(log) == [57, 1]

    def test_one_that_was_followed_already_stands(self, log: WatermarkLog) -> None:
        first = append(log)
        ours = next_entry(first, why="run")
        log.append(FLOW, ours, expected=1)
        append(log)
        assert log.append(FLOW, ours, expected=1) == ours, (
            "its answer was lost, and another run went on from it"
        )

    def test_the_floor_never_falls(self, log: WatermarkLog) -> None:
        log.raise_floor(FLOW, 7)
        log.raise_floor(FLOW, 3)
        assert log.floor(FLOW) == 7

    def test_a_missing_entry_in_the_middle_is_corrupt(self, log: WatermarkLog, place: Place) -> None:
        for _ in range(3):
            append(log)
        open_blobs(place).delete(f"{FLOW}/entries/9999999997-0000000002.json")
        with pytest.raises(CorruptWatermark, match="entry 2 of flow"):
            numbers(log)


def test_a_dead_merge_is_finished_by_the_next_one(log: WatermarkLog, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(8):
        append(log)
    real = WatermarkLog.delete_numbered

    def dies(log: WatermarkLog, dataflow: str, folder: str, *more: Any) -> None:
        if folder == "intents":
            raise KeyboardInterrupt
        real(log, dataflow, folder, *more)

    with monkeypatch.context() as patch:
        patch.setattr(WatermarkLog, "delete_numbered", dies)
        with pytest.raises(KeyboardInterrupt):
            compact(log)
    assert numbers(log) == [8, 7, 6]
    append(log)
    compact(log)
    assert [log.intent(FLOW, number) is not None for number in range(1, 10)] == [False] * 6 + [True] * 3


class TestSnapshots:
    """A long watermark is stored as what changed since its snapshot, and read whole."""

    @staticmethod
    def grow(log: WatermarkLog, entries: int) -> list[str]:
        texts = []
        for number in range(1, entries + 1):
            last = log.newest(FLOW)
            paths = {f"date={day:05}": f"{number:08}" if day == number % 500 else "x" for day in range(500)}
            texts.append(json.dumps({"closed_before": None, "paths": paths}, sort_keys=True))
            first = {} if last else {"kind": "path", "app_id": "app", "fingerprint": "f"}
            log.append(
                FLOW, next_entry(last, **{"why": "run", "watermark": texts[-1], **first}), expected=number - 1
            )
        return texts

    def test_entries_come_back_whole_and_few_are_stored_so(self, log: WatermarkLog, place: Place) -> None:
        texts = self.grow(log, 103)
        assert [entry.watermark for entry in log.history(FLOW)] == texts[::-1]
        newest = log.newest(FLOW)
        assert newest is not None
        assert (newest.watermark, newest.snapshot) == (texts[-1], 101)
        blobs = open_blobs(place)
        sizes = {
            number: len(blobs.get(f"{FLOW}/entries/{9_999_999_999 - number:010d}-{number:010d}.json") or b"")
            for number in range(1, 104)
        }
        assert [number for number, size in sizes.items() if size > 4096] == [1, 101]

    def test_a_snapshot_stays_as_long_as_an_entry_needs_it(self, log: WatermarkLog) -> None:
        texts = self.grow(log, 12)
        compact_log(
            log, FLOW, log.newest(FLOW), RetentionPolicy(3, timedelta(0), 1), NOW + timedelta(days=9999)
        )
        assert log.floor(FLOW) == 0
        newest = log.newest(FLOW)
        assert newest is not None
        assert newest.watermark == texts[-1]

    def test_once_no_entry_needs_it_it_goes(self, log: WatermarkLog) -> None:
        texts = self.grow(log, 104)
        compact_log(
            log, FLOW, log.newest(FLOW), RetentionPolicy(3, timedelta(0), 1), NOW + timedelta(days=9999)
        )
        assert log.floor(FLOW) == 100
        assert [entry.watermark for entry in log.history(FLOW)] == texts[:99:-1]
