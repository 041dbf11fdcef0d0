"""The record of ingested files is what the entries say, whatever was merged, deleted, or done by somebody who died."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resources.watermarks.ingested as module
from partitions.errors import CorruptWatermark
from resources.connections.places import Place
from resources.watermarks.blobs import open_blobs
from resources.watermarks.entry import Entry, next_entry
from resources.watermarks.file_ranges import UNPROCESSED
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.lists import INGESTED_FILES, StoredList
from resources.watermarks.log import WatermarkLog
from tests.support.trees import paths

FLOW = "flow"
Rows = list[tuple[str, str | None]]


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RANGE", 4)


def new_log(folder: Path) -> WatermarkLog:
    return WatermarkLog(open_blobs(Place(str(folder))))


def append(log: WatermarkLog, rows: Rows, **changes: Any) -> Entry:
    """An entry that deals with these files."""
    last = log.newest(FLOW)
    number = last.number + 1 if last else 1
    listed = [[path, 1, "v", 0, reason] for path, reason in rows]
    key = log.put_list(FLOW, f"{number:010d}-x", StoredList(INGESTED_FILES, listed))
    first = {} if last else {"kind": "path", "app_id": "app", "fingerprint": "f"}
    entry = next_entry(last, **{"why": "run", "file_list": key, **first, **changes})
    return log.append(FLOW, entry, expected=entry.previous)


def merge(log: WatermarkLog, every: int = 1) -> None:
    IngestedFiles(log, FLOW, log.newest(FLOW)).merge(every)


reasons = st.sampled_from([None, None, None, "bad", UNPROCESSED])
batches = st.lists(
    st.tuples(st.lists(st.tuples(paths, reasons), max_size=6, unique_by=lambda row: row[0]), st.booleans()),
    max_size=12,
)


@given(batches=batches, asked=st.lists(paths, max_size=8))
@settings(deadline=None, max_examples=60)
def test_known_is_what_the_last_entry_of_each_file_says_however_the_lists_are_merged(
    tmp_path_factory: pytest.TempPathFactory, batches: list[tuple[Rows, bool]], asked: list[str]
) -> None:
    log = new_log(tmp_path_factory.mktemp("log"))
    expected: dict[str, str | None] = {}
    for rows, merges in batches:
        append(log, rows)
        expected |= dict(rows)
        if merges:
            merge(log)
    record = IngestedFiles(log, FLOW, log.newest(FLOW))
    wanted = {path for path, reason in expected.items() if reason != UNPROCESSED}
    assert record.find_handled([*expected, *asked]) == wanted
    assert {one.path: one.reason for one in record.all()} == expected


def test_a_reader_of_the_entry_before_a_merge_still_knows_all(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for number in range(6):
        append(log, [(f"{number}", None)])
        merge(log)
    reader = IngestedFiles(log, FLOW, log.newest(FLOW))
    append(log, [("9", None)])
    merge(log)
    assert reader.find_handled([str(number) for number in range(6)]) == {str(number) for number in range(6)}


def test_ranges_without_a_new_file_are_not_written_again(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, [(f"{number:02}", None) for number in range(12)])
    merge(log)
    before = IngestedFiles(log, FLOW, log.newest(FLOW)).manifest.ranges
    append(log, [("99", None)])
    merge(log)
    after = IngestedFiles(log, FLOW, log.newest(FLOW)).manifest.ranges
    assert len(before) == 3
    assert after[:2] == before[:2]
    assert (after[2].first, after[2].last) == ("08", "11")


def test_what_no_reader_can_need_is_deleted(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for number in range(30):
        append(log, [(f"{number:02}", None)])
        merge(log)
    names = sorted(path.name for path in (tmp_path / FLOW / "ingested").iterdir())
    ranges = [name for name in names if name.startswith("range")]
    assert len(names) - len(ranges) == 2, "this manifest and the one before"
    assert len(ranges) <= 2 * (30 // 2)
    assert len(list((tmp_path / FLOW / "files").iterdir())) <= 2
    assert IngestedFiles(log, FLOW, log.newest(FLOW)).count == 30


def test_a_merge_without_manifest_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = new_log(tmp_path)
    append(log, [("a", None), ("b", None)])

    def dies(*arguments: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "asdict", dies)
        with pytest.raises(KeyboardInterrupt):
            merge(log)
    assert IngestedFiles(log, FLOW, log.newest(FLOW)).find_handled(["a", "b", "c"]) == {"a", "b"}
    merge(log)
    assert IngestedFiles(log, FLOW, log.newest(FLOW)).manifest.number == 1


def test_two_merges_of_one_number_agree(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, [("a", None)])
    records = [IngestedFiles(log, FLOW, log.newest(FLOW)) for _ in range(2)]
    for record in records:
        record.merge(1)
    assert IngestedFiles(log, FLOW, log.newest(FLOW)).find_handled(["a"]) == {"a"}


def test_a_reset_begins_a_new_record(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, [("a", None)])
    merge(log)
    append(log, [], why="reset", era=2)
    assert IngestedFiles(log, FLOW, log.newest(FLOW)).find_handled(["a"]) == set()
    append(log, [("b", None)])
    assert IngestedFiles(log, FLOW, log.newest(FLOW)).find_handled(["a", "b"]) == {"b"}
    merge(log)
    assert IngestedFiles(log, FLOW, log.newest(FLOW)).find_handled(["a", "b"]) == {"b"}


def test_a_manifest_that_does_not_read_stops(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, [("a", None)])
    merge(log)
    next((tmp_path / FLOW / "ingested").glob("*.json")).write_text("{")
    with pytest.raises(CorruptWatermark, match="expected a manifest"):
        IngestedFiles(log, FLOW, log.newest(FLOW))


def test_a_range_that_is_gone_stops(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, [("a", None)])
    merge(log)
    next((tmp_path / FLOW / "ingested").glob("*.parquet")).unlink()
    with pytest.raises(CorruptWatermark, match="found nothing"):
        IngestedFiles(log, FLOW, log.newest(FLOW)).find_handled(["a"])
