"""Turn facts about a dataflow into alerts.

The facts are a file with errors, a failed run, late files, copies of loaded files, gaps in the ledger, and a
stale table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from partitions.alerts.alert import Alert, Condition
from partitions.dataflow import LATE_POLICIES, Dataflow
from partitions.instants import as_datetime, time_text
from partitions.path.expected import MissingRange
from partitions.path.quarantined_files import release_command
from partitions.plan import format_duration, pluralize
from partitions.window.ledger import Ledger
from partitions.window.work_unit import describe_unit

_BAD_STATUSES = ("failed", "blocked", "died")
_UNDECIDED_STATUSES = ("held", "skipped", "stopped")
"""Statuses of runs that neither failed nor went well: they end no series of failures."""

MAX_NAMED = 3
"""The most late files that an alert names."""


@dataclass(frozen=True)
class EndedRun:
    """The last finished run of a dataflow, or the looks for new data that failed since, if they count.

    Attributes:
        status: as ``strandline list`` shows it.
        since: start of the latest series of failures, ISO.
        message: message of its error; "" if it has none.
        choices: commands that help.
        failed_looks: how many looks for new data have failed one after the other, without a run; 0 of a run.
        continues_failures: whether the runs before it failed, and none went well since.
    """

    status: str
    since: str
    message: str = ""
    choices: Sequence[str] = ()
    failed_looks: int = 0
    continues_failures: bool = False

    @property
    def is_failing(self) -> bool:
        """Whether it failed, or ended no series of failures."""
        return self.status in _BAD_STATUSES or (
            self.continues_failures and self.status in _UNDECIDED_STATUSES
        )


def broken_file_alert(dataflow: str, errors: Sequence[str]) -> Alert:
    """Return the alert of a dataflow whose file has errors: it never runs, so no run fails."""
    return Alert(dataflow, "failed", f"its file has errors: {'; '.join(errors)}\n  strandline validate")


def unreadable_state_alert(dataflow: str, error: str, choices: Sequence[str] = ()) -> Alert:
    """Return the alert of a dataflow whose state cannot be read: no run can load anything.

    Args:
        dataflow: the dataflow's name.
        error: why it cannot be read.
        choices: commands that help.
    """
    commands = "".join(f"\n  {choice}" for choice in choices or ("strandline doctor",))
    return Alert(dataflow, "failed", f"its state cannot be read: {error}{commands}", may_pass=True)


def failure_alert(dataflow: Dataflow, run: EndedRun | None) -> Alert | None:
    """Return the alert of a last run or look that failed; None if it succeeded, or if there was none."""
    if run is None or not run.is_failing:
        return None
    retry = f"strandline {'plan' if run.failed_looks else 'run'} {dataflow.name}"
    choices = "".join(f"\n  {choice}" for choice in run.choices or (retry,))
    how = "" if run.status == "failed" else f"{run.status} "
    text = f"{how}since {time_text(run.since)}: {run.message or 'see its run'}{choices}"
    return Alert(dataflow.name, "failed", text)


def has_late_files(dataflow: Dataflow) -> bool:
    """Return whether late files of a dataflow matter: it has a sweep and does not ignore them."""
    return dataflow.watermark.remembers_files and dataflow.late_files != "ignore"


def late_files_alert(dataflow: Dataflow, count: int, names: Sequence[str]) -> Alert | None:
    """Return the alert of unhandled late files; None if there are none.

    Args:
        dataflow: the dataflow of the files.
        count: number of the files.
        names: the first of them.
    """
    if not count:
        return None
    such_as = "such as " if count > MAX_NAMED else ""
    files = f"{pluralize(count, 'late file')}, {such_as}{', '.join(names[:MAX_NAMED])}"
    text = f"{files}: {LATE_POLICIES[dataflow.late_files]}\n  strandline late {dataflow.name}"
    return Alert(dataflow.name, "late", text)


def duplicates_alert(dataflow: str, count: int, copies: Sequence[Sequence[str]]) -> Alert | None:
    """Return the alert of loaded files that have the content of others; None if there are none.

    Args:
        dataflow: the dataflow's name.
        count: number of the files.
        copies: the first of them, each with its original.
    """
    if not count:
        return None
    named = ", ".join(f"{path} (same content as {original})" for path, original in copies[:MAX_NAMED])
    such_as = "such as " if count > MAX_NAMED else ""
    text = f"{pluralize(count, 'file')} loaded twice, {such_as}{named}: duplicates: skip would not load them"
    return Alert(dataflow, "duplicate_files", f"{text}\n  strandline ledger {dataflow}")


def quarantined_alert(dataflow: str, files: Sequence[tuple[str, str]]) -> Alert | None:
    """Return the alert of files that wait in quarantine; None if there are none.

    Args:
        dataflow: the dataflow's name.
        files: the path of each file, and why it cannot be read.
    """
    if not files:
        return None
    such_as = "such as " if len(files) > MAX_NAMED else ""
    named = "; ".join(f"{path}: {reason}" for path, reason in files[:MAX_NAMED])
    text = f"{pluralize(len(files), 'file')} in quarantine, {such_as}{named}"
    release = release_command(dataflow, [path for path, _ in files[:MAX_NAMED]])
    return Alert(dataflow, "quarantined", f"{text}\n  strandline list {dataflow}\n  {release}")


def bad_records_alert(dataflow: str, count: int, table: str) -> Alert | None:
    """Return the alert of records that were set aside; None if there are none.

    Args:
        dataflow: the dataflow's name.
        count: number of the records.
        table: the table that keeps them.
    """
    reason = f"{pluralize(count, 'record')} did not parse"
    return _set_aside_alert(dataflow, "bad_records", count, reason, table, f"strandline show {table}")


def rejected_alert(dataflow: str, count: int, table: str) -> Alert | None:
    """Return the alert of rows that failed a rule and were not loaded; None if there are none.

    Args:
        dataflow: the dataflow's name.
        count: number of the rows.
        table: the table that keeps them.
    """
    reason = f"{pluralize(count, 'row')} failed a rule"
    return _set_aside_alert(dataflow, "rejected", count, reason, table, f"strandline rejected {dataflow}")


def _set_aside_alert(
    dataflow: str, condition: Condition, count: int, reason: str, table: str, command: str
) -> Alert | None:
    if not count:
        return None
    text = f"{reason}, and {'is' if count == 1 else 'are'} in table {table}"
    return Alert(dataflow, condition, f"{text}\n  {command}")


def has_ledger(dataflow: Dataflow) -> bool:
    """Return whether a dataflow has windows that can be missing."""
    return dataflow.watermark.has_ledger


def gaps_alert(dataflow: Dataflow, ledger: Ledger) -> Alert | None:
    """Return the alert of past windows that are not loaded, or out of date; None if there are none."""
    gaps, outdated = ledger.missing, ledger.outdated
    if not (gaps or outdated):
        return None
    unit, first = [*gaps, *outdated][0]
    counts = [
        pluralize(len(gaps), "gap") if gaps else "",
        f"{pluralize(len(outdated), 'loaded stretch', 'loaded stretches')} out of date" if outdated else "",
    ]
    start, end = (as_datetime(ms, ledger.zone).isoformat() for ms in (first.start, first.end))
    of_unit = f"{describe_unit(unit.unit)}, " if describe_unit(unit.unit) else ""
    text = (
        f"{', '.join(filter(None, counts))} in its ledger, the first: {of_unit}{start} to {end}: {first.why}"
    )
    return Alert(dataflow.name, "gaps", f"{text}\n  strandline ledger {dataflow.name}")


def missing_partitions_alert(dataflow: Dataflow, missing: Sequence[MissingRange]) -> Alert | None:
    """Return the alert of past partitions without a file; None if there are none.

    Args:
        dataflow: a dataflow whose watermark has ``expected``.
        missing: its ranges of periods without a file, by group and time.
    """
    if not missing:
        return None
    first, periods = missing[0], sum(periods_of_range.periods for periods_of_range in missing)
    in_group = f"{first.group}, " if first.group else ""
    text = (
        f"{pluralize(periods, 'partition')} without a file (expected: {dataflow.path.expected}), the first: {in_group}"
        f"{time_text(first.start.isoformat())} to {time_text(first.end.isoformat())}"
    )
    return Alert(dataflow.name, "gaps", f"{text}\n  strandline ledger {dataflow.name}")


def freshness_alert(dataflow: Dataflow, last_load: str | None, now: datetime) -> Alert | None:
    """Return the alert of a table without a load for longer than its ``freshness: fail``.

    It also applies if there was nothing to load.

    Args:
        dataflow: the table's dataflow.
        last_load: time of the last load, ISO; None if never.
        now: time of the scan.
    """
    if dataflow.freshness is None or last_load is None:
        return None
    limit = dataflow.freshness.fail
    if now - datetime.fromisoformat(last_load) <= limit:
        return None
    text = f"nothing was loaded since {time_text(last_load)}, for longer than {format_duration(limit.total_seconds())}"
    return Alert(dataflow.name, "stale", f"{text} (freshness: fail)\n  strandline plan {dataflow.name}")
