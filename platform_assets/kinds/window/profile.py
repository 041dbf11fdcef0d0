"""Show window watermarks, in work units."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.ledger_bounds import LedgerBounds
from partitions.plan import pluralize
from partitions.sentinels import Watermark
from partitions.why_answer import Reason, WhyAnswer
from partitions.window.simulate import simulate
from partitions.window.state import WindowState
from partitions.window.wake_rule import select_waking_work
from platform_assets.kinds.dead_servers import UnreachableServers
from platform_assets.kinds.profile import (
    CanSimulate,
    KindProfile,
    LedgerPage,
    LedgerRequest,
    LoadsAheadOfTime,
    PlanRow,
    TellsReachOfEntry,
    TellsUnloaded,
)
from platform_assets.kinds.window.forcing import ForcesWindows
from platform_assets.kinds.window.ledger import unit_ledger_page
from platform_assets.kinds.window.words import reach_in_words, reach_of, unloaded_spans, windows_before
from resources.kinds.window.explaining import explain_windows
from resources.kinds.window.failing_work import failing_work
from resources.kinds.window.unit_ledger import unit_ledger
from resources.outcome import Outcome
from resources.platform.platform import Platform
from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog
from resources.watermarks.observations import observations


class WindowProfile(
    KindProfile, ForcesWindows, CanSimulate, LoadsAheadOfTime, TellsReachOfEntry, TellsUnloaded
):
    """The profile of window watermarks."""

    slices_noun = "work unit"
    unknown_waiting: ClassVar[Mapping[str, Any]] = {
        "work_units": None,
        "failed_units": None,
        "waiting_for_upstream": None,
        "reach": None,
    }

    def watermark_in_words(self, watermark: Mapping[str, Any]) -> str:
        """Return how far all units are loaded, and how far the furthest one."""
        return reach_in_words(watermark)

    def watermark_document(self, _: Watermark) -> None:
        """Return None: the values are intervals in milliseconds."""

    def entry_watermark(self, entry: Entry) -> str:
        """Return how far the watermark reaches, in words."""
        watermark = json.loads(entry.watermark)
        return reach_in_words(watermark) if watermark else "none"

    def entry_amount(self, entry: Entry) -> str:
        """Return the number of work units, and of failed ones."""
        failed = f", {pluralize(entry.failed_units, 'failed work unit')}" if entry.failed_units else ""
        return f"{pluralize(entry.work_units, 'work unit')}{failed}"

    @override
    def outcome_watermark(self, outcome: Outcome, watermark: Mapping[str, Any]) -> str:
        """Return how far all units are loaded; windows that the run's plan knows not to be are gaps."""
        return reach_in_words(watermark, unloaded_spans(outcome.plan) if outcome.plan else ())

    def outcome_amount(self, outcome: Outcome) -> str:
        """Return the number of work units."""
        return pluralize(outcome.work_units, "work unit")

    def amounts(self, outcome: Outcome) -> dict[str, Any]:
        """Return the work units, and the failed ones."""
        return {"work_units": outcome.work_units, "failed_units": outcome.failed_units}

    @override
    def plan_line(self, number: int, described: Mapping[str, Any]) -> str:
        """Return a unit's window, the part that is read if not all, and the reason."""
        unit = ", ".join(f"{name} {value}" for name, value in described["unit"].items())
        span, read_from = _span(described)
        part = f"{read_from} on" if read_from else ""
        return f"{described['reason']:<6}  {' '.join(filter(None, (span, unit))) or 'everything'}{part}"

    @override
    def plan_row(self, described: Mapping[str, Any], why: str) -> PlanRow:
        """Return a unit's window, the part that is read if not all, and the reason."""
        unit = json.dumps(described["unit"], ensure_ascii=False) if described["unit"] else ""
        span, read_from = _span(described)
        return PlanRow(f"{span} {unit}{read_from}".strip(), 0, described["reason"])

    @override
    def waiting(
        self,
        platform: Platform,
        dataflow: Dataflow,
        entry: Entry | None,
        now: datetime,
        servers: UnreachableServers,
    ) -> dict[str, Any]:
        """Return how many work units are due, how many have failed, and how many wait for the upstream.

        Work units that grace reads again wait for nothing.
        """
        plan = platform.kind(dataflow).planning.plan(entry, now)
        due = [work for slice_ in plan.slices for work in slice_.works if work.reason != "grace"]
        failed = (entry.state() if entry else {}).get("failed", {})
        count = sum(1 for of_unit in failed.values() for failure in of_unit.values() if failure[0])
        reach = reach_of(entry.state(), unloaded_spans(plan)) if entry and entry.state() else None
        outdated = sum(1 for work in due if work.reason in ("upstream", "changed"))
        return {
            "work_units": len(due),
            "failed_units": count,
            "waiting_for_upstream": plan.waiting_for_upstream,
            "reach": replace(reach, outdated=outdated).in_short if reach else None,
        }

    @override
    def watermark_in_list(self, watermark: Mapping[str, Any], waiting: Mapping[str, Any]) -> str:
        """Return how far all units are loaded, and below it what is behind, with the plan's windows."""
        reach: str = waiting["reach"] or reach_of(watermark).in_short
        return reach.replace("; ", "\n")

    @override
    def watermark_of_entry(self, dataflow: Dataflow, entry: Entry) -> str:
        """Return how far the watermark reaches, with the windows before its first one."""
        watermark = json.loads(entry.watermark)
        return reach_in_words(watermark, windows_before(dataflow, entry)) if watermark else "none"

    def waiting_in_words(self, waiting: Mapping[str, Any]) -> str | None:
        """Return the number of work units, and of failed ones; None if unknown."""
        if waiting["work_units"] is None:
            return None
        failed, count = waiting["failed_units"], waiting["waiting_for_upstream"]
        parts = [
            pluralize(waiting["work_units"], "work unit") if waiting["work_units"] or failed else "",
            f"{failed:,} failed" if failed else "",
            f"{count:,} waiting for upstream" if count else "",
        ]
        return ", ".join(filter(None, parts)) or "nothing"

    def work_fingerprint(
        self, platform: Platform, dataflow: Dataflow, entry: Entry | None, now: datetime
    ) -> str:
        """Return the keys of the work units that are over, or have failed and may be retried."""
        plan = platform.plan(dataflow, now)
        due = [work for slice_ in plan.slices for work in slice_.works]
        state = WindowState.of(entry.state() if entry else None)
        return " ".join(map(str, (work.key for work in select_waking_work(dataflow.window, state, due, now))))

    def explain(self, platform: Platform, dataflow: Dataflow, subject: str, now: datetime) -> WhyAnswer:
        """Return what became of windows and units."""
        return explain_windows(platform, dataflow, subject, now)

    @override
    def unloaded(
        self, log: WatermarkLog, dataflow: Dataflow, entry: Entry | None, now: datetime
    ) -> Sequence[Reason]:
        """Return the failed work units."""
        return failing_work(dataflow, entry, now)

    def ledger(self, platform: Platform, dataflow: Dataflow, request: LedgerRequest) -> dict[str, Any]:
        """Return what is covered and what is missing for each unit."""
        again = f"`strandline run {dataflow.name} --force WINDOW` reads a corrected window again, such as --force 2026-01-31"
        instead = f"{again}; a `grace` does so by itself for windows that have just ended"
        request.refuse_options(dataflow, bounds=False, instead=instead)
        bounds = LedgerBounds.parse(request.start, request.end, dataflow.zone)
        if bounds.by_name:
            raise ConfigurationError(
                f"dataflow {dataflow.name}: --from and --to: expected instants, such as 2026-01-31 or 2026-01-31T06:00:00, found"
                f" {bounds.first or bounds.until!r}"
            )
        return unit_ledger(platform, dataflow, request.now).within(bounds).as_json()

    def ledger_page(self, dataflow: Dataflow, document: Mapping[str, Any]) -> LedgerPage:
        """Return how far all units are complete, and a row for each unit."""
        return unit_ledger_page(dataflow, document)

    def simulate(self, log: WatermarkLog, dataflow: Dataflow, graces: Sequence[int]) -> dict[str, Any]:
        """Return what each grace would have caught of late changes, and would have read again."""
        return simulate(observations(log, dataflow.name), graces, dataflow=dataflow.name).as_json()

    def loads_ahead(self, names: Sequence[str]) -> str:
        """Return a warning that windows would count as loaded before their time."""
        return f"future windows of {', '.join(names)} would count as loaded, and be read again only after they end"


def _span(described: Mapping[str, Any]) -> tuple[str, str]:
    """Return a work unit's window and the start of its read; each "" if there is nothing to say."""
    window, read = described["window"], described["read"]
    span = f"[{window['start']}, {window['end']})" if window["start"] else ""
    return span, f", read from {read['start']}" if read["start"] != window["start"] else ""
