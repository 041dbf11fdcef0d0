"""The sensor of upstream tables requests a run if something was loaded into one of them and something is due, and only then."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dagster import (
    DagsterInstance,
    DagsterRunStatus,
    RunRequest,
    SensorResult,
    SkipReason,
    build_sensor_context,
)
from dagster._core.test_utils import create_run_for_test
from deltalake import write_deltalake

from partitions.errors import SourceError
from partitions.lineage import Lineage
from partitions.sentinels import serialise
from platform_assets.build import build_definitions
from platform_assets.factory.jobs import dataflow_job
from platform_assets.factory.kinds.column.triggers import column_upstream_sensor, rows_sensor
from platform_assets.factory.ticks import NoWork
from platform_assets.factory.upstream import has_upstream, upstream_sensor
from resources.dagster.run_tags import DATAFLOW_TAG
from resources.notes.last_run import last_attempt, note_failed_start
from resources.watermarks.entry import next_entry
from tests.support.ticks import Ticker, flow_of, requested_run

NONE = "no table that it reads has changed"
READ = "a run has already read these changes of upstream tables"
MAKER = flow_of(name="rows")
READER: dict[str, Any] = {
    "source": {"type": "table", "table": "bronze/rows"},
    "watermark": {"type": "column", "columns": ["at"], "backward": {"days": 2}},
    "target": {"load": "merge_overwrite", "replace_by_watermark": True},
}


@pytest.fixture
def make_ticker(tmp_path: Path) -> Iterator[Callable[..., Ticker]]:
    with DagsterInstance.ephemeral() as instance:

        def make(sensor: Any = column_upstream_sensor, makers: Any = (MAKER,), **definition: Any) -> Ticker:
            reader = flow_of(**(READER | definition))
            lineage = Lineage([*makers, reader])
            made = Ticker(
                tmp_path,
                instance,
                reader,
                lambda flow, platform, names, now: sensor(
                    flow, replace(platform, lineage=lineage), names, dataflow_job(flow, names), now
                ),
            )
            put(made.landing, 1)
            return made

        yield make


@pytest.fixture
def ticker(make_ticker: Callable[..., Ticker]) -> Ticker:
    return make_ticker()


def put(place: Path, day: int) -> None:
    rows = pa.table({"at": pa.array([datetime(2023, 11, day, tzinfo=UTC)], pa.timestamp("us", "UTC"))})
    write_deltalake(str(place), rows, mode="append")


def upstream(ticker: Ticker, why: str = "run", **counted: int) -> None:
    """The maker of the table appends an entry."""
    log = ticker.platform.log
    last = log.newest("rows")
    entry = next_entry(last, kind="path", app_id="m", why=why, watermark="{}", fingerprint="f", **counted)
    log.append("rows", entry, expected=last.number if last else 0)


def run_of(
    ticker: Ticker,
    status: DagsterRunStatus,
    tags: Mapping[str, str] | None = None,
    name: str = "arrivals",
    **more: Any,
) -> str:
    """A run that Dagster has in this state; returns its id."""
    given = {DATAFLOW_TAG: name, **(tags or {})}
    run: str = create_run_for_test(
        ticker.instance, job_name=f"load_{name}", status=status, tags=given, **more
    ).run_id
    return run


def test_a_load_upstream_asks_for_one_run_of_what_is_due(ticker: Ticker) -> None:
    assert ticker.tick() == NONE
    upstream(ticker, rows=3)
    request = requested_run(ticker.tick())
    assert request.tags[DATAFLOW_TAG] == "arrivals"
    run_of(ticker, DagsterRunStatus.SUCCESS, request.tags)
    assert [ticker.tick(), ticker.tick()] == [READ, NONE]
    upstream(ticker, rows=1)
    assert requested_run(ticker.tick()).run_key != request.run_key


def test_a_table_to_come_is_waited_for_and_a_lost_one_fails(make_ticker: Callable[..., Ticker]) -> None:
    ticker = make_ticker(rows_sensor)
    shutil.rmtree(ticker.landing)
    assert ticker.tick() == "no table to read yet: rows has loaded nothing"
    upstream(ticker, rows=1)
    with pytest.raises(SourceError, match="expected a table, found none"):
        ticker.tick()
    put(ticker.landing, 1)
    requested_run(ticker.tick())


def test_windows_of_a_table_that_its_dataflow_has_yet_to_make_are_not_asked_for(tmp_path: Path) -> None:
    (tmp_path / "dataflows").mkdir()
    (tmp_path / "dataflows/flow.yaml").write_text(
        "source: {type: files, path: ./landing, format: ndjson}\nwatermark: {type: path}\ntarget: {load: append}\n"
    )
    (tmp_path / "dataflows/daily.yaml").write_text(
        "layer: silver\nsource: {type: table, table: bronze/flow, window_column: at}\n"
        "watermark:\n  type: window\n  window: daily\n"
        "  definition: [{name: day, type: datetime, range: {from: 2024-01-01, to: 2024-01-03}}]\n"
        "target: {load: merge_overwrite, replace_by_watermark: true}\n"
    )
    sensor = build_definitions(tmp_path).resolve_sensor_def("daily_windows")
    with DagsterInstance.ephemeral() as instance:
        result = sensor(build_sensor_context(instance=instance))
        assert isinstance(result, SensorResult)
        assert str(result.skip_reason) == str(SkipReason("no table to read yet: flow has loaded nothing"))
        put(tmp_path / ".strandline/lake/bronze/flow", 1)
        result = sensor(build_sensor_context(instance=instance))
        assert isinstance(result, SensorResult)
        assert len(result.run_requests or ()) == 1


def test_a_load_of_a_restored_logs_number_asks_for_a_run(ticker: Ticker, tmp_path: Path) -> None:
    upstream(ticker, rows=3)
    shutil.copytree(tmp_path / "state", tmp_path / "backup")
    upstream(ticker, rows=1)
    run_of(ticker, DagsterRunStatus.SUCCESS, requested_run(ticker.tick()).tags)
    assert [ticker.tick(), ticker.tick()] == [READ, NONE]
    shutil.rmtree(tmp_path / "state")
    shutil.copytree(tmp_path / "backup", tmp_path / "state")
    upstream(ticker, rows=1)
    requested_run(ticker.tick())


@pytest.mark.parametrize(
    ("why", "counted"),
    [("run", {}), ("abandon", {}), ("accept", {}), ("rewind", {"total_rows": 5}), ("run", {"files": 1})],
)
def test_an_upstream_entry_without_rows_is_silent(ticker: Ticker, why: str, counted: dict[str, int]) -> None:
    upstream(ticker, why, **counted)
    assert ticker.tick() == NONE
    upstream(ticker, rows=1)
    run_of(ticker, DagsterRunStatus.SUCCESS, requested_run(ticker.tick()).tags)
    upstream(ticker, why, **counted)
    assert [ticker.tick(), ticker.tick()] == [READ, NONE]


def test_an_upstream_load_with_nothing_due_is_asked_once(make_ticker: Callable[..., Ticker]) -> None:
    ticker = make_ticker(watermark={"type": "column", "columns": ["at"]}, target={"load": "append"})
    ticker.commit(kind="column", watermark=serialise({"at": datetime(2023, 11, 1, tzinfo=UTC)}))
    upstream(ticker, rows=1)
    assert [ticker.tick(), ticker.tick()] == ["no row is above the watermark", NONE]
    put(ticker.landing, 2)
    upstream(ticker, rows=1)
    requested_run(ticker.tick())


def test_a_run_that_failed_is_asked_for_again_after_a_pause_until_one_succeeds(ticker: Ticker) -> None:
    upstream(ticker, rows=1)
    run_of(ticker, DagsterRunStatus.FAILURE, requested_run(ticker.tick()).tags)
    assert ticker.tick() == "attempt 1 did not commit; the next one is in 60 s"
    ticker.now += 61
    again = requested_run(ticker.tick())
    run_of(ticker, DagsterRunStatus.SUCCESS, again.tags)
    assert ticker.tick() == READ


@pytest.mark.parametrize(("why", "read"), [("run", True), ("abandon", False)])
def test_a_failed_run_leaves_the_rest_to_other_sensors(ticker: Ticker, why: str, read: bool) -> None:
    """A work unit that always fails must not have all windows within the grace read again every half minute."""
    upstream(ticker, rows=1)
    run = run_of(ticker, DagsterRunStatus.FAILURE, requested_run(ticker.tick()).tags)
    ticker.commit(kind="column", watermark="{}", why=why, run_id=run)
    assert (ticker.tick() == READ) == read


def test_a_foreign_tables_version_asks_for_a_run(make_ticker: Callable[..., Ticker], tmp_path: Path) -> None:
    ticker = make_ticker(makers=())
    table = tmp_path / "lake/bronze/rows"
    assert ticker.tick() == NONE
    put(table, 1)
    run_of(ticker, DagsterRunStatus.SUCCESS, requested_run(ticker.tick()).tags)
    assert [ticker.tick(), ticker.tick()] == [READ, NONE]
    put(table, 2)
    requested_run(ticker.tick())


@pytest.mark.parametrize("sensor", [column_upstream_sensor, rows_sensor])
def test_a_sensor_waits_for_earlier_runs_alone(make_ticker: Callable[..., Ticker], sensor: Any) -> None:
    above = flow_of(name="above")
    maker = flow_of(**(READER | {"name": "rows", "source": {"type": "table", "table": "bronze/above"}}))
    ticker = make_ticker(sensor, (above, maker))
    upstream(ticker, rows=1)
    first = run_of(ticker, DagsterRunStatus.STARTED, name="above")
    waits = f"waits for its upstream: above, run {first[:8]} is in flight"
    assert [ticker.tick(), ticker.tick()] == [waits, waits]
    run_of(ticker, DagsterRunStatus.STARTED, name="rows")
    assert ticker.tick() == waits
    ticker.instance.delete_run(first)
    assert isinstance(ticker.tick(), RunRequest)


def test_a_dataflow_not_after_its_upstream_has_no_such_sensor(make_ticker: Callable[..., Ticker]) -> None:
    ticker = make_ticker(rows_sensor, run_after_upstream=False)
    platform = replace(ticker.platform, lineage=Lineage([MAKER, ticker.flow]))
    assert not has_upstream(ticker.flow, platform)
    run_of(ticker, DagsterRunStatus.STARTED, name="rows")
    requested_run(ticker.tick())


def test_after_a_source_that_could_not_be_read_the_only_sensor_asks_it_though_nothing_changed(
    make_ticker: Callable[..., Ticker],
) -> None:
    asked = []

    def sensor(flow: Any, platform: Any, names: Any, job: Any, now: Any) -> Any:
        def find_due_work(tick: Any) -> NoWork:
            asked.append(tick.seconds)
            return NoWork("nothing is due")

        return upstream_sensor(flow, platform, names, job, find_due_work, now, is_only_sensor=True)

    ticker = make_ticker(sensor)
    assert ticker.tick() == NONE
    note_failed_start(ticker.platform.log, "arrivals", SourceError("the table is damaged"))
    assert (ticker.tick(), len(asked)) == ("nothing is due", 1)
    attempt = last_attempt(ticker.platform.log, "arrivals")
    assert attempt is not None
    assert (attempt.status, ticker.tick()) == ("nothing", NONE)
