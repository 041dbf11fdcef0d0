"""Late files: one step of the sweep, and what the policy does with its finds.

See docs/reference/files.md, Late files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from partitions.dataflow import Dataflow
from partitions.path.settle import is_settling
from partitions.path.source import in_pair_order
from partitions.plan import pluralize
from partitions.request import LateOnly
from resources import listing
from resources.decisions.deciding import decide
from resources.kinds.path.file_decisions import quarantine_late
from resources.kinds.path.sweep import LateFiles, SweepStep, step, unhandled
from resources.listing import Budget
from resources.outcome import Outcome
from resources.platform.opener import Opener
from resources.watermarks.entry import Entry
from resources.watermarks.holder import RunIsLive

_SHOWN = 50


@dataclass(frozen=True)
class LateStep:
    """One step of the sweep, with the result of its policy.

    Attributes:
        dataflow: the dataflow's name.
        step: the sweep's step.
        ingested: the run that loaded late files; None if there was nothing to load.
        quarantined: the entry that quarantined late files; None if there is none.
        remaining: late files that no entry has handled.
    """

    dataflow: str
    step: SweepStep
    ingested: Outcome | None = None
    quarantined: Entry | None = None
    remaining: LateFiles = field(default_factory=LateFiles)

    def as_json(self) -> dict[str, Any]:
        """Return the step in the public JSON form (docs/reference/cli.md, JSON)."""
        sweep = self.step.sweep
        return {
            "dataflow": self.dataflow,
            "listed": self.step.listed,
            "late": [file.path for file in self.step.late],
            "ingested": self.ingested.late if self.ingested else 0,
            "quarantined": sum(by.quarantined for by in (self.quarantined, self.ingested) if by),
            "waiting": {"count": self.remaining.count, "paths": self.remaining.first(_SHOWN)},
            "settling": len(self.remaining.settling),
            "run_id": self.ingested.run_id if self.ingested else None,
            "verified_up_to": sweep.verified_path,
            "verified_at": sweep.verified_at,
            "complete": self.step.complete,
        }


def find_late(
    platform: Opener,
    dataflow: Dataflow,
    now: datetime,
    budget: Budget | None = None,
    max_named: int | None = None,
) -> SweepStep:
    """Run one step of the sweep, without applying the policy.

    Raises:
        SourceError: a listing failed.
        NeedsDecision: as a run would. In another source every file would be late; a table that is missing
            would make the check useless.
    """
    platform.checked_entry(dataflow)
    return step(platform.log, platform.root_of(dataflow), dataflow, now, budget, max_named)


def late_step(
    platform: Opener,
    dataflow: Dataflow,
    now: datetime,
    budget: Budget | None = None,
    *,
    max_named: int | None = None,
    run_id: str | None = None,
    run_is_live: RunIsLive = lambda run_id: None,
    report: Callable[[Outcome], None] = lambda outcome: None,
    **options: Any,
) -> LateStep:
    """Run one step of the sweep and apply its policy, such as ``ingest`` or ``quarantine``.

    Args:
        platform: the resources.
        dataflow: the dataflow's name, source and policy.
        now: the clock, aware.
        budget: the limit of the listing; None for one that fits the place.
        max_named: how many late files the note may name; None for a number that fits the policy.
        run_id: the id of the run that loads late files; None for a new one.
        run_is_live: asks Dagster about a run on another machine.
        report: is called with the outcome of that run, also of one that failed halfway.
        options: options of the loop that loads late files.

    Raises:
        SourceError: a listing failed.
        StrandlineError: late files could not be loaded.
    """
    sweep_step = find_late(platform, dataflow, now, budget, max_named)
    log = platform.log
    remaining = unhandled(log, dataflow, log.newest(dataflow.name), now)
    ingested, quarantined = None, None
    if remaining.files and dataflow.late_files == "ingest":
        loop_options = {"run_id": run_id or str(uuid4()), "run_is_live": run_is_live, **options}
        ingested = platform.loop(dataflow, now, LateOnly(), **loop_options).run()
        report(ingested)
        if ingested.error is not None:
            raise ingested.error
    elif remaining.files and dataflow.late_files == "quarantine":
        quarantined = _quarantine(platform, dataflow, now, remaining, run_is_live)
    if ingested or quarantined:
        remaining = unhandled(log, dataflow, log.newest(dataflow.name), now)
    return LateStep(dataflow.name, sweep_step, ingested, quarantined, remaining)


def _quarantine(
    platform: Opener, dataflow: Dataflow, now: datetime, late: LateFiles, run_is_live: RunIsLive
) -> Entry | None:
    """Quarantine late files as they are now; missing or unsettled files wait for the next round."""
    existing = listing.stat_files(platform.root_of(dataflow), [file.path for file in late.files])
    files = [file for file in existing.values() if not is_settling(dataflow.path, file, now)]
    if not files:
        return None
    build_draft = quarantine_late(f"{pluralize(len(files), 'file')} came late", in_pair_order(files))
    return decide(platform, dataflow, build_draft, "late files", run_is_live)
