"""Show offset watermarks, in commits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.offset.slices import CommitRange, OffsetSlice
from partitions.offset.state import OffsetState
from partitions.offset.words import state_in_words
from partitions.plan import format_duration, pluralize
from partitions.sentinels import deserialise, encode
from partitions.why_answer import WhyAnswer
from platform_assets.kinds.dead_servers import UnreachableServers
from platform_assets.kinds.profile import (
    KindProfile,
    LedgerPage,
    LedgerRequest,
    PlanRow,
    fingerprint_of_plan,
    ledger_of_one_range,
)
from resources.kinds.offset.explaining import explain_commit, passed_over
from resources.loop.guards.definition import check_definition
from resources.outcome import Outcome
from resources.platform.platform import Platform
from resources.watermarks.entry import LOADS, Entry

_PASSED = 50
"""The most changes that were passed over in a ledger."""


class OffsetProfile(KindProfile):
    """The profile of offset watermarks."""

    slices_noun = "slice"
    unknown_waiting: ClassVar[Mapping[str, Any]] = {"new_commits": None, "commits_lag_seconds": None}

    def watermark_in_words(self, watermark: Mapping[str, Any]) -> str:
        """Return the position."""
        return state_in_words(OffsetState.of(watermark))

    @override
    def reach_in_words(self, reach: Mapping[str, Any]) -> str:
        """Return the position: the table above is compared as it was there."""
        return self.watermark_in_words(reach)

    def entry_watermark(self, entry: Entry) -> str:
        """Return the position."""
        return state_in_words(OffsetState.of(entry.state()))

    def entry_amount(self, entry: Entry) -> str:
        """Return the position that the slice began behind; "none read" for a decision."""
        if entry.why not in LOADS:
            return "none read"
        before = OffsetState.of(deserialise(entry.lower) if entry.lower else None)
        return f"read behind {before.position.words}" if before.position else "read from the beginning"

    def outcome_amount(self, outcome: Outcome) -> str:
        """Return how many commits a run has read."""
        commits = _commits_of(outcome)
        return pluralize(commits, "commit") if commits else ""

    def amounts(self, outcome: Outcome) -> dict[str, Any]:
        """Return how many commits a run has read, and how many changes it has passed over."""
        return {
            "commits": _commits_of(outcome),
            "passed_over": sum(len(slice_.passes_over) for slice_ in _slices_of(outcome)),
        }

    def plan_line(self, number: int, described: Mapping[str, Any]) -> str:
        """Return what a slice reads, and which commits change rows."""
        return f"slice {number}: {_in_words(described)}"

    def plan_row(self, described: Mapping[str, Any], why: str) -> PlanRow:
        """Return what a slice reads."""
        return PlanRow(_in_words(described), described["files"], why)

    @override
    def waiting(
        self,
        platform: Platform,
        dataflow: Dataflow,
        entry: Entry | None,
        now: datetime,
        servers: UnreachableServers,
    ) -> dict[str, Any]:
        """Return how many commits the next run reads, and how old the oldest of them is."""
        plan = platform.kind(dataflow).planning.plan(entry, now)
        inputs = [slice_.input for slice_ in plan.slices]
        commits = [commit for part in inputs if isinstance(part, CommitRange) for commit in part.commits]
        times = [commit.time for commit in commits if commit.time is not None]
        lag = (now - min(times)).total_seconds() if times else None
        return {"new_commits": len(commits) or int(plan.due), "commits_lag_seconds": lag}

    def waiting_in_words(self, waiting: Mapping[str, Any]) -> str | None:
        """Return the lag in commits and in time; None if it is unknown."""
        if waiting["new_commits"] is None:
            return None
        if not waiting["new_commits"]:
            return "nothing"
        lag = waiting["commits_lag_seconds"]
        since = f", the first of {format_duration(lag)} ago" if lag is not None else ""
        return f"{pluralize(waiting['new_commits'], 'commit')}{since}"

    def work_fingerprint(
        self, platform: Platform, dataflow: Dataflow, entry: Entry | None, now: datetime
    ) -> str:
        """Return a text that identifies the last new commit; "" if there is none."""
        return fingerprint_of_plan(platform, dataflow, entry, now)

    @override
    def explain(self, platform: Platform, dataflow: Dataflow, subject: str, now: datetime) -> WhyAnswer:
        """Return what became of a commit."""
        return explain_commit(platform, dataflow, subject, now)

    def ledger(self, platform: Platform, dataflow: Dataflow, request: LedgerRequest) -> dict[str, Any]:
        """Return up to where the log is read, and which changes were passed over. Opens no source."""
        instead = f"An offset reads each commit once; `strandline state reset {dataflow.name} --replace --reason TEXT` loads the table anew"
        request.refuse_options(dataflow, bounds=True, instead=instead)
        entry = platform.log.newest(dataflow.name)
        check_definition(dataflow, entry, platform.log)
        passed = passed_over(platform, dataflow, _PASSED) if entry else []
        up_to = encode(entry.state()) or None if entry else None
        return {
            **ledger_of_one_range(dataflow, request, entry, up_to),
            "passed_over": [{"entry": number, "change": words} for number, words in passed],
        }

    def ledger_page(self, dataflow: Dataflow, document: Mapping[str, Any]) -> LedgerPage:
        """Return up to where the log is read, and which changes were passed over."""
        covered = document["covered"]
        up_to = covered["up_to"]
        reach = f"up to {self.watermark_in_words(up_to)}" if up_to else "nothing"
        lines = [
            f"passed over by entry {item['entry']}: {item['change']}" for item in document["passed_over"]
        ]
        heading = f"{dataflow.name}: read {reach}: {pluralize(covered['rows'], 'row')}"
        return LedgerPage(heading, lines)


def _slices_of(outcome: Outcome) -> list[OffsetSlice]:
    return [part.slice for part in outcome.committed if isinstance(part.slice, OffsetSlice)]


def _commits_of(outcome: Outcome) -> int:
    inputs = [slice_.input for slice_ in _slices_of(outcome)]
    return sum(len(part.commits) for part in inputs if isinstance(part, CommitRange))


def _in_words(described: Mapping[str, Any]) -> str:
    commits, inserts = len(described["commits"]), described["inserts"]
    parts = [described["reads"]]
    if commits:
        parts.append(pluralize(commits, "commit"))
    parts.append(pluralize(described["files"], "file"))
    if inserts is not None:
        parts.append(f"{pluralize(inserts, 'row')} inserted")
    passed = [f"passes over: {change}" for change in described["passes_over"]]
    others = [change for change in described["changes"] if change not in described["passes_over"]]
    return "; ".join([", ".join(parts), *passed, *others])
