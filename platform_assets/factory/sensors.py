"""The sensor of a file source: asks for one run when a file lies above the committed watermark (docs/dagster.md)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from dagster import (
    DefaultSensorStatus,
    RunRequest,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    sensor,
)

from partitions.dataflow import Dataflow
from platform_assets.factory.asking import Cursor, Work, ask, done, skip, what
from platform_assets.factory.in_flight import in_flight
from resources.listing import Budget
from resources.platform import Platform
from resources.reporting import DATAFLOW_TAG

_BUDGET = Budget(pages=50, seconds=20.0)  # a tick has 60 s, and a slow store must not use them up
_INTERVAL = 30


def dataflow_sensor(
    dataflow: Dataflow, platform: Platform, job: Any, clock: Callable[[], float] = time.time
) -> SensorDefinition:
    """A sensor that looks above the committed watermark and asks for runs of ``job``."""

    @sensor(
        name=f"{dataflow.name}_files",
        job=job,
        minimum_interval_seconds=_INTERVAL,
        default_status=DefaultSensorStatus.RUNNING,
        description=f"Finds files of {dataflow.name} above its committed watermark, and asks for a run.",
    )
    def files(context: SensorEvaluationContext) -> SensorResult:
        cursor, now = Cursor.read(context.cursor), clock()
        busy = in_flight(context.instance, platform.log, dataflow.name, now, cursor.sign)
        if busy is not None:
            return skip(busy.reason, replace(cursor, sign=busy.sign))
        entry = platform.log.newest(dataflow.name)
        look = platform.path_kind(dataflow).peek(
            entry, datetime.fromtimestamp(now, UTC), _BUDGET, cursor.resume or None
        )
        if not look.found.files:
            more = "goes on at the next tick" if look.resume else "no file is above the watermark"
            return skip(f"{more} ({look.found.calls} listing calls)", cursor.nothing(look.resume or ""))
        first = look.found.files[0]
        work = Work(
            done(platform.log, dataflow.name, entry, cursor),
            what(first.path, first.size, first.version),
            entry.number if entry else 0,
        )
        return ask(cursor, work, now, lambda attempt: [request(dataflow, f"{dataflow.name}:{attempt}")])

    return files


def request(dataflow: Dataflow, run_key: str) -> RunRequest:
    """A run of a dataflow."""
    return RunRequest(run_key=run_key, tags={DATAFLOW_TAG: dataflow.name})
