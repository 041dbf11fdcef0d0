"""Files compared with the record of loaded ones: rewritten, deleted and late files are told exactly."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.feed import Feed

pytestmark = pytest.mark.without_jvm


def reconciled(feed: Feed, *options: str, code: int = 0) -> dict[str, Any]:
    """The answer of the command."""
    answer = feed.cli("reconcile", "flow", *options)
    assert answer.code == code, answer.out + answer.err
    document: dict[str, Any] = answer.json["dataflows"][0]
    return document


def paths_of(document: dict[str, Any]) -> dict[str, list[str]]:
    """The paths that are shown."""
    return {sort: [key["path"] for key in document[sort]] for sort in ("missing", "extra", "different")}


@pytest.fixture
def loaded(feed: Feed) -> Feed:
    """Six files are loaded."""
    for number in range(1, 7):
        feed.put(f"d={number % 2}/{number}.ndjson", number)
    feed.load()
    return feed


@pytest.mark.parametrize("scope", ["global", "partition"])
def test_rewritten_deleted_and_late_files_are_different_extra_and_missing(feed: Feed, scope: str) -> None:
    feed.define(watermark={"scope": scope})
    for number in range(1, 7):
        feed.put(f"d={number % 2}/{number}.ndjson", number)
    feed.load()
    assert reconciled(feed)["equal"] is True
    feed.put("d=1/3.ndjson", 3, 33)
    (feed.landing / "d=0/2.ndjson").unlink()
    feed.put("d=1/4.ndjson", 44)
    feed.put("d=1/9.ndjson", 9)  # above the watermark: the next run loads it
    document = reconciled(feed, code=1)
    assert paths_of(document) == {
        "missing": ["d=1/4.ndjson"],
        "extra": ["d=0/2.ndjson"],
        "different": ["d=1/3.ndjson"],
    }
    (range_,) = document["ranges"]
    assert (range_["source"], range_["table"]) == (6, 6)
    assert (range_["missing"], range_["extra"], range_["different"]) == (1, 1, 1)
    repair = feed.cli("reconcile", "flow", "--repair", "--reason", "because", "--yes")
    assert (repair.code, repair.error["code"]) == (2, "no_repair")


def test_a_tracked_set_has_no_late_files(feed: Feed) -> None:
    feed.define(watermark={"tracking": "set"})
    for number in range(1, 4):
        feed.put(f"d={number % 2}/{number}.ndjson", number)
    feed.load()
    feed.put("d=0/0.ndjson", 10)
    assert reconciled(feed)["equal"] is True
    (feed.landing / "d=0/2.ndjson").unlink()
    assert paths_of(reconciled(feed, code=1)) == {"missing": [], "extra": ["d=0/2.ndjson"], "different": []}


def test_the_limit_names_fewer_files_and_counts_all(loaded: Feed) -> None:
    for number in range(1, 6):
        (loaded.landing / f"d={number % 2}/{number}.ndjson").unlink()
    document = reconciled(loaded, "--limit", "2", code=1)
    assert (len(document["extra"]), document["ranges"][0]["extra"]) == (2, 5)
    assert "5 files extra" in loaded.text("reconcile", "flow")


def test_list_and_why_name_the_last_file_that_was_verified(loaded: Feed) -> None:
    reconciled(loaded)
    verified = loaded.command("list").json[0]["verified"]
    assert (verified["level"], verified["up_to"]) == ("files", {"path": "d=1/5.ndjson"})
    assert "names, sizes and versions of files of source and table are equal" in loaded.text("why", "flow")


def test_options_of_rows_are_refused_by_name(loaded: Feed) -> None:
    for option in ("--rows", "--keys", "--start=2026-01-01"):
        refused = loaded.cli("reconcile", "flow", option)
        assert refused.code == 2
        assert option.partition("=")[0] in refused.error["message"]
