"""``state adopt`` after a lost or older state, or an older lake: no row is doubled, and deleted rows do not come back unasked."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed
from tests.support.moves import restore

pytestmark = pytest.mark.each_case

ONE_BY_ONE = {"checkpoint": {"interval_files": 1}}


def load_three(make_feed: MakeFeed, folder: str = "", **definition: Any) -> Feed:
    """A dataflow that has loaded three files, one by one."""
    watermark = {"type": "path", **ONE_BY_ONE} | definition.pop("watermark", {})
    feed = make_feed(watermark=watermark, **definition)
    for number in (1, 2, 3):
        feed.put(f"{folder}{number}.ndjson", number)
    feed.load()
    return feed


def delete_by_hand(feed: Feed, number: int) -> None:
    """Delete a row as another program does."""
    DeltaTable(str(feed.table)).delete(f"id = {number}")


def adopt_after_asking(feed: Feed, answer: str) -> str:
    """Adopt, which must ask about the row of file 2; answer, load and sweep. Return the preview."""
    asked = feed.cli("state", "adopt", NAME, "--reason", "because", "--yes")
    assert (asked.code, asked.error["code"]) == (4, "deleted_rows")
    assert "2.ndjson" in asked.error["message"]
    preview = feed.decide("adopt", "--deleted", answer).err
    sweep(feed)
    return preview


def sweep(feed: Feed) -> None:
    """Load what is new, then what is late."""
    feed.load()
    feed.command("late", NAME)


FORMS = [
    pytest.param({}, id="watermark"),
    pytest.param({"watermark": {"tracking": "set"}}, id="set"),
    pytest.param({"watermark": {"scope": "partition"}}, marks=pytest.mark.full, id="partition"),
    pytest.param({"target": {"format": "iceberg"}}, marks=pytest.mark.full, id="iceberg"),
]


@pytest.mark.without_jvm
@pytest.mark.parametrize("definition", FORMS)
def test_a_file_away_while_a_lost_state_is_adopted_is_not_doubled(
    make_feed: MakeFeed, definition: dict[str, Any]
) -> None:
    feed = load_three(make_feed, **definition)
    away = feed.folder / "away"
    (feed.landing / "2.ndjson").rename(away)
    shutil.rmtree(feed.state)
    note = (
        "missing at the source, and taken as ingested, since their rows are in the table: 1 file (2.ndjson)"
    )
    assert note in feed.decide("adopt").err
    compared = feed.command("ledger", NAME, "--compare").json[0]
    assert (compared["gone"], compared["changed"]) == (["2.ndjson"], [])
    away.rename(feed.landing / "2.ndjson")
    sweep(feed)
    assert feed.ids == [1, 2, 3]
    compared = feed.command("ledger", NAME, "--compare").json[0]
    assert (compared["gone"], compared["changed"]) == ([], [])


@pytest.mark.without_jvm
@pytest.mark.parametrize(("answer", "ids"), [("load", [1, 2, 3, 4]), ("skip", [1, 3, 4])])
def test_an_adopt_of_an_older_state_asks_about_files_whose_rows_others_deleted(
    make_feed: MakeFeed, answer: str, ids: list[int]
) -> None:
    feed = make_feed(watermark=ONE_BY_ONE)
    saved = feed.folder / "saved"
    feed.put("1.ndjson", 1)
    feed.load()
    shutil.copytree(feed.state, saved)
    for number in (2, 3, 4):
        feed.put(f"{number}.ndjson", number)
    feed.load()
    delete_by_hand(feed, 2)
    restore(saved, feed.state)
    preview = adopt_after_asking(feed, answer)
    assert ("late, as the sweep will find" in preview) == (answer == "load")
    assert feed.ids == ids


@pytest.mark.without_jvm
@pytest.mark.parametrize(("answer", "ids"), [("load", [1, 2, 3, 4]), ("skip", [1, 3, 4])])
def test_a_second_adopt_of_an_older_lake_asks_about_deleted_rows(
    make_feed: MakeFeed, answer: str, ids: list[int]
) -> None:
    feed = load_three(make_feed)
    delete_by_hand(feed, 2)
    saved = feed.folder / "saved"
    shutil.copytree(feed.table, saved)
    feed.put("4.ndjson", 4)
    feed.load()
    restore(saved, feed.table)
    feed.decide("adopt")
    sweep(feed)
    assert feed.ids == [1, 3, 4]
    restore(saved, feed.table)
    adopt_after_asking(feed, answer)
    assert feed.ids == ids


@pytest.mark.without_jvm
@pytest.mark.parametrize("decision", ["import", "older lake"])
def test_a_late_file_away_while_its_entry_is_lost_is_not_doubled(make_feed: MakeFeed, decision: str) -> None:
    tracking = "watermark" if decision == "import" else "set"
    feed = make_feed(watermark={"tracking": tracking, **ONE_BY_ONE})
    for number in (1, 3):
        feed.put(f"{number}.ndjson", number)
    feed.load()
    export, away = feed.folder / "export.json", feed.folder / "away"
    feed.put("2.ndjson", 2)
    if decision == "import":
        export.write_text(feed.command("state", "export", NAME).out)
        feed.command("late", NAME)
    else:
        sweep(feed)
        saved = feed.folder / "saved"
        shutil.copytree(feed.table, saved)
        feed.command("files", "unprocess", NAME, "2.ndjson", "--reason", "because")
        feed.load()
        restore(saved, feed.table)
    (feed.landing / "2.ndjson").rename(away)
    if decision == "import":
        feed.decide("import", str(export))
    else:
        feed.decide("adopt")
    away.rename(feed.landing / "2.ndjson")
    sweep(feed)
    assert feed.ids == [1, 2, 3]
