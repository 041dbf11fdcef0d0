"""Repair a table after a comparison: one slice, one commit, one entry ``reconcile`` (ADR 0054).

The comparison names keys or ranges. Their rows are read again when the repair runs, on whatever entry is the
newest then, so the table gets what the source has at that moment. If a decision has changed the state since
the comparison, the repair ends with a conflict.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, Conflict, DataflowHeld, NeedsDecision, StrandlineError
from partitions.reconcile.repair import Repaired, RepairedKeys
from partitions.reconcile.result import Reconciliation, counts_in_words
from partitions.request import Repair
from resources.loop.loop import Loop
from resources.notes.reconciled import note_repaired
from resources.outcome import Observer, Outcome
from resources.platform.opener import Opener
from resources.reconcile.options import ReconcileOptions
from resources.reconcile.reconciling import reconcile
from resources.watermarks.entry import LOADS, NO_PROGRESS, Entry, check_reason

_MAX_CONFLICTS = 20
"""So often in a row another run may be faster than a repair."""
_HISTORY = 1_000_000


@dataclass(frozen=True)
class RepairPlan:
    """What a repair would do.

    Attributes:
        dataflow: the definition.
        options: what was compared, and what is repaired.
        comparison: what differs.
        lines: sentences for people; empty: there is nothing to repair.
    """

    dataflow: Dataflow
    options: ReconcileOptions
    comparison: Reconciliation
    lines: tuple[str, ...] = ()

    @property
    def repaired(self) -> Repaired | None:
        """What is read again; None: there is nothing to repair."""
        repair = self.comparison.repair
        return None if isinstance(repair, str) else repair

    def check(self) -> None:
        """Raise ConfigurationError, code ``no_repair``, if what differs cannot be repaired."""
        if isinstance(self.comparison.repair, str):
            raise _refused(self.dataflow, self.comparison, self.comparison.repair)

    @property
    def repairs_everything(self) -> bool:
        """Whether all that differs is repaired."""
        totals = self.comparison.totals
        return self.options.repairs == "all" or not (totals.extra or totals.different)


def plan_repair(platform: Opener, dataflow: Dataflow, options: ReconcileOptions, now: datetime) -> RepairPlan:
    """Compare source and table, and return what a repair would do. Changes no row.

    Args:
        platform: the project's resources.
        dataflow: the definition.
        options: what to compare, and which rows to repair.
        now: the clock, aware.

    Raises:
        ConfigurationError: the dataflow cannot be compared.
        NeedsDecision: as a run would; or code ``reload_pending``.
        SourceError: the source refuses, or does not answer.
    """
    comparison = reconcile(platform, dataflow, options, now)
    if comparison.repair is None or isinstance(comparison.repair, str):
        return RepairPlan(dataflow, options, comparison)
    _refuse_pending(dataflow, platform.log.newest(dataflow.name))
    return RepairPlan(dataflow, options, comparison, tuple(_describe(dataflow, options, comparison)))


def repair(
    platform: Opener,
    plan: RepairPlan,
    reason: str,
    now: datetime,
    *,
    observer: Observer = lambda step, line: None,
    **how: Any,
) -> Outcome:
    """Make the differing rows of a table what the source has, in one commit; return the outcome.

    Args:
        platform: the project's resources.
        plan: what differs, with something to repair.
        reason: the operator's reason; stays in the log.
        now: the clock, aware.
        observer: is called at each step.
        how: run_id, job_id, and attributes of :class:`resources.loop.holder_wait.HolderPolicy`.

    Raises:
        ConfigurationError: there is no reason.
        Conflict: a decision has changed the state since the comparison.
        NeedsDecision: code ``reload_pending``.
    """
    dataflow, repaired = plan.dataflow, plan.repaired
    check_reason(dataflow.name, reason)
    assert repaired is not None, plan
    counts = counts_in_words(plan.comparison.totals, plan.comparison.level)
    loop = platform.loop(dataflow, now, observer=observer, **how)
    deadline = time.monotonic() + loop.holder_policy.hold_wait.total_seconds()
    earlier: Outcome | None = None
    for _ in range(_MAX_CONFLICTS):
        number = _checked_base(platform, plan)
        request = Repair(repaired, number, f"{reason.strip()} ({counts})")
        context = replace(loop.context, request=request, start_spark=lambda: loop.context.spark)
        outcome = Loop(context, loop.holder_policy, loop.retention).run()
        if earlier is not None:
            outcome.committed[:0] = earlier.committed
        earlier = outcome
        is_held = isinstance(outcome.error, DataflowHeld) and time.monotonic() < deadline
        if not isinstance(outcome.error, Conflict) and not is_held:
            break
    if outcome.error is None and outcome.newest is not None and plan.repairs_everything:
        with suppress(StrandlineError):  # the rows are repaired in any case
            note_repaired(platform.log, dataflow.name, outcome.newest.number)
    return outcome


def _checked_base(platform: Opener, plan: RepairPlan) -> int:
    """Return the number of the newest entry, if only loads came since the comparison.

    Raises:
        Conflict: a decision came.
        NeedsDecision: code ``reload_pending``.
    """
    name, compared = plan.dataflow.name, plan.comparison.position.state_number
    newest: Entry | None = None
    for entry in platform.log.history(name, _HISTORY):
        newest = newest or entry
        if entry.number <= compared:
            break
        if entry.why not in LOADS | NO_PROGRESS:
            raise Conflict(
                f"dataflow {name}: expected the state that was compared, entry {compared}, found entry {entry.number}"
                f" ({entry.why}) since. Nothing was repaired. Compare again: strandline reconcile {name} --repair"
            )
    if newest is None or newest.number < compared:
        raise Conflict(
            f"dataflow {name}: expected entry {compared}, which was compared, found"
            f" {'no entry' if newest is None else f'entry {newest.number}'}: the log was lost or restored. Nothing was repaired"
        )
    _refuse_pending(plan.dataflow, newest)
    return newest.number


def _refuse_pending(dataflow: Dataflow, entry: Entry | None) -> None:
    """Raise NeedsDecision while the next runs replace rows of the table anyway."""
    if entry is not None and (entry.replace_table or entry.new_columns or entry.replace_until):
        raise NeedsDecision(
            f"dataflow {dataflow.name}: expected a table that holds all rows up to its watermark, found a rewind or reset"
            " whose rows are not loaded yet. Run the dataflow first, then repair",
            code="reload_pending",
            choices=(f"strandline run {dataflow.name}",),
        )


def _refused(dataflow: Dataflow, comparison: Reconciliation, why: str) -> ConfigurationError:
    name = dataflow.name
    counts = counts_in_words(comparison.totals, comparison.level)
    return ConfigurationError(
        f"dataflow {name}: --repair: found {counts}, which it does not repair: {why}. Replay the range instead, with"
        f" `strandline replay {name} --start … --end …`; or reload the table, with `strandline state reset {name} --replace`",
        code="no_repair",
    )


def _describe(dataflow: Dataflow, options: ReconcileOptions, comparison: Reconciliation) -> list[str]:
    """Return sentences on what a repair does."""
    repaired, target, totals = comparison.repair, dataflow.target, comparison.totals
    assert not isinstance(repaired, str)
    assert repaired is not None
    label = dataflow.source.label
    lines = [
        f"found {counts_in_words(totals, comparison.level)}",
        f"{repaired.words} are read again from {label}, and written in one commit of {dataflow.table}",
    ]
    if isinstance(repaired, RepairedKeys):
        sorts, retires = options.repaired_sorts, target.load == "scd2"
        effects = {
            "missing": "missing rows are added",
            "different": "different rows become those of the source",
            "extra": "extra keys end their versions" if retires else "extra rows are deleted",
        }
        lines += [effect for sort, effect in effects.items() if sort in sorts and getattr(totals, sort)]
        lines.append("a key that changes meanwhile gets what the source has when the repair reads it")
    else:
        lines.append("the rows that the table has there are deleted in the same commit")
    return [*lines, "rows above the watermark stay, and so does the watermark"]
