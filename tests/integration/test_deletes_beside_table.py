"""The deletes in force lie beside the table, too, for a state that is lost (docs/how-to/deleting-and-keeping.md)."""

from __future__ import annotations

import shutil
from datetime import timedelta
from typing import Any

import pytest

from resources.loop.rows import deletes_of_table
from resources.watermarks.blobs import open_blobs
from resources.watermarks.compaction import RetentionPolicy
from resources.watermarks.deleted_rows import forgotten_deletes
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


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(_another_table, marks=pytest.mark.full),
        _removed_table,
        pytest.param(_older_lake, marks=pytest.mark.full),
        _lost_list,
    ],
)
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


def deleted_and_forgotten(make_feed: MakeFeed) -> tuple[Feed, str]:
    """Rows 1 and 3, row 2 deleted by entry 4, which entry 5 forgets; the state of entry 4 is exported."""
    feed = loaded(make_feed, 1, 2, 3)
    delete(feed, "--where", "id = 2")
    export = feed.folder / "export"
    export.write_text(feed.command("state", "export", feed.name).out)
    shutil.copytree(feed.table, feed.folder / "saved")
    delete(feed, "--forget", "4")
    return feed, str(export)


@pytest.mark.parametrize("state", [pytest.param("there", marks=pytest.mark.full), "lost"])
def test_an_import_leaves_a_delete_forgotten_that_was_forgotten_since(
    make_feed: MakeFeed, state: str
) -> None:
    feed, export = deleted_and_forgotten(make_feed)
    feed.put("4.ndjson", 2)
    feed.load()
    if state == "lost":
        shutil.rmtree(feed.state)
    preview = feed.decide("import", export).err
    feed.load()
    assert "the delete of entry 4 (id = 2) was forgotten later, by entry 5, and stays forgotten" in preview
    assert ids(feed) == [1, 2, 3]
    feed.put("5.ndjson", 2)
    feed.load()
    assert ids(feed) == [1, 2, 2, 3]


@pytest.mark.full
def test_an_older_table_that_is_put_back_leaves_a_delete_forgotten(make_feed: MakeFeed) -> None:
    feed, _ = deleted_and_forgotten(make_feed)
    restore(feed.folder / "saved", feed.table)
    preview = feed.decide("adopt").err
    assert "(id = 2) was forgotten later" in preview
    feed.put("4.ndjson", 2)
    feed.load()
    assert ids(feed) == [1, 2, 3]


@pytest.mark.parametrize(("answer", "rows"), [("skip", [1, 3]), ("load", [1, 2, 3])])
def test_rows_of_a_forgotten_delete_come_back_by_an_answer_only(
    make_feed: MakeFeed, answer: str, rows: list[int]
) -> None:
    feed, _ = deleted_and_forgotten(make_feed)
    shutil.rmtree(feed.state)
    refused = feed.cli("state", "adopt", feed.name, "--reason", "lost", "--yes")
    assert (refused.code, "1 delete that was forgotten (id = 2)" in refused.out) == (4, True)
    feed.decide("adopt", "--deleted", answer)
    sweep(feed)
    assert ids(feed) == rows


@pytest.mark.full
def test_a_delete_that_is_made_again_survives_a_lost_state(make_feed: MakeFeed) -> None:
    feed, _ = deleted_and_forgotten(make_feed)
    delete(feed, "--where", "id = 2")
    shutil.rmtree(feed.state)
    feed.decide("adopt")
    feed.decide("reset", "--replace")
    feed.load()
    assert ids(feed) == [1, 3]


@pytest.mark.full
def test_a_forgotten_delete_survives_compaction_and_a_new_name(make_feed: MakeFeed) -> None:
    feed, _ = deleted_and_forgotten(make_feed)
    for n in (4, 5, 6):
        feed.put(f"{n}.ndjson", n)
        feed.run(retention=RetentionPolicy(1, timedelta(days=-400), merge_every=1))
    assert feed.platform.log.floor(feed.name) > 5
    feed.command("rename", feed.name, "renamed")
    log = feed.platform.log
    assert forgotten_deletes(log, log.newest("renamed")) == {"id = 2": 5}


@pytest.mark.full
def test_an_import_says_which_matching_rows_may_go_when_they_are_read_again(make_feed: MakeFeed) -> None:
    feed, export = deleted_and_forgotten(make_feed)
    feed.put("4.ndjson", 2)
    feed.load()
    shutil.rmtree(feed.state)
    _lost_list(feed)
    preview = feed.decide("import", export).err
    assert "1 row of the table matches the delete of entry 4, and stays unless loads above" in preview
    sweep(feed)
    assert ids(feed) == [1, 3]


def test_a_run_reads_the_list_beside_the_table_once_if_a_delete_is_in_force(
    make_feed: MakeFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = loaded(make_feed, 1)
    stores: list[str] = []

    def open_and_count(*store: Any) -> Any:
        stores.append("opened")
        return open_blobs(*store)

    monkeypatch.setattr(deletes_of_table, "open_blobs", open_and_count)
    feed.put("2.ndjson", 2)
    feed.load()
    assert not stores
    delete(feed, "--where", "id = 7")
    stores.clear()
    for n in (3, 4, 5):
        feed.put(f"{n}.ndjson", n)
    feed.load()
    assert (ids(feed), len(stores)) == ([1, 2, 3, 4, 5], 1)
