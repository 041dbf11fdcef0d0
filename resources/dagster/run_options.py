"""Options of runs, set by whoever starts them: Dagster, or a command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from partitions.request import Request
from resources.loop.holder_wait import HOLD_WAIT
from resources.outcome import Observer, Outcome
from resources.watermarks.holder import RunIsLive


@dataclass(frozen=True)
class RunOptions:
    """Options of runs, set by whoever starts them.

    Attributes:
        now: the clock, aware; None reads the wall clock once per run.
        hold_wait: how long to wait for a living holder.
        observer: called after every step, in addition to the run's own log.
        report: called with each outcome, including failed ones.
        run_is_live: asks Dagster about a run.
        requests: by dataflow, a request in place of the due work.
    """

    now: datetime | None = None
    hold_wait: timedelta = HOLD_WAIT
    observer: Observer | None = None
    report: Callable[[Outcome], None] = lambda outcome: None
    run_is_live: RunIsLive = field(default=lambda run_id: None)
    requests: Mapping[str, Request] = field(default_factory=dict)
