"""Show column watermarks, in rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from typing_extensions import override

from partitions.column.words import describe_watermark
from partitions.dataflow import Dataflow
from partitions.errors import SourceError
from partitions.plan import pluralize
from partitions.sentinels import deserialise, encode
from partitions.why_answer import WhyAnswer
from platform_assets.kinds.dead_servers import UnreachableServers
from platform_assets.kinds.profile import KindProfile, LedgerPage, LedgerRequest, PlanRow, ledger_of_one_range
from resources.kinds.column.explaining import explain_value
from resources.kinds.column.opening import column_look
from resources.kinds.column.writing import WITHOUT
from resources.loop.guards.definition import check_definition
from resources.outcome import Outcome
from resources.platform.platform import Platform
from resources.watermarks.entry import LOADS, Entry


class ColumnProfile(KindProfile):
    """The profile of column watermarks."""

    slices_noun = "slice"
    unknown_waiting: ClassVar[Mapping[str, Any]] = {"new_rows": None}

    def watermark_in_words(self, watermark: Mapping[str, Any]) -> str:
        """Return each column with its value."""
        return describe_watermark(watermark)

    def entry_watermark(self, entry: Entry) -> str:
        """Return each column with its value."""
        return describe_watermark(deserialise(entry.watermark))

    def entry_amount(self, entry: Entry) -> str:
        """Return the lower bound of the rows read; "none read" for a decision."""
        if entry.why not in LOADS:
            return "none read"
        if entry.why == "reconcile":
            return "what differed"
        lower = describe_watermark(deserialise(entry.lower)) if entry.lower else "the beginning"
        return f"read from {lower}"

    def outcome_amount(self, _: Outcome) -> str:
        """Return "": rows and slices are shown for every kind."""
        return ""

    def amounts(self, outcome: Outcome) -> dict[str, Any]:
        """Return how many rows had no value in any watermark column."""
        rows_without_value = [
            stats[WITHOUT][0] for committed in outcome.committed if (stats := committed.stats)
        ]
        return {"rows_without_value": sum(rows_without_value)}

    def plan_line(self, number: int, described: Mapping[str, Any]) -> str:
        """Return the rows of a slice, as a condition."""
        return f"slice {number}: {described['predicate']}"

    def plan_row(self, described: Mapping[str, Any], why: str) -> PlanRow:
        """Return the rows of a slice, as a condition."""
        return PlanRow(described["predicate"], 0, why)

    @override
    def waiting(
        self,
        platform: Platform,
        dataflow: Dataflow,
        entry: Entry | None,
        now: datetime,
        servers: UnreachableServers,
    ) -> dict[str, Any]:
        """Return whether rows lie above the watermark; raise SourceError if only a run can tell."""
        if not dataflow.source.incremental_support.detects_new_rows:
            raise SourceError(f"only a run reads {dataflow.source.label}, and tells whether it has new rows")
        return {"new_rows": column_look(platform, dataflow).has_new_rows(entry, now)}

    def waiting_in_words(self, waiting: Mapping[str, Any]) -> str | None:
        """Return whether there are new rows; None if unknown."""
        if waiting["new_rows"] is None:
            return None
        return "new rows" if waiting["new_rows"] else "nothing"

    def work_fingerprint(
        self, platform: Platform, dataflow: Dataflow, entry: Entry | None, now: datetime
    ) -> str | None:
        """Return a text that identifies the new rows; "" if none; None if only a run can tell."""
        if not dataflow.source.incremental_support.detects_new_rows:
            return None
        look = column_look(platform, dataflow)
        has_new = look.has_new_rows(entry, now)
        return repr((entry.watermark if entry else None, look.contents())) if has_new else ""

    def explain(self, platform: Platform, dataflow: Dataflow, subject: str, now: datetime) -> WhyAnswer:
        """Return what became of the rows with a value of a watermark column."""
        return explain_value(platform, dataflow, subject, now)

    def ledger(self, platform: Platform, dataflow: Dataflow, request: LedgerRequest) -> dict[str, Any]:
        """Return the values up to which rows are loaded. Opens no source."""
        again = f"`strandline replay {dataflow.name} --start A --end B --replace` reads corrected rows again"
        instead = f"{again}; a look-back (`backward`) does so in each run"
        request.refuse_options(dataflow, bounds=True, instead=instead)
        entry = platform.log.newest(dataflow.name)
        check_definition(dataflow, entry, platform.log)
        up_to = encode(entry.state()) or None if entry else None
        return ledger_of_one_range(dataflow, request, entry, up_to)

    def ledger_page(self, dataflow: Dataflow, document: Mapping[str, Any]) -> LedgerPage:
        """Return the values up to which rows are loaded."""
        covered = document["covered"]
        up_to = f"up to {describe_watermark(covered['up_to'])}" if covered["up_to"] else "nothing"
        return LedgerPage(f"{dataflow.name}: covered {up_to}: {pluralize(covered['rows'], 'row')}")
