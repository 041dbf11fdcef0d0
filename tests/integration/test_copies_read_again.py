"""Copies that were skipped (`duplicates: skip`) and what decisions and replays make of them: each content is in the table once."""

from __future__ import annotations

from typing import Any

import pytest
from deltalake import DeltaTable

from resources.kinds.path.late import late_step
from resources.watermarks.ingested import IngestedFiles
from tests.integration.conftest import MakeFeed
from tests.integration.test_copies import records
from tests.support.feed import NAME, NOW, Feed

pytestmark = [pytest.mark.without_jvm, pytest.mark.needs_spark]

APPEND = {"load": "append", "origin_columns": True}
ORDERS = [("b/9.ndjson", "b/1.ndjson"), ("b/1.ndjson", "b/9.ndjson")]
"""An original and its copy in one folder, in both orders of their paths."""


def copied(
    make_feed: MakeFeed,
    original: str = "a/1.ndjson",
    copy: str = "b/1.ndjson",
    *,
    files: int = 2,
    watermark: dict[str, Any] | None = None,
    target: dict[str, Any] | None = None,
    **definition: Any,
) -> Feed:
    """Row 1 is loaded from an original, and its copy was skipped; row 2 came last, in ``c``.

    Args:
        make_feed: makes the dataflow.
        original: path of the original.
        copy: path of the copy.
        files: files in a slice.
        watermark: more keys of the watermark.
        target: the target.
        definition: more keys of the dataflow.
    """
    checkpoint = {"interval_files": files}
    feed = make_feed(
        source={"schema": "id long"},
        watermark={"duplicates": "skip", "checkpoint": checkpoint, **(watermark or {})},
        target=target or APPEND,
        **definition,
    )
    feed.put(original, 1)
    feed.load()
    feed.put(copy, 1)
    feed.put("c/2.ndjson", 2)
    feed.load()
    if not watermark or watermark.get("tracking") != "set":
        sweep(feed)
    assert (feed.ids, records(feed)[copy]) == ([1, 2], f"same content as {original}")
    return feed


def sweep(feed: Feed) -> None:
    """Load late files; the second sweep finds what the first has freed."""
    for _ in range(2):
        late_step(feed.platform, feed.dataflow, NOW)


def lose_row_1(feed: Feed) -> None:
    """Let another writer delete the original's row."""
    DeltaTable(str(feed.table)).delete("id = 1")


def replay(feed: Feed, folder: str, *options: str) -> None:
    """Replay the files of a folder in place."""
    end = chr(ord(folder) + 1)
    feed.command("replay", NAME, "--start", f"{folder}/", "--end", f"{end}/", "--replace", *options)


def isolate(feed: Feed, folder: str, *options: str) -> None:
    """Replay the files of a folder into a table beside."""
    end = chr(ord(folder) + 1)
    into = ("--into", "bronze/again")
    feed.command("replay", NAME, "--start", f"{folder}/", "--end", f"{end}/", *into, *options)


def promote(feed: Feed) -> Any:
    """Promote that table; return the answer."""
    return feed.cli("promote", NAME, "bronze/again", "--reason", "because", "--yes")


def correct(feed: Feed, how: str) -> None:
    """Replace the original ``a/1`` by row 9, and load it again."""
    feed.put("a/1.ndjson", 9)
    if how == "rewind":
        feed.decide("rewind", "--to", "0", "--replace")
        feed.load()
    elif how == "replay":
        replay(feed, "a")
    else:
        isolate(feed, "a")
        assert promote(feed).code == 0


@pytest.mark.parametrize("is_gone", [True, False])
def test_an_unprocessed_copy_is_loaded_where_its_original_lost_its_rows(
    make_feed: MakeFeed, is_gone: bool
) -> None:
    feed = copied(make_feed, watermark={"tracking": "set"})
    lose_row_1(feed)
    if is_gone:
        (feed.landing / "a/1.ndjson").unlink()
    feed.command("files", "unprocess", NAME, "b/1.ndjson")
    feed.load()
    assert feed.ids == [1, 2]


def test_a_promote_under_duplicates_load_loads_a_copy_beside_its_original(make_feed: MakeFeed) -> None:
    feed = copied(make_feed)
    feed.define(watermark={"duplicates": "load"})
    isolate(feed, "b")
    assert promote(feed).code == 0
    assert feed.ids == [1, 1, 2]


@pytest.mark.full
@pytest.mark.parametrize("how", ["replay", "promote"])
@pytest.mark.parametrize("policy", ["load", "alert"])
def test_a_copy_skipped_under_an_older_policy_is_freed_too(
    make_feed: MakeFeed, policy: str, how: str
) -> None:
    feed = copied(make_feed)
    feed.define(watermark={"duplicates": policy})
    correct(feed, how)
    sweep(feed)
    assert feed.ids == [1, 2, 9]


@pytest.mark.full
@pytest.mark.parametrize("policy", ["load", "alert", "skip"])
def test_an_original_that_is_read_again_unchanged_frees_no_copy(make_feed: MakeFeed, policy: str) -> None:
    feed = copied(make_feed)
    feed.define(watermark={"duplicates": policy})
    replay(feed, "a")
    sweep(feed)
    assert feed.ids == [1, 2]


@pytest.mark.parametrize("files", [1, pytest.param(5, marks=pytest.mark.full)])
def test_nothing_of_an_original_and_its_copy_read_aside_is_promoted(make_feed: MakeFeed, files: int) -> None:
    feed = copied(make_feed, *ORDERS[0], files=files)
    isolate(feed, "b")
    answer = promote(feed)
    assert (answer.code, answer.error["code"]) == (4, "nothing_to_promote")
    assert (
        "found only copies of loaded files: b/1.ndjson (same content as b/9.ndjson)"
        in answer.error["message"]
    )
    feed.command("drop", NAME, "bronze/again", "--reason", "because", "--yes")
    feed.decide("rewind", "--to", "0", "--replace")
    feed.load()
    sweep(feed)
    assert feed.ids == [1, 2]


def test_a_corrected_original_and_its_copy_are_both_promoted(make_feed: MakeFeed) -> None:
    feed = copied(make_feed, *ORDERS[0])
    feed.put("b/9.ndjson", 7)
    isolate(feed, "b")
    assert promote(feed).code == 0
    sweep(feed)
    assert feed.ids == [1, 2, 7]


def test_a_copy_loaded_for_a_lost_original_keeps_the_original_out(make_feed: MakeFeed) -> None:
    feed = copied(make_feed)
    lose_row_1(feed)
    replay(feed, "b")
    assert feed.ids == [1, 2]
    replay(feed, "a", "--deleted", "load")
    sweep(feed)
    assert feed.ids == [1, 2]


@pytest.mark.full
@pytest.mark.parametrize("how", ["rewind", "replay"])
@pytest.mark.parametrize("files", [1, 5])
def test_a_copy_that_sorts_before_its_lost_original_brings_the_row_once(
    make_feed: MakeFeed, files: int, how: str
) -> None:
    feed = copied(make_feed, *ORDERS[0], files=files)
    lose_row_1(feed)
    if how == "rewind":
        feed.decide("rewind", "--to", "0", "--replace", "--deleted", "load")
        feed.load()
    else:
        replay(feed, "b", "--deleted", "load")
    sweep(feed)
    assert feed.ids == [1, 2]


def test_a_promote_brings_the_copy_of_an_original_that_lost_its_rows(make_feed: MakeFeed) -> None:
    feed = copied(make_feed)
    lose_row_1(feed)
    isolate(feed, "b")
    assert promote(feed).code == 0
    assert feed.ids == [1, 2]


@pytest.mark.full
@pytest.mark.parametrize("how", ["rewind", "replay", "promote"])
def test_an_upsert_gets_the_freed_copy(make_feed: MakeFeed, how: str) -> None:
    feed = copied(make_feed, target={**APPEND, "load": "merge_upsert", "merge_keys": ["id"]})
    correct(feed, how)
    sweep(feed)
    assert feed.ids == [1, 2, 9]


@pytest.mark.full
def test_versions_of_a_corrected_original_stay_beside_its_new_ones(make_feed: MakeFeed) -> None:
    target = {**APPEND, "load": "scd2", "merge_keys": ["id"], "effective_column": "at"}
    feed = make_feed(
        source={"schema": "id long, at long"}, watermark={"type": "path", "duplicates": "skip"}, target=target
    )
    feed.put("a/1.ndjson", {"id": 1, "at": 1})
    feed.load()
    feed.put("b/1.ndjson", {"id": 1, "at": 1})
    feed.put("c/2.ndjson", {"id": 2, "at": 1})
    feed.load()
    feed.put("a/1.ndjson", {"id": 9, "at": 1})
    feed.decide("rewind", "--to", "0", "--replace")
    feed.load()
    sweep(feed)
    assert feed.ids == [1, 2, 9]


@pytest.mark.full
def test_of_two_freed_copies_one_is_loaded(make_feed: MakeFeed) -> None:
    feed = copied(make_feed)
    feed.put("d/1.ndjson", 1)
    feed.load()
    correct(feed, "replay")
    sweep(feed)
    assert feed.ids == [1, 2, 9]


@pytest.mark.full
@pytest.mark.parametrize("files", [1, 5])
@pytest.mark.parametrize("order", ORDERS)
def test_a_replay_that_deletes_a_gone_original_loads_its_copy(
    make_feed: MakeFeed, files: int, order: tuple[str, str]
) -> None:
    feed = copied(make_feed, *order, files=files)
    (feed.landing / order[0]).unlink()
    replay(feed, "b", "--gone", "delete")
    assert feed.ids == [1, 2]
    sweep(feed)
    assert feed.ids == [1, 2]


@pytest.mark.full
@pytest.mark.parametrize("gone", ["delete", "keep"])
@pytest.mark.parametrize("order", ORDERS)
def test_a_promote_keeps_or_deletes_a_gone_original_and_has_its_row_once(
    make_feed: MakeFeed, gone: str, order: tuple[str, str]
) -> None:
    feed = copied(make_feed, *order)
    (feed.landing / order[0]).unlink()
    isolate(feed, "b", "--gone", gone)
    assert promote(feed).code == (0 if gone == "delete" else 4)
    assert feed.ids == [1, 2]
    sweep(feed)
    assert feed.ids == [1, 2]


@pytest.mark.full
def test_an_original_that_turns_bad_frees_its_copy(make_feed: MakeFeed) -> None:
    feed = copied(make_feed, on_bad_file="quarantine")
    feed.put_text("a/1.ndjson", "{{{\n")
    feed.decide("rewind", "--to", "0", "--replace")
    feed.run()
    sweep(feed)
    assert feed.ids == [1, 2]


@pytest.mark.full
def test_an_original_corrected_while_its_copy_was_read_aside_frees_it(make_feed: MakeFeed) -> None:
    feed = copied(make_feed)
    isolate(feed, "b")
    correct(feed, "replay")
    promote(feed)
    sweep(feed)
    assert feed.ids == [1, 2, 9]


@pytest.mark.full
@pytest.mark.parametrize("again", ["a", "b"])
def test_an_unprocessed_original_beside_its_old_rows_frees_no_copy(make_feed: MakeFeed, again: str) -> None:
    feed = copied(make_feed, watermark={"tracking": "set"})
    feed.put("a/1.ndjson", 9)
    feed.command("files", "unprocess", NAME, "a/1.ndjson")
    feed.load()
    assert feed.ids == [1, 2, 9]
    replay(feed, again)
    feed.load()
    assert feed.ids == [1, 2, 9]


@pytest.mark.full
def test_an_original_with_its_first_content_again_frees_no_copy(make_feed: MakeFeed) -> None:
    feed = copied(make_feed)
    feed.put("a/1.ndjson", 9)
    feed.decide("rewind", "--to", "0", "--replace")
    feed.put("a/1.ndjson", 1)
    feed.load()
    sweep(feed)
    assert feed.ids == [1, 2]


def test_an_adopt_of_a_restored_table_skips_the_copy_as_before(make_feed: MakeFeed) -> None:
    feed = copied(make_feed)
    version = DeltaTable(str(feed.table)).version()
    correct(feed, "replay")
    DeltaTable(str(feed.table)).restore(version)
    feed.decide("adopt")
    feed.load()
    sweep(feed)
    assert feed.ids == [1, 2]


@pytest.mark.full
@pytest.mark.parametrize("how", ["rewind", "replay"])
def test_a_copy_is_freed_with_scope_partition(make_feed: MakeFeed, how: str) -> None:
    feed = copied(make_feed, watermark={"scope": "partition"})
    correct(feed, how)
    feed.load()
    sweep(feed)
    assert feed.ids == [1, 2, 9]


@pytest.mark.full
@pytest.mark.parametrize("form", ["iceberg", "parquet"])
def test_a_corrected_original_of_each_format_frees_its_copy_once(make_feed: MakeFeed, form: str) -> None:
    feed = copied(make_feed, *ORDERS[0], files=1, target={**APPEND, "format": form})
    feed.put("b/9.ndjson", 7)
    isolate(feed, "b")
    assert promote(feed).code == 0
    sweep(feed)
    assert feed.ids == [1, 2, 7]
    feed.decide("rewind", "--to", "0", "--replace")
    feed.load()
    sweep(feed)
    assert feed.ids == [1, 2, 7]


@pytest.mark.full
def test_a_promoted_file_is_the_original_of_later_copies(make_feed: MakeFeed) -> None:
    feed = copied(make_feed)
    correct(feed, "promote")
    sweep(feed)
    feed.put("d/1.ndjson", 9)
    feed.load()
    assert feed.ids == [1, 2, 9]


@pytest.mark.full
def test_a_corrected_copy_is_promoted(make_feed: MakeFeed) -> None:
    feed = copied(make_feed)
    feed.put("b/1.ndjson", 7)
    isolate(feed, "b")
    assert promote(feed).code == 0
    sweep(feed)
    assert feed.ids == [1, 2, 7]


@pytest.mark.full
def test_a_late_copy_read_aside_is_left_out_of_the_promote(make_feed: MakeFeed) -> None:
    feed = copied(make_feed)
    feed.put("b/0.ndjson", 1)
    feed.put("b/3.ndjson", 3)
    isolate(feed, "b")
    assert promote(feed).code == 0
    assert feed.ids == [1, 2, 3]
    sweep(feed)
    assert feed.ids == [1, 2, 3]


@pytest.mark.full
def test_an_original_and_its_copy_corrected_alike_free_the_third(make_feed: MakeFeed) -> None:
    feed = copied(make_feed, *ORDERS[0])
    feed.put("d/1.ndjson", 1)
    feed.load()
    feed.put("b/1.ndjson", 7)
    feed.put("b/9.ndjson", 7)
    isolate(feed, "b")
    assert promote(feed).code == 0
    assert feed.ids == [2, 7]
    sweep(feed)
    assert feed.ids == [1, 2, 7]


@pytest.mark.full
def test_a_merged_record_frees_the_copy_once(make_feed: MakeFeed) -> None:
    feed = copied(make_feed)
    IngestedFiles(feed.platform.log, NAME, feed.newest).merge(1)
    for _ in range(2):
        correct(feed, "replay")
        sweep(feed)
        assert feed.ids == [1, 2, 9]


@pytest.mark.full
def test_a_copy_stays_one_below_another_root(make_feed: MakeFeed) -> None:
    feed = copied(make_feed)
    feed.landing.rename(feed.folder / "other")
    feed.define(source={"path": "./other"})
    feed.decide("accept")
    feed.load()
    sweep(feed)
    assert feed.ids == [1, 2]


@pytest.mark.full
def test_copies_loaded_under_another_policy_stay_both_when_it_is_skip_again(make_feed: MakeFeed) -> None:
    feed = copied(make_feed)
    for policy in ("load", "skip"):
        feed.define(watermark={"duplicates": policy})
        feed.decide("rewind", "--to", "0", "--replace")
        feed.load()
        sweep(feed)
        assert feed.ids == [1, 1, 2], policy


@pytest.mark.full
def test_a_new_copy_beside_one_that_is_read_again_is_skipped(make_feed: MakeFeed) -> None:
    feed = copied(make_feed)
    lose_row_1(feed)
    feed.put("b/0.ndjson", 1)
    replay(feed, "b")
    sweep(feed)
    assert feed.ids == [1, 2]


def test_late_counts_and_names_the_skipped_copies_that_are_late_now(make_feed: MakeFeed) -> None:
    feed = copied(make_feed)
    feed.put("a/1.ndjson", 9)
    replay(feed, "a")
    text = feed.text("late", NAME)
    assert "1 of them skipped before as a copy (duplicates: skip), and no copy any more: b/1.ndjson" in text
    assert feed.ids == [1, 2, 9]
    feed.put("a/0.ndjson", 9)
    answer = feed.command("late", NAME).json
    assert (answer["copies"]["count"], answer["ingested"]) == (0, 0)
    assert answer["warnings"] == [
        "1 file with the content of another file skipped: a/0.ndjson (same content as a/1.ndjson)"
    ]
