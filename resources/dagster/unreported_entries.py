"""Entries that dead runs have appended to the log but not reported; the next run reports them.

A run that has reported everything to Dagster tags itself with the number of its newest entry. So one query
tells that nothing is missing. Only if a run ended without that tag are entries compared with runs, back to
the first entry that is older than all of these runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dagster import DagsterInstance, DagsterRunStatus, RunRecord, RunsFilter

from resources.dagster.names import DagsterDataflowNames
from resources.dagster.run_tags import HIDDEN
from resources.watermarks.entry import LOADS, Entry
from resources.watermarks.log import WatermarkLog

_STATUSES = [
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
    DagsterRunStatus.CANCELED,
    DagsterRunStatus.FAILURE,
]
_RUNS, _ENTRIES = 20, 200
"""The most runs that one call checks, and the most entries that it compares with them."""


@dataclass(frozen=True)
class UnreportedEntries:
    """The entries of a dataflow that Dagster does not know.

    Attributes:
        entries: oldest first.
        runs: ended, or seem to have ended, without having reported everything.
    """

    entries: Sequence[Entry] = ()
    runs: Sequence[str] = ()


def find_unreported(
    instance: DagsterInstance, log: WatermarkLog, names: DagsterDataflowNames, run_id: str, up_to: int
) -> UnreportedEntries:
    """Return what dead runs of this instance have loaded and not reported.

    Args:
        instance: has the runs.
        log: has their entries.
        names: the dataflow's names, whose tags its runs have.
        run_id: the id of the calling run, whose own entries are ignored.
        up_to: the number of the newest entry when the calling run started.
    """
    filters = RunsFilter(tags=names.run_tags, statuses=_STATUSES)
    records = [record for record in instance.get_run_records(filters, limit=_RUNS) if _id(record) != run_id]
    dead = [
        record
        for record in records
        if _reported_up_to(record, names) is None or not record.dagster_run.is_finished
    ]
    if not dead:
        return UnreportedEntries()
    records_by_run: dict[str, RunRecord | None] = {_id(record): record for record in records}
    oldest, entries = min(record.storage_id for record in dead), list[Entry]()
    for entry in log.history(names.dataflow, _ENTRIES):
        if entry.number > up_to or entry.run_id is None or entry.run_id == run_id:
            continue
        if entry.run_id not in records_by_run:
            records_by_run[entry.run_id] = instance.get_run_record_by_id(entry.run_id)
        record = records_by_run[entry.run_id]
        if record is None:  # of the command line, or of another instance
            continue
        if entry.number > (_reported_up_to(record, names) or 0) and not record.dagster_run.is_success:
            entries.append(entry)
        elif record.storage_id < oldest:
            break
    loads = [entry for entry in reversed(entries) if entry.why in LOADS]
    return UnreportedEntries(loads, [_id(entry) for entry in dead])


def mark_reported(
    instance: DagsterInstance, names: DagsterDataflowNames, runs: Sequence[str], number: int
) -> None:
    """Tag runs as reported up to an entry."""
    for run_id in runs:
        instance.add_run_tags(run_id, {_tag(names): str(number)})


def summarize_entries(entries: Sequence[Entry]) -> dict[str, Any]:
    """Return the metadata of a run from its entries."""
    return {
        "status": "committed",
        "rows": sum(entry.rows for entry in entries),
        "files": sum(entry.files for entry in entries),
        "slices": len(entries),
        "state_number": entries[-1].number,
    }


def _reported_up_to(record: RunRecord, names: DagsterDataflowNames) -> int | None:
    tag = record.dagster_run.tags.get(_tag(names), "")
    return int(tag) if tag.isdecimal() else None


def _tag(names: DagsterDataflowNames) -> str:
    """Return the tag that records up to which entry of a dataflow a run has reported."""
    return f"{HIDDEN}reported_{names.identifier}"


def _id(record: RunRecord) -> str:
    return record.dagster_run.run_id
