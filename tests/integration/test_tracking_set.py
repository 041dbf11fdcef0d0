"""tracking: set: names that sort by nothing are loaded once each, wherever they sort; single files can be read again."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed

pytestmark = pytest.mark.without_jvm


@pytest.fixture
def feed(make_feed: MakeFeed) -> Feed:
    return make_feed(watermark={"tracking": "set", "checkpoint": {"interval_files": 2}})


def test_whatever_was_not_loaded_is_loaded_wherever_it_sorts(feed: Feed) -> None:
    feed.put("m.ndjson", 1)
    assert feed.load().rows == 1
    feed.put("z.ndjson", 2)
    feed.put("a.ndjson", 3)
    feed.put("sub/k.ndjson", 4)
    assert feed.load().rows == 3
    assert feed.load().status == "nothing"
    assert feed.ids == [1, 2, 3, 4]
    assert feed.path == "sub/k.ndjson"


def test_the_state_stays_small_whatever_was_loaded(feed: Feed) -> None:
    for number in range(9):
        feed.put(f"{number * 7919 % 100}-x.ndjson", number)
    feed.load()
    assert all(len(entry.to_bytes()) < 4096 for entry in feed.entries)
    assert feed.ids == list(range(9))


def test_an_unprocessed_file_is_read_again_once(feed: Feed) -> None:
    feed.put("b.ndjson", 1)
    feed.put("a.ndjson", 2)
    feed.load()
    answer = feed.command("files", "unprocess", NAME, "a.ndjson")
    assert "next run: 1 file not ingested yet" in answer.err
    assert "1 of these files was ingested before; load: append adds their rows a second time" in answer.err
    assert feed.cli("plan").json[0]["slices"] == [{"files": ["a.ndjson"]}]
    assert feed.load().rows == 1
    assert feed.load().status == "nothing"
    assert feed.ids == [1, 2, 2]
    assert [entry.why for entry in feed.entries] == ["run", "unprocess", "run"]


def test_unprocessing_what_was_never_loaded_is_refused(feed: Feed) -> None:
    feed.put("b.ndjson", 1)
    feed.load()
    answer = feed.cli("files", "unprocess", NAME, "c.ndjson")
    assert answer.code == 2
    assert "c.ndjson" in answer.error["message"]


def test_it_keeps_a_filtered_cold_start(make_feed: MakeFeed) -> None:
    feed = make_feed(
        watermark={
            "tracking": "set",
            "partition_filter": {"prefix_template": "date=%Y-%m-%d", "lookback": 1},
        }
    )
    for day in ("05-01", "05-31", "06-01"):
        feed.put(f"date=2026-{day}/b.ndjson", int(day[-2:]))
    feed.load()
    feed.put("date=2026-05-31/a.ndjson", 77)
    feed.load()
    assert feed.ids == [1, 31, 77]


def test_with_scope_partition_it_is_refused(make_feed: MakeFeed) -> None:
    answer = make_feed(watermark={"tracking": "set", "scope": "partition"}).cli("validate")
    assert answer.code == 2
    assert "scope: global" in answer.out


@pytest.mark.parametrize(
    ("words", "due"),
    [(["adopt"], "1 file not ingested yet"), (["set", '{"path": "9"}'], "no file is new")],
    ids=["adopt", "set"],
)
def test_a_preview_knows_the_files_of_its_decision(feed: Feed, words: list[str], due: str) -> None:
    for number in (1, 2):
        feed.put(f"{number}.ndjson", number)
        feed.load()
    if words[0] == "adopt":
        DeltaTable(str(feed.table)).restore(0)
    else:
        feed.put("3.ndjson", 3)
    answer = feed.cli("state", words[0], NAME, *words[1:], "--reason", "because", "--yes")
    assert (answer.code, "a second time" in answer.err) == (0, False)
    assert f"next run: {due}" in answer.err
    feed.load()
    assert feed.ids == [1, 2]
