"""One scan of a project's dataflows for alerts, each dataflow in its own thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from partitions.alerts.alert import Alert, Condition
from partitions.alerts.conditions import (
    MOST_NAMED,
    EndedRun,
    failure_alert,
    freshness_alert,
    gaps_alert,
    has_late_files,
    has_ledger,
    late_files_alert,
)
from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError, shorten_to_line
from resources.alerts.last_loads import LastLoads
from resources.background import in_background
from resources.dagster.run_history import RunHistory, SuccessfulRuns
from resources.kinds.path.sweep import unhandled
from resources.kinds.window.unit_ledger import unit_ledger
from resources.notes.last_run import Attempt
from resources.platform.opener import Opener
from resources.watermarks.entry import Entry

if TYPE_CHECKING:
    from dagster import DagsterInstance

_BUDGET, _PATIENCE = 25.0, 15.0
"""Seconds of a scan, and of one dataflow that does not answer; the next scan resumes where this one stopped. Dagster ends a tick after 60."""


@dataclass(frozen=True)
class AlertScan:
    """One scan at one time.

    Attributes:
        opener: opens logs and ledgers.
        on: the conditions that alerts are sent for.
        instance: Dagster's, which knows runs that died.
        now: of the scan.
        successful: results of earlier scans about Dagster's runs.
        loads: results of earlier scans about loads.
    """

    opener: Opener
    on: Sequence[Condition]
    instance: DagsterInstance
    now: datetime
    successful: SuccessfulRuns = field(default_factory=SuccessfulRuns)
    loads: LastLoads = field(default_factory=LastLoads)

    def alerts(self, dataflow: Dataflow) -> Iterator[Alert]:
        """Yield the alerts of a dataflow.

        Raises:
            StrandlineError: if its log, or another source of a condition, does not answer.
        """
        entry = self.opener.log.newest(dataflow.name)
        rules: Mapping[Condition, Callable[[Dataflow, Entry | None], Alert | None]] = {
            "failed": self._failed,
            "late": self._late,
            "gaps": self._gaps,
            "stale": self._stale,
        }
        for condition in self.on:
            alert = rules[condition](dataflow, entry)
            if alert is not None:
                yield alert

    def _failed(self, dataflow: Dataflow, entry: Entry | None) -> Alert | None:
        history = RunHistory(self.opener.log, self.instance, self.successful)
        attempt = history.last_ended(dataflow.name, entry)
        return failure_alert(dataflow, _ended_run(attempt) if attempt else None)

    def _late(self, dataflow: Dataflow, entry: Entry | None) -> Alert | None:
        if not has_late_files(dataflow):
            return None
        late = unhandled(self.opener.log, dataflow, entry, self.now)
        return late_files_alert(dataflow, late.count, late.first(MOST_NAMED))

    def _gaps(self, dataflow: Dataflow, entry: Entry | None) -> Alert | None:
        if entry is None or not has_ledger(dataflow):
            return None
        return gaps_alert(dataflow, unit_ledger(self.opener, dataflow, self.now))

    def _stale(self, dataflow: Dataflow, _: Entry | None) -> Alert | None:
        if dataflow.freshness is None:
            return None
        return freshness_alert(dataflow, self.loads.time(self.opener.log, dataflow.name), self.now)


def _ended_run(attempt: Attempt) -> EndedRun:
    error = attempt.error or {}
    since = attempt.failing_since or attempt.time
    return EndedRun(attempt.status, since, error.get("message", ""), error.get("choices") or ())


@dataclass(frozen=True)
class ScanResult:
    """The findings of a scan within its time.

    Attributes:
        alerts: of the judged dataflows.
        judged: their names. A dataflow that could not be judged now keeps its alerts.
        resume: the dataflow that the next scan starts with; "" is the first.
        count: the number of dataflows that were looked at.
    """

    alerts: Sequence[Alert]
    judged: frozenset[str]
    resume: str
    count: int


class AlertScanner:
    """Judges dataflows one by one; one that does not answer does not keep the others waiting."""

    def __init__(self) -> None:
        self._waiting: dict[str, Future[list[Alert]]] = {}

    def run(
        self, scan: AlertScan, dataflows: Sequence[Dataflow], resume: str, warn: Callable[[str], None]
    ) -> ScanResult:
        """Judge dataflows until the time of a scan is over.

        Args:
            scan: decides on the alerts.
            dataflows: ordered by name.
            resume: the name to start with.
            warn: called with each dataflow that could not be judged, and why.
        """
        began, alerts, judged = time.monotonic(), list[Alert](), set[str]()
        remaining = [flow for flow in dataflows if flow.name >= resume]
        count = 0
        while remaining and time.monotonic() - began < _BUDGET:
            flow, count = remaining.pop(0), count + 1
            of_flow = self._judge(scan, flow, warn)
            if of_flow is not None:
                alerts += of_flow
                judged.add(flow.name)
        return ScanResult(alerts, frozenset(judged), remaining[0].name if remaining else "", count)

    def _judge(self, scan: AlertScan, dataflow: Dataflow, warn: Callable[[str], None]) -> list[Alert] | None:
        """Return the alerts of a dataflow; None if it cannot be judged now."""
        if (before := self._waiting.get(dataflow.name)) is not None and not before.done():
            return None
        answer = in_background(lambda: list(scan.alerts(dataflow)), f"strandline-alerts-{dataflow.name}")
        wait([answer], _PATIENCE)
        if not answer.done():
            self._waiting[dataflow.name] = answer
            return None
        try:
            return answer.result()
        except StrandlineError:
            return None
        except Exception as error:  # noqa: BLE001 - a fault of one dataflow must not hide alerts of the others
            warn(f"{dataflow.name} cannot be judged: {type(error).__name__}: {shorten_to_line(str(error))}")
            return None
