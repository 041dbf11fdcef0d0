"""Tables that others have overwritten, restored, removed or cleaned: nothing is lost, nothing is doubled, and a command leads on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from resources.kinds.path.late import late_step
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, NOW, Answer, Feed, dies_after, removes_table
from tests.support.window_feed import Windows, event, instant, on_lake, watermark

pytestmark = pytest.mark.without_jvm


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


# Rows are lost


def test_adopt_after_an_overwrite_loads_what_the_table_lacks(feed: Feed) -> None:
    feed.put("1.ndjson", 1)
    feed.load()
    foreign(feed.table, columns(feed.table), mode="overwrite")
    assert decide(feed, "adopt").code == 0
    feed.run()
    late_step(feed.platform, feed.dataflow, NOW)
    assert feed.ids == [1]


@pytest.mark.needs_spark
def test_adopt_after_an_overwrite_reads_windows_again(tmp_path: Path, engine: SparkEngine) -> None:
    made = days(tmp_path, engine)
    made.run("2020-01-05")
    foreign(made.feed.table, columns(made.feed.table), mode="overwrite")
    decide(made.feed, "adopt", now="2020-01-05")
    made.feed.run(now=instant("2020-01-05"))
    assert made.feed.ids == [1, 2, 3, 4]


@pytest.mark.full
@pytest.mark.needs_spark
def test_adopt_of_a_removed_table_reads_windows_again(tmp_path: Path, engine: SparkEngine) -> None:
    made = days(tmp_path, engine, checkpoint={"interval_windows": 2})
    assert made.feed.run(removes_table(made.feed), now=instant("2020-01-05")).error is not None
    decide(made.feed, "adopt", now="2020-01-05")
    made.feed.run(now=instant("2020-01-05"))
    assert made.feed.ids == [1, 2, 3, 4]


@pytest.mark.full
@pytest.mark.needs_spark
def test_adopt_after_a_restore_of_a_copy_takes_what_was_restored(feed: Feed, engine: SparkEngine) -> None:
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
    feed.fail()  # its row is gone


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


def _dynamically(engine: SparkEngine, feed: Feed) -> None:
    rows = engine.session().createDataFrame([(77,)], "id long").write.format("delta").mode("overwrite")
    rows.option("partitionOverwriteMode", "dynamic").save(str(feed.table))


def _by_a_stream(engine: SparkEngine, feed: Feed) -> None:
    source = str(feed.folder / "source")
    engine.session().createDataFrame([(77,)], "id long").write.format("delta").save(source)
    counts = engine.session().readStream.format("delta").load(source).groupBy("id").count().select("id")
    stream = counts.writeStream.format("delta").outputMode("complete").trigger(availableNow=True)
    stream.option("checkpointLocation", str(feed.folder / "offsets")).start(
        str(feed.table)
    ).awaitTermination()


@pytest.mark.full
@pytest.mark.parametrize("overwrite", [_dynamically, _by_a_stream])
@pytest.mark.needs_spark
def test_a_run_stops_where_spark_has_overwritten_a_table_without_partitions(
    feed: Feed, engine: SparkEngine, overwrite: Callable[[SparkEngine, Feed], None]
) -> None:
    feed.put("1.ndjson", 1)
    feed.load()
    overwrite(engine, feed)
    assert feed.ids == [77]
    error = feed.fail()
    assert error.code == "table_behind"


def _overwritten(feed: Feed) -> None:
    rows = DeltaTable(str(feed.table)).to_pyarrow_table()
    write_deltalake(str(feed.table), rows.slice(0, 1), mode="overwrite")


def _restored(feed: Feed) -> None:
    DeltaTable(str(feed.table)).restore(0)


@pytest.mark.full
@pytest.mark.parametrize("damage", [_overwritten, _restored])
@pytest.mark.needs_spark
def test_losing_rows_under_a_give_up_stops_runs(make_feed: MakeFeed, damage: Callable[[Feed], None]) -> None:
    feed = make_feed(source={"format": "parquet"}, watermark={"checkpoint": {"interval_files": 1}})
    for number in (1, 2):
        feed.put_parquet(f"{number}.parquet", number)
    feed.load()
    feed.put_damaged("3.parquet")

    def damages(step: Step, line: str) -> None:
        if step is Step.INTENT_PUT:
            damage(feed)

    for heard in (damages, None):
        error = feed.run(heard).error
        assert (error and error.code) == "table_behind"
    assert decide(feed, "adopt", "--deleted", "load").code == 0
    feed.put_parquet("3.parquet", 3)
    feed.load()
    late_step(feed.platform, feed.dataflow, NOW)
    assert feed.ids == [1, 2, 3]


class _Dynamic(SparkEngine):
    def session(self) -> SparkSession:
        session = super().session()
        session.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        return session


@pytest.mark.needs_spark
def test_reset_empties_tables_in_partition_overwrite_sessions(tmp_path: Path, engine: SparkEngine) -> None:
    target = {"target": {"partition_by": ["id"]}}
    feed = Feed(tmp_path / "project", _Dynamic(remote=engine.remote), target)
    feed.put("1.ndjson", 1)
    feed.load()
    assert decide(feed, "reset", "--replace").code == 0
    (feed.landing / "1.ndjson").unlink()
    feed.put("2.ndjson", 2)
    feed.load()
    assert feed.ids == [2]


@pytest.mark.parametrize("left", [None, 5], ids=["nothing", "the newest day"])
@pytest.mark.parametrize("scope", ["global", "partition"])
def test_overwritten_rows_are_loaded_past_filters(make_feed: MakeFeed, scope: str, left: int | None) -> None:
    feed = make_feed(
        watermark={"scope": scope, "partition_filter": {"prefix_template": "date=%Y-%m-%d", "lookback": 1}}
    )
    feed.put("date=2026-04-01/1.ndjson", 77)  # before the first run, and never looked at
    for days in ((1, 2), (3, 4, 5)):
        for day in days:
            feed.put(f"date=2026-05-0{day}/1.ndjson", day)
        assert feed.run(now=instant(f"2026-05-0{days[-1]}")).error is None
    assert feed.ids == [1, 2, 3, 4, 5]
    rows = DeltaTable(str(feed.table)).to_pyarrow_table()
    kept = rows.filter(pc.equal(rows["id"], pa.scalar(left, pa.int64())))
    write_deltalake(str(feed.table), kept, mode="overwrite")
    decide(feed, "adopt", "--deleted", "load", now="2026-05-05")
    feed.run(now=instant("2026-05-05"))
    late_step(feed.platform, feed.dataflow, instant("2026-05-05"))
    assert feed.ids == [1, 2, 3, 4, 5]


@pytest.mark.full
@pytest.mark.needs_spark
def test_windows_that_the_table_has_lost_are_not_rewound_to(tmp_path: Path, engine: SparkEngine) -> None:
    made = days(tmp_path, engine, checkpoint={"interval_windows": 2})
    made.run("2020-01-05")
    decide(made.feed, "reset", "--replace", now="2020-01-05")
    with pytest.raises(KeyboardInterrupt):
        made.feed.run(dies_after(Step.APPENDED), now=instant("2020-01-05"))
    stopped = decide(made.feed, "rewind", "--to", "2", now="2020-01-05")
    assert stopped.error["code"] == "would_rise"
    made.feed.run(now=instant("2020-01-05"))
    assert made.feed.ids == [1, 2, 3, 4]


@pytest.mark.needs_spark
def test_a_reset_of_windows_is_taken_back_by_a_rewind(tmp_path: Path, engine: SparkEngine) -> None:
    made = days(tmp_path, engine)
    made.run("2020-01-05")
    decide(made.feed, "reset", "--replace", now="2020-01-05")
    assert decide(made.feed, "rewind", "--to", "1", now="2020-01-05").code == 0
    assert made.run("2020-01-05") == []
    assert made.feed.ids == [1, 2, 3, 4]


# Rows are doubled


@pytest.mark.full
@pytest.mark.parametrize("lost", [True, False], ids=["lost", "kept"])
@pytest.mark.needs_spark
def test_adopt_in_a_rewind_of_windows_doubles_none(tmp_path: Path, engine: SparkEngine, lost: bool) -> None:
    made = days(tmp_path, engine, checkpoint={"interval_windows": 2})
    made.feed.define(target={"load": "append", "replace_by_watermark": None})
    made.run("2020-01-05")
    decide(made.feed, "rewind", "--to", "0", "--replace", now="2020-01-05")
    with pytest.raises(KeyboardInterrupt):
        made.feed.run(dies_after(Step.APPENDED), now=instant("2020-01-05"))
    if lost:
        shutil.rmtree(made.feed.state)
        stopped = decide(made.feed, "adopt", now="2020-01-05")
        assert stopped.error["code"] == "nothing_to_adopt"
        decide(made.feed, "reset", "--replace", now="2020-01-05")
    else:
        assert decide(made.feed, "adopt", now="2020-01-05").code == 0
    made.feed.run(now=instant("2020-01-05"))
    assert made.feed.ids == [1, 2, 3, 4]


# No command leads on


@pytest.mark.full
@pytest.mark.needs_spark
def test_a_deleting_commit_is_finished_on_a_cleaned_log(tmp_path: Path, engine: SparkEngine) -> None:
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


# False words, and a guard that is passed


def test_a_table_that_is_restored_to_what_was_loaded_is_gone_on_with(feed: Feed) -> None:
    feed.put("1.ndjson", 1)
    feed.load()
    foreign(feed.table, columns(feed.table), 77)
    DeltaTable(str(feed.table)).restore(0)
    feed.put("2.ndjson", 2)
    feed.load()
    assert feed.ids == [1, 2]


def test_accept_of_a_table_with_rows_says_that_a_state_without_any_adds_to_them(feed: Feed) -> None:
    feed.put("1.ndjson", 1)
    feed.load()
    decide(feed, "reset", "--replace")
    feed.define(target={"table": "bronze/other"})
    assert "are added" not in decide(feed, "accept").err
    feed.define(target={"table": f"bronze/{NAME}"})
    told = (
        "nothing counts as loaded, and table bronze/flow has 1 row: every row of the source is added to them"
    )
    assert told in decide(feed, "accept").err


def test_a_table_that_forgets_tags_is_refused_after_a_reset(feed: Feed) -> None:
    feed.put("1.ndjson", 1)
    feed.load()
    decide(feed, "reset")
    schema = columns(feed.table)
    shutil.rmtree(feed.table)
    forgets = {"delta.setTransactionRetentionDuration": "interval 1 hours"}
    write_deltalake(str(feed.table), schema.empty_table(), configuration=forgets)
    error = feed.fail()
    assert error.code == "tags_expire"


@pytest.mark.parametrize("change", ["compaction", "delete of all rows of the file", "delete and append"])
def test_a_change_before_an_empty_slice_is_not_taken_for_a_restore(make_feed: MakeFeed, change: str) -> None:
    feed = make_feed(watermark={"checkpoint": {"interval_files": 1}})
    feed.put("1.ndjson", 1)
    feed.put("2.ndjson", 2)
    feed.load()
    if change == "compaction":
        DeltaTable(str(feed.table)).optimize.compact()
    else:
        DeltaTable(str(feed.table)).delete("id = 2")
    if change == "delete and append":
        foreign(feed.table, columns(feed.table), 50)
    feed.put("3.ndjson")
    feed.load()
    foreign(feed.table, columns(feed.table), 77)
    clean_log(feed.table)
    assert feed.run().error is None


@pytest.mark.full
@pytest.mark.needs_spark
def test_another_writers_condition_is_named_and_mended(make_feed: MakeFeed, engine: SparkEngine) -> None:
    feed = make_feed()
    feed.put("a.ndjson", 1)
    feed.load()
    engine.session().sql(f"ALTER TABLE delta.`{feed.table}` ADD CONSTRAINT small CHECK (id < 5)").collect()
    feed.put("b.ndjson", 7)
    error = feed.fail()
    assert "Another writer set this constraint. Leave out or correct such rows" in error.message
    assert feed.open_intent is None
    feed.define(sql="select id from input where id < 5")
    assert (feed.load().rows, feed.ids) == (0, [1])
