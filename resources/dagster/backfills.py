"""Partitions that were chosen in Dagster, as a replay in place (docs/reference/replay.md, Backfills).

A run over partitions that no plan has requested is such a replay: a backfill over a range, each run of a
backfill with one run per partition, and "Materialize". Another run of the same backfill, or a retry of the
same run, resumes it. Another backfill of the same partitions is a new request, and reads all of them: the
source may have been corrected since.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from dagster import DagsterRun

from partitions.dataflow import Dataflow
from partitions.plan import pluralize
from partitions.request import WorkUnitSelection
from resources.platform.platform import Platform
from resources.replay.kind import ReplayKind
from resources.replay.options import ChosenPartitions

_BACKFILL = "dagster/backfill"
_BACKFILLS = ("dagster/root_backfill_id", _BACKFILL)
"""Tags that name the backfill that a user launched; a retry has the tag of the first one."""

_ROOT_RUN = "dagster/root_run_id"
"""The tag of a retried run: the first run."""


def is_backfill(run: DagsterRun) -> bool:
    """Return whether a run belongs to a backfill of Dagster."""
    return _BACKFILL in run.tags


def backfill_of(
    platform: Platform,
    dataflow: Dataflow,
    part: WorkUnitSelection,
    keys: Sequence[str],
    run: DagsterRun,
    now: datetime,
) -> ReplayKind:
    """Return the replay for a run over partitions.

    Args:
        platform: the resources.
        dataflow: has the partitions.
        part: their windows and units.
        keys: the partitions' keys.
        run: over these partitions.
        now: the clock, aware.
    """
    launched = f"{_launch_name(run)} of {_describe_keys(keys)}"
    options = ChosenPartitions(start=min(keys), end=max(keys), part=part, launched=launched)
    return platform.replay(dataflow, options, now)


def _launch_name(run: DagsterRun) -> str:
    for tag in _BACKFILLS:
        if backfill := run.tags.get(tag):
            return f"backfill {backfill}"
    return f"run {run.tags.get(_ROOT_RUN, run.run_id)}"


def _describe_keys(keys: Sequence[str]) -> str:
    first, last = min(keys), max(keys)
    return first if len(keys) == 1 else f"{pluralize(len(keys), 'partition')} from {first} to {last}"
