"""A function with ``@incremental_asset`` loads exactly its rows: by column and by window, after a kill, and in Dagster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from dagster import AssetCheckKey, AssetKey, DagsterInstance, ExecuteInProcessResult

from platform_assets.build import build_definitions
from platform_assets.project import load_project
from resources.dagster.run_options import RunOptions
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.support.columns import Columns, at
from tests.support.crash_runner import crash
from tests.support.feed import NAME, NOW
from tests.support.python_projects import PythonFeed

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
TABLE = AssetKey(["bronze", NAME])
BY_COLUMN = """
@incremental_asset(watermark=BY_TIME, schema={"id": "long", "at": "timestamp", "value": "long"})
def flow(request):
    yield from stored(request)
"""
BY_WINDOW = """
DAYS = {"name": "day", "type": "datetime", "range": {"from": "2026-01-01", "to": "2026-01-03"}}
REGIONS = {"name": "region", "type": "unit", "units": ["eu", "us"]}

@incremental_asset(
    watermark={
        "type": "window",
        "definition": [DAYS, REGIONS],
        "window": "daily",
        "checkpoint": {"interval_windows": 1},
        "dagster_units": "partitions",
    },
    target={"load": "merge_overwrite", "replace_by_watermark": True},
    schema={"id": "long", "day": "date", "region": "string"},
    window_column="day",
    unit_columns={"region": "region"},
)
def flow(request):
    if (HERE / "down").exists() and request.unit["region"] == "us":
        raise RuntimeError("the shop is down")
    yield from stored(request)
"""


def by_column(folder: Path, engine: SparkEngine) -> tuple[Columns, PythonFeed]:
    feed = PythonFeed(folder, engine, code=BY_COLUMN)
    (folder / "rows.jsonl").touch()
    return Columns(feed), feed


def row(number: int, day: int) -> dict[str, Any]:
    return {"id": number, "at": at(day).isoformat(), "value": number}


def test_two_runs_load_each_row_once_and_commit_it_with_the_watermark(
    tmp_path: Path, engine: SparkEngine
) -> None:
    flow, feed = by_column(tmp_path, engine)
    feed.store(row(1, 1), row(2, 2))
    assert flow.run().rows == 2
    feed.store(row(3, 3))
    assert flow.run().rows == 1
    assert flow.run().status == "nothing"
    assert feed.rows("id", "value") == [(1, 1), (2, 2), (3, 3)]
    assert feed.calls == [
        "at <= 2026-06-01 00:00:00+00:00",
        "at > 2026-01-02 12:00:00+00:00 and at <= 2026-06-01 00:00:00+00:00",
        "at > 2026-01-03 12:00:00+00:00 and at <= 2026-06-01 00:00:00+00:00",
    ]
    entries = feed.entries
    assert [entry.state() for entry in entries] == [{"at": at(2)}, {"at": at(3)}]
    assert [len(feed.commits), *(entry.table_version for entry in entries)] == [2, 0, 1]


@pytest.mark.parametrize("step", [Step.INTENT_PUT, Step.WRITTEN])
def test_a_kill_before_or_after_the_commit_loses_and_repeats_no_row(
    tmp_path: Path, engine: SparkEngine, step: Step
) -> None:
    flow, feed = by_column(tmp_path, engine)
    feed.store(row(1, 1), row(2, 2))
    crash(feed, step)
    feed.store(row(3, 3))
    assert flow.run().status == "recovered"
    assert feed.rows("id", "value") == [(1, 1), (2, 2), (3, 3)]
    assert flow.run().status == "nothing"


def test_a_failed_unit_is_retried_alone_and_a_backfill_replaces_one_partition(
    tmp_path: Path, engine: SparkEngine
) -> None:
    feed = PythonFeed(tmp_path, engine, code=BY_WINDOW)
    instance = DagsterInstance.ephemeral()
    feed.store({"id": 1, "day": "2026-01-01", "region": "eu"}, {"id": 2, "day": "2026-01-02", "region": "eu"})
    feed.store({"id": 3, "day": "2026-01-01", "region": "us"})
    (tmp_path / "down").touch()
    result = _launch(feed, instance)
    assert not result.success
    assert feed.rows("id") == [(1,), (2,)]
    assert instance.get_materialized_partitions(TABLE) == {"eu|2026-01-01", "eu|2026-01-02"}
    (tmp_path / "down").unlink()
    assert len(feed.calls) == 2
    result = _launch(feed, instance)
    assert result.success
    days = ("2026-01-01T00:00:00+00:00 .. 2026-01-02", "2026-01-02T00:00:00+00:00 .. 2026-01-03")
    assert feed.calls == [f"{day}T00:00:00+00:00, region = 'us'" for day in days]
    assert feed.rows("id") == [(1,), (2,), (3,)]
    ledger = instance.event_log_storage.get_latest_asset_check_execution_by_key(
        [AssetCheckKey(TABLE, "ledger")]
    )
    assert [record.status.value for record in ledger.values()] == ["SUCCEEDED"]

    (tmp_path / "rows.jsonl").unlink()
    feed.store(
        {"id": 20, "day": "2026-01-02", "region": "eu"}, {"id": 9, "day": "2026-01-01", "region": "eu"}
    )
    assert _launch(feed, instance, "eu|2026-01-02").success
    assert feed.rows("id", "day", "region") == [
        (1, _day(1), "eu"),
        (3, _day(1), "us"),
        (20, _day(2), "eu"),
    ]


def test_rows_of_a_test_pass_the_query_of_a_python_dataflow(
    tmp_path: Path, engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRANDLINE_SPARK_REMOTE", str(engine.remote))
    text = BY_COLUMN.replace("schema=", 'sql="SELECT id, at, value * 2 AS twice FROM input", schema=')
    feed = PythonFeed(tmp_path, engine, code=text)
    (tmp_path / f"tests/{NAME}").mkdir(parents=True)
    test = {"input": [{"id": 1, "value": 2}], "expect": [{"id": 1, "at": None, "twice": 4}]}
    (tmp_path / f"tests/{NAME}/twice.yaml").write_text(yaml.safe_dump(test))
    assert [result["status"] for result in feed.command("test", NAME).json] == ["passed"]
    assert feed.calls == []


def test_a_renamed_function_takes_its_state_along(tmp_path: Path, engine: SparkEngine) -> None:
    flow, feed = by_column(tmp_path, engine)
    feed.store(row(1, 1))
    flow.run()
    refused = feed.cli("rename", NAME, "sales")
    assert refused.code == 2
    assert (
        'Write name="sales" and target={"table": "bronze/flow", …} there' in refused.json["error"]["message"]
    )
    feed.code = BY_COLUMN.replace("watermark=", 'name="sales", target={"table": "bronze/flow"}, watermark=')
    feed._write()
    assert feed.command("rename", NAME, "sales").json["number"] == 1
    feed.store(row(2, 2))
    (outcome,) = feed.command("run", "sales").json
    assert (outcome["status"], outcome["rows"], feed.rows("id")) == ("committed", 1, [(1,), (2,)])


def _launch(feed: PythonFeed, instance: DagsterInstance, key: str | None = None) -> ExecuteInProcessResult:
    project = load_project(feed.folder)
    job = build_definitions(project, feed.platform, RunOptions(now=NOW)).resolve_job_def(f"load_{NAME}")
    result: ExecuteInProcessResult = job.execute_in_process(
        instance=instance, raise_on_error=False, run_config=QUIET, partition_key=key
    )
    return result


def _day(number: int) -> Any:
    return at(number).date()
