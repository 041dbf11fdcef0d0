"""The sensors of days that wait for hours: they request a day when it is complete, and when it has changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster import AssetKey, DagsterInstance, SensorResult, SkipReason, build_sensor_context

from partitions.instants import HOUR
from partitions.request import Forced, WorkUnitSelection
from platform_assets.build import build_definitions
from platform_assets.factory.check_results import CheckFinding
from platform_assets.factory.jobs import dataflow_job
from platform_assets.factory.kinds.window.checks import LEDGER_CHECK
from platform_assets.factory.kinds.window.run_requests import window_sensor, window_upstream_sensor
from platform_assets.project import load_project
from resources.dagster.run_options import RunOptions
from resources.kinds.window.partitions import WindowAssetPartitions
from resources.notes.last_run import last_attempt
from tests.support.chained import Chain, at, key_of
from tests.support.jvmless import jvmless
from tests.support.names import names_of

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
WAITS = (
    "no work unit is due; 2026-01-06 waits for 1 of 48 hours of bronze/hours: EWR 2026-01-06 05:00 (failed)"
)


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    chain = Chain(tmp_path)
    for hour in range(48):
        chain.arrive("EWR", hour, 1)
        chain.arrive("JFK", hour, 10)
    with jvmless():
        yield chain


class Sensors:
    """The sensors of the days, with their cursors."""

    def __init__(self, chain: Chain, instance: DagsterInstance) -> None:
        flow, platform = chain.flows["days"], chain.platform()
        parts = WindowAssetPartitions.of("days", flow.window)
        names = names_of(flow)
        job = dataflow_job(flow, names)
        self._instance, self._cursors = instance, dict[int, str | None]()
        self._sensors = [
            make(flow, platform, names, job, parts, lambda: chain.now.timestamp())
            for make in (window_sensor, window_upstream_sensor)
        ]

    def tick(self) -> list[list[str | None] | str | None]:
        """Return, by sensor, the partitions that it requests, or why there is none."""
        return [self._tick(number) for number in range(2)]

    def _tick(self, number: int) -> list[str | None] | str | None:
        context = build_sensor_context(instance=self._instance, cursor=self._cursors.get(number))
        result = self._sensors[number].definition()(context)
        assert isinstance(result, SensorResult)
        self._cursors[number] = result.cursor
        if result.run_requests:
            return [request.partition_key for request in result.run_requests]
        assert isinstance(result.skip_reason, SkipReason)
        return result.skip_reason.skip_message


def test_a_day_is_requested_when_it_is_complete_and_when_an_hour_was_loaded_again(chain: Chain) -> None:
    chain.now = at(49)
    chain.scene.broken.add(key_of("EWR", 29))
    with DagsterInstance.ephemeral() as instance:
        sensors = Sensors(chain, instance)
        chain.run("hours")
        assert sensors.tick() == [["2026-01-05"], ["2026-01-05"]]
        chain.run("days")
        waits, _ = sensors.tick()
        assert str(waits).startswith(WAITS)
        chain.scene.broken.clear()
        chain.run("hours")
        assert sensors.tick() == [["2026-01-06"], ["2026-01-06"]]
        chain.run("days")
        assert sensors.tick()[0] == "no work unit is due"
        chain.arrive("JFK", 3, 99)
        _, start = key_of("JFK", 3)
        chain.run("hours", Forced(WorkUnitSelection(((start, start + HOUR),))))
        assert sensors.tick() == [["2026-01-05"], ["2026-01-05"]]
        chain.run("days")
        assert chain.rows("days") == [("|2026-01-05T00", 264 + 89), ("|2026-01-06T00", 264)]


def test_the_check_of_the_ledger_warns_while_a_loaded_day_is_older_than_its_hours(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.now = at(49)
    for name in ("hours", "days"):
        chain.run(name)
    monkeypatch.setattr("platform_assets.factory.kinds.window.checks.clock", lambda: chain.now)

    def check() -> CheckFinding:
        return LEDGER_CHECK.evaluate(chain.flows["days"], chain.platform())

    assert check().passed
    _, start = key_of("JFK", 3)
    chain.run("hours", Forced(WorkUnitSelection(((start, start + HOUR),))))
    assert not check().passed


def test_a_partition_that_waits_is_not_materialised_by_a_run_over_it(chain: Chain) -> None:
    chain.now = at(49)
    chain.scene.broken.add(key_of("EWR", 29))
    chain.run("hours")
    project = load_project(chain.root, environment={})
    definitions = build_definitions(project, chain.platform(), RunOptions(now=chain.now))
    job = definitions.resolve_job_def("load_days")
    with DagsterInstance.ephemeral() as instance:

        def load(day: str) -> bool:
            result = job.execute_in_process(
                instance=instance, run_config=QUIET, partition_key=day, raise_on_error=False
            )
            return bool(result.success)

        assert [load("2026-01-05"), load("2026-01-06")] == [True, False]
        waiting = last_attempt(chain.platform().log, "days")
        assert waiting
        assert (waiting.status, (waiting.error or {})["code"]) == ("skipped", "upstream")
        assert instance.get_materialized_partitions(AssetKey(["gold", "days"])) == {"2026-01-05"}
        chain.scene.broken.clear()
        chain.run("hours")
        assert load("2026-01-06")
        loaded = last_attempt(chain.platform().log, "days")
        assert loaded
        assert (loaded.status, loaded.error) == ("committed", None)
    assert chain.rows("days") == [("|2026-01-05T00", 264), ("|2026-01-06T00", 264)]


def test_a_forced_partition_is_the_last_attempt_whether_it_fails_or_not(chain: Chain) -> None:
    chain.now = at(49)
    chain.run("hours")
    definitions = build_definitions(
        load_project(chain.root, environment={}), chain.platform(), RunOptions(now=chain.now)
    )
    job, log = definitions.resolve_job_def("load_hours"), chain.platform().log
    attempts = []
    with DagsterInstance.ephemeral() as instance:
        for broken in ([key_of("EWR", 29)], [key_of("EWR", 29)], []):
            chain.scene.broken = set(broken)
            result = job.execute_in_process(
                instance=instance,
                run_config=QUIET,
                partition_key="EWR|2026-01-06T05:00Z",
                raise_on_error=False,
            )
            attempt = last_attempt(log, "hours")
            assert attempt
            assert (result.success, attempt.run_id) == (not broken, result.run_id)
            attempts.append(attempt)
    first, second, third = attempts
    assert [(one.status, one.failures) for one in attempts] == [
        ("failed", 1),
        ("failed", 2),
        ("committed", 0),
    ]
    assert (first.failing_since, second.failing_since, third.failing_since) == (first.time, first.time, None)
