"""Wall clocks are for people: one that jumps, or is another machine's, changes nothing of what is loaded or what counts as newest."""

from __future__ import annotations

from datetime import timedelta
from itertools import cycle

import pytest

from resources.loop import intents
from resources.watermarks import entry
from tests.support.feed import NOW, Feed

pytestmark = pytest.mark.without_jvm


@pytest.fixture(autouse=True)
def jumping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the wall clock tells another year, backwards too."""
    years = cycle(
        ["2031-01-01T00:00:00.000+00:00", "1999-12-31T23:59:59.999+00:00", "2026-06-01T00:00:00.000+00:00"]
    )
    for module in (entry, intents):
        monkeypatch.setattr(module, "utc_now", lambda: next(years))


def test_the_newest_entry_is_the_one_with_the_highest_number_whatever_its_time(feed: Feed) -> None:
    for number in range(5):
        feed.put(f"{number}.ndjson", number)
        feed.load()
    times = [entry.time for entry in feed.entries]
    assert times != sorted(times)
    assert (feed.ids, feed.path) == ([0, 1, 2, 3, 4], "4.ndjson")
    assert [entry.number for entry in feed.entries] == [1, 2, 3, 4, 5]


def test_runs_whose_clocks_differ_by_years_load_each_file_once(feed: Feed) -> None:
    for number, years in enumerate((10, -20, 0, 30)):
        feed.put(f"{number}.ndjson", number)
        assert feed.run(now=NOW + timedelta(days=365 * years)).error is None
    assert feed.run(now=NOW - timedelta(days=9999)).status == "nothing"
    assert feed.ids == [0, 1, 2, 3]
