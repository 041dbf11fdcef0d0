"""Care of tables: what it joins and deletes, who waits for whom, and what is left where it dies (docs/how-to/maintenance.md)."""

from __future__ import annotations

import os
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from dagster import DagsterInstance, RunRequest, build_schedule_context
from deltalake import DeltaTable
from deltalake.table import TableOptimizer

from partitions.errors import Conflict, DataflowHeld, NeedsDecision, TargetError
from partitions.maintenance_periods import Task
from partitions.sentinels import serialise
from platform_assets.build import build_definitions
from platform_assets.project import load_project
from resources.connections.places import Place
from resources.decisions import maintenance
from resources.decisions.maintenance import due_tasks, maintain
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from resources.tables.delta.maintenance import DeltaMaintenance, interval_of
from resources.tables.delta.table import DeltaLakeTable
from resources.watermarks.entry import next_entry
from resources.watermarks.log import WatermarkLog
from tests.integration.conftest import MakeFeed
from tests.support.feed import CHECKOUT, NAME, NOW, Feed, dies_after
from tests.support.jvmless import Killed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BOTH: tuple[Task, ...] = ("vacuum", "optimize")
PERIODS = {"optimize": "P1D", "vacuum": "P7D"}
WEEKS = 30 * 24 * 3600

pytestmark = pytest.mark.without_jvm


@pytest.fixture
def ticked(make_feed: MakeFeed) -> Feed:
    """A dataflow that has loaded six small files, each in a commit of its own."""
    feed = make_feed(maintenance=PERIODS, watermark={"checkpoint": {"interval_files": 1}})
    for number in range(1, 7):
        feed.put(f"{number}.ndjson", number)
    feed.load()
    return feed


def _files(feed: Feed) -> list[str]:
    """Those of the newest version."""
    return sorted(DeltaTable(str(feed.table)).file_uris())


def _care(feed: Feed, *tasks: Task) -> maintenance.MaintenanceReport:
    return maintain(feed.platform, feed.dataflow, tasks or BOTH)


def _forget_quickly(feed: Feed) -> None:
    """Have the table keep nothing of older versions."""
    properties = {"delta.deletedFileRetentionDuration": "interval 0 hours"}
    DeltaTable(str(feed.table)).alter.set_table_properties(properties)


def test_small_files_are_joined_and_the_next_run_goes_on(ticked: Feed) -> None:
    done = _care(ticked, "optimize")
    assert (len(_files(ticked)), ticked.ids) == (1, [1, 2, 3, 4, 5, 6])
    assert done.as_json() == {"optimize: files added": 1, "optimize: files removed": 6}
    entry = ticked.newest
    assert entry is not None
    assert (entry.why, entry.number, entry.reason, entry.state()) == (
        "maintain",
        7,
        "optimize: 1 file added, 6 files removed",
        {"path": "6.ndjson"},
    )
    assert entry.table_file == Path(_files(ticked)[0]).name
    ticked.put("7.ndjson", 7)
    ticked.load()
    assert ticked.ids == [1, 2, 3, 4, 5, 6, 7]


def test_the_history_says_what_care_did(ticked: Feed) -> None:
    _care(ticked)
    assert ticked.newest is not None
    assert ticked.newest.reason == "vacuum: nothing to do; optimize: 1 file added, 6 files removed"


def test_care_of_a_table_without_small_files_changes_nothing(ticked: Feed) -> None:
    _care(ticked)
    before, version = _files(ticked), len(ticked.commits)
    assert _care(ticked, "optimize").as_json() == {}
    assert (_files(ticked), len(ticked.commits)) == (before, version)
    assert ticked.run().status == "nothing"


def test_files_go_that_are_older_than_the_retention_and_no_others(ticked: Feed) -> None:
    _care(ticked, "optimize")
    left = ticked.table / "0000000009-dead"
    fresh = ticked.table / "0000000010-alive"
    for folder in (left, fresh):
        folder.mkdir()
        (folder / "part-0.parquet").write_bytes(b"staged")
    old = time.time() - WEEKS
    os.utime(left / "part-0.parquet", (old, old))
    assert _care(ticked, "vacuum").as_json() == {"vacuum: files deleted": 1}
    assert (fresh / "part-0.parquet").exists()
    assert not (left / "part-0.parquet").exists()
    assert (
        DeltaTable(str(ticked.table), version=5).to_pyarrow_table().num_rows == 6
    )  # of before the files were joined
    _forget_quickly(ticked)
    there = set(ticked.table.rglob("*.parquet"))
    deleted = _care(ticked, "vacuum").results["vacuum"].deleted
    assert deleted == len({path for path in there if not path.exists()}) >= 6
    assert _care(ticked, "vacuum").results["vacuum"].deleted == 0, "what went long ago is not deleted again"
    ticked.put("7.ndjson", 7)
    ticked.load()
    assert ticked.ids == [1, 2, 3, 4, 5, 6, 7]


def test_states_that_lie_beside_the_table_are_kept(ticked: Feed) -> None:
    kept = ticked.table / "_strandline" / "state.json"
    kept.parent.mkdir()
    kept.write_text("{}")
    os.utime(kept, (time.time() - WEEKS,) * 2)
    _care(ticked)
    assert kept.exists()


def test_care_gives_way_to_a_run_that_lives(ticked: Feed) -> None:
    ticked.put("7.ndjson", 7)
    refused: list[type[Exception]] = []

    def meanwhile(step: Step, line: str) -> None:
        if step is Step.INTENT_PUT:
            with pytest.raises(DataflowHeld) as held:
                _care(ticked)
            refused.append(held.type)

    assert ticked.run(meanwhile).error is None
    assert (refused, ticked.ids) == ([DataflowHeld], [1, 2, 3, 4, 5, 6, 7])


@pytest.mark.remedy("conflict", "run")
def test_care_leaves_the_slice_of_a_dead_run_to_the_next_run(ticked: Feed) -> None:
    ticked.put("7.ndjson", 7)
    with pytest.raises(KeyboardInterrupt):
        ticked.run(dies_after(Step.INTENT_PUT))
    with pytest.raises(Conflict, match="unfinished"):
        _care(ticked)
    assert ticked.run().status == "recovered"
    _care(ticked)
    assert ticked.ids == [1, 2, 3, 4, 5, 6, 7]


def test_a_run_gives_way_to_care(ticked: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    ticked.put("7.ndjson", 7)
    met: list[Any] = []
    real = DeltaMaintenance.optimize

    def optimize(self: DeltaMaintenance, session: Any, cluster_by: Any) -> Any:
        met.append(ticked.run().error)
        return real(self, session, cluster_by)

    monkeypatch.setattr(DeltaMaintenance, "optimize", optimize)
    _care(ticked)
    assert [type(error) for error in met] == [DataflowHeld]
    assert (ticked.load().status, ticked.ids) == ("committed", [1, 2, 3, 4, 5, 6, 7])


@pytest.mark.parametrize("point", ["before", "after", "append"])
def test_care_that_dies_leaves_rows_once(ticked: Feed, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    real = DeltaMaintenance.optimize

    def optimize(self: DeltaMaintenance, session: Any, cluster_by: Any) -> Any:
        if point == "before":
            raise Killed
        real(self, session, cluster_by)
        raise Killed

    def append(*given: Any, **named: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patch:
        if point == "append":
            patch.setattr(WatermarkLog, "append", append)
        else:
            patch.setattr(DeltaMaintenance, "optimize", optimize)
        with pytest.raises(Killed):
            _care(ticked)
    ticked.put("7.ndjson", 7)
    ticked.load()
    _care(ticked)
    assert ticked.ids == [1, 2, 3, 4, 5, 6, 7]
    assert [entry.why for entry in ticked.entries] == ["run"] * 6 + ["abandon", "run", "maintain"]


def test_a_dead_care_is_ended_by_the_next_one(ticked: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(
            DeltaMaintenance, "optimize", lambda self, session, cluster_by: (_ for _ in ()).throw(Killed())
        )
        with pytest.raises(Killed):
            _care(ticked)
    _care(ticked)
    assert [entry.why for entry in ticked.entries[-2:]] == ["abandon", "maintain"]


def test_care_stops_where_somebody_has_undone_the_table(ticked: Feed) -> None:
    DeltaTable(str(ticked.table)).restore(2)
    with pytest.raises(NeedsDecision) as stopped:
        _care(ticked)
    assert stopped.value.code == "table_behind"


def test_files_that_a_slice_downstream_reads_stay(ticked: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    below = {
        "source": {"type": "table", "table": f"bronze/{NAME}"},
        "watermark": {"type": "column", "columns": ["id"]},
        "target": {"load": "append", "table": "bronze/below", "origin_columns": False},
    }
    (ticked.folder / "dataflows" / "below.yaml").write_text(yaml.safe_dump(below))
    platform = ticked.platform
    assert platform.lineage.readers_of(f"bronze/{NAME}") == ("below",)
    intent = platform.log.intent(NAME, 6)
    assert intent is not None
    old = intent.model_copy(update={"dataflow": "below", "number": 1, "time": "2026-01-01T00:00:00+00:00"})
    platform.log.put_intent(old)
    done = _care(ticked)
    assert set(done.results) == {"optimize"}
    assert "below has a slice unfinished" in done.skipped["vacuum"]


def test_vacuum_waits_for_a_dataflow_that_has_not_read_commits_whose_files_may_go(ticked: Feed) -> None:
    below = {
        "source": {"type": "table", "table": f"bronze/{NAME}"},
        "watermark": {"type": "offset"},
        "target": {"load": "append", "table": "bronze/below"},
    }
    (ticked.folder / "dataflows" / "below.yaml").write_text(yaml.safe_dump(below))
    table, log = DeltaTable(str(ticked.table)), ticked.platform.log
    position = {"table": str(table.metadata().id), "version": 2}
    behind = next_entry(
        None, why="set", kind="offset", app_id="x", fingerprint="x", watermark=serialise({"offset": position})
    )
    log.append("below", behind, expected=0)
    assert set(_care(ticked, "vacuum").results) == {"vacuum"}, "its files stay for a week anyway"
    table.alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 0 seconds"})
    waits = _care(ticked)
    assert set(waits.results) == {"optimize"}
    assert "below has not read what table bronze/flow got since" in waits.skipped["vacuum"]
    at_the_end = {"offset": {**position, "version": DeltaTable(str(ticked.table)).version()}}
    log.append("below", next_entry(behind, why="set", watermark=serialise(at_the_end)), expected=1)
    assert set(_care(ticked, "vacuum").results) == {"vacuum"}


def test_vacuum_waits_for_no_dataflow_that_follows_no_commits_of_the_table(ticked: Feed) -> None:
    day = [{"name": "day", "type": "datetime", "range": {"from": "2026-01-01", "to": "-"}}]
    windows = {"type": "window", "definition": day, "window": "daily"}
    here, elsewhere = f"bronze/{NAME}", "bronze/other"
    readers: dict[str, dict[str, Any]] = {
        "followed_once": {
            "source": {"type": "table", "table": here, "window_column": "at"},
            "watermark": windows,
        },
        "beside": {
            "source": {"type": "table", "table": elsewhere},
            "watermark": {"type": "offset"},
            "inputs": {"ids": here},
            "sql": "SELECT input.* FROM input JOIN ids USING (id)",
        },
    }
    table, log = DeltaTable(str(ticked.table)), ticked.platform.log
    table.alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 0 seconds"})
    read_at = {"table": str(table.metadata().id), "version": 2}
    loaded = {"grid": "daily UTC", "units": {"{}": [[0, 86_400_000]]}, "read_at": read_at}
    watermarks: dict[str, dict[str, Any]] = {
        "followed_once": loaded,
        "beside": {"offset": {"table": "of the other", "version": 2}},
    }
    for name, reader in readers.items():
        definition = reader | {"target": {"load": "append", "table": f"bronze/{name}"}}
        (ticked.folder / "dataflows" / f"{name}.yaml").write_text(yaml.safe_dump(definition))
        entry = next_entry(
            None,
            why="set",
            kind=str(reader["watermark"]["type"]),
            app_id="x",
            fingerprint="x",
            watermark=serialise(watermarks[name]),
        )
        log.append(name, entry, expected=0)
    assert set(_care(ticked, "vacuum").results) == {"vacuum"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("interval 1 week", timedelta(days=7)),
        ("interval 36 hours", timedelta(hours=36)),
        ("INTERVAL 1 day 2 hours", timedelta(hours=26)),
        ("interval 3 fortnights", timedelta(0)),
    ],
)
def test_an_interval_of_deltas_properties(text: str, expected: timedelta) -> None:
    assert interval_of(text) == expected


def test_what_is_due_is_told_by_when_it_was_done(ticked: Feed) -> None:
    assert due_tasks(ticked.platform, ticked.dataflow, NOW) == BOTH
    entry = _care(ticked).entry
    assert entry is not None
    done = datetime.fromisoformat(entry.time)
    dues = [due_tasks(ticked.platform, ticked.dataflow, done + timedelta(days=days)) for days in (0, 2, 8)]
    assert dues == [(), ("optimize",), BOTH]


def test_the_job_cares_for_the_table_and_the_schedule_asks_for_what_is_due(ticked: Feed) -> None:
    definitions = build_definitions(load_project(ticked.folder), ticked.platform)
    schedule = definitions.resolve_schedule_def(f"{NAME}_maintenance")
    with DagsterInstance.ephemeral() as instance:
        context = build_schedule_context(instance, scheduled_execution_time=NOW)
        asked = schedule.evaluate_tick(context).run_requests
        assert asked is not None
        (request,) = asked
        assert isinstance(request, RunRequest)
        job = definitions.resolve_job_def(f"maintain_{NAME}")
        assert job.execute_in_process(run_config=request.run_config, instance=instance).success
        assert schedule.evaluate_tick(context).skip_message == "nothing is due"
    assert (len(_files(ticked)), ticked.ids) == (1, [1, 2, 3, 4, 5, 6])


def test_the_command_cares_for_the_table_and_with_due_only_when_its_time_has_come(ticked: Feed) -> None:
    done = {
        "vacuum": {"added": 0, "removed": 0, "deleted": 0},
        "optimize": {"added": 1, "removed": 6, "deleted": 0},
    }
    assert ticked.cli("maintain", NAME, "--due").json == {
        "dataflow": NAME,
        "number": 7,
        "done": done,
        "skipped": {},
    }
    assert ticked.cli("maintain", NAME, "--due").json["number"] is None
    assert ticked.cli("maintain", NAME).json["number"] == 8
    assert ticked.ids == [1, 2, 3, 4, 5, 6]


def test_the_command_names_the_key_of_a_dataflow_without_care(make_feed: MakeFeed) -> None:
    answer = make_feed().cli("maintain", NAME)
    assert answer.code == 2
    assert "expected the key maintenance in its file" in answer.json["error"]["message"]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"maintenance": {}}, "maintenance"),
        ({"maintenance": {"optimize": "PT5M"}}, "maintenance.optimize"),
        ({"maintenance": PERIODS, "target": {"format": "parquet"}}, "maintenance.optimize"),
    ],
    ids=["nothing", "too often", "parquet"],
)
def test_care_that_cannot_be_is_refused(make_feed: MakeFeed, given: dict[str, Any], found: str) -> None:
    answer = make_feed(**given).cli("validate")
    assert answer.code == 2
    assert found in [error["key"] for error in answer.json["errors"]]


@pytest.mark.parametrize(("block", "tasks"), [(1, ["vacuum", "optimize"]), (2, ["optimize"])])
def test_the_yaml_of_the_page_is_a_dataflow(make_feed: MakeFeed, block: int, tasks: list[str]) -> None:
    page = (CHECKOUT / "docs/how-to/maintenance.md").read_text()
    feed = make_feed(**yaml.safe_load(page.split("```yaml\n")[block].split("```")[0]))
    assert list(feed.dataflow.maintenance.periods()) == tasks  # type: ignore[union-attr]


def _three_files_of_delta_s(spark: SparkSession, tmp_path: Path) -> Path:
    """The folder of a table that only Delta's own writer changes."""
    folder = tmp_path / "table"
    rows = spark.createDataFrame([(1,)], "`a b` long").coalesce(1)
    for _ in range(3):
        rows.write.format("delta").option("delta.columnMapping.mode", "name").mode("append").save(str(folder))
    return folder


@pytest.mark.full
@pytest.mark.needs_spark
def test_a_table_that_asks_more_is_cared_for_by_delta(engine: SparkEngine, tmp_path: Path) -> None:
    spark: SparkSession = engine.session()
    folder = _three_files_of_delta_s(spark, tmp_path)
    table = DeltaLakeTable(Place(str(folder)))
    done = table.maintenance.optimize(lambda: spark, ())
    assert (done.added, done.removed, table.contents.count_rows()) == (1, 3, 3)
    assert table.maintenance.vacuum(lambda: spark).deleted == 0


@pytest.mark.full
@pytest.mark.needs_spark
def test_deltas_vacuum_counts_what_it_deletes(engine: SparkEngine, tmp_path: Path) -> None:
    spark: SparkSession = engine.session()
    folder = _three_files_of_delta_s(spark, tmp_path)
    spark.sql(
        f"ALTER TABLE delta.`{folder}` SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 0 hours')"
    )
    table = DeltaLakeTable(Place(str(folder)))
    table.maintenance.optimize(lambda: spark, ())
    files = {path for path in folder.rglob("*") if path.is_file() and "_delta_log" not in path.parts}
    deleted = table.maintenance.vacuum(lambda: spark).deleted
    left = {path for path in files if path.exists()}
    assert (deleted, table.contents.count_rows()) == (len(files) - len(left), 3)
    assert deleted >= 3
    assert table.maintenance.vacuum(lambda: spark).deleted == 0


@pytest.mark.needs_spark
@pytest.mark.full
def test_care_joins_files_with_other_letters_in_their_paths(engine: SparkEngine, tmp_path: Path) -> None:
    spark: SparkSession = engine.session()
    folder = tmp_path / "table"
    parts = "array('a&b', 'x,y', 'c d', '1:2', '50%', 'é', '[z]', \"it's\", 'a%20b')"
    for number in range(2):
        rows = spark.sql(f"SELECT {number}L AS id, explode({parts}) AS part").coalesce(1)
        rows.write.format("delta").partitionBy("part").mode("append").save(str(folder))

    def found() -> list[tuple[Any, ...]]:
        return sorted(map(tuple, spark.read.format("delta").load(str(folder)).collect()))

    before, table = found(), DeltaLakeTable(Place(str(folder)))
    for path in folder.rglob("*.parquet"):
        os.utime(path, (time.time() - WEEKS,) * 2)
    assert table.maintenance.vacuum(lambda: spark).deleted == 0
    assert found() == before
    table.maintenance.optimize(lambda: spark, ())
    assert (found(), table.contents.count_rows()) == (before, len(before))
    for path in folder.rglob("*.parquet"):
        os.utime(path, (time.time() - WEEKS,) * 2)
    table.maintenance.vacuum(lambda: spark)
    assert found() == before


@pytest.mark.full
@pytest.mark.needs_spark
@pytest.mark.each_case
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_rows_are_clustered_by_columns_and_the_next_run_goes_on(make_feed: MakeFeed, form: str) -> None:
    feed = make_feed(
        source={"schema": "id long, kind long"},
        target={"format": form, "cluster_by": ["kind"]},
        watermark={"checkpoint": {"interval_files": 1}},
        maintenance=PERIODS,
    )
    for number in range(1, 5):
        feed.put(f"{number}.ndjson", *({"id": 10 * number + kind, "kind": kind} for kind in (3, 1, 2)))
    feed.load()
    before = feed.rows("id", "kind")
    cared = _care(feed, "optimize").results["optimize"]
    assert (cared.added, cared.removed, feed.rows("id", "kind")) == (1, 4, before)
    assert _clustering(feed) == (["kind"] if form == "delta" else [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3])
    feed.define(target={"cluster_by": ["id", "kind"]})
    feed.put("5.ndjson", {"id": 51, "kind": 1})
    assert (feed.load().status, feed.rows("id", "kind")) == ("committed", [*before, (51, 1)])
    _care(feed, "optimize")
    assert feed.rows("id", "kind") == [*before, (51, 1)]
    if form == "delta":
        assert _clustering(feed) == ["id", "kind"]
    assert feed.run().status == "nothing"


@pytest.mark.each_case
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_missing_cluster_column_stops_care_before_it_begins(make_feed: MakeFeed, form: str) -> None:
    feed = make_feed(maintenance=PERIODS, target={"format": form})
    feed.put("1.ndjson", 1)
    feed.load()
    feed.define(target={"cluster_by": ["idd"]})
    number = feed.newest.number if feed.newest else None
    answer = feed.cli("maintain", NAME)
    said = answer.json["error"]["message"]
    assert answer.code == 2
    assert (
        f"target.cluster_by: expected columns of the table bronze/{NAME}, found idd (did you mean id?); the names are id"
        in said
    )
    assert said.endswith("Correct target.cluster_by")
    assert (feed.newest.number if feed.newest else None) == number


def _clustering(feed: Feed) -> Any:
    """By which columns a Delta table is clustered; the order in which the rows of an Iceberg table's only file lie by kind."""
    spark = feed.engine.session()
    if feed.dataflow.target.format == "delta":
        return spark.sql(f"DESCRIBE DETAIL delta.`{feed.table}`").collect()[0]["clusteringColumns"]
    table = feed.platform.table(feed.dataflow)
    return [row["kind"] for row in table.contents.read(spark, table.contents.newest_version()).collect()]


@pytest.mark.full
@pytest.mark.needs_spark
def test_a_table_with_partitions_is_not_clustered_and_says_what_to_do(make_feed: MakeFeed) -> None:
    feed = make_feed(
        source={"schema": "id long, kind long"}, target={"partition_by": ["kind"]}, maintenance=PERIODS
    )
    feed.put("1.ndjson", {"id": 1, "kind": 1})
    feed.load()
    feed.define(target={"partition_by": None, "cluster_by": ["id"]})
    with pytest.raises(
        TargetError, match=r"found one partitioned by kind\. Remove target\.cluster_by, or reload"
    ):
        _care(feed, "optimize")
    feed.put("2.ndjson", {"id": 2, "kind": 1})
    feed.load()
    assert feed.rows("id", "kind") == [(1, 1), (2, 1)]


def test_a_failed_care_says_that_no_row_was_changed(ticked: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    def compact(self: Any) -> Any:
        raise OSError("no space left")

    monkeypatch.setattr(TableOptimizer, "compact", compact)
    with pytest.raises(TargetError, match=r"no space left\. No row was changed"):
        _care(ticked)
    ticked.put("7.ndjson", 7)
    assert (ticked.load().status, ticked.ids) == ("committed", [1, 2, 3, 4, 5, 6, 7])
