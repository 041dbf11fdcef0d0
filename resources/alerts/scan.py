"""One scan of a project's dataflows for alerts, one after the other.

Each is judged in a thread that the scan can abandon.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from partitions.alerts.alert import Alert, Condition, dataflow_of, key_of
from partitions.alerts.conditions import (
    MAX_NAMED,
    EndedRun,
    bad_records_alert,
    duplicates_alert,
    failure_alert,
    freshness_alert,
    gaps_alert,
    has_late_files,
    has_ledger,
    late_files_alert,
    missing_partitions_alert,
    quarantined_alert,
    rejected_alert,
    unreadable_state_alert,
)
from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError, shorten_to_line
from partitions.table_names import bad_records_table, rejected_table
from resources.alerts.last_loads import LastLoads
from resources.background import in_background
from resources.dagster.run_history import RunHistory, SuccessfulRuns
from resources.kinds.path.copies import NOTE as DUPLICATES
from resources.kinds.path.partition_ledger import missing_partitions
from resources.kinds.path.sweep import unhandled
from resources.kinds.window.unit_ledger import unit_ledger
from resources.notes.last_run import Attempt
from resources.platform.opener import Opener
from resources.platform.rejected_count import count_rejected
from resources.watermarks.entry import Entry
from resources.watermarks.quarantine_list import read_quarantine

if TYPE_CHECKING:
    from dagster import DagsterInstance

_SCAN_SECONDS, _DATAFLOW_SECONDS = 25.0, 15.0
"""A scan starts no dataflow after the first, and gives up waiting for one after the second. The next scan resumes where this one stopped. Dagster ends a tick after 60."""


class ConditionVerdict(NamedTuple):
    """The verdict on one condition of a dataflow.

    Attributes:
        key: of the alert.
        alert: the alert; None if there is none.
        reads_state: whether the dataflow's state could be read.
        fault: why the condition could not be judged, by an unexpected error; "" if it was judged.
    """

    key: str
    alert: Alert | None = None
    reads_state: bool = True
    fault: str = ""


@dataclass(frozen=True)
class AlertScan:
    """The conditions of one scan, evaluated at one moment.

    Attributes:
        opener: opens logs and ledgers.
        conditions: the conditions that alerts are sent for.
        instance: the Dagster instance; it knows of runs that died.
        now: the scan's moment.
        after: how many looks for new data must fail, one after the other, before a failure is reported.
        successful: what earlier scans found out about Dagster's runs.
        loads: what earlier scans found out about loads.
    """

    opener: Opener
    conditions: Sequence[Condition]
    instance: DagsterInstance
    now: datetime
    after: int
    successful: SuccessfulRuns = field(default_factory=SuccessfulRuns)
    loads: LastLoads = field(default_factory=LastLoads)

    def verdicts(self, dataflow: Dataflow) -> Iterator[ConditionVerdict]:
        """Yield a verdict on each condition of a dataflow, those that ask only its log first.

        A condition that cannot be judged hides no other: a source that does not answer makes runs fail,
        and hides its own gaps. If the log does not answer, that is the failure.
        """
        rules: Mapping[Condition, Callable[[Dataflow, Entry | None], Alert | None]] = {
            "failed": self._failure_alert,
            "late": self._late_files_alert,
            "stale": self._freshness_alert,
            "duplicate_files": self._duplicates_alert,
            "quarantined": self._quarantined_alert,
            "gaps": self._gaps_alert,
            "bad_records": self._bad_records_alert,
            "rejected": self._rejected_alert,
        }
        try:
            entry = self.opener.log.newest(dataflow.name)
        except StrandlineError as error:
            yield from self._verdict_on_unreadable_state(dataflow, error.message, error.choices)
            return
        for condition, rule in rules.items():
            if condition in self.conditions:
                yield from self._verdict(dataflow, condition, partial(rule, dataflow, entry))

    def _verdict(
        self, dataflow: Dataflow, condition: Condition, rule: Callable[[], Alert | None]
    ) -> Iterator[ConditionVerdict]:
        key = key_of(dataflow.name, condition)
        try:
            yield ConditionVerdict(key, rule())
        except StrandlineError as error:
            if condition == "failed":
                yield from self._verdict_on_unreadable_state(dataflow, error.message, error.choices)
        except Exception as error:  # noqa: BLE001 - a fault of one condition must not hide the others
            yield ConditionVerdict(key, fault=f"{condition}: {_describe(error)}")

    def verdict_on_silence(self, dataflow: Dataflow) -> Iterator[ConditionVerdict]:
        """Yield the verdict on a dataflow whose state gives no answer in time."""
        message = f"it has not answered within {_DATAFLOW_SECONDS:g} s"
        yield from self._verdict_on_unreadable_state(dataflow, message, ())

    def _verdict_on_unreadable_state(
        self, dataflow: Dataflow, message: str, choices: Sequence[str]
    ) -> Iterator[ConditionVerdict]:
        if "failed" in self.conditions:
            alert = unreadable_state_alert(dataflow.name, message, choices)
            yield ConditionVerdict(alert.key, alert, reads_state=False)

    def _failure_alert(self, dataflow: Dataflow, entry: Entry | None) -> Alert | None:
        history = RunHistory(self.opener.log, self.instance, self.successful)
        attempt = history.last_ended(dataflow.name, entry, self.after)
        return failure_alert(dataflow, _ended_run(attempt) if attempt else None)

    def _late_files_alert(self, dataflow: Dataflow, entry: Entry | None) -> Alert | None:
        if not has_late_files(dataflow):
            return None
        late = unhandled(self.opener.log, dataflow, entry, self.now)
        return late_files_alert(dataflow, late.count, late.first(MAX_NAMED))

    def _gaps_alert(self, dataflow: Dataflow, entry: Entry | None) -> Alert | None:
        if entry is None:
            return None
        if dataflow.watermark.expects_partitions:
            missing = missing_partitions(self.opener, dataflow, entry, self.now)
            return missing_partitions_alert(dataflow, missing)
        if not has_ledger(dataflow):
            return None
        return gaps_alert(dataflow, unit_ledger(self.opener, dataflow, self.now))

    def _duplicates_alert(self, dataflow: Dataflow, _: Entry | None) -> Alert | None:
        if not dataflow.watermark.alerts_of_duplicates:
            return None
        note = self.opener.log.note(dataflow.name, DUPLICATES) or {}
        return duplicates_alert(dataflow.name, note.get("count", 0), note.get("files", ()))

    def _quarantined_alert(self, dataflow: Dataflow, entry: Entry | None) -> Alert | None:
        if entry is None or not dataflow.watermark.remembers_files:
            return None
        waiting = read_quarantine(self.opener.log, entry).waiting
        return quarantined_alert(dataflow.name, [(file.file.path, file.reason) for file in waiting])

    def _bad_records_alert(self, dataflow: Dataflow, _: Entry | None) -> Alert | None:
        table = self.opener.bad_records(dataflow)
        if table is None or not table.exists():
            return None
        return bad_records_alert(
            dataflow.name, table.contents.count_rows(), bad_records_table(dataflow) or ""
        )

    def _rejected_alert(self, dataflow: Dataflow, _: Entry | None) -> Alert | None:
        count = count_rejected(self.opener, dataflow)
        return rejected_alert(dataflow.name, count or 0, rejected_table(dataflow))

    def _freshness_alert(self, dataflow: Dataflow, _: Entry | None) -> Alert | None:
        if dataflow.freshness is None:
            return None
        return freshness_alert(dataflow, self.loads.time(self.opener.log, dataflow.name), self.now)


def _ended_run(attempt: Attempt) -> EndedRun:
    error = attempt.error or {}
    since = attempt.failing_since or attempt.time
    return EndedRun(
        attempt.status,
        since,
        error.get("message", ""),
        error.get("choices") or (),
        attempt.failed_looks,
        attempt.failing_since is not None,
    )


@dataclass(frozen=True)
class ScanResult:
    """The alerts that a scan found, and the dataflow to start the next scan with.

    Attributes:
        alerts: the alerts of the judged dataflows.
        judged: the keys of the conditions that could be judged; alerts of the others stay as they are.
        next_dataflow: the name of the dataflow to start with next time; "" for the first.
        count: the number of dataflows that were looked at.
    """

    alerts: Sequence[Alert]
    judged: frozenset[str]
    next_dataflow: str
    count: int


class AlertScanner:
    """Judges dataflows one by one; one that does not answer delays the others by 15 seconds at most."""

    def __init__(self) -> None:
        self._unanswered: dict[str, tuple[Future[None], Sequence[ConditionVerdict]]] = {}

    def scan(
        self,
        evaluation: AlertScan,
        dataflows: Sequence[Dataflow],
        first_dataflow: str,
        warn: Callable[[str], None],
    ) -> ScanResult:
        """Judge dataflows in order until the scan's time is up; return their alerts.

        If the state of none of them can be read, the next scan starts with the same ones: an alert needs
        two scans.

        Args:
            evaluation: returns the verdicts on a dataflow.
            dataflows: the dataflows, ordered by name.
            first_dataflow: the name to start with; the dataflows before it are not judged.
            warn: called with a message for each condition whose evaluation raised an unexpected error. A
            condition that raised a StrandlineError, or does not answer, has no message.
        """
        began, verdicts = time.monotonic(), list[ConditionVerdict]()
        remaining = [flow for flow in dataflows if flow.name >= first_dataflow]
        scanned: list[str] = []
        while remaining and time.monotonic() - began < _SCAN_SECONDS:
            flow = remaining.pop(0)
            scanned.append(flow.name)
            verdicts += self._judge(evaluation, flow)
        for verdict in verdicts:
            if verdict.fault:
                warn(f"{dataflow_of(verdict.key)} cannot be judged: {verdict.fault}")
        reads_any = any(verdict.reads_state for verdict in verdicts) or not verdicts
        next_dataflow = (remaining[0].name if reads_any else scanned[0]) if remaining else ""
        return ScanResult(
            [verdict.alert for verdict in verdicts if verdict.alert is not None],
            frozenset(verdict.key for verdict in verdicts if not verdict.fault),
            next_dataflow,
            len(scanned),
        )

    def _judge(self, evaluation: AlertScan, dataflow: Dataflow) -> Sequence[ConditionVerdict]:
        """Return the verdicts on a dataflow that come in time.

        While an earlier scan still waits for it, nothing new is asked.
        """
        answer, verdicts = self._unanswered.get(dataflow.name, (None, ()))
        if answer is not None and not answer.done():
            return () if verdicts else tuple(evaluation.verdict_on_silence(dataflow))
        return self._new_verdicts(evaluation, dataflow)

    def _new_verdicts(self, evaluation: AlertScan, dataflow: Dataflow) -> Sequence[ConditionVerdict]:
        verdicts: list[ConditionVerdict] = []

        def judge() -> None:
            for verdict in evaluation.verdicts(dataflow):
                verdicts.append(verdict)  # noqa: PERF402 - each at once: a later one may hang

        answer = in_background(judge, f"strandline-alerts-{dataflow.name}")
        wait([answer], _DATAFLOW_SECONDS)
        if not answer.done():
            self._unanswered[dataflow.name] = answer, verdicts
            return tuple(verdicts or evaluation.verdict_on_silence(dataflow))
        if (error := answer.exception()) is not None:
            verdicts.append(ConditionVerdict(key_of(dataflow.name, "failed"), fault=_describe(error)))
        return tuple(verdicts)


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {shorten_to_line(str(error))}"
