"""Starting anew: a reset is a decision, whatever becomes of the table before or after it."""

from __future__ import annotations

import shutil

import pytest

from tests.support.feed import Feed

pytestmark = pytest.mark.without_jvm


@pytest.mark.parametrize("first", ["table", "state"])
def test_a_reset_and_a_dropped_table_start_anew_in_either_order(feed: Feed, first: str) -> None:
    feed.put("a.ndjson", 1)
    feed.put("b.ndjson", 2)
    feed.load()
    if first == "table":
        shutil.rmtree(feed.table)
    feed.decide("reset")
    if first == "state":
        shutil.rmtree(feed.table)
    outcome = feed.load()
    assert (outcome.status, feed.ids, feed.path) == ("committed", [1, 2], "b.ndjson")
    assert [entry.why for entry in feed.entries] == ["run", "reset", "run"]
    assert feed.load().status == "nothing"
