"""``max_bad_files``: a run with too many bad files quarantines none, and each remedy that it names leads on."""

from __future__ import annotations

import re

import pytest

from partitions.errors import StrandlineError
from resources.kinds.path.late import find_late
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, NOW, Feed

TORN = b"not gzip"
BAD_RECORD = '{"id": "no number"}\n'


@pytest.fixture
def feed(make_feed: MakeFeed) -> Feed:
    return make_feed(on_bad_file="quarantine")


def stops(feed: Feed, *texts: str) -> StrandlineError:
    """Run, and expect that too many files are bad: nothing changes."""
    before, quarantined = feed.newest, feed.quarantined
    outcome = feed.run()
    assert outcome.error is not None
    assert outcome.error.code == "too_many_bad_files", outcome.error.message
    assert [text for text in texts if text not in outcome.error.message] == [], outcome.error.message
    assert (outcome.status, outcome.rows, outcome.quarantined) == ("failed", 0, 0)
    assert not any(warning.startswith("skipped") for warning in outcome.warnings)
    assert (feed.newest and feed.newest.total_files) == (before and before.total_files)
    assert (feed.quarantined, feed.open_intent) == (quarantined, None)
    return outcome.error


def put_mixed(feed: Feed) -> None:
    """Put ten files, of which six are bad in two ways."""
    for number in range(10):
        if number in (0, 2, 4):
            feed.put_bytes(f"{number}.ndjson.gz", TORN)
        elif number in (1, 3, 5):
            feed.put_text(f"{number}.ndjson", BAD_RECORD)
        else:
            feed.put(f"{number}.ndjson", number)


def test_more_than_half_of_a_slice_stops_until_the_number_that_is_named_allows_it(feed: Feed) -> None:
    put_mixed(feed)
    error = stops(
        feed,
        "dataflow flow: 6 of 10 files of the slice are bad, more than half. The slice is not loaded, and nothing is "
        "put in quarantine. The first bad file is 0.ndjson.gz: cannot be read",
        "set max_bad_files: 6",
    )
    assert feed.entries == []
    named = re.search(r"max_bad_files: (\d+)", error.message)
    assert named is not None
    feed.define(max_bad_files=int(named[1]))
    outcome = feed.load()
    assert (outcome.rows, outcome.quarantined, feed.ids) == (4, 6, [6, 7, 8, 9])
    assert sorted(feed.quarantined) == [f"{n}.ndjson{'' if n % 2 else '.gz'}" for n in range(6)]
    feed.put("1.ndjson", 1)
    feed.command("files", "release", NAME, *feed.quarantined)
    assert feed.load().quarantined == 5, "released files go back, however many are still bad"
    assert feed.ids == [1, 6, 7, 8, 9]


def test_files_that_stopped_a_run_are_loaded_once_they_are_repaired(feed: Feed) -> None:
    put_mixed(feed)
    stops(feed)
    for number in (0, 2, 4):
        feed.put(f"{number}.ndjson.gz", number)
    assert feed.load().quarantined == 3, "three of ten"
    assert feed.ids == [0, 2, 4, 6, 7, 8, 9]


@pytest.mark.parametrize("schema", ["id long", None])
def test_a_first_run_with_only_bad_files_stops(make_feed: MakeFeed, schema: str | None) -> None:
    feed = make_feed(on_bad_file="quarantine", source={"schema": schema})
    feed.put_bytes("1.ndjson.gz", TORN)
    stops(feed, "the only file of the slice is bad, and no file has been loaded yet")
    feed.put_bytes("2.ndjson.gz", TORN)
    stops(feed, "all 2 files of the slice are bad, and no file has been loaded yet", "1.ndjson.gz")
    feed.put("3.ndjson", 3)
    assert (feed.load().quarantined, feed.ids) == (2, [3])


def test_a_bad_file_that_comes_alone_is_quarantined_and_the_fourth_in_a_row_stops(feed: Feed) -> None:
    feed.put("0.ndjson", 0)
    feed.load()
    for number in (1, 2, 3):
        feed.put_text(f"{number}.ndjson", BAD_RECORD)
        assert feed.load().quarantined == 1
    feed.put_text("4.ndjson", BAD_RECORD)
    stops(feed, "the only file of the slice is bad, after 3 bad ones right before", "max_bad_files: 4")
    feed.command("files", "release", NAME, "1.ndjson")
    feed.put("1.ndjson", 1)
    assert feed.load().quarantined == 1, "a release, like a loaded file, begins the row anew"
    assert (feed.ids, feed.path) == ([0, 1], "4.ndjson")


def test_a_format_that_changed_in_all_files_stops_and_the_schema_mode_loads_them(feed: Feed) -> None:
    feed.put("0.ndjson", 0)
    feed.load()
    for number in range(1, 6):
        feed.put(f"{number}.ndjson", {"id": number, "more": "x"})
    stops(feed, "all 5 files of the slice are bad", "correct source.options or set target.schema_mode")
    feed.define(target={"schema_mode": "merge"})
    assert feed.load().quarantined == 0
    assert feed.rows("id", "more") == [(0, None), *((number, "x") for number in range(1, 6))]


def test_a_separator_that_changed_is_corrected_by_the_option_that_is_named(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"format": "csv", "schema": "id long, name string"}, on_bad_file="quarantine")
    feed.put_text("0.csv", "id,name\n0,a\n")
    feed.load()
    for number in (1, 2):
        feed.put_text(f"{number}.csv", f"id;name\n{number};b\n")
    stops(feed, "all 2 files of the slice are bad", "correct source.options")
    feed.define(source={"options": {"sep": ";"}})
    assert (feed.load().quarantined, feed.rows("id", "name")) == (0, [(0, "a"), (1, "b"), (2, "b")])


def test_a_first_schema_that_fits_no_file_is_corrected(feed: Feed) -> None:
    for number in range(4):
        feed.put_text(f"{number}.ndjson", f'{{"id": "no {number}"}}\n')
    stops(feed, "all 4 files of the slice are bad, and no file", "correct source.format, source.schema")
    feed.define(source={"schema": "id string"})
    assert feed.load().quarantined == 0
    assert feed.rows("id") == [("no 0",), ("no 1",), ("no 2",), ("no 3",)]


def test_a_replay_of_files_that_all_turned_bad_keeps_their_rows(feed: Feed) -> None:
    for number in (1, 2):
        feed.put(f"a/{number}.ndjson", number)
    feed.load()
    for number in (1, 2):
        feed.put_text(f"a/{number}.ndjson", BAD_RECORD)
    (replayed,) = feed.cli("replay", NAME, "--start", "a/", "--end", "b/", "--replace").json
    assert replayed["error"]["code"] == "too_many_bad_files"
    assert (feed.ids, feed.quarantined) == ([1, 2], {})


def test_too_many_bad_late_files_wait_while_all_others_load(feed: Feed) -> None:
    feed.put("d=2/a.ndjson", 0)
    feed.load()
    for number in range(4):
        feed.put_text(f"d=1/{number}.ndjson", BAD_RECORD)
    feed.put("d=1/x.ndjson", 1)
    find_late(feed.platform, feed.dataflow, NOW)
    feed.put("d=3/a.ndjson", 3)
    outcome = feed.run()
    assert outcome.error is not None
    assert outcome.error.code == "too_many_bad_files"
    assert "late file d=1/0.ndjson: line 1" in outcome.error.message
    assert "4 of 5 files of the slice are bad, more than half" in outcome.error.message
    assert (feed.ids, feed.quarantined, feed.path) == ([0, 1, 3], {}, "d=3/a.ndjson")
    feed.define(max_bad_files=4)
    assert (feed.load().quarantined, feed.ids) == (4, [0, 1, 3])
