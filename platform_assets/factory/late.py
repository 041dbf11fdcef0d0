"""The late-file sweep in Dagster: a sensor that looks a step further, and a job that does what the policy says (docs/guide-files.md)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from dagster import (
    AssetMaterialization,
    AssetObservation,
    DefaultSensorStatus,
    JobDefinition,
    OpExecutionContext,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    job,
    op,
    sensor,
)

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from partitions.plan import counted
from platform_assets.factory.asking import ABANDONED, Cursor, Work, ask, done, skip, what
from platform_assets.factory.assets import pool, table_key, watermark_key
from platform_assets.factory.checks import completeness, late_evaluation
from platform_assets.factory.in_flight import in_flight
from platform_assets.factory.sensors import request
from platform_assets.metadata import table_metadata, watermark_metadata
from resources.io_managers import RunOptions, failure, mark_run
from resources.late import late_step, look
from resources.loop.loop import clock
from resources.loop.outcome import Outcome
from resources.platform import Platform
from resources.reporting import DATAFLOW_TAG, tell
from resources.sweep import unhandled
from resources.watermarks.entry import Why
from resources.watermarks.quarantine import read_quarantine

_NOT_OF_LATE_FILES: frozenset[Why] = frozenset({*ABANDONED, "run"})
"""Entries that say nothing of late files: a dataflow that loads new files all the time deals with no late one by that."""

_INTERVAL = 300
"""Seconds between two steps of the sweep; a round over a million keys takes four hours."""


def late_job(dataflow: Dataflow, platform: Platform, options: RunOptions) -> JobDefinition:
    """A job that goes one step of the sweep, and ingests or quarantines what is late."""

    def late(context: Any) -> Iterator[Any]:
        mark_run(context.instance, context.run_id, dataflow.name)
        loaded: list[Outcome] = []
        try:
            done = late_step(
                platform,
                dataflow,
                options.now or clock(),
                run_id=context.run_id,
                job_id=context.job_name,
                hold_wait=options.hold_wait,
                run_is_live=options.run_is_live,
                observer=lambda done, line: context.log.info("%s: %s", done, line),
                report=loaded.append,
            )
        except StrandlineError as error:
            # What was committed is there, so it is materialised, and the run fails right after it.
            yield from _materialised(loaded)
            told(context)
            raise failure(error) from error
        context.log.info(
            "%s listed, %d late, %d left",
            counted(done.found.listed, "file"),
            len(done.found.late),
            done.left.count,
        )
        yield from _materialised(loaded)
        if done.quarantined is not None:
            quarantine = read_quarantine(platform.log, done.quarantined)
            metadata = watermark_metadata(done.quarantined, quarantine)
            yield AssetObservation(watermark_key(dataflow.name), metadata=metadata)
        context.instance.report_runless_asset_event(
            late_evaluation(dataflow, platform, options.now or clock())
        )
        told(context)

    def told(context: Any) -> None:
        newest = platform.log.newest(dataflow.name)
        tell(context.instance, dataflow.name, [context.run_id], newest.number if newest else 0)

    def _materialised(loaded: Sequence[Outcome]) -> Iterator[AssetMaterialization]:
        for outcome in loaded:
            if outcome.committed:
                metadata = table_metadata(outcome, platform.lake.child(dataflow.table))
                yield AssetMaterialization(asset_key=table_key(dataflow), metadata=metadata)

    late.__annotations__["context"] = OpExecutionContext  # the type itself: Dagster takes no text for it
    step = op(name=f"late_{dataflow.name}_step", pool=pool(dataflow.name), out={})(late)

    @job(
        name=f"late_{dataflow.name}",
        tags={DATAFLOW_TAG: dataflow.name},
        description=f"Looks for late files of {dataflow.name}, one step; late_files: {dataflow.late_files}.",
    )
    def run() -> None:
        step()

    return run


def late_sensor(
    dataflow: Dataflow, platform: Platform, to_run: JobDefinition, now: Callable[[], float] = time.time
) -> SensorDefinition:
    """A sensor that goes one step of the sweep a tick, and asks for a run where something late is to be dealt with."""

    @sensor(
        name=f"{dataflow.name}_late",
        job=to_run,
        minimum_interval_seconds=_INTERVAL,
        default_status=DefaultSensorStatus.RUNNING,
        description=f"Looks for files of {dataflow.name} that came below its watermark, a few pages a tick.",
    )
    def late(context: SensorEvaluationContext) -> SensorResult:
        cursor, seconds = Cursor.read(context.cursor), now()
        busy = in_flight(context.instance, platform.log, dataflow.name, seconds, cursor.sign)
        if busy is not None:
            return skip(busy.reason, replace(cursor, sign=busy.sign))
        instant = datetime.fromtimestamp(seconds, UTC)
        step = look(platform, dataflow, instant)
        entry = platform.log.newest(dataflow.name)
        found = unhandled(platform.log, dataflow, entry, instant)
        told = step.complete or found.count
        events: list[Any] = [late_evaluation(dataflow, platform, instant)] if told else []
        if step.complete and step.listed:
            events.append(AssetObservation(watermark_key(dataflow.name), metadata=completeness(step.sweep)))
        said = f"{counted(step.listed, 'file')} looked at ({step.calls} listing calls), {found.count} late"
        if not found.files or dataflow.late_files not in ("ingest", "quarantine"):
            return skip(said, cursor.nothing(), events)
        work = Work(
            done(platform.log, dataflow.name, entry, cursor, _NOT_OF_LATE_FILES),
            what([(file.path, file.size, file.version) for file in found.files]),
            entry.number if entry else 0,
            f"{said}; attempt {{}} did not deal with them",
        )
        key = f"{dataflow.name}:late"
        return ask(
            cursor, work, seconds, lambda attempt: [request(dataflow, f"{key}:{attempt}")], events=events
        )

    return late
