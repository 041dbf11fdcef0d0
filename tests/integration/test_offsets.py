"""Commits of a table, read by their position in its log (docs/reference/offsets.md)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from partitions.offset.slices import CommitRange, OffsetSlice
from resources.outcome import Outcome, Step
from resources.spark.engine import SparkEngine
from tests.support.commits import OF_CHANGES, UPSTREAMS, Upstream, copying, replayed, rows_of
from tests.support.feed import Feed
from tests.support.iceberg import foreign_table
from tests.support.steps import Killed, killed_at

pytestmark = pytest.mark.usefixtures("engine")

FORMATS = pytest.mark.parametrize("kind", UPSTREAMS)


class Copy(NamedTuple):
    """A dataflow, and the table that it reads."""

    feed: Feed
    upstream: Upstream


@pytest.fixture
def make(tmp_path: Path, engine: SparkEngine) -> Any:
    def made(kind: str = "delta", **keys: Any) -> Copy:
        feed = Feed(tmp_path / "project", engine, copying(**keys))
        return Copy(feed, UPSTREAMS[kind](feed.folder / "lake", engine))

    return made


def keyed(load: str = "merge_upsert", **target: Any) -> dict[str, Any]:
    return {"target": {"load": load, "merge_keys": ["id"], **target}}


def commits_read(outcome: Outcome) -> list[int]:
    """Return the number of commits of each slice of a run."""
    slices = [part.slice for part in outcome.committed if isinstance(part.slice, OffsetSlice)]
    return [len(part.commits) for slice_ in slices if isinstance(part := slice_.input, CommitRange)]


@FORMATS
def test_rows_that_come_late_are_read_because_their_commit_stands_behind_the_position(
    make: Any, kind: str
) -> None:
    feed, upstream = make(kind)
    upstream.append((5, "a"), (9, "b"))
    feed.load()
    upstream.append((1, "late"))
    upstream.compact()
    upstream.append((2, "later"))
    outcome = feed.load()
    assert rows_of(feed) == [(1, "late"), (2, "later"), (5, "a"), (9, "b")]
    assert commits_read(outcome) == [3]
    assert feed.load().status == "nothing"


def test_of_25_rows_5_came_late_and_only_a_column_without_a_look_back_loses_them(
    make: Any, engine: SparkEngine
) -> None:
    feed, upstream = make()
    column = copying(watermark={"type": "column", "columns": ["id"]}, target={"table": "silver/by_column"})
    by_column = Feed(feed.folder, engine, column, name="by_column")
    upstream.append(*((100 + number, "in time") for number in range(20)))
    feed.load()
    by_column.load()
    upstream.append(*((number, "late") for number in range(5)))
    feed.load()
    by_column.load()
    assert [len(rows_of(copy)) for copy in (feed, by_column)] == [25, 20]
    (warning,) = feed.command("validate").json["warnings"]
    assert warning["dataflow"] == "by_column"
    by_column.define(
        watermark={"backward": {"by": 1000}}, target={"load": "merge_upsert", "merge_keys": ["id"]}
    )
    by_column.decide("accept")
    by_column.load()
    assert rows_of(by_column) == rows_of(feed)
    assert feed.command("validate").json["warnings"] == []


@FORMATS
def test_a_first_read_in_parts_goes_on_after_its_last_file_and_commits_follow(make: Any, kind: str) -> None:
    feed, upstream = make(kind, watermark={"checkpoint": {"files": 1}, "max_slices": 2})
    for number in range(4):
        upstream.append((number, "first"))
    feed.load()
    assert feed.watermark["snapshot"]["files_done"] == 2
    upstream.append((9, "meanwhile"))
    feed.load()
    assert len(rows_of(feed)) == 4
    feed.load()
    assert rows_of(feed) == [*((number, "first") for number in range(4)), (9, "meanwhile")]


@FORMATS
def test_updates_and_deletes_are_applied_by_keys(make: Any, kind: str) -> None:
    feed, upstream = make(kind, **keyed())
    upstream.append((1, "a"), (2, "b"), (3, "c"))
    feed.load()
    upstream.update(1, "x")
    upstream.delete(2)
    upstream.merge((3, "y"), (4, "new"))
    upstream.append((5, "e"))
    upstream.delete(5)
    upstream.append((2, "again"))
    feed.load()
    assert rows_of(feed) == upstream.rows() == [(1, "x"), (2, "again"), (3, "y"), (4, "new")]


@FORMATS
def test_every_change_is_kept_as_a_row_and_replays_to_the_table(make: Any, kind: str) -> None:
    feed, upstream = make(kind, source={"on_change": "keep"}, target={"merge_keys": ["id"]})
    upstream.append((1, "a"), (2, "b"))
    feed.load()
    upstream.update(1, "x")
    upstream.delete(2)
    feed.load()
    changes = feed.rows(*OF_CHANGES)
    assert sorted(change[:3] for change in changes) == [
        (1, "a", "insert"),
        (1, "a", "update_preimage"),
        (1, "x", "update_postimage"),
        (2, "b", "delete"),
        (2, "b", "insert"),
    ]
    assert replayed(changes) == upstream.rows()


@FORMATS
def test_a_table_that_was_set_back_is_a_change_like_others(make: Any, kind: str) -> None:
    feed, upstream = make(kind, **keyed())
    upstream.append((1, "a"))
    upstream.append((2, "b"))
    upstream.update(1, "x")
    feed.load()
    upstream.restore(2)
    feed.load()
    assert rows_of(feed) == upstream.rows() == [(1, "a")]
    upstream.append((3, "c"))
    feed.load()
    assert rows_of(feed) == [(1, "a"), (3, "c")]


def test_files_of_several_commits_are_told_apart_whatever_their_names(make: Any) -> None:
    feed, upstream = make(source={"from": "earliest"}, **keyed())
    for number, name in enumerate(["a b.parquet", "c%41+é.parquet", "d=1:2#?.parquet", "e+f.parquet"]):
        upstream.append((number, name))
        upstream.rename_file(name)
    feed.load()
    assert rows_of(feed) == upstream.rows()
    assert len(rows_of(feed)) == 4


@pytest.mark.remedy("source_changed", "state accept", "state reset --replace")
@FORMATS
def test_a_change_stops_a_load_that_appends_and_both_ways_out_work(make: Any, kind: str) -> None:
    feed, upstream = make(kind)
    upstream.append((1, "a"), (2, "b"))
    feed.load()
    upstream.append((3, "c"))
    upstream.delete(2)
    error = feed.fail()
    assert (error.code, error.exit_code, rows_of(feed)) == ("source_changed", 4, [(1, "a"), (2, "b")])
    assert len(feed.entries) == 1
    feed.decide("accept")
    feed.load()
    assert rows_of(feed) == [(1, "a"), (2, "b"), (3, "c")]
    upstream.update(1, "x")
    assert feed.fail().code == "source_changed"
    feed.decide("reset", "--replace")
    feed.load()
    assert rows_of(feed) == upstream.rows() == [(1, "x"), (3, "c")]


@pytest.mark.remedy("versions_gone", "state reset --replace")
@pytest.mark.remedy("decision", "state accept")  # the code is that of the log's error
@FORMATS
def test_commits_that_were_cleaned_before_they_were_read_stop_and_both_ways_out_work(
    make: Any, kind: str
) -> None:
    feed, upstream = make(kind)
    upstream.append((1, "a"))
    feed.load()
    upstream.append((2, "b"))
    upstream.append((3, "c"))
    upstream.clean()
    error = feed.fail()
    assert (error.code, error.exit_code) == ("versions_gone", 4)
    feed.decide("accept")
    upstream.append((4, "d"))
    feed.load()
    assert rows_of(feed) == [(1, "a"), (3, "c"), (4, "d")]
    upstream.append((5, "e"))
    upstream.append((6, "f"))
    upstream.clean()
    assert feed.fail().code == "versions_gone"
    feed.decide("reset", "--replace")
    feed.load()
    assert rows_of(feed) == upstream.rows()


def test_the_rest_of_a_first_read_that_is_gone_is_never_passed_over(make: Any) -> None:
    feed, upstream = make(watermark={"checkpoint": {"files": 1}, "max_slices": 1})
    for number in range(3):
        upstream.append((number, "first"))
    feed.load()
    upstream.overwrite((9, "other"))
    upstream.clean()
    error = feed.fail()
    assert (error.code, error.exit_code) == ("versions_gone", 4)
    assert [choice.split()[2] for choice in error.choices] == ["reset"]
    assert feed.cli("state", "accept", "flow", "--reason", "x", "--yes").code == 4
    feed.decide("reset", "--replace")
    feed.load()
    assert rows_of(feed) == [(9, "other")]


def test_files_that_were_vacuumed_before_they_were_read_stop_before_an_intent(make: Any) -> None:
    feed, upstream = make()
    upstream.append((1, "a"))
    feed.load()
    upstream.append((2, "b"))
    upstream.append((3, "c"))
    upstream.compact()
    upstream.vacuum()
    error = feed.fail()
    assert (error.code, error.exit_code) == ("versions_gone", 4)
    assert feed.open_intent is None
    upstream.append((4, "d"))
    feed.decide("accept")
    feed.load()
    assert rows_of(feed) == [(1, "a"), (4, "d")]
    upstream.append((5, "e"))
    upstream.append((6, "f"))
    upstream.compact()
    upstream.vacuum()
    assert feed.fail().code == "versions_gone"
    feed.decide("reset", "--replace")
    feed.load()
    assert rows_of(feed) == upstream.rows()


def test_a_first_run_over_files_that_are_gone_begins_with_the_rows_that_are_there(make: Any) -> None:
    feed, upstream = make(source={"from": "earliest"})
    upstream.append((1, "a"))
    upstream.append((2, "b"))
    upstream.compact()
    upstream.vacuum()
    error = feed.fail()
    assert (error.code, error.choices) == ("versions_gone", ())
    assert "Set source.from: snapshot" in error.message
    begins = feed.define(source={"from": "snapshot"})
    begins.load()
    assert rows_of(begins) == upstream.rows()


@FORMATS
def test_a_change_whose_state_before_is_gone_is_passed_over_when_it_is_accepted(make: Any, kind: str) -> None:
    feed, upstream = make(kind, **keyed())
    upstream.append((1, "a"), (2, "b"))
    feed.load()
    upstream.append((3, "c"))
    upstream.update(1, "x")
    upstream.clean()
    assert feed.fail().code == "versions_gone"
    feed.decide("accept")
    upstream.append((4, "d"))
    feed.load()
    assert rows_of(feed) == [(1, "a"), (2, "b"), (4, "d")]


def test_an_iceberg_table_that_was_set_to_snapshots_with_lower_numbers_is_followed(
    make: Any, engine: SparkEngine
) -> None:
    feed, upstream = make("iceberg", **keyed())
    upstream.append((1, "a"))
    feed.load()
    spark = engine.session()
    name = foreign_table(spark, upstream.folder)
    spark.sql(f"ALTER TABLE {name} CREATE BRANCH audit").collect()
    spark.sql(f"UPDATE {name}.branch_audit SET v = 'audited' WHERE id = 1").collect()
    audited = spark.sql(f"SELECT snapshot_id FROM {name}.refs WHERE name = 'audit'").collect()[0][0]
    upstream.update(1, "main")
    feed.load()
    upstream.set_to(audited)
    feed.load()
    assert rows_of(feed) == upstream.rows() == [(1, "audited")]


def test_an_iceberg_table_that_was_raised_from_format_version_1_is_read(
    make: Any, engine: SparkEngine
) -> None:
    feed, upstream = make("iceberg", **keyed())
    spark = engine.session()
    table = foreign_table(spark, upstream.folder)
    properties = "TBLPROPERTIES ('format-version'='1')"
    spark.sql(f"CREATE TABLE {table} (id bigint, v string) USING iceberg {properties}").collect()
    upstream.append((1, "a"))
    upstream.append((2, "b"))
    upstream.delete(2)
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version'='2')").collect()
    feed.load()
    upstream.update(1, "z")
    feed.load()
    assert rows_of(feed) == upstream.rows() == [(1, "z")]


def test_latest_over_an_iceberg_table_without_a_snapshot_misses_no_later_row(
    make: Any, engine: SparkEngine
) -> None:
    feed, upstream = make("iceberg", source={"from": "latest"})
    spark = engine.session()
    properties = "TBLPROPERTIES ('format-version'='2')"
    table = foreign_table(spark, upstream.folder)
    spark.sql(f"CREATE TABLE {table} (id bigint, v string) USING iceberg {properties}").collect()
    feed.load()
    upstream.append((1, "a"))
    feed.load()
    assert rows_of(feed) == [(1, "a")]


def test_all_rows_of_another_table_are_new_wherever_the_dataflow_began(make: Any) -> None:
    import shutil

    feed, upstream = make(source={"from": "latest"})
    upstream.append((1, "a"))
    feed.load()
    shutil.rmtree(upstream.folder)
    upstream.append((7, "other"))
    error = feed.fail()
    assert [choice.split()[2] for choice in error.choices] == ["accept"]
    assert "set source.from: snapshot and load the table as it is now" in error.message
    feed.decide("accept")
    feed.load()
    assert rows_of(feed) == [(7, "other")]
    shutil.rmtree(upstream.folder)
    upstream.append((8, "third"))
    feed.define(source={"from": "snapshot"})
    feed.decide("reset", "--replace")
    feed.load()
    assert rows_of(feed) == [(8, "third")]


@pytest.mark.remedy("source_replaced", "state accept", "state reset --replace")
def test_another_table_of_the_name_stops_and_both_ways_out_work(make: Any) -> None:
    import shutil

    feed, upstream = make()
    upstream.append((1, "a"))
    feed.load()
    shutil.rmtree(upstream.folder)
    upstream.append((7, "other"))
    error = feed.fail()
    assert (error.code, error.exit_code) == ("source_replaced", 4)
    feed.decide("accept")
    feed.load()
    assert rows_of(feed) == [(1, "a"), (7, "other")]
    shutil.rmtree(upstream.folder)
    upstream.append((8, "third"))
    assert feed.fail().code == "source_replaced"
    feed.decide("reset", "--replace")
    feed.load()
    assert rows_of(feed) == [(8, "third")]


@pytest.mark.parametrize("step", [Step.LIST_KEPT, Step.WRITTEN])
@FORMATS
def test_a_slice_that_died_is_finished_with_the_same_commits(make: Any, kind: str, step: Step) -> None:
    feed, upstream = make(kind, **keyed())
    upstream.append((1, "a"), (2, "b"))
    feed.load()
    upstream.update(1, "x")
    upstream.append((3, "c"))
    with pytest.raises(Killed):
        feed.run(killed_at(step, 1))
    upstream.delete(2)
    with suppress(Killed):
        feed.run(killed_at(step, 1))
    feed.load()
    assert rows_of(feed) == upstream.rows() == [(1, "x"), (3, "c")]


def test_skipped_changes_are_named_by_the_ledger_and_by_why(make: Any) -> None:
    feed, upstream = make(source={"on_change": "skip"})
    upstream.append((1, "a"), (2, "b"))
    feed.load()
    upstream.delete(2)
    upstream.append((3, "c"))
    outcome = feed.load()
    assert rows_of(feed) == [(1, "a"), (2, "b"), (3, "c")]
    assert [warning.partition(" (")[0] for warning in outcome.warnings] == ["version 1"]
    (passed,) = feed.command("ledger", "flow").json[0]["passed_over"]
    assert passed["entry"] == 2
    assert "DELETE" in passed["change"]
    assert feed.command("why", "flow", "1").json["status"] == "skipped"


@pytest.mark.parametrize(
    ("start", "expected"),
    [("earliest", [1, 2, 3]), ("latest", [3]), (0, [2, 3]), ("snapshot", [1, 2, 3])],
)
def test_where_a_dataflow_begins(make: Any, start: Any, expected: list[int]) -> None:
    feed, upstream = make(source={"from": start})
    upstream.append((1, "a"))
    upstream.append((2, "b"))
    feed.load()
    upstream.append((3, "c"))
    feed.load()
    assert feed.ids == expected


def test_a_start_behind_the_newest_version_is_refused_since_versions_up_to_it_would_be_read(
    make: Any,
) -> None:
    feed, upstream = make(source={"from": 5})
    upstream.append((1, "a"))
    error = feed.fail()
    assert "expected version 5 (source.from)" in error.message
    assert feed.entries == []


def test_a_start_by_time_is_the_last_commit_before_it_whatever_the_clocks_of_writers_said(make: Any) -> None:
    feed, upstream = make(source={"from": {"time": "2026-01-01T00:00:00Z"}})
    for version, day in enumerate(["2025-01-01", "2026-02-01", "2025-12-01", "2026-03-01"]):
        upstream.append((version, day))
        upstream.date_commit(version, f"{day}T00:00:00+00:00")
    feed.load()
    assert rows_of(feed) == [(3, "2026-03-01")]


def test_an_empty_table_has_no_first_read_and_what_comes_later_is_not_missed(make: Any) -> None:
    feed, upstream = make()
    upstream.append((1, "a"))
    upstream.delete(1)
    feed.load()
    assert rows_of(feed) == []
    upstream.append((2, "b"))
    feed.load()
    assert rows_of(feed) == [(2, "b")]


def test_versions_follow_updates_and_end_with_the_commit_that_deletes(make: Any) -> None:
    sql = "SELECT *, timestamp '2026-01-01' + make_interval(0, 0, 0, 0, 0, _commit_version) AS at FROM input"
    feed, upstream = make(sql=sql, **keyed("scd2", effective_column="at"))
    upstream.append((1, "a"), (2, "b"))
    upstream.update(1, "x")
    feed.load()
    upstream.update(1, "y")
    upstream.delete(2)
    feed.load()
    versions = feed.rows("id", "v", "_is_current", "_is_deleted")
    assert versions == [(1, "x", False, False), (1, "y", True, False), (2, "b", False, True)]


def test_a_delete_ends_a_version_that_begins_after_it(make: Any) -> None:
    sql = "SELECT *, timestamp '2099-01-01' AS at FROM input"
    feed, upstream = make(sql=sql, **keyed("scd2", effective_column="at"))
    upstream.append((1, "a"), (2, "b"))
    feed.load()
    upstream.delete(2)
    feed.load()
    assert feed.rows("id", "v", "_is_current") == [(1, "a", True)]


def test_a_rollback_ends_versions_although_it_has_no_time(make: Any) -> None:
    sql = "SELECT *, timestamp '2026-01-01' + make_interval(0, 0, 0, 0, 0, _commit_version) AS at FROM input"
    feed, upstream = make("iceberg", sql=sql, **keyed("scd2", effective_column="at"))
    upstream.append((1, "a"))
    upstream.append((2, "b"))
    feed.load()
    upstream.restore(1)
    feed.load()
    assert feed.rows("id", "v", "_is_current") == [(1, "a", True), (2, "b", False)]


def test_a_step_that_drops_the_columns_of_changes_is_refused_by_name(make: Any) -> None:
    feed, upstream = make(sql="SELECT id, v FROM input", **keyed())
    upstream.append((1, "a"))
    error = feed.fail()
    assert "expected the columns _change_type, _commit_version of its input in its result" in error.message
    feed.define(sql="SELECT *, upper(v) AS u FROM input")
    feed.load()
    upstream.delete(1)
    feed.load()
    assert rows_of(feed) == []


def test_a_dataflow_takes_over_the_version_of_another_reader(make: Any) -> None:
    feed, upstream = make()
    upstream.append((1, "a"))
    upstream.append((2, "b"))
    upstream.append((3, "c"))
    feed.decide("set", "1")
    feed.load()
    assert rows_of(feed) == [(3, "c")]


def test_a_chain_of_two_hops_gives_what_the_first_table_has(make: Any, engine: SparkEngine) -> None:
    feed, upstream = make(**keyed())
    upstream.append((1, "a"), (2, "b"))
    second = copying(source={"table": "silver/copy"}, **keyed(table="gold/copy"))
    gold = Feed(feed.folder, engine, second, name="gold")
    feed.load()
    gold.load()
    upstream.merge((1, "x"), (3, "c"))
    upstream.delete(2)
    feed.load()
    gold.load()
    assert rows_of(gold) == rows_of(feed) == upstream.rows() == [(1, "x"), (3, "c")]


def test_commits_of_a_parquet_table_are_read_like_others(make: Any, engine: SparkEngine) -> None:
    feed, upstream = make(target={"format": "parquet"})
    upstream.append((1, "a"), (2, "b"))
    gold = Feed(
        feed.folder,
        engine,
        copying(source={"table": "silver/copy"}, target={"table": "gold/copy"}),
        name="gold",
    )
    feed.load()
    gold.load()
    upstream.append((0, "late"))
    feed.load()
    outcome = gold.load()
    assert rows_of(gold) == [(0, "late"), (1, "a"), (2, "b")]
    assert commits_read(outcome) == [1]
