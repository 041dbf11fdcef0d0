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
    AssetCheckKey,
    AssetMaterialization,
    AssetObservation,
    JobDefinition,
    OpExecutionContext,
    SensorDefinition,
    in_process_executor,
    job,
    op,
)

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from partitions.plan import pluralize
from platform_assets.factory.dagster_names import pool, run_request, table_key, watermark_key
from platform_assets.factory.kinds.path.checks import (
    LATE_FILES,
    completeness_metadata,
    late_evaluation,
    late_result,
)
from platform_assets.factory.last_reported import LastReported
from platform_assets.factory.sensors import Clock, NoWork, SensorShell, Tick, Work, digest
from platform_assets.run_metadata import table_metadata, watermark_metadata
from resources.dagster.io_managers import dagster_failure, mark_run
from resources.dagster.run_options import RunOptions
from resources.dagster.unreported_entries import DATAFLOW_TAG, mark_reported
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


def late_job(dataflow: Dataflow, platform: Platform, options: RunOptions) -> JobDefinition:
    """Return a job that makes one step of the sweep, then ingests or quarantines late files."""

    def late(context: Any) -> Iterator[Any]:
        yield from _LateRun(context, dataflow, platform, options).events()

    late.__annotations__["context"] = OpExecutionContext  # Dagster needs the type, not its name as text
    step = op(name=f"late_{dataflow.name}_step", pool=pool(dataflow.name), out={})(late)

    @job(
        name=f"late_{dataflow.name}",
        tags={DATAFLOW_TAG: dataflow.name},
        description=f"Makes one step of the search for late files of {dataflow.name}; late_files: {dataflow.late_files}.",
        executor_def=in_process_executor,
    )
    def run() -> None:
        step()

    return run


@dataclass(frozen=True)
class _LateRun:
    """One run of the job of late files."""

    context: OpExecutionContext
    dataflow: Dataflow
    platform: Platform
    options: RunOptions

    def events(self) -> Iterator[Any]:
        """Make the step and yield its Dagster events."""
        mark_run(self.context.instance, self.context.run_id, self.dataflow.name)
        loaded: list[Outcome] = []
        try:
            step = self._step(loaded)
        except StrandlineError as error:
            # The committed slices are in the table: materialise them before the run fails.
            yield from self._materialisations(loaded)
            self._mark_reported()
            raise dagster_failure(error) from error
        listed_files = pluralize(step.step.listed, "file")
        self.context.log.info(
            "%s listed, %d late, %d left", listed_files, len(step.step.late), step.remaining.count
        )
        yield from self._materialisations(loaded)
        if step.quarantined is not None:
            quarantine = read_quarantine(self.platform.log, step.quarantined)
            metadata = watermark_metadata(step.quarantined, quarantine)
            yield AssetObservation(watermark_key(self.dataflow.name), metadata=metadata)
        evaluation = late_evaluation(self.dataflow, self.platform, self._now())
        self.context.instance.report_runless_asset_event(evaluation)
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
                metadata = table_metadata(self.dataflow, outcome, place)
                yield AssetMaterialization(asset_key=table_key(self.dataflow), metadata=metadata)

    def _mark_reported(self) -> None:
        """Record that Dagster has stored all events of the run."""
        newest = self.platform.log.newest(self.dataflow.name)
        number = newest.number if newest else 0
        mark_reported(self.context.instance, self.dataflow.name, [self.context.run_id], number)


def late_sensor(
    dataflow: Dataflow, platform: Platform, job_to_run: JobDefinition, clock: Clock = time.time
) -> SensorDefinition:
    """Return a sensor that makes one step of the sweep at each tick.

    It requests a run if late files wait and the policy handles them.
    """
    last_reported = LastReported(AssetCheckKey(table_key(dataflow), LATE_FILES), late_result)

    def find_work(tick: Tick) -> NoWork | Work:
        step = look_further(platform, dataflow, tick.now)
        entry = platform.log.newest(dataflow.name)
        late = unhandled(platform.log, dataflow, entry, tick.now)
        events: list[Any] = []
        result = late.count, not late.count or dataflow.late_files == "ignore"
        if (step.complete or late.count) and last_reported.should_report(tick.instance, result, tick.seconds):
            events.append(late_evaluation(dataflow, platform, tick.now))
            if step.complete and step.listed:
                metadata = completeness_metadata(step.sweep)
                events.append(AssetObservation(watermark_key(dataflow.name), metadata=metadata))
        progress = f"{pluralize(step.listed, 'file')} checked ({pluralize(step.calls, 'listing call')}), {late.count} late"
        if not late.files or dataflow.late_files not in ("ingest", "quarantine"):
            return NoWork(progress, events=events)
        last_reported.forget()  # the run reports it
        return Work(
            entry,
            digest([(file.path, file.size, file.version) for file in late.files]),
            lambda attempt: [run_request(dataflow, f"{dataflow.name}:late:{attempt}")],
            events=events,
            no_progress=_NO_LATE_PROGRESS,
            unfinished=f"{progress}; attempt {{}} did not handle them; the next one is in {{}} s",
        )

    description = f"Searches for late files of {dataflow.name}, a few listing pages a tick."
    return SensorShell(
        "late", description, _INTERVAL, clock, has_fixed_interval=True, reports_up_to_date=False
    ).build(dataflow, platform, job_to_run, find_work)
