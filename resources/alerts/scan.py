"""One scan of a project's dataflows for alerts, one after the other.

Each is judged in a thread that the scan can abandon.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from partitions.alerts.alert import Alert, Condition
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
)
from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError, shorten_to_line
from partitions.table_names import bad_records_table
from resources.alerts.last_loads import LastLoads
from resources.background import in_background
from resources.dagster.run_history import RunHistory, SuccessfulRuns
from resources.kinds.path.copies import NOTE as DUPLICATES
from resources.kinds.path.partition_ledger import missing_partitions
from resources.kinds.path.sweep import unhandled
from resources.kinds.window.unit_ledger import unit_ledger
from resources.notes.last_run import Attempt
from resources.platform.opener import Opener
from resources.watermarks.entry import Entry
from resources.watermarks.quarantine_list import read_quarantine

if TYPE_CHECKING:
    from dagster import DagsterInstance

_SCAN_SECONDS, _DATAFLOW_SECONDS = 25.0, 15.0
"""A scan starts no dataflow after the first, and gives up waiting for one after the second. The next scan resumes where this one stopped. Dagster ends a tick after 60."""


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

    def alerts(self, dataflow: Dataflow) -> Iterator[Alert]:
        """Yield the alerts of a dataflow.

        Raises:
            StrandlineError: if its log, or another source of a condition, does not answer.
        """
        entry = self.opener.log.newest(dataflow.name)
        rules: Mapping[Condition, Callable[[Dataflow, Entry | None], Alert | None]] = {
            "failed": self._failure_alert,
            "late": self._late_files_alert,
            "gaps": self._gaps_alert,
            "stale": self._freshness_alert,
            "duplicate_files": self._duplicates_alert,
            "quarantined": self._quarantined_alert,
            "bad_records": self._bad_records_alert,
        }
        for condition in self.conditions:
            alert = rules[condition](dataflow, entry)
            if alert is not None:
                yield alert

    def _failure_alert(self, dataflow: Dataflow, entry: Entry | None) -> Alert | None:
        history = RunHistory(self.opener.log, self.instance, self.successful)
        attempt = history.last_ended(dataflow.name, entry)
        return failure_alert(dataflow, _ended_run(attempt) if attempt else None, self.after)

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

    def _freshness_alert(self, dataflow: Dataflow, _: Entry | None) -> Alert | None:
        if dataflow.freshness is None:
            return None
        return freshness_alert(dataflow, self.loads.time(self.opener.log, dataflow.name), self.now)


def _ended_run(attempt: Attempt) -> EndedRun:
    error = attempt.error or {}
    since = attempt.failing_since or attempt.time
    return EndedRun(
        attempt.status, since, error.get("message", ""), error.get("choices") or (), attempt.failed_looks
    )


@dataclass(frozen=True)
class ScanResult:
    """The alerts that a scan found, and the dataflow to start the next scan with.

    Attributes:
        alerts: the alerts of the judged dataflows.
        judged: the names of the dataflows that could be judged; alerts of the others stay as they are.
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
        self._unanswered: dict[str, Future[list[Alert]]] = {}

    def scan(
        self,
        evaluation: AlertScan,
        dataflows: Sequence[Dataflow],
        first_dataflow: str,
        warn: Callable[[str], None],
    ) -> ScanResult:
        """Judge dataflows in order until the scan's time is up; return their alerts.

        Args:
            evaluation: returns the alerts of a dataflow.
            dataflows: the dataflows, ordered by name.
            first_dataflow: the name to start with; the dataflows before it are not judged.
            warn: called with a message for each dataflow whose evaluation raised an unexpected error. A
            dataflow that raised a StrandlineError, or does not answer, has no message.
        """
        began, alerts, judged = time.monotonic(), list[Alert](), set[str]()
        remaining = [flow for flow in dataflows if flow.name >= first_dataflow]
        count = 0
        while remaining and time.monotonic() - began < _SCAN_SECONDS:
            flow, count = remaining.pop(0), count + 1
            flow_alerts = self._judge(evaluation, flow, warn)
            if flow_alerts is not None:
                alerts += flow_alerts
                judged.add(flow.name)
        return ScanResult(alerts, frozenset(judged), remaining[0].name if remaining else "", count)

    def _judge(
        self, evaluation: AlertScan, dataflow: Dataflow, warn: Callable[[str], None]
    ) -> list[Alert] | None:
        """Return the alerts of a dataflow; None if it cannot be judged now."""
        if (before := self._unanswered.get(dataflow.name)) is not None and not before.done():
            return None
        answer = in_background(
            lambda: list(evaluation.alerts(dataflow)), f"strandline-alerts-{dataflow.name}"
        )
        wait([answer], _DATAFLOW_SECONDS)
        if not answer.done():
            self._unanswered[dataflow.name] = answer
            return None
        try:
            return answer.result()
        except StrandlineError:
            return None
        except Exception as error:  # noqa: BLE001 - a fault of one dataflow must not hide alerts of the others
            warn(f"{dataflow.name} cannot be judged: {type(error).__name__}: {shorten_to_line(str(error))}")
            return None
