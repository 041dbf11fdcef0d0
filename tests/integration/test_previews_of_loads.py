"""What the preview of `state rewind` says of rows is what happens to them, whatever the load."""

from __future__ import annotations

from typing import Any

import pytest
from deltalake import DeltaTable

from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed

pytestmark = [pytest.mark.without_jvm, pytest.mark.needs_spark]

LOADS: dict[str, dict[str, Any]] = {
    "append": {},
    "merge_upsert": {"merge_keys": ["id"]},
    "merge_overwrite": {"merge_keys": ["id"]},
    "scd2": {"merge_keys": ["id"], "effective_column": "at"},
}
BY_KEYS = ["merge_upsert", "merge_overwrite"]
LOST = "others have deleted"


def put(feed: Feed, number: int, version: int, *keys: int) -> None:
    """Put a file with one version of some keys; its number is the time of its rows."""
    feed.put(f"{number}.ndjson", *({"id": key, "version": version, "at": number} for key in keys))


@pytest.fixture
def corrected(make_feed: MakeFeed, request: pytest.FixtureRequest) -> Feed:
    """Three files are loaded, a slice each; then the second one is corrected: it has no key 2 any more."""
    feed = make_feed(
        source={"schema": "id long, version long, at long"},
        target={"load": request.param, "origin_columns": True, **LOADS[request.param]},
        late_files="ignore",
        watermark={"type": "path", "checkpoint": {"interval_files": 1}},
    )
    put(feed, 1, 1, 1, 2)
    put(feed, 2, 2, 1, 2, 3)
    put(feed, 3, 3, 3, 4)
    feed.load()
    put(feed, 2, 7, 1, 3)
    return feed


def rewind(feed: Feed, *options: str) -> str:
    """Rewind to the beginning and load everything again; return the preview."""
    told = feed.decide("rewind", "--to", "0", *options).err
    feed.load()
    return told


def rows(feed: Feed) -> list[tuple[Any, ...]]:
    return feed.rows("id", "version", "_source_file")


ONCE = [(1, 7, "2.ndjson"), (2, 1, "1.ndjson"), (3, 3, "3.ndjson"), (4, 3, "3.ndjson")]
"""What a first load of the corrected files by keys would bring."""


@pytest.mark.parametrize("corrected", BY_KEYS, indirect=True)
@pytest.mark.parametrize("how", ["rewind", "replay"])
def test_a_key_that_a_later_file_lost_gets_the_row_of_the_earlier_file(corrected: Feed, how: str) -> None:
    feed = corrected
    if how == "rewind":
        told = rewind(feed, "--replace")
        assert (
            "each commit also deletes the rows of its own files whose keys the source no longer holds" in told
        )
        assert "a key comes back if no later file holds it: 1.ndjson" in told
    else:
        arrival = ("--start", "2000-01-01", "--end", "2100-01-01", "--by", "arrival", "--replace")
        feed.command("replay", NAME, *arrival)
    assert rows(feed) == ONCE


@pytest.mark.parametrize("corrected", BY_KEYS, indirect=True)
def test_rows_of_a_gone_file_that_are_kept_stay_beside_those_of_earlier_files(corrected: Feed) -> None:
    feed = corrected
    (feed.landing / "3.ndjson").unlink()
    told = rewind(feed, "--replace", "--gone", "keep")
    assert "missing at the source, so their rows stay: 1 file (3.ndjson) with 2 rows" in told
    assert rows(feed) == ONCE


@pytest.mark.parametrize("corrected", LOADS, indirect=True)
def test_rows_that_came_back_once_are_not_told_as_deleted_again(corrected: Feed) -> None:
    feed = corrected
    replace = () if feed.definition["target"]["load"] == "scd2" else ("--replace",)
    DeltaTable(str(feed.table)).delete("id = 1")
    refused = feed.cli("state", "rewind", NAME, "--to", "0", *replace, "--reason", "x", "--yes")
    assert (refused.code, refused.error["code"]) == (4, "deleted_rows")
    assert LOST in rewind(feed, *replace, "--deleted", "load")
    count = len(rows(feed))
    assert LOST not in rewind(feed, *replace)
    assert len(rows(feed)) == count
    assert feed.entries[-1].total_rows == count
