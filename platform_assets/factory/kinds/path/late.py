"""The sweep for late files in Dagster: a sensor that advances it, and a job that applies the policy.

The sensor makes one step a tick (docs/reference/files.md).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckKey,
    AssetMaterialization,
    AssetObservation,
    OpExecutionContext,
    in_process_executor,
    multi_asset_check,
)

from partitions.checks import LATE_FILES
from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from partitions.plan import pluralize
from platform_assets.dagster_jobs import LocationJob, OneCheck
from platform_assets.factory.annotations import annotate
from platform_assets.factory.check_results import DataflowChecks
from platform_assets.factory.kinds.path.checks import check_late_files, completeness_metadata, late_result
from platform_assets.factory.last_reported import LastReported
from platform_assets.factory.sensors import DataflowSensor, SensorShell
from platform_assets.factory.ticks import Clock, NoWork, Tick, Work, digest
from platform_assets.run_metadata import table_metadata, watermark_metadata
from resources.dagster.io_managers import dagster_failure
from resources.dagster.names import DagsterDataflowNames
from resources.dagster.run_holder import mark_run
from resources.dagster.run_options import RunOptions
from resources.dagster.unreported_entries import mark_reported
from resources.kinds.path.late import LateStep, late_step
from resources.kinds.path.late import find_late as look_further
from resources.kinds.path.sweep import unhandled
from resources.loop.loop import clock as machine_clock
from resources.outcome import Outcome
from resources.platform.platform import Platform
from resources.watermarks.entry import NO_PROGRESS, Why
from resources.watermarks.quarantine_list import read_quarantine

_NO_LATE_PROGRESS: frozenset[Why] = frozenset({*NO_PROGRESS, "run"})
"""Reasons of entries that are no progress with late files: a run that loads new files leaves the late ones."""

_INTERVAL = 300
"""Seconds between two steps of the sweep; a round over a million keys takes four hours."""


_FIRST = {"dagster/priority": "1"}
"""The tag of the step that loads late files: a user's checks look at the table after it."""


def late_job(
    dataflow: Dataflow, platform: Platform, names: DagsterDataflowNames, options: RunOptions
) -> LocationJob:
    """Return a job that makes one step of the sweep, then ingests or quarantines late files.

    Checks that a user's code defines on the table run after it.
    """
    checks = DataflowChecks(dataflow, names)

    def late(context: Any) -> Iterator[Any]:
        yield from _LateRun(context.op_execution_context, dataflow, platform, names, options).events()

    annotate(late, context=AssetCheckExecutionContext, returns=Iterator[Any])
    step = multi_asset_check(
        name=f"{names.job('late')}_step",
        specs=[checks.spec(LATE_FILES)],
        pool=names.pool,
        op_tags=_FIRST,
    )(late)
    return LocationJob.of(
        names.job("late"),
        OneCheck(step, checks.all_names),
        tags={**dataflow.run_tags, **names.run_tags},
        description=f"Makes one step of the search for late files of {dataflow.name}; late_files: {dataflow.late_files}.",
        executor=in_process_executor,
    )


@dataclass(frozen=True)
class _LateRun:
    """One run of the job of late files."""

    context: OpExecutionContext
    dataflow: Dataflow
    platform: Platform
    names: DagsterDataflowNames
    options: RunOptions

    def events(self) -> Iterator[Any]:
        """Make the step and yield its Dagster events."""
        mark_run(self.context.instance, self.context.run_id, self.names)
        loaded: list[Outcome] = []
        try:
            step = self._step(loaded)
        except StrandlineError as error:
            # The committed slices are in the table: materialise them before the run fails.
            yield from self._materialisations(loaded)
            self._mark_reported()
            raise dagster_failure(error, self.platform.env) from error
        listed_files = pluralize(step.step.listed, "file")
        self.context.log.info(
            "%s listed, %d late, %d left", listed_files, len(step.step.late), step.remaining.count
        )
        yield from self._materialisations(loaded)
        if step.quarantined is not None:
            quarantine = read_quarantine(self.platform.log, step.quarantined)
            metadata = watermark_metadata(step.quarantined, quarantine)
            yield AssetObservation(self.names.watermark, metadata=metadata)
        finding = check_late_files(self.dataflow, self.platform, self._now())
        yield DataflowChecks(self.dataflow, self.names).result(finding)
        self._mark_reported()

    def _step(self, loaded: list[Outcome]) -> LateStep:
        return late_step(
            self.platform,
            self.dataflow,
            self._now(),
            run_id=self.context.run_id,
            job_id=self.context.job_name,
            hold_wait=self.options.hold_wait,
            run_is_live=self.options.run_is_live,
            observer=lambda step, line: self.context.log.info("%s: %s", step, line),
            report=loaded.append,
        )

    def _now(self) -> datetime:
        return self.options.now or machine_clock()

    def _materialisations(self, loaded: Sequence[Outcome]) -> Iterator[AssetMaterialization]:
        place = self.platform.lake.child(self.dataflow.table)
        for outcome in loaded:
            if outcome.committed:
                metadata = table_metadata(self.dataflow, outcome, place, env=self.platform.env)
                yield AssetMaterialization(asset_key=self.names.table, metadata=metadata)

    def _mark_reported(self) -> None:
        """Record that Dagster has stored all events of the run."""
        newest = self.platform.log.newest(self.dataflow.name)
        number = newest.number if newest else 0
        mark_reported(self.context.instance, self.names, [self.context.run_id], number)


def late_sensor(
    dataflow: Dataflow,
    platform: Platform,
    names: DagsterDataflowNames,
    job_to_run: Any,
    clock: Clock = time.time,
) -> DataflowSensor:
    """Return a sensor that makes one step of the sweep at each tick.

    It requests a run if late files wait and the policy handles them.
    """
    last_reported = LastReported(AssetCheckKey(names.table, LATE_FILES), late_result)

    def find_work(tick: Tick) -> NoWork | Work:
        step = look_further(platform, dataflow, tick.now)
        entry = platform.log.newest(dataflow.name)
        late = unhandled(platform.log, dataflow, entry, tick.now)
        events: list[Any] = []
        result = late.count, not late.count or dataflow.late_files == "ignore"
        if (step.complete or late.count) and last_reported.should_report(tick.instance, result, tick.seconds):
            finding = check_late_files(dataflow, platform, tick.now)
            events.append(DataflowChecks(dataflow, names).evaluation(finding))
            if step.complete and step.listed:
                metadata = completeness_metadata(step.sweep)
                events.append(AssetObservation(names.watermark, metadata=metadata))
        progress = f"{pluralize(step.listed, 'file')} checked ({pluralize(step.calls, 'listing call')}), {late.count} late"
        if not late.files or dataflow.late_files not in ("ingest", "quarantine"):
            return NoWork(progress, events=events)
        last_reported.forget()  # the run reports it
        return Work(
            entry,
            digest([(file.path, file.size, file.version) for file in late.files]),
            lambda attempt: [names.run_request(f"{dataflow.name}:late:{attempt}")],
            events=events,
            no_progress=_NO_LATE_PROGRESS,
            unfinished=f"{progress}; attempt {{}} did not handle them; the next one is in {{}} s",
        )

    description = f"Searches for late files of {dataflow.name}, a few listing pages a tick."
    return SensorShell(
        "late",
        description,
        _INTERVAL,
        clock,
        has_fixed_interval=True,
        reports_up_to_date=False,
        shows_outside_loads=False,
    ).build(dataflow, platform, names, job_to_run, find_work)
