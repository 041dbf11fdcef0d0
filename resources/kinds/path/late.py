"""Late files: one step of the sweep, and what the policy does with what it found (docs/reference/files.md, Late files)."""

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
    """One step of the sweep with its policy.

    Attributes:
        step: what the sweep saw.
        ingested: the run that loaded late files; None if there was nothing to load.
        quarantined: the entry that set late files aside, if one did.
        left: late files that no entry has dealt with.
    """

    dataflow: str
    step: SweepStep
    ingested: Outcome | None = None
    quarantined: Entry | None = None
    left: LateFiles = field(default_factory=LateFiles)

    def as_json(self) -> dict[str, Any]:
        """The step in the public JSON form (docs/reference/cli.md, JSON)."""
        sweep = self.step.sweep
        return {
            "dataflow": self.dataflow,
            "listed": self.step.listed,
            "late": [file.path for file in self.step.late],
            "ingested": self.ingested.late if self.ingested else 0,
            "quarantined": sum(by.quarantined for by in (self.quarantined, self.ingested) if by),
            "waiting": {"count": self.left.count, "paths": self.left.first(_SHOWN)},
            "settling": len(self.left.settling),
            "run_id": self.ingested.run_id if self.ingested else None,
            "verified_up_to": sweep.verified_path,
            "verified_at": sweep.verified_at,
            "complete": self.step.complete,
        }


def look(
    platform: Opener,
    dataflow: Dataflow,
    now: datetime,
    budget: Budget | None = None,
    most: int | None = None,
) -> SweepStep:
    """One step of the sweep, and nothing done about what it finds.

    Raises:
        SourceError: if a listing fails.
        NeedsDecision: as a run would. Of another source every file would be late, and beside a table that is gone nothing is verified.
    """
    platform.checked(dataflow)
    return step(platform.log, platform.root_of(dataflow), dataflow, now, budget, most)


def late_step(
    platform: Opener,
    dataflow: Dataflow,
    now: datetime,
    budget: Budget | None = None,
    *,
    most: int | None = None,
    run_id: str | None = None,
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
        most: late files that are known by name at a time; None is a number that suits the policy.
        run_id: of the rows that are loaded; None makes one.
        run_is_live: asks Dagster about a run on another machine.
        report: hears of the run that loaded late files, also of one that failed half-way.
        options: of the loop, if late files are loaded.

    Raises:
        SourceError: if a listing fails.
        StrandlineError: why late files could not be loaded.
    """
    looked = look(platform, dataflow, now, budget, most)
    log = platform.log
    left = unhandled(log, dataflow, log.newest(dataflow.name), now)
    ingested, aside = None, None
    if left.files and dataflow.late_files == "ingest":
        given = {"run_id": run_id or str(uuid4()), "run_is_live": run_is_live, **options}
        ingested = platform.loop(dataflow, now, LateOnly(), **given).run()
        report(ingested)
        if ingested.error is not None:
            raise ingested.error
    elif left.files and dataflow.late_files == "quarantine":
        aside = _set_aside(platform, dataflow, now, left, run_is_live)
    if ingested or aside:
        left = unhandled(log, dataflow, log.newest(dataflow.name), now)
    return LateStep(dataflow.name, looked, ingested, aside, left)


def _set_aside(
    platform: Opener, dataflow: Dataflow, now: datetime, late: LateFiles, run_is_live: RunIsLive
) -> Entry | None:
    """Quarantine late files as they are now; what is gone, or is being written again, is left to the next round."""
    there = listing.stat_files(platform.root_of(dataflow), [file.path for file in late.files])
    files = [file for file in there.values() if not is_settling(dataflow.path, file, now)]
    if not files:
        return None
    build_draft = quarantine_late(f"{pluralize(len(files), 'file')} came late", in_pair_order(files))
    return decide(platform, dataflow, build_draft, "late files", run_is_live)
