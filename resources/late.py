"""Late files: one step of the sweep, and what the policy does with what it found (spec 01, Late files and bad names)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.path.source import SourceFile
from partitions.plan import counted
from resources.decisions import decide, quarantine_late
from resources.listing import Budget
from resources.loop.guards import check_definition
from resources.loop.holder import RunIsLive
from resources.loop.outcome import Outcome
from resources.platform import Platform
from resources.sweep import SweepStep, step, unhandled
from resources.watermarks.entry import Entry


@dataclass(frozen=True)
class LateStep:
    """One step of the sweep with its policy.

    Attributes:
        found: what the sweep saw.
        ingested: the run that loaded late files; None where there was nothing to load.
        quarantined: the entry that set late files aside, if one did.
        left: late files that nobody has dealt with.
    """

    dataflow: str
    found: SweepStep
    ingested: Outcome | None = None
    quarantined: Entry | None = None
    left: tuple[SourceFile, ...] = field(default=())

    def as_json(self) -> dict[str, Any]:
        """The step in the public JSON form (spec 09, JSON)."""
        sweep = self.found.sweep
        return {
            "dataflow": self.dataflow,
            "listed": self.found.listed,
            "late": [file.path for file in self.found.late],
            "ingested": self.ingested.late if self.ingested else 0,
            "quarantined": self.quarantined.quarantined if self.quarantined else 0,
            "verified_up_to": sweep.verified_path,
            "verified_at": sweep.verified_at,
            "complete": self.found.complete,
        }


def look(platform: Platform, dataflow: Dataflow, now: datetime, budget: Budget | None = None) -> SweepStep:
    """One step of the sweep, and nothing done about what it finds.

    Raises:
        SourceError: where a listing fails.
        NeedsDecision: code ``definition_changed``: of another source every file would be late.
    """
    check_definition(dataflow, platform.log.newest(dataflow.name), platform.log)
    return step(platform.log, platform.root_of(dataflow), dataflow, now, budget)


def late_step(
    platform: Platform,
    dataflow: Dataflow,
    now: datetime,
    budget: Budget | None = None,
    *,
    run_is_live: RunIsLive = lambda run_id: None,
    report: Callable[[Outcome], None] = lambda outcome: None,
    **options: Any,
) -> LateStep:
    """One step of the sweep, with its policy: ``ingest`` loads late files at once, ``quarantine`` sets them aside.

    Args:
        platform: the resources.
        dataflow: its name, source and policy.
        now: the clock, aware.
        budget: of the listing; None is one that suits the place.
        run_is_live: asks Dagster about a run on another machine.
        report: hears of the run that loaded late files, also of one that failed half-way.
        options: of the loop, where late files are loaded.

    Raises:
        SourceError: where a listing fails.
        StrandlineError: why late files could not be loaded.
    """
    found = look(platform, dataflow, now, budget)
    log = platform.log
    left = unhandled(log, dataflow.name, log.newest(dataflow.name))
    ingested, aside = None, None
    if left and dataflow.late_files == "ingest":
        ingested = platform.loop(dataflow, now, run_is_live=run_is_live, **options).run(only="late")
        report(ingested)
        if ingested.error is not None:
            raise ingested.error
    elif left and dataflow.late_files == "quarantine":
        making = quarantine_late(f"{counted(len(left), 'file')} came late", left)
        aside = decide(platform, dataflow, making, "late files", run_is_live)
    if ingested or aside:
        left = unhandled(log, dataflow.name, log.newest(dataflow.name))
    return LateStep(dataflow.name, found, ingested, aside, tuple(left))
