"""The deletes in force lie beside the table, too, for a state that is lost (docs/how-to/deleting-and-keeping.md)."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.integration.conftest import MakeFeed
from tests.support.feed import Feed
from tests.support.moves import restore

pytestmark = pytest.mark.each_case


def delete(feed: Feed, *more: str) -> None:
    feed.command("delete", feed.name, *more, "--reason", "asked for", "--yes")


def loaded(make_feed: MakeFeed, *ids: int, table_format: str = "delta") -> Feed:
    target = {"load": "append", "format": table_format}
    feed = make_feed(
        watermark={"checkpoint": {"interval_files": 1}}, source={"schema": "id long"}, target=target
    )
    for n in ids:
        feed.put(f"{n}.ndjson", n)
    feed.load()
    return feed


def ids(feed: Feed) -> list[Any]:
    is_parquet = feed.definition["target"]["format"] == "parquet"
    return sorted(row[0] for row in (feed.rows_by_spark("id") if is_parquet else feed.rows("id")))


def sweep(feed: Feed) -> None:
    feed.load()
    feed.command("late", feed.name)
    feed.load()


def _another_table(feed: Feed) -> None:
    feed.define(target={"table": "bronze/new"})
    feed.decide("reset")


def _removed_table(feed: Feed) -> None:
    shutil.rmtree(feed.table)
    feed.decide("reset")


def _older_lake(feed: Feed) -> None:
    restore(feed.folder / "saved", feed.table)
    feed.decide("adopt")


def _lost_list(feed: Feed) -> None:
    shutil.rmtree(feed.table / "_strandline_deletes")


@pytest.mark.parametrize("change", [_another_table, _removed_table, _older_lake, _lost_list])
@pytest.mark.parametrize(
    "table_format", ["delta", *(pytest.param(f, marks=pytest.mark.full) for f in ("iceberg", "parquet"))]
)
def test_a_delete_survives_a_lost_state_after_its_table_changed(
    make_feed: MakeFeed, table_format: str, change: Any
) -> None:
    feed = loaded(make_feed, 1, 3, table_format=table_format)
    shutil.copytree(feed.table, feed.folder / "saved")
    delete(feed, "--where", "id = 7")
    change(feed)
    feed.put("4.ndjson", 7, 4)
    feed.load()
    assert ids(feed) == [1, 3, 4]
    shutil.rmtree(feed.state)
    feed.decide("adopt")
    feed.put("5.ndjson", 7, 5)
    sweep(feed)
    assert ids(feed) == [1, 3, 4, 5]
