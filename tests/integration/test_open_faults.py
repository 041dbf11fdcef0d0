"""Faults that are known and not mended yet, each in the shortest way that shows it on real parts. A test that begins to pass says so."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from resources.late import late_step
from resources.loop.outcome import Step
from resources.spark import SparkEngine
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, NOW, Answer, Feed
from tests.support.window_feed import REPLACED, Windows, event, instant, on_lake, watermark

EVENING = "2020-01-06T12:00"


def open_fault(reason: str) -> pytest.MarkDecorator:
    return pytest.mark.xfail(raises=AssertionError, reason=reason)


def decide(feed: Feed, *words: str, now: str | None = None) -> Answer:
    clock = ("--now", now) if now else ()
    return feed.cli("state", words[0], NAME, *words[1:], "--reason", "because", "--yes", *clock)


def foreign(table: Path, columns: pa.Schema, number: int | None = None, mode: Any = "append") -> None:
    """Somebody else writes one row, or none."""
    rows = [] if number is None else [{name: number if name == "id" else None for name in columns.names}]
    write_deltalake(str(table), pa.Table.from_pylist(rows, columns), mode=mode)


def columns(table: Path) -> pa.Schema:
    return DeltaTable(str(table)).to_pyarrow_table().schema


def ids(table: Path) -> list[int]:
    found: list[int] = DeltaTable(str(table)).to_pyarrow_table()["id"].to_pylist()
    return sorted(found)


def dies_after(step: Step) -> Any:
    def dies(found: Step, line: str) -> None:
        if found is step:
            raise KeyboardInterrupt

    return dies


def clean_log(table: Path) -> None:
    """A checkpoint, and nothing before it."""
    found = DeltaTable(str(table))
    found.create_checkpoint()
    for file in (table / "_delta_log").glob("*.json"):
        if int(file.stem) < found.version():
            file.unlink()


def days(folder: Path, engine: SparkEngine, **more: Any) -> Windows:
    """Four days of one row each, in a table of the lake."""
    made = on_lake(folder / "project", engine, watermark=watermark(to="P0D", units="a", **more))
    made.table.put(*[event(day, f"2020-01-0{day}") for day in range(1, 5)])
    return made


def folders(make_feed: MakeFeed) -> Feed:
    """Five days of one row each, in folders: only the start of its window tells a row."""
    feed = make_feed(
        source={"path": "./landing/{start:%Y-%m-%d}", "extensions": [".ndjson"]},
        watermark=watermark(to="P0D", units=None, partial=False, grace=2),
        target=REPLACED,
    )
    for day in range(1, 6):
        feed.put(f"2020-01-0{day}/x.ndjson", day)
    assert feed.run(now=instant(EVENING)).error is None
    return feed


# Rows are lost


@open_fault("adopt takes the state of a commit whose rows an overwrite has put aside")
def test_adopt_after_an_overwrite_loads_what_the_table_lacks(feed: Feed) -> None:
    feed.put("1.ndjson", 1)
    feed.load()
    foreign(feed.table, columns(feed.table), mode="overwrite")
    assert decide(feed, "adopt").code == 0
    feed.run()
    late_step(feed.platform, feed.dataflow, NOW)
    assert feed.ids == [1]


@open_fault("adopt takes the state of a commit whose rows an overwrite has put aside")
def test_adopt_after_an_overwrite_reads_windows_again(tmp_path: Path, engine: SparkEngine) -> None:
    made = days(tmp_path, engine)
    made.run("2020-01-05")
    foreign(made.feed.table, columns(made.feed.table), mode="overwrite")
    decide(made.feed, "adopt", now="2020-01-05")
    made.feed.run(now=instant("2020-01-05"))
    assert made.feed.ids == [1, 2, 3, 4]


@open_fault(
    "a commit's state speaks of all commits before it, and adopt does not look whether they are in the table"
)
def test_adopt_of_a_table_that_was_removed_between_two_slices_reads_windows_again(
    tmp_path: Path, engine: SparkEngine
) -> None:
    made = days(tmp_path, engine, checkpoint={"interval_windows": 2})
    heard: list[Step] = []

    def removes(step: Step, line: str) -> None:
        heard.append(step)
        if step is Step.INTENT_PUT and Step.APPENDED in heard:
            shutil.rmtree(made.feed.table)

    assert made.feed.run(removes, now=instant("2020-01-05")).error is not None
    decide(made.feed, "adopt", now="2020-01-05")
    made.feed.run(now=instant("2020-01-05"))
    assert made.feed.ids == [1, 2, 3, 4]


@open_fault("Delta goes by the times of its log's files, adopt by the times in the commits")
def test_adopt_after_a_restore_by_time_of_a_copied_table_takes_the_version_that_was_restored(
    feed: Feed, engine: SparkEngine
) -> None:
    for number in (1, 2):
        feed.put(f"{number}.ndjson", number)
        feed.load()
    first, second = sorted((feed.table / "_delta_log").glob("*.json"))
    copied = second.stat().st_mtime + 100
    os.utime(first, (copied, copied))
    os.utime(second, (copied + 100, copied + 100))
    copy = feed.table.with_name("copy")  # under another path nothing of it is known to Spark
    shutil.copytree(feed.table, copy)
    shutil.rmtree(feed.table)
    copy.rename(feed.table)
    between = datetime.fromtimestamp(copied + 50, UTC).strftime("%Y-%m-%d %H:%M:%S")
    engine.session().sql(f"RESTORE TABLE delta.`{feed.table}` TO TIMESTAMP AS OF '{between}'").collect()
    if feed.ids != [1]:
        pytest.fail("nothing was restored")
    decide(feed, "adopt")
    feed.run()
    assert feed.ids == [1, 2]


@open_fault("a commit of another dataflow counts as ours, so that it may put all rows aside")
def test_a_run_stops_where_another_project_has_emptied_the_table(feed: Feed, engine: SparkEngine) -> None:
    feed.put("1.ndjson", 1)
    feed.load()
    other = Feed(feed.folder.parent / "other", engine, {}, {"lake": str(feed.folder / "lake")})
    other.define(target={"table": "bronze/elsewhere"}).put("a.ndjson", 100)
    other.load()
    other.define(target={"table": f"bronze/{NAME}"})
    decide(other, "accept")
    decide(other, "reset", "--replace")
    other.load()
    assert feed.ids == [100]
    error = feed.run().error
    assert error is not None, "its row is gone"


def test_rows_that_others_add_to_a_table_that_a_fence_has_made_stay(feed: Feed) -> None:
    _fenced(feed)
    foreign(feed.table, columns(feed.table), 77)
    feed.put("2.ndjson", 2)
    feed.load()
    assert feed.ids == [2, 77]


@pytest.mark.parametrize("by", ["fence", "reset"])
def test_a_table_that_the_definition_names_anew_is_not_emptied(feed: Feed, by: str) -> None:
    if by == "fence":
        _fenced(feed)
    else:
        feed.put("1.ndjson", 1)
        feed.load()
        decide(feed, "reset", "--replace")
    other = feed.table.with_name("other")
    foreign(other, columns(feed.table), 77)
    feed.define(target={"table": "bronze/other"}).put("2.ndjson", 2)
    told = decide(feed, "accept")
    assert (told.code, "empties" in told.err) == (0, False)
    feed.load()
    assert 77 in ids(other)


def _fenced(feed: Feed) -> None:
    """Number 1 is given up, since its file has vanished."""
    feed.put("1.ndjson", 1)
    with pytest.raises(KeyboardInterrupt):
        feed.run(dies_after(Step.INTENT_PUT))
    (feed.landing / "1.ndjson").unlink()
    assert feed.run().error is None


# Rows are doubled


@open_fault("reset forgets how windows in the table were cut, although rows that carry only their start stay")
@pytest.mark.parametrize("accepted", [False, True], ids=["reset", "reset-accept"])
def test_a_reset_knows_windows_that_were_cut_otherwise(make_feed: MakeFeed, accepted: bool) -> None:
    feed = folders(make_feed)
    if accepted:
        decide(feed, "reset", now=EVENING)
    feed.define(watermark={"timezone": "-05:00"})
    told = decide(feed, "accept" if accepted else "reset", now=EVENING)
    assert accepted or "each commit deletes what it reads of them, and inserts it again" in told.err
    assert feed.run(now=instant(EVENING)).error is None
    assert feed.ids == [1, 2, 3, 4, 5]


@open_fault("import forgets how windows in the table were cut")
def test_an_import_knows_windows_that_were_cut_otherwise(make_feed: MakeFeed) -> None:
    feed = folders(make_feed)
    export = feed.folder / "export.jsonl"
    export.write_text(feed.cli("state", "export", NAME).out)
    feed.define(watermark={"timezone": "-05:00"})
    decide(feed, "accept", now=EVENING)
    assert feed.run(now=instant(EVENING)).error is None
    feed.define(watermark={"timezone": "UTC"})
    assert decide(feed, "import", str(export), now=EVENING).code == 0
    assert feed.run(now=instant(EVENING)).error is None
    assert feed.ids == [1, 2, 3, 4, 5]


@open_fault(
    "accept of another root says that what lies below the watermark counts as loaded, and the sweep finds all of it late"
)
def test_files_below_the_watermark_of_an_accepted_root_count_as_loaded(feed: Feed) -> None:
    feed.put("x/a/1.ndjson", 1)
    feed.load()
    feed.define(source={"path": "./landing/x"})
    error = feed.run().error
    assert error is not None
    assert "whatever lies at or below it in the new one counts as loaded" in error.message
    decide(feed, "accept")
    late_step(feed.platform, feed.dataflow, NOW)
    assert feed.ids == [1]


# No command leads on


@open_fault(
    "the rows of a commit that only deletes are counted in the version before, which may be cleaned up"
)
def test_a_commit_that_only_deletes_is_finished_although_the_log_before_it_is_cleaned(
    tmp_path: Path, engine: SparkEngine
) -> None:
    made = days(tmp_path, engine, grace=9)
    made.run("2020-01-05")
    made.table.put(event(9, "2019-01-01"))
    made.table.drop(1, 2, 3, 4)
    with pytest.raises(KeyboardInterrupt):
        made.feed.run(dies_after(Step.WRITTEN), now=instant("2020-01-05"))
    clean_log(made.feed.table)
    ran = made.feed.run(now=instant("2020-01-05")).error
    codes = [decide(made.feed, *words).code for words in (["adopt"], ["reset"], ["reset", "--replace"])]
    assert (ran, codes) == (None, [0, 0, 0])


@open_fault("adopt reads the list of the quarantine, and is offered where that list is gone")
def test_adopt_leads_on_where_the_list_of_the_quarantine_is_gone(make_feed: MakeFeed) -> None:
    feed = make_feed(on_bad_file="quarantine")
    feed.put("1.ndjson", 1)
    feed.put_text("2.ndjson", "{bad\n")
    feed.load()
    for file in (feed.state / "quarantine").glob("*"):
        file.unlink()
    error = feed.run().error
    assert error is not None
    assert any("adopt" in choice for choice in error.choices)
    assert decide(feed, "adopt").code == 0


@open_fault("set asks the table for the very watermark that is gone")
def test_set_leads_on_where_the_watermark_beside_the_table_is_gone(make_feed: MakeFeed) -> None:
    feed = make_feed(watermark={"scope": "partition"})
    for number in range(200):
        feed.put(f"part={number:03}{'x' * 40}/1.ndjson", number)
    feed.load()
    assert feed.newest is not None
    watermark = feed.newest.watermark
    shutil.rmtree(feed.table / "_strandline")
    shutil.rmtree(feed.state)
    stopped = decide(feed, "adopt").error
    assert any("state set" in choice for choice in stopped["choices"])
    assert decide(feed, "set", watermark).code == 0


@open_fault("set passes the guards as they were, and is offered where the table has been made again")
def test_set_leads_on_where_there_is_nothing_to_adopt(tmp_path: Path, engine: SparkEngine) -> None:
    made = days(tmp_path, engine)
    made.run("2020-01-05")
    assert made.feed.newest is not None
    watermark, schema = made.feed.newest.watermark, columns(made.feed.table)
    shutil.rmtree(made.feed.table)
    foreign(made.feed.table, schema, 77)
    stopped = decide(made.feed, "adopt", now="2020-01-05").error
    assert any("state set" in choice for choice in stopped["choices"])
    assert decide(made.feed, "set", watermark, now="2020-01-05").code == 0


# False words, and a guard that is passed


@open_fault("after a reset the table may be another one, and its properties are not looked at")
def test_a_table_that_forgets_tags_is_refused_after_a_reset(feed: Feed) -> None:
    feed.put("1.ndjson", 1)
    feed.load()
    decide(feed, "reset")
    schema = columns(feed.table)
    shutil.rmtree(feed.table)
    forgets = {"delta.setTransactionRetentionDuration": "interval 1 hours"}
    write_deltalake(str(feed.table), schema.empty_table(), configuration=forgets)
    error = feed.run().error
    assert error is not None
    assert error.code == "tags_expire"


@open_fault("the preview of an adopt knows no list that it would put, so that all files seem to be due")
def test_the_preview_of_an_adopt_does_not_say_that_rows_are_added_twice(make_feed: MakeFeed) -> None:
    feed = make_feed(watermark={"tracking": "set"})
    for number in (1, 2):
        feed.put(f"{number}.ndjson", number)
        feed.load()
    DeltaTable(str(feed.table)).restore(0)
    told = decide(feed, "adopt").err
    feed.load()
    assert feed.ids == [1, 2]
    assert ("1 file not ingested yet" in told, "a second time" in told) == (True, False)


@open_fault("the preview looks for the unfinished slice in a table that the state does not know")
def test_the_preview_does_not_say_that_a_slice_is_appended_which_is_abandoned(
    tmp_path: Path, engine: SparkEngine
) -> None:
    made = days(tmp_path, engine, checkpoint={"interval_windows": 2})
    heard: list[Step] = []

    def removes(step: Step, line: str) -> None:
        heard.append(step)
        if step is Step.INTENT_PUT and Step.APPENDED in heard:
            shutil.rmtree(made.feed.table)

    made.feed.run(removes, now=instant("2020-01-05"))
    told = decide(made.feed, "reset", "--replace", now="2020-01-05").err
    ended = next(entry for entry in made.feed.entries if entry.number == 2)
    assert ("is appended: it was written" in told) == (ended.why != "abandon")
