"""A copy of a watermark log into any other store holds the same bytes, or no state, or is refused (docs/how-to/moving-and-restoring.md)."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from partitions.errors import ConfigurationError, Conflict
from resources.connections.places import Place
from resources.connections.postgres import Database
from resources.watermarks.blobs import Blobs, open_blobs
from resources.watermarks.blobs.dry_run import DryRunBlobs
from resources.watermarks.copying import CopiedLog, copy_log, stored_logs
from resources.watermarks.lists import INGESTED_FILES, StoredList
from resources.watermarks.log import WatermarkLog
from tests.support.writers import copy_and_die, entry, intent, processes

FLOW = "sales/ü"
FILE = ("a.csv", 1, "v", "2026-01-01T00:00:00+00:00", None)


@pytest.fixture
def source_place(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "source"))


@pytest.fixture
def source(source_place: Place) -> Blobs:
    """Three entries with their intents, and an open one; the second with a list and a schema; a note and a lease."""
    blobs = open_blobs(source_place)
    log = WatermarkLog(blobs)
    for number in (1, 2, 3):
        log.put_intent(intent(number, FLOW))
        _append(blobs, number)
    log.put_intent(intent(4, FLOW))
    log.put_list(FLOW, "0000000002-x", StoredList(INGESTED_FILES, [FILE]))
    log.put_schema(FLOW, "id int")
    log.put_note(FLOW, "attempt", {"status": "committed"})
    log.put_over(FLOW, "leases", "0000000003-x", b"1")
    return blobs


@pytest.fixture
def target(place: Place | Database) -> Blobs:
    return open_blobs(place)


def _append(blobs: Blobs, number: int) -> None:
    WatermarkLog(blobs).append(FLOW, entry(number), expected=number - 1)


def contents(blobs: Blobs) -> dict[str, bytes | None]:
    return {
        key: blobs.get(key)
        for flow in blobs.folders("")
        for folder in blobs.folders(flow)
        for name in blobs.first_names(f"{flow}/{folder}", 1000)
        for key in [f"{flow}/{folder}/{name}"]
    }


def without_leases(blobs: Blobs) -> dict[str, bytes | None]:
    return {key: data for key, data in contents(blobs).items() if "/leases/" not in key}


def test_folders_are_those_directly_in_a_folder_and_none_where_there_is_none(target: Blobs) -> None:
    assert (target.folders(""), target.folders("a")) == ([], [])
    for key in ("b/x/1", "a/y/1", "a/y/2", "a/x/1", "a_b/z/1", "a%2Fb/z/1"):
        target.put(key, b"")
    assert target.folders("") == ["a", "a%2Fb", "a_b", "b"]
    assert target.folders("a") == ["x", "y"]
    assert DryRunBlobs(target).folders("a") == ["x", "y"]


def test_a_copy_has_every_object_but_leases_byte_by_byte(source: Blobs, target: Blobs) -> None:
    assert copy_log(source, target, FLOW) == CopiedLog(FLOW, number=3, entries=3, objects=7, written=10)
    assert contents(target) == without_leases(source)
    assert stored_logs(target) == [FLOW]


def test_a_copy_that_is_repeated_adds_what_has_come_since(source: Blobs, target: Blobs) -> None:
    copy_log(source, target, FLOW)
    assert copy_log(source, target, FLOW).written == 0
    _append(source, 4)
    WatermarkLog(source).put_note(FLOW, "attempt", {"status": "failed"})
    assert copy_log(source, target, FLOW).written == 2
    assert contents(target) == without_leases(source)


def test_a_copy_whose_newest_entry_was_compacted_at_the_source_is_brought_up_to_date(
    source: Blobs, target: Blobs
) -> None:
    copy_log(source, target, FLOW)
    _append(source, 4)
    log = WatermarkLog(source)
    log.raise_floor(FLOW, 3)
    log.delete_entries(FLOW, [1, 2, 3])
    assert copy_log(source, target, FLOW).number == 4
    assert [past.number for past in WatermarkLog(target).history(FLOW)] == [4]


def test_a_log_of_another_dataflow_at_the_target_stays_as_it_is(source: Blobs, target: Blobs) -> None:
    WatermarkLog(target).append("other", entry(1), expected=0)
    copy_log(source, target, FLOW)
    assert stored_logs(target) == sorted(["other", FLOW])


@pytest.mark.parametrize("numbers", [[1], [1, 2, 3, 4]], ids=["another log", "another, longer log"])
def test_a_target_with_another_state_is_refused_and_left_alone(
    source: Blobs, target: Blobs, numbers: list[int]
) -> None:
    for number in numbers:
        _append(target, number)
    before = contents(target)
    with pytest.raises(ConfigurationError, match="earlier copy of this one") as caught:
        copy_log(source, target, FLOW)
    assert caught.value.code == "other_state"
    assert contents(target) == before


def test_a_copy_that_has_gone_on_by_itself_is_refused(source: Blobs, target: Blobs) -> None:
    copy_log(source, target, FLOW)
    _append(target, 4)
    with pytest.raises(ConfigurationError, match="entry 4, which the state here does not have"):
        copy_log(source, target, FLOW)
    _append(source, 4)
    with pytest.raises(ConfigurationError, match="entry 4, which differs from the one here"):
        copy_log(source, target, FLOW)


class _Appending(DryRunBlobs):
    """A source to which a run appends when the first list is read."""

    def get(self, key: str) -> bytes | None:
        """Append once."""
        if "/files/" in key and self.first_names(key.split("/")[0] + "/entries", 1)[0].endswith("3.json"):
            _append(self, 4)
        return super().get(key)


def test_a_run_that_commits_while_its_state_is_copied_is_a_conflict(source: Blobs, target: Blobs) -> None:
    changing = _Appending(source)
    with pytest.raises(Conflict, match="during the copy"):
        copy_log(changing, target, FLOW)
    assert copy_log(changing, target, FLOW).number == 4


def test_a_copy_killed_at_any_write_holds_the_newest_state_or_none_and_is_finished_by_the_next(
    source: Blobs, source_place: Place, tmp_path: Path
) -> None:
    states = []
    for count in range(1, 10):  # a note is put, not linked
        place = Place(str(tmp_path / f"target{count}"))
        process = processes().Process(target=copy_and_die, args=(source_place, place, FLOW, count))
        process.start()
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
        log = WatermarkLog(open_blobs(place))
        newest = log.newest(FLOW)
        open_intent = log.open_intent(FLOW, newest)
        states.append((newest and newest.number, open_intent and open_intent.number))
        assert copy_log(source, open_blobs(place), FLOW).number == 3
        assert contents(open_blobs(place)) == without_leases(source)
    assert states == [(None, None)] * 4 + [(3, 4)] * 5


def test_a_copy_changes_nothing_at_its_source(source: Blobs, source_place: Place, target: Blobs) -> None:
    def files() -> list[tuple[Path, int]]:
        return sorted((path, path.stat().st_mtime_ns) for path in Path(source_place.url).rglob("*"))

    before = files()
    copy_log(source, target, FLOW)
    assert files() == before
