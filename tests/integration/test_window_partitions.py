"""Windows and units in Dagster: what the sensor and the schedule ask for, what a run over partitions loads, and what it shows of each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar
from zlib import crc32

import pyarrow as pa
import pytest
from dagster import (
    AssetCheckKey,
    AssetKey,
    DagsterEventType,
    DagsterInstance,
    ExecuteInProcessResult,
    RunRequest,
    SensorResult,
    SkipReason,
    TableMetadataValue,
    build_schedule_context,
    build_sensor_context,
)
from dagster._core.loader import LoadingContextForTest
from deltalake import write_deltalake

from platform_assets.build import build_definitions
from platform_assets.factory.kinds.window.run_requests import window_schedule, window_sensor
from platform_assets.project import load_project
from resources.dagster.io_managers import PLAN_TAG
from resources.dagster.run_options import RunOptions
from resources.kinds.window.partitions import WindowAssetPartitions
from resources.outcome import Observer, Step
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.feed import NAME, Feed
from tests.support.names import names_of
from tests.support.steps import killed_at
from tests.support.window_feed import (
    BY_COLUMNS,
    DatabaseTable,
    Windows,
    event,
    instant,
    on_lake,
    on_postgres,
    watermark,
)

TABLE, WATERMARK = AssetKey(["bronze", NAME]), AssetKey(["watermark", NAME])
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
NOW = "2020-01-04T10:00"
START, END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"


class Dagster:
    """One dataflow in one instance, with a clock of its own."""

    def __init__(self, feed: Feed, now: str = NOW) -> None:
        self.feed, self.now = feed, instant(now)
        self.instance = DagsterInstance.ephemeral()
        self.cursor: str | None = None
        self.observer: Observer | None = None

    @property
    def partitions(self) -> WindowAssetPartitions:
        return WindowAssetPartitions.of(NAME, self.feed.dataflow.window)

    @property
    def job(self) -> Any:
        options = RunOptions(now=self.now, hold_wait=timedelta(0), observer=self.observer)
        project = load_project(self.feed.folder, environment=self.feed.environment)
        return build_definitions(project, self.feed.platform, options).resolve_job_def(f"load_{NAME}")

    def run(self, key: str | None = None, **tags: str) -> ExecuteInProcessResult:
        result: ExecuteInProcessResult = self.job.execute_in_process(
            instance=self.instance, raise_on_error=False, run_config=QUIET, partition_key=key, tags=tags
        )
        return result

    def asked(self, request: RunRequest) -> ExecuteInProcessResult:
        """Run what was asked for."""
        return self.run(request.partition_key, **request.tags)

    def over(self, first: str, last: str) -> ExecuteInProcessResult:
        """A backfill of a range, as the UI launches it as one run."""
        return self.run(None, **{START: first, END: last})

    def asks(self) -> RunRequest:
        """The one run that the sensor asks for."""
        (request,) = self._tick().run_requests or ()
        return request

    def waits(self) -> str:
        """Why the sensor asks for nothing."""
        reason = self._tick().skip_reason
        assert isinstance(reason, SkipReason)
        return str(reason.skip_message)

    def _tick(self) -> SensorResult:
        sensor = window_sensor(
            self.feed.dataflow,
            self.feed.platform,
            names_of(self.feed.dataflow),
            self.job,
            self.partitions,
            lambda: self.now.timestamp(),
        )
        result = sensor.definition()(build_sensor_context(instance=self.instance, cursor=self.cursor))
        assert isinstance(result, SensorResult)
        self.cursor = result.cursor
        for request in result.dynamic_partitions_requests or ():
            self.instance.add_dynamic_partitions(request.partitions_def_name, list(request.partition_keys))
        return result

    def dies(self, request: RunRequest, step: Step, times: int) -> ExecuteInProcessResult:
        """Run what was asked for, until the process is killed at a step."""
        self.observer = killed_at(step, times)
        result = self.asked(request)
        self.observer = None
        assert not result.success
        return result

    def partitions_of(self, result: ExecuteInProcessResult) -> set[str | None]:
        """The partitions of all materialisations of a run, of both assets; None for one without a partition."""
        records = self.instance.get_records_for_run(
            result.run_id, of_type=DagsterEventType.ASSET_MATERIALIZATION
        ).records
        return {record.partition_key for record in records}

    def materialised(self, asset: AssetKey = TABLE) -> list[str]:
        return sorted(self.instance.get_materialized_partitions(asset))


def shown(result: ExecuteInProcessResult, asset: AssetKey = TABLE) -> dict[str | None, dict[str, Any]]:
    """The metadata of each partition that a run has materialised."""
    found: dict[str | None, dict[str, Any]] = {}
    for one in result.all_events:
        if one.is_step_materialization and one.asset_key == asset:
            made = one.step_materialization_data.materialization
            found[made.partition] = {key: value.value for key, value in made.metadata.items()}
    return found


Make = Callable[..., Windows]


@pytest.fixture
def make(tmp_path: Path, engine: SparkEngine) -> Make:
    def made(**definition: Any) -> Windows:
        return on_lake(tmp_path, engine, **{"source": BY_COLUMNS, **definition})

    return made


@pytest.fixture
def windows(make: Make) -> Windows:
    """Two rows a day and unit, from 01-01 to 01-04 10:00."""
    found = make(watermark=watermark(partial=False))
    days = range(1, 5)
    found.table.put(*(
        event(day * 10 + place, f"2020-01-{day:02d}T0{place}:00", unit) for day in days for place, unit in enumerate("aabb")
    ))  # fmt: skip
    return found


def test_the_sensor_asks_for_what_is_due_as_one_run_over_a_range(windows: Windows) -> None:
    dagster = Dagster(windows.feed)
    request = dagster.asks()
    assert (request.tags[START], request.tags[END]) == ("a|2020-01-01", "b|2020-01-03")
    result = dagster.asked(request)
    assert result.success
    keys = [f"{unit}|2020-01-0{day}" for unit in "ab" for day in (1, 2, 3)]
    assert dagster.materialised() == dagster.materialised(WATERMARK) == keys
    # Keys of two dimensions come in no fixed order, and the last event shows the run, too.
    key, found = next(iter(shown(result).items()))
    assert key is not None
    assert (found["rows"], found["work_units"], found["reason"]) == (2, 1, "new")
    start = datetime.fromisoformat(f"{key[2:]}T00:00:00+00:00")
    assert found["window"] == f"[{start.isoformat()}, {(start + timedelta(days=1)).isoformat()})"
    assert "plan" not in found
    assert windows.feed.ids == [day * 10 + place for day in (1, 2, 3) for place in range(4)]


def test_the_last_event_of_a_range_shows_the_run_and_its_partition(windows: Windows) -> None:
    """The asset's page shows the event that was stored last."""
    result = Dagster(windows.feed).over("a|2020-01-01", "b|2020-01-03")
    last = list(shown(result).values())[-1]
    assert (last["run_rows"], last["run_work_units"], last["rows"], last["work_units"]) == (12, 6, 2, 1)
    assert {"plan", "watermark_after", "slices"} <= last.keys()
    watermark_shown = list(shown(result, WATERMARK).values())
    assert [one.keys() for one in watermark_shown[:-1]] == [{"state_number"}] * 5
    assert {"watermark", "complete_up_to", "ledger"} <= watermark_shown[-1].keys()


def test_the_sensor_wakes_for_a_day_that_is_over_and_not_for_the_grace_alone(make: Make) -> None:
    made = make(watermark=watermark(partial=False, grace="P1D"))
    made.table.put(event(1, "2020-01-03T01:00"))
    dagster = Dagster(made.feed)
    first = dagster.asks()
    assert dagster.asked(first).success
    assert dagster.waits() == (
        "2 work units of 3 windows x 2 units due: 2 grace; none of it starts a run by itself"
    )
    dagster.now += timedelta(days=1)
    second = dagster.asks()
    assert (second.tags[START], second.tags[END]) == ("a|2020-01-03", "b|2020-01-04")


def test_a_run_that_commits_nothing_is_asked_for_after_longer_pauses(windows: Windows) -> None:
    dagster = Dagster(windows.feed)
    keys = set()
    for pause in (60, 120, 240):
        request = dagster.asks()
        keys.add(request.run_key)
        dagster.now += timedelta(seconds=pause - 1)
        assert dagster.waits() == f"attempt {len(keys)} did not commit; the next one is in 1 s"
        dagster.now += timedelta(seconds=1)
    assert len(keys) == 3


def test_a_backfill_replaces_whole_windows_and_lowers_no_high(windows: Windows) -> None:
    dagster = Dagster(windows.feed)
    windows.run(NOW)
    before = windows.feed.watermark
    windows.table.put(event(10, "2020-01-01T00:00", "a", 7), event(99, "2020-01-02T05:00", "b"))
    windows.table.drop(11)
    result = dagster.over("a|2020-01-01", "b|2020-01-02")
    assert result.success
    assert {found["reason"] for found in shown(result).values()} == {"forced"}
    assert dagster.materialised() == ["a|2020-01-01", "a|2020-01-02", "b|2020-01-01", "b|2020-01-02"]
    assert windows.feed.watermark == before
    expected = [10, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33, 99]
    assert windows.feed.ids == expected
    assert dict(windows.rows)[10] == 7


class TestABackfillIsAReplayInPlace:
    """A slice for each day of two units; each value has changed since it was loaded."""

    @pytest.fixture
    def made(self, make: Make) -> Windows:
        made = make(watermark=watermark(partial=False, checkpoint={"interval_windows": 2}, max_slices=4))
        self.change(made, 0)
        made.run(NOW)
        self.change(made, 1)
        return made

    @pytest.fixture
    def dagster(self, made: Windows) -> Dagster:
        return Dagster(made.feed)

    def change(self, made: Windows, value: int) -> None:
        made.table.put(*(event(day * 10 + place, f"2020-01-0{day}T01:00", unit, value) for day in range(1, 4) for place, unit in enumerate("ab")))  # fmt: skip

    KEYS: ClassVar[list[str]] = [f"{unit}|2020-01-0{day}" for unit in "ab" for day in (1, 2, 3)]
    RANGE: ClassVar[dict[str, str]] = {START: "a|2020-01-01", END: "b|2020-01-03"}

    def chunks(self, dagster: Dagster) -> list[str]:
        """The status of each chunk, as the watermark's page shows them last."""
        records = dagster.instance.fetch_observations(WATERMARK, limit=2).records
        observations = [record.asset_observation.metadata for record in records if record.asset_observation]
        table = next(metadata["chunks"] for metadata in observations if "chunks" in metadata)
        assert isinstance(table, TableMetadataValue)
        return [str(record.data["status"]) for record in table.records]

    def test_a_killed_one_goes_on_and_another_reads_all(self, made: Windows, dagster: Dagster) -> None:
        asked = {"dagster/backfill": "first", **self.RANGE}
        dagster.observer = killed_at(Step.INTENT_PUT, 3)
        assert not dagster.run(None, **asked).success
        dagster.observer = None
        assert dagster.materialised() == []
        self.change(made, 2)
        assert dagster.run(None, **asked).success
        assert self.chunks(dagster) == ["skipped", "skipped", "committed"]
        assert dict(dagster.feed.rows("id", "value")) == {10: 1, 11: 1, 20: 1, 21: 1, 30: 2, 31: 2}
        assert dagster.materialised() == dagster.materialised(WATERMARK) == self.KEYS
        assert {entry.reason for entry in dagster.feed.entries if entry.why == "replay"} == {
            "backfill first of 6 partitions from a|2020-01-01 to b|2020-01-03"
        }
        assert dagster.run(None, **asked | {"dagster/backfill": "second"}).success
        assert self.chunks(dagster) == ["committed"] * 3
        assert {value for _, value in dagster.feed.rows("id", "value")} == {2}

    def test_one_by_partition_reads_each_once_and_a_retry_what_is_left(self, dagster: Dagster) -> None:
        first = dagster.feed.entries[-1].number
        for key in ("a|2020-01-01", "b|2020-01-01"):
            assert dagster.run(key, **{"dagster/backfill": "each"}).success
        dagster.observer = killed_at(Step.APPENDED, 1)
        assert not dagster.run("b|2020-01-02", **{"dagster/backfill": "each"}).success
        dagster.observer = None
        retry = {"dagster/backfill": "retry", "dagster/root_backfill_id": "each"}
        assert dagster.run("b|2020-01-02", **retry).success
        assert [entry.reason for entry in dagster.feed.entries if entry.number > first] == [
            f"backfill each of {key}" for key in ("a|2020-01-01", "b|2020-01-01", "b|2020-01-02")
        ]
        assert dict(dagster.feed.rows("id", "value")) == {10: 1, 11: 1, 20: 0, 21: 1, 30: 0, 31: 0}
        assert dagster.materialised() == ["a|2020-01-01", "b|2020-01-01", "b|2020-01-02"]

    def test_what_a_run_may_take_on_does_not_cut_it_short(self, dagster: Dagster) -> None:
        dagster.feed.define(watermark=watermark(partial=False, parallelism=1))
        assert dagster.run(None, **self.RANGE).success
        assert dagster.materialised() == self.KEYS
        assert {value for _, value in dagster.feed.rows("id", "value")} == {1}

    def test_units_without_time_are_read_again_alone(self, make: Make) -> None:
        units = {"name": "u", "type": "unit", "units": "a,b"}
        made = make(
            watermark={"type": "window", "definition": [units]}, source={"unit_columns": {"u": "unit"}}
        )
        self.change(made, 0)
        made.run(NOW)
        self.change(made, 1)
        dagster = Dagster(made.feed)
        assert dagster.run("a").success
        assert dagster.materialised() == ["a"]
        assert dict(made.feed.rows("id", "value")) == {10: 1, 11: 0, 20: 1, 21: 0, 30: 1, 31: 0}

    def test_a_source_that_goes_down_stops_it(self, made: Windows, dagster: Dagster) -> None:
        """What is committed is materialised, and the rest is not."""
        source, away = made.table.path, made.table.path.with_name("away")

        def goes_down(step: Step, line: str) -> None:
            if step is Step.APPENDED:
                source.rename(away)

        dagster.observer = goes_down
        asked = {"dagster/backfill": "stopped", **self.RANGE}
        stopped = dagster.run(None, **asked)
        assert not stopped.success
        dagster.observer = None
        assert dagster.materialised() == ["a|2020-01-01", "b|2020-01-01"]
        # Dagster ends a backfill of partitions at a materialisation without one
        assert dagster.partitions_of(stopped) == {"a|2020-01-01", "b|2020-01-01"}
        assert self.chunks(dagster) == ["committed", "failed", "pending"]
        away.rename(source)
        assert dagster.run(None, **asked).success
        assert self.chunks(dagster) == ["skipped", "committed", "committed"]
        assert {value for _, value in dagster.feed.rows("id", "value")} == {1}


def test_a_single_partition_is_loaded_alone(windows: Windows) -> None:
    dagster = Dagster(windows.feed)
    assert dagster.run("b|2020-01-02").success
    assert windows.feed.ids == [22, 23]
    assert dagster.materialised() == ["b|2020-01-02"]


def test_a_partition_that_has_not_begun_fails_the_run_and_says_which_exist(windows: Windows) -> None:
    dagster = Dagster(windows.feed, now="2020-01-03T10:00")
    result = dagster.run("a|2020-01-03")
    assert not result.success
    failure = next(
        one for one in result.all_events if one.is_step_failure
    ).step_failure_data.user_failure_data
    assert failure is not None
    assert "one of 2 windows from 2020-01-01 to 2020-01-02" in str(failure.description)


def test_a_run_without_partitions_loads_what_is_due_and_materialises_exactly_that(windows: Windows) -> None:
    dagster = Dagster(windows.feed)
    result = dagster.run()
    assert result.success
    assert dagster.materialised() == [f"{unit}|2020-01-0{day}" for unit in "ab" for day in (1, 2, 3)]
    whole = shown(result)[None]
    assert (whole["rows"], whole["work_units"], whole["failed_units"]) == (12, 6, 0)


def test_a_schedule_asks_for_all_that_is_due_also_for_the_grace(make: Make, tmp_path: Path) -> None:
    made = make(watermark=watermark(partial=False, grace="P1D"), schedule="0 * * * *")
    made.table.put(event(1, "2020-01-03T01:00"))
    dagster = Dagster(made.feed)
    dagster.instance = DagsterInstance.local_temp(str(tmp_path))
    made.run(NOW)
    definition = window_schedule(
        made.feed.dataflow, made.feed.platform, names_of(made.feed.dataflow), dagster.job, dagster.partitions
    )
    context = build_schedule_context(dagster.instance, scheduled_execution_time=instant(NOW).astimezone(UTC))
    (request,) = definition(context)  # type: ignore[misc]
    assert isinstance(request, RunRequest)
    assert (request.tags[START], request.tags[END]) == ("a|2020-01-03", "b|2020-01-03")


def test_windows_beyond_cron_are_dynamic_partitions_added_before_asked(make: Make) -> None:
    made = make(watermark=watermark(partial=False, window={"daily": ["2020-01-01", "2020-01-03"], "hourly": ["2020-01-03", "-"]}, units=None), source={"window_column": "at"})  # fmt: skip
    made.table.put(event(1, "2020-01-02T01:00"), event(2, "2020-01-03T01:30"))
    dagster = Dagster(made.feed, now="2020-01-03T02:10")
    request = dagster.asks()
    keys = list(dagster.instance.get_dynamic_partitions(f"{NAME}_windows"))
    assert len(keys) == 4
    assert (request.tags[START], request.tags[END]) == (keys[0], keys[-1])
    assert dagster.asked(request).success
    assert dagster.materialised() == sorted(keys)
    assert made.feed.ids == [1, 2]


def test_buckets_are_partitions_of_the_units_in_them(make: Make) -> None:
    units = [f"u{number}" for number in range(6)]
    made = make(
        watermark=watermark(
            partial=False,
            units=None,
            secondary_input=[{"table": "raw/units", "fields": ["u"]}],
            dagster_units={"buckets": 3},
        )
    )
    write_deltalake(str(made.table.path.parent / "units"), pa.table({"u": units}))
    made.table.put(*(event(day * 10 + number, f"2020-01-0{day}T01:00", unit) for day in (1, 2) for number, unit in enumerate(units)))  # fmt: skip
    dagster = Dagster(made.feed, now="2020-01-03T10:00")
    request = dagster.asks()
    assert (request.tags[START], request.tags[END]) == ("bucket-0|2020-01-01", "bucket-2|2020-01-02")
    result = dagster.asked(request)
    assert result.success
    held = {f"bucket-{number}": [one for one in units if crc32(f'{{"u":"{one}"}}'.encode()) % 3 == number] for number in range(3)}  # fmt: skip
    assert all(held.values())
    assert {key: one["work_units"] for key, one in shown(result).items()} == {
        f"{bucket}|2020-01-0{day}": len(held[bucket]) for bucket in held for day in (1, 2)
    }
    assert made.feed.ids == [day * 10 + number for day in (1, 2) for number in range(6)]

    made.table.put(*(event(10 + number, "2020-01-01T01:00", unit, 7) for number, unit in enumerate(units)))
    assert dagster.run("bucket-1|2020-01-01").success
    assert {unit for unit, value in made.feed.rows("unit", "value") if value == 7} == set(held["bucket-1"])
    assert len(made.feed.ids) == 12


@pytest.mark.full
def test_a_partition_of_several_units_shows_no_count_of_rows(make: Make) -> None:
    made = make(
        watermark=watermark(
            partial=False, units=None, secondary_input=[{"table": "raw/units", "fields": ["u"]}]
        )
    )
    made.table.put(event(1, "2020-01-01T01:00", "a"), event(2, "2020-01-01T01:00", "a"), event(3, "2020-01-01T01:00", "b"))  # fmt: skip
    dagster, units = Dagster(made.feed, now="2020-01-02T10:00"), str(made.table.path.parent / "units")
    for number, unit in enumerate("ab"):
        write_deltalake(units, pa.table({"u": [unit]}), mode="append")
        loaded = shown(dagster.run())["2020-01-01"]
        assert loaded["rows"] == 2 - number
        assert "dagster/partition_row_count" not in loaded


class TestARunThatDiedBeforeItCouldTell:
    """Its partitions are in the table and in the log; the next run materialises them, once."""

    @pytest.fixture
    def dagster(self, make: Make) -> Dagster:
        """Three days of two units, a slice for each day."""
        made = make(watermark=watermark(partial=False, checkpoint={"interval_windows": 2}))
        made.table.put(*(event(day * 10 + place, f"2020-01-0{day}T01:00", unit) for day in (1, 2, 3) for place, unit in enumerate("ab")))  # fmt: skip
        return Dagster(made.feed)

    KEYS: ClassVar[list[str]] = [f"{unit}|2020-01-0{day}" for unit in "ab" for day in (1, 2, 3)]

    def test_its_partitions_are_materialised_by_the_next_run_over_others(self, dagster: Dagster) -> None:
        dead = dagster.dies(dagster.asks(), Step.APPENDED, 2)
        assert dagster.materialised() == dagster.materialised(WATERMARK) == []
        request = dagster.asks()
        assert (request.tags[START], request.tags[END]) == ("a|2020-01-03", "b|2020-01-03")
        result = dagster.asked(request)
        assert result.success
        assert dagster.materialised() == dagster.materialised(WATERMARK) == self.KEYS
        found = shown(result)
        assert {key for key, one in found.items() if one.get("loaded_by") == dead.run_id} == {
            f"{unit}|2020-01-0{day}" for unit in "ab" for day in (1, 2)
        }
        one = found["a|2020-01-02"]
        assert (one["rows"], one["work_units"], one["reason"], one["state_number"]) == (1, 1, "new", 2)
        assert one["window"] == "[2020-01-02T00:00:00+00:00, 2020-01-03T00:00:00+00:00)"

    def test_a_run_without_partitions_materialises_them_once_too(self, dagster: Dagster) -> None:
        dagster.dies(dagster.asks(), Step.APPENDED, 3)
        first = shown(dagster.run())
        assert sorted(key for key in first if key) == self.KEYS
        assert list(shown(dagster.run())) == []

    def test_what_it_left_half_way_the_next_run_materialises(self, dagster: Dagster) -> None:
        dagster.dies(dagster.asks(), Step.WRITTEN, 2)
        assert dagster.run().success
        assert dagster.materialised() == dagster.materialised(WATERMARK) == self.KEYS
        assert dagster.feed.ids == [10, 11, 20, 21, 30, 31]

    def test_partitions_that_the_definition_no_longer_has_are_left_out(self, dagster: Dagster) -> None:
        dagster.dies(dagster.asks(), Step.APPENDED, 3)
        dagster.feed.define(watermark={"definition": watermark(units="a")["definition"]})
        assert dagster.run().success
        assert dagster.materialised() == self.KEYS[:3]


class TestAFailingUnit:
    @pytest.fixture
    def table(self, postgres: Postgres) -> DatabaseTable:
        """Rows of unit b cannot be read while they are bad."""
        table = DatabaseTable(postgres)
        table.put(*(event(day * 10 + place, f"2020-01-0{day}T01:00", unit) for day in (1, 2) for place, unit in enumerate("ab")))  # fmt: skip
        table.ask(
            "CREATE FUNCTION {s}.fits(unit text) RETURNS bool LANGUAGE plpgsql COST 100000 AS"
            " $$ BEGIN IF unit = 'b' THEN RAISE EXCEPTION 'no b today'; END IF; RETURN true; END $$"
        )
        table.ask("CREATE VIEW {s}.feed AS SELECT * FROM {s}.events WHERE {s}.fits(unit)")
        return table

    @pytest.mark.full
    def test_its_partitions_fail_the_others_are_materialised_and_a_retry_loads_the_rest(
        self, tmp_path: Path, engine: SparkEngine, table: DatabaseTable
    ) -> None:
        feed = on_postgres(
            tmp_path, engine, table, {"table": f"{table.schema}.feed", **BY_COLUMNS}, watermark=watermark(partial=False)
        )  # fmt: skip
        dagster = Dagster(feed, now="2020-01-03T10:00")
        request = dagster.asks()
        assert not dagster.asked(request).success
        assert dagster.materialised() == ["a|2020-01-01", "a|2020-01-02"]
        observed = dagster.instance.fetch_observations(TABLE, limit=2).records
        assert [one.asset_observation.metadata["failed_units"].value for one in observed if one.asset_observation] == [2]  # fmt: skip
        assert feed.ids == [10, 20]
        # it is too early to try again
        assert dagster.waits().endswith(
            "none of it starts a run by itself; failed work units are retried in 1 min"
        )
        table.ask("CREATE OR REPLACE VIEW {s}.feed AS SELECT * FROM {s}.events")
        dagster.now += timedelta(minutes=2)
        again = dagster.asks()
        assert (again.tags[START], again.tags[END]) == ("b|2020-01-01", "b|2020-01-02")
        assert again.tags[PLAN_TAG] == "b, 2 work units"
        result = dagster.asked(again)
        assert result.success
        assert shown(result)["b|2020-01-01"]["reason"] == "failed"
        assert (len(dagster.materialised()), feed.ids) == (4, [10, 11, 20, 21])


class TestAForcedPartitionThatFails:
    """Leaves the whole ledger on the watermark's page, and every check with a result on the table's."""

    @pytest.fixture
    def dagster(self, windows: Windows) -> Dagster:
        """Three days are loaded; then the rows of unit b on 01-02 cannot be read."""
        dagster = Dagster(windows.feed)
        assert dagster.run().success
        with windows.table.spoilt(22, 23):
            assert not dagster.run("b|2020-01-02").success
        return dagster

    def test_its_watermark_shows_the_ledger(self, dagster: Dagster) -> None:
        newest = dagster.instance.fetch_materializations(WATERMARK, limit=1).records[0].asset_materialization
        assert newest is not None
        assert newest.partition is None
        assert {"loaded", "ledger", "watermark", "by_unit"} <= newest.metadata.keys()

    def test_its_checks_are_results_of_the_newest_table(self, dagster: Dagster) -> None:
        context, storage = LoadingContextForTest(dagster.instance), dagster.instance.event_log_storage
        for name in ("ledger", "rows_accounted", "up_to_date", "watermark_monotone"):
            record = storage.get_asset_check_execution_history(AssetCheckKey(TABLE, name), limit=1)[0]
            assert asyncio.run(record.targets_latest_materialization(context)), name
            assert record.evaluation is not None, name


def test_the_clock_of_a_run_is_read_once(windows: Windows) -> None:
    """Windows of the plan and of the partitions are the same, whatever time passes between."""
    dagster = Dagster(windows.feed, now=datetime(2020, 1, 4, 23, 59, 59, tzinfo=UTC).isoformat())
    assert dagster.over("a|2020-01-03", "b|2020-01-03").success
    assert windows.feed.ids == [30, 31, 32, 33]
