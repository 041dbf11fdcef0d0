"""Starting anew: a reset is a decision, whatever becomes of the table before or after it."""

from __future__ import annotations

import shutil

import pytest
from deltalake import DeltaTable

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


@pytest.mark.parametrize(
    ("options", "fate"), [(["--replace"], "their rows are deleted"), ([], "their rows stay")]
)
@pytest.mark.parametrize("is_lost", [False, True])
def test_a_reset_says_that_a_moved_source_has_no_file_of_a_loaded_path(
    feed: Feed, options: list[str], fate: str, is_lost: bool
) -> None:
    feed.put("eu/a.ndjson", 1)
    feed.put("us/b.ndjson", 2)
    feed.load()
    feed.define(source={"path": "./landing/eu"})
    if is_lost:
        shutil.rmtree(feed.state)
    preview = feed.decide("reset", *options).err
    named = "2 files (eu/a.ndjson, us/b.ndjson) with 2 rows in the table"
    assert (
        f"the source as it is defined now (./landing/eu) has no file of their path, so {fate}: {named}"
        in preview
    )
    assert "missing at the source" not in preview


def test_a_reset_says_that_files_are_missing_if_the_source_is_the_same(feed: Feed) -> None:
    feed.put("a.ndjson", 1)
    feed.put("b.ndjson", 2)
    feed.load()
    (feed.landing / "a.ndjson").unlink()
    preview = feed.decide("reset", "--replace").err
    assert "missing at the source, so their rows are deleted: 1 file (a.ndjson) with 1 row" in preview


@pytest.mark.parametrize("how", ["put back", "restored"])
def test_a_reset_says_of_an_older_table_that_it_lacks_rows_not_that_others_deleted_them(
    feed: Feed, how: str
) -> None:
    feed.put("a.ndjson", 1)
    feed.load()
    aside = shutil.copytree(feed.table, feed.folder / "aside")
    feed.put("b.ndjson", 2)
    feed.load()
    if how == "restored":
        DeltaTable(str(feed.table)).restore(0)
    else:
        shutil.rmtree(feed.table)
        aside.rename(feed.table)
    preview = feed.decide("reset", "--replace").err
    lacks = "the table is another one than the state knows, or an older version: it lacks 1 row of b.ndjson, which would come back"
    assert (lacks in preview, "others have deleted" in preview) == (True, False)
    feed.load()
    assert feed.ids == [1, 2]


def test_a_reset_says_that_others_deleted_rows_of_the_table_that_it_knows(feed: Feed) -> None:
    feed.put("a.ndjson", 1, 2)
    feed.load()
    DeltaTable(str(feed.table)).delete("id = 2")
    preview = feed.decide("reset", "--replace").err
    assert "others have deleted 1 row of a.ndjson from the table, which would come back" in preview
