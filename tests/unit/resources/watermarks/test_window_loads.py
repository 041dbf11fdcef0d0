"""The record of what deleted entries have loaded: exact, short, and silent about what it does not know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resources.connections.places import Place
from resources.watermarks import window_loads
from resources.watermarks.blobs import open_blobs
from resources.watermarks.entry import Entry, next_entry
from resources.watermarks.lists import StoredList
from resources.watermarks.log import WatermarkLog
from resources.watermarks.window_loads import DeletedLoads, LoadedWindow
from resources.watermarks.work_units import WORK_UNITS


@pytest.fixture
def log(tmp_path: Path) -> WatermarkLog:
    return WatermarkLog(open_blobs(Place(str(tmp_path))))


def entry(log: WatermarkLog, number: int, *works: tuple[str, int, int, int], **fields: Any) -> Entry:
    """An entry that has loaded windows: unit, start, where the read began, end."""
    rows = [
        [start, end, unit, lower, "new", False, "hourly", None, None] for unit, start, lower, end in works
    ]
    key = log.put_list("flow", f"{number:010d}", StoredList(WORK_UNITS, rows))
    made = next_entry(
        None,
        **{"kind": "window", "app_id": "a", "why": "run", "fingerprint": "f", "file_list": key, **fields},
    )
    return made.model_copy(update={"number": number, "previous": number - 1})


def test_it_tells_what_was_loaded_after_each_entry(log: WatermarkLog) -> None:
    entries = [
        entry(log, 1, ("a", 0, 0, 1), ("a", 1, 1, 2), ("b", 0, 0, 1), ("b", 1, 1, 2)),
        entry(log, 2, ("a", 2, 5, 9)),
        entry(log, 3, why="expire"),
    ]
    record = DeletedLoads().adding(log, "flow", entries)
    assert (len(record.lines[0][2]), record.groups) == (1, [("a", "b"), ("a",)])
    grown = [LoadedWindow("a", 2, 5, 9)]
    both = [LoadedWindow("a", 0, 0, 2), LoadedWindow("b", 0, 0, 2)]
    assert record.since(0, "") == [*both, *grown]
    assert [record.since(found.number, found.id) for found in entries] == [grown, [], []]
    assert record.since(2, "another entry of that number") is None
    record.put(log, "flow")
    stored = DeletedLoads.of(log, "flow")
    assert stored is not None
    assert stored.since(0, "") == record.since(0, "")


def test_an_adopt_or_a_lost_list_makes_everything_before_unknown(log: WatermarkLog) -> None:
    entries = [
        entry(log, 1, why="adopt"),
        entry(log, 2, ("a", 0, 0, 1)),
        entry(log, 3, file_list="flow/files/lost"),
    ]
    record = DeletedLoads().adding(log, "flow", entries)
    assert [record.since(found.number, found.id) for found in entries] == [None, None, []]


def test_the_oldest_entries_go_beyond_its_limits(log: WatermarkLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_loads, "_MAX_ENTRIES", 2)
    entries = [entry(log, number, (f"u{number}", 0, 0, 1)) for number in range(1, 6)]
    record = DeletedLoads()
    for added in entries:
        record = record.adding(log, "flow", [added])
    windows = [record.since(found.number, found.id) for found in entries]
    assert windows == [
        None,
        None,
        [LoadedWindow(f"u{number}", 0, 0, 1) for number in (4, 5)],
        [LoadedWindow("u5", 0, 0, 1)],
        [],
    ]
    assert record.groups == [("u4",), ("u5",)]
