"""Show path watermarks, in files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.plan import pluralize
from partitions.why_answer import Reason, WhyAnswer
from platform_assets.kinds.dead_servers import UnreachableServers
from platform_assets.kinds.path.ledger import file_ledger, file_ledger_page
from platform_assets.kinds.path.words import path_in_words
from platform_assets.kinds.profile import (
    FindsLateFiles,
    KindProfile,
    LedgerPage,
    LedgerRequest,
    ListsNewFiles,
    PlanRow,
)
from resources.kinds.path.explaining import explain_file, unloaded_files
from resources.kinds.path.late import LateStep, late_step
from resources.kinds.path.opening import path_planning
from resources.kinds.path.sweep import LateFiles, unhandled
from resources.listing import Budget, Listing
from resources.outcome import Outcome
from resources.platform.platform import Platform
from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog

_OF_A_STORE = Budget(pages=2, seconds=5.0)
_OF_A_FOLDER = Budget(pages=200, seconds=1.0)
_OF_A_RUN = Budget(seconds=60.0)

_MAX_PATHS = 1000
"""The most open partitions of a watermark that is shown as it is stored."""


class PathProfile(KindProfile, FindsLateFiles, ListsNewFiles):
    """The profile of path watermarks."""

    slices_noun = "slice"
    unknown_waiting: ClassVar[Mapping[str, Any]] = {"files": None, "settling": None}

    def watermark_in_words(self, watermark: Mapping[str, Any]) -> str:
        """Return the path, or how many partitions are open."""
        return path_in_words(watermark)

    @override
    def reach_in_words(self, reach: Mapping[str, Any]) -> str:
        """Return the watermark: files are compared up to there."""
        return self.watermark_in_words(reach)

    def entry_watermark(self, entry: Entry) -> str:
        """Return the path, or the open partitions as stored; above 1,000 only their number."""
        watermark = json.loads(entry.watermark)
        if not watermark:
            return "none"
        if "path" in watermark:
            return self.watermark_in_words(watermark)
        paths = watermark.get("paths")
        if not isinstance(paths, dict) or len(paths) <= _MAX_PATHS:
            return entry.watermark
        return f"{pluralize(len(paths), 'open partition')} (state show --full shows them)"

    def entry_amount(self, entry: Entry) -> str:
        """Return the number of files."""
        return pluralize(entry.files, "file")

    def outcome_amount(self, outcome: Outcome) -> str:
        """Return the number of files."""
        return pluralize(outcome.files, "file")

    def amounts(self, outcome: Outcome) -> dict[str, Any]:
        """Return the files, late and quarantined files, bytes, and listing calls."""
        return {
            "files": outcome.files,
            "late": outcome.late,
            "quarantined": outcome.quarantined,
            "bytes": outcome.bytes,
            "listing_calls": outcome.calls,
        }

    def plan_line(self, number: int, described: Mapping[str, Any]) -> str:
        """Return a slice's first and last file."""
        files = described["files"]
        return f"slice {number}: {pluralize(len(files), 'file')}, {_first_to_last(files)}"

    def plan_row(self, described: Mapping[str, Any], why: str) -> PlanRow:
        """Return a slice's first and last file, with the plan's reason."""
        files = described["files"]
        return PlanRow(_first_to_last(files), len(files), why)

    def waiting(
        self,
        platform: Platform,
        dataflow: Dataflow,
        entry: Entry | None,
        now: datetime,
        servers: UnreachableServers,
    ) -> dict[str, Any]:
        """Return how many files the next run would load, and how many wait for ``settle``.

        Late files are counted elsewhere.
        """
        root = platform.root_of(dataflow)
        budget = _OF_A_FOLDER if root.local is not None else _OF_A_STORE
        with servers.fail_fast(root):
            planning = path_planning(platform, dataflow)
            listing = planning.peek(entry, now, budget, None)
            looks_empty = listing.complete and not listing.listed.files and not listing.settling
            warnings = planning.warn_if_emptied(entry) if looks_empty else []
        return {
            "warnings": warnings,
            "files": len(listing.listed.files),
            "settling": listing.settling,
            "more": not listing.complete,
        }

    def waiting_in_words(self, waiting: Mapping[str, Any]) -> str | None:
        """Return the number of files, and of settling ones; None if unknown."""
        if waiting["files"] is None:
            return None
        more = " or more" if waiting["more"] else ""
        new_files = [f"{pluralize(waiting['files'], 'file')}{more}"] if waiting["files"] else []
        settling = [f"{waiting['settling']:,} settling"] if waiting["settling"] else []
        return ", ".join([*new_files, *settling]) or "nothing"

    def work_fingerprint(
        self, platform: Platform, dataflow: Dataflow, entry: Entry | None, now: datetime
    ) -> str:
        """Return a text that identifies the first new or released file; "" if there is none."""
        files = self.list_new_files(platform, dataflow, entry, now, _OF_A_RUN).listed.files
        return repr((files[0].path, files[0].size, files[0].version)) if files else ""

    def explain(self, platform: Platform, dataflow: Dataflow, subject: str, now: datetime) -> WhyAnswer:
        """Return what became of a file."""
        return explain_file(platform, dataflow, subject, now)

    def unloaded(
        self, log: WatermarkLog, dataflow: Dataflow, entry: Entry | None, now: datetime
    ) -> Sequence[Reason]:
        """Return the files in quarantine, and the late files that the sweep has found."""
        return unloaded_files(log, dataflow, entry, now)

    def ledger(self, platform: Platform, dataflow: Dataflow, request: LedgerRequest) -> dict[str, Any]:
        """Return the range that the watermark covers, its partitions, and what is missing below it."""
        return file_ledger(platform, dataflow, request)

    def ledger_page(self, dataflow: Dataflow, document: Mapping[str, Any]) -> LedgerPage:
        """Return the range, how far it is verified, and the files that are missing."""
        return file_ledger_page(dataflow, document, self.why_none_is_late(dataflow))

    def late_files(
        self, log: WatermarkLog, dataflow: Dataflow, entry: Entry | None, now: datetime
    ) -> LateFiles:
        """Return the late files that the sweep has found and no entry has handled."""
        return unhandled(log, dataflow, entry, now)

    def late_step(self, platform: Platform, dataflow: Dataflow, now: datetime) -> LateStep:
        """Make one step of the sweep, and apply the policy for late files."""
        return late_step(platform, dataflow, now)

    def why_none_is_late(self, dataflow: Dataflow) -> str | None:
        """Return why no file of this dataflow can be late; None if a file can be late."""
        by_set = dataflow.path.tracking == "set"
        return "tracking: set: each run looks at all files, so none is late" if by_set else None

    def list_new_files(
        self, platform: Platform, dataflow: Dataflow, entry: Entry | None, now: datetime, budget: Budget
    ) -> Listing:
        """Return the files above the watermark, and released ones, within a budget."""
        return path_planning(platform, dataflow).peek(entry, now, budget, None)


def _first_to_last(files: list[str]) -> str:
    return f"{files[0]} … {files[-1]}" if len(files) > 1 else "".join(files)
