"""Late files: one step of the sweep, and what the policy does with its finds.

See docs/reference/files.md, Late files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from partitions.dataflow import Dataflow
from partitions.path.settle import is_settling
from partitions.path.source import SourceFile, in_pair_order
from partitions.plan import pluralize
from partitions.request import LateOnly
from partitions.spelling import first_few
from resources import listing
from resources.decisions.deciding import decide
from resources.kinds.path.file_decisions import quarantine_late
from resources.kinds.path.sweep import LateFiles, SweepStep, step, unhandled
from resources.listing import Budget
from resources.loop.rows.withheld import withheld_in_words
from resources.outcome import Outcome
from resources.platform.opener import Opener
from resources.watermarks.entry import Entry
from resources.watermarks.file_ranges import UNPROCESSED_WITHOUT_ROWS
from resources.watermarks.holder import RunIsLive
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.log import WatermarkLog

_SHOWN, _EXAMPLES = 50, 3


@dataclass(frozen=True)
class WithheldLate:
    """Rows of late files that a delete in force, or the retention, kept out of the table.

    Attributes:
        entry: number of the delete's entry; 0 for the retention.
        rows: number of rows.
        files: paths of the files that were loaded with them.
    """

    entry: int
    rows: int
    files: tuple[str, ...]

    @property
    def in_words(self) -> str:
        """The rows, the rule and the first files, for people."""
        return f"{withheld_in_words({self.entry: self.rows})}; late: {first_few(self.files, _EXAMPLES)}"

    def as_json(self) -> dict[str, Any]:
        """Return it in the public JSON form (docs/reference/cli.md, JSON)."""
        return {"entry": self.entry, "rows": self.rows, "files": list(self.files[:_SHOWN])}


@dataclass(frozen=True)
class LateStep:
    """One step of the sweep, with the result of its policy.

    Attributes:
        dataflow: the dataflow's name.
        step: the sweep's step.
        ingested: the run that loaded late files; None if there was nothing to load.
        quarantined: the entry that quarantined late files; None if there is none.
        remaining: late files that no entry has handled.
        freed_copies: paths of late files that were skipped before, as copies of files whose rows have gone.
    """

    dataflow: str
    step: SweepStep
    ingested: Outcome | None = None
    quarantined: Entry | None = None
    remaining: LateFiles = field(default_factory=LateFiles)
    freed_copies: tuple[str, ...] = ()

    @property
    def withheld(self) -> tuple[WithheldLate, ...]:
        """The rows of late files that were not written, by the delete or retention that withheld them."""
        rows, files = defaultdict[int, int](int), defaultdict[int, list[str]](list)
        for committed in self.ingested.committed if self.ingested else ():
            paths = [file.path for file in getattr(committed.slice, "files", ())]
            for entry, count in (committed.entry.withheld or {}).items():
                rows[entry] += count
                files[entry] += paths
        return tuple(WithheldLate(entry, rows[entry], tuple(files[entry])) for entry in rows)

    @property
    def warnings(self) -> Sequence[str]:
        """The warnings of the run that loaded late files, such as copies that it skipped."""
        return self.ingested.warnings if self.ingested else ()

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
            "copies": {"count": len(self.freed_copies), "paths": list(self.freed_copies[:_SHOWN])},
            "withheld": [withheld.as_json() for withheld in self.withheld],
            "warnings": list(self.warnings),
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
    entry = log.newest(dataflow.name)
    remaining = unhandled(log, dataflow, entry, now)
    freed_copies = _freed_copies(log, dataflow, entry, [*sweep_step.late, *remaining.files])
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
    return LateStep(dataflow.name, sweep_step, ingested, quarantined, remaining, freed_copies)


def _freed_copies(
    log: WatermarkLog, dataflow: Dataflow, entry: Entry | None, late: Sequence[SourceFile]
) -> tuple[str, ...]:
    """Return the late files that an earlier run skipped as copies, and that are copies no longer."""
    paths = [*dict.fromkeys(file.path for file in late)]
    records = IngestedFiles(log, dataflow.name, entry).find_records(paths) if paths else {}
    return tuple(path for path, record in records.items() if record.reason == UNPROCESSED_WITHOUT_ROWS)


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
