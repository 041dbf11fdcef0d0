"""A ``rewind --replace`` that has not loaded all rows again yet, and an accept of another source after it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed

pytestmark = [pytest.mark.each_case, pytest.mark.without_jvm]
MISSING = "1 file (2.ndjson) with 1 row in the table"


def rewound(make_feed: MakeFeed) -> Feed:
    """Return a feed of another root that lacks 2.ndjson and has its row in 2x.ndjson, after a rewind."""
    feed = make_feed(source={"path": "./landing/a"}, watermark={"checkpoint": {"interval_files": 1}})
    for number in (1, 2, 3):
        feed.put(f"a/{number}.ndjson", number)
    feed.load()
    feed.decide("rewind", "--to", "0", "--replace")
    feed.put("b/1.ndjson", 1)
    feed.put("b/2x.ndjson", 2)
    feed.put("b/3.ndjson", 3)
    feed.define(source={"path": "./landing/b"})
    return feed


def load_all(feed: Feed) -> list[int]:
    """Run, also for late files, and return the rows."""
    feed.load()
    feed.command("late", NAME)
    feed.load()
    return feed.ids


@pytest.mark.remedy("gone_files", "state accept --gone delete", "state accept --gone keep")
@pytest.mark.parametrize(("answer", "rows"), [("delete", [1, 2, 3]), ("keep", [1, 2, 2, 3])])
def test_accept_of_another_root_asks_about_missing_files_during_a_rewind(
    make_feed: MakeFeed, answer: str, rows: list[int]
) -> None:
    feed = rewound(make_feed)
    asked = feed.cli("state", "accept", NAME, "--reason", "because", "--yes")
    assert (asked.code, asked.error["code"]) == (4, "gone_files")
    assert MISSING in asked.error["message"]
    assert asked.error["choices"] == [
        f"strandline state accept {NAME} --gone {word} --reason TEXT" for word in ("delete", "keep")
    ]
    assert MISSING in feed.decide("accept", "--gone", answer).err
    assert load_all(feed) == rows


def test_accept_of_other_extensions_asks_about_missing_files_during_a_rewind(make_feed: MakeFeed) -> None:
    feed = rewound(make_feed)
    feed.define(source={"path": "./landing/a", "extensions": [".json"]})
    asked = feed.cli("state", "accept", NAME, "--reason", "because", "--yes")
    assert (asked.code, asked.error["code"]) == (4, "gone_files")
    assert "3 files (1.ndjson, 2.ndjson, 3.ndjson) with 3 rows" in asked.error["message"]


@pytest.mark.parametrize("change", [{"watermark": {"settle": "PT0S"}}, {"source": {"path": "./landing/b"}}])
def test_accept_refuses_an_answer_about_missing_files_that_nothing_asks_for(
    make_feed: MakeFeed, change: dict[str, Any]
) -> None:
    feed = rewound(make_feed)
    feed.define(source={"path": "./landing/a"})
    feed.load()
    feed.define(**change)
    refused = feed.cli("state", "accept", NAME, "--gone", "keep", "--reason", "because", "--yes")
    assert (refused.code, "expected no --gone" in refused.error["message"]) == (2, True)


@pytest.mark.remedy("gone_files", "state accept --below loaded --gone delete")
@pytest.mark.remedy("gone_files", "state accept --below loaded --gone keep")
@pytest.mark.remedy("gone_files", "state accept --below late --gone delete")
@pytest.mark.remedy("gone_files", "state accept --below late --gone keep")
@pytest.mark.parametrize(("answer", "rows"), [("delete", [1, 2, 3]), ("keep", [1, 2, 2, 3])])
@pytest.mark.parametrize(("below", "other_row"), [("loaded", 1), ("late", 0)])
def test_the_answer_about_missing_files_stands_beside_the_answer_about_files_below(
    make_feed: MakeFeed, below: str, other_row: int, answer: str, rows: list[int]
) -> None:
    feed = rewound(make_feed)
    feed.define(source={"path": "./landing/a"})
    feed.load()
    feed.decide("rewind", "--to", "1", "--replace")
    feed.define(source={"path": "./landing/b"})
    (feed.landing / "b/1.ndjson").unlink()
    feed.put("b/0.ndjson", other_row)
    asked = feed.cli("state", "accept", NAME, "--below", below, "--reason", "because", "--yes")
    assert asked.error["choices"] == [
        f"strandline state accept {NAME} --below {below} --gone {word} --reason TEXT"
        for word in ("delete", "keep")
    ]
    feed.decide("accept", "--below", below, "--gone", answer)
    assert load_all(feed) == ([0, *rows] if below == "late" else rows)
