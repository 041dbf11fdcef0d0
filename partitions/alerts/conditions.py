"""Which facts about a dataflow make an alert, and its text: a failed run, late files, gaps in the ledger, a stale table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from partitions.alerts.alert import Alert
from partitions.dataflow import LATE_POLICIES, Dataflow
from partitions.instants import as_datetime, time_in_words
from partitions.plan import counted, lasting
from partitions.window.ledger import Ledger
from partitions.window.work_unit import describe_unit

_BAD_STATUSES = ("failed", "blocked", "died")

MOST_NAMED = 3
"""Late files that an alert names."""


@dataclass(frozen=True)
class EndedRun:
    """The last run of a dataflow that is over.

    Attributes:
        status: as ``strandline list`` shows it.
        since: when the first of the runs failed that have failed one after the other, ISO.
        message: of its error; "" if it has none.
        choices: commands that lead on.
    """

    status: str
    since: str
    message: str = ""
    choices: Sequence[str] = ()


def broken_file_alert(dataflow: str, errors: Sequence[str]) -> Alert:
    """Return the alert of a dataflow whose file has errors: nothing runs it, so no run fails."""
    return Alert(dataflow, "failed", f"its file has errors: {'; '.join(errors)}\n  strandline validate")


def failure_alert(dataflow: Dataflow, run: EndedRun | None) -> Alert | None:
    """Return the alert of a last run that did not succeed; None if it did, or if there was none."""
    if run is None or run.status not in _BAD_STATUSES:
        return None
    choices = "".join(f"\n  {choice}" for choice in run.choices or (f"strandline run {dataflow.name}",))
    how = "" if run.status == "failed" else f"{run.status} "
    text = f"{how}since {time_in_words(run.since)}: {run.message or 'see its run'}{choices}"
    return Alert(dataflow.name, "failed", text)


def has_late_files(dataflow: Dataflow) -> bool:
    """Return whether people want to know of a dataflow's late files: if it has a sweep, and does not ignore what it finds."""
    return dataflow.kind == "path" and dataflow.late_files != "ignore"


def late_files_alert(dataflow: Dataflow, count: int, names: Sequence[str]) -> Alert | None:
    """Return the alert of late files that nothing has handled yet; None if there are none.

    Args:
        dataflow: that they belong to.
        count: how many.
        names: the first of them.
    """
    if not count:
        return None
    such_as = "such as " if count > MOST_NAMED else ""
    files = f"{counted(count, 'late file')}, {such_as}{', '.join(names[:MOST_NAMED])}"
    text = f"{files}: {LATE_POLICIES[dataflow.late_files]}\n  strandline late {dataflow.name}"
    return Alert(dataflow.name, "late", text)


def has_ledger(dataflow: Dataflow) -> bool:
    """Return whether windows of a dataflow can be missing."""
    return dataflow.kind == "window"


def gaps_alert(dataflow: Dataflow, ledger: Ledger) -> Alert | None:
    """Return the alert of windows that are over and not loaded; None if there are none."""
    gaps = ledger.missing
    if not gaps:
        return None
    unit, first = gaps[0]
    start, end = (as_datetime(ms, ledger.zone).isoformat() for ms in (first.start, first.end))
    of_unit = f"{describe_unit(unit.unit)}, " if describe_unit(unit.unit) else ""
    text = f"{counted(len(gaps), 'gap')} in its ledger, the first: {of_unit}{start} to {end}: {first.why}"
    return Alert(dataflow.name, "gaps", f"{text}\n  strandline ledger {dataflow.name}")


def freshness_alert(dataflow: Dataflow, last_load: str | None, now: datetime) -> Alert | None:
    """Return the alert of a table that nothing was loaded into for longer than its ``freshness: fail``, even if nothing was there to load.

    Args:
        dataflow: of the table.
        last_load: when something was loaded last, ISO; None if never.
        now: of the scan.
    """
    if dataflow.freshness is None or last_load is None:
        return None
    limit = dataflow.freshness.fail
    if now - datetime.fromisoformat(last_load) <= limit:
        return None
    text = f"nothing was loaded since {time_in_words(last_load)}, for longer than {lasting(limit.total_seconds())}"
    return Alert(dataflow.name, "stale", f"{text} (freshness: fail)\n  strandline plan {dataflow.name}")
