"""The failed work units of a dataflow: why, and when they are tried again (docs/reference/windows.md)."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from partitions.dataflow import Dataflow
from partitions.instants import as_datetime
from partitions.plan import pluralize
from partitions.why_answer import Reason
from partitions.window.alike_reasons import kind_of_reason
from partitions.window.state import WindowState
from partitions.window.work_outcomes import Failure, TimeBound, next_try_of
from partitions.window.work_unit import describe_unit
from resources.watermarks.entry import Entry


def failing_work(dataflow: Dataflow, entry: Entry | None, now: datetime) -> list[Reason]:
    """Return the failed work units of the newest entry, those that fail alike together. Opens no source.

    Args:
        dataflow: the definition.
        entry: the newest entry.
        now: the clock, aware.
    """
    state = WindowState.of(entry.state() if entry else None)
    by_kind: dict[str, list[tuple[TimeBound, str, Failure]]] = defaultdict(list)
    for unit, of_unit in state.failed.items():
        for start, failure in of_unit.items():
            if failure.attempts:
                by_kind[kind_of_reason(failure.error or "", unit)].append((start, unit, failure))
    reasons = []
    for failures in sorted(by_kind.values(), key=len, reverse=True):
        first = min(failures, key=lambda failed: (failed[0] or 0, failed[1]))
        at = "" if first[0] is None else as_datetime(first[0], dataflow.zone).isoformat()
        label = " of ".join(filter(None, [at, describe_unit(first[1])]))
        more = f", the first {label}" if len(failures) > 1 else f" {label}"
        reasons.append(
            Reason(
                f"{pluralize(len(failures), 'work unit')} failed{more}",
                first[2].error or "no reason given",
                **next_try_of((failure for *_, failure in failures), now),
            )
        )
    return reasons
