"""The failed work units of a dataflow: why, and when they are tried again (docs/reference/windows.md)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
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

Failures = Mapping[tuple[TimeBound, str], Failure]
"""Failures by work unit: the start of its window, and its unit."""


_FAILED = "failed"


def failing_work(dataflow: Dataflow, entry: Entry | None, now: datetime) -> list[Reason]:
    """Return the failed work units of the newest entry, those that fail alike together. Opens no source.

    Loaded ones whose last read failed are named apart, since their rows are in the table.

    Args:
        dataflow: the definition.
        entry: the newest entry.
        now: the clock, aware.
    """
    state = WindowState.of(entry.state() if entry else None)
    unloaded: dict[tuple[TimeBound, str], Failure] = {}
    rereads: dict[tuple[TimeBound, str], Failure] = {}
    for unit, of_unit in state.failed.items():
        loaded = state.failed_rereads(unit)
        for start, failure in of_unit.items():
            if failure.attempts:
                (rereads if start in loaded else unloaded)[start, unit] = failure
    return [
        *failure_reasons(unloaded, dataflow, now, what=_FAILED),
        *failure_reasons(rereads, dataflow, now),
    ]


def failure_reasons(
    failures: Failures, dataflow: Dataflow, now: datetime, what: str = "loaded, but not read again"
) -> list[Reason]:
    """Return a reason for each kind of failure, the most frequent first.

    Args:
        failures: the failures.
        dataflow: the definition.
        now: the clock, aware.
        what: what the failures mean for their work units.
    """
    by_kind: dict[str, list[tuple[TimeBound, str, Failure]]] = defaultdict(list)
    for (start, unit), failure in failures.items():
        by_kind[kind_of_reason(failure.error or "", unit)].append((start, unit, failure))
    reasons = []
    for alike in sorted(by_kind.values(), key=len, reverse=True):
        first = min(alike, key=lambda failed: (failed[0] or 0, failed[1]))
        at = "" if first[0] is None else as_datetime(first[0], dataflow.zone).isoformat()
        label = " of ".join(filter(None, [at, describe_unit(first[1])]))
        more = f", the first {label}" if len(alike) > 1 else f" {label}"
        reasons.append(
            Reason(
                f"{pluralize(len(alike), 'work unit')} {what}{more}",
                first[2].error or "no reason given",
                choices=() if what == _FAILED else (f"strandline run {dataflow.name}",),
                **next_try_of((failure for *_, failure in alike), now),
            )
        )
    return reasons
