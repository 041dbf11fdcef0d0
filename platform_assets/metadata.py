"""What a materialisation shows of a run (docs/dagster.md). Every number was measured by the run itself."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from dagster import MetadataValue, TableColumn, TableRecord, TableSchema

from partitions.dataflow import Dataflow
from partitions.path.quarantine import Quarantine
from partitions.sentinels import encode
from platform_assets.kinds import profile_of
from platform_assets.kinds.profile import KindProfile, PlanRow
from resources.loop.outcome import Outcome
from resources.places import Place
from resources.watermarks.entry import Entry

_SHOWN = 100


def table_metadata(dataflow: Dataflow, outcome: Outcome, place: Place) -> dict[str, Any]:
    """Return the metadata of a run's table."""
    profile = profile_of(dataflow)
    before, after = encode(outcome.before), encode(outcome.after)
    shown: dict[str, Any] = {
        "status": outcome.status,
        "rows": outcome.rows,
        **profile.amounts(outcome),
        "slices": len(outcome.committed),
        "seconds": round(outcome.seconds, 3),
        "watermark_before": MetadataValue.json(before),
        "watermark_effective": MetadataValue.json(before),
        "watermark_after": MetadataValue.json(after),
        "state_number": outcome.newest.number if outcome.newest else 0,
        "plan": _plan_table(outcome, profile),
        "table": MetadataValue.path(str(place)),
    }
    if outcome.newest and outcome.newest.modified is not None:
        shown["lag_seconds"] = lag_seconds(outcome.newest, datetime.now(UTC))
    if outcome.newest and outcome.newest.table_version is not None:
        shown["table_version"] = outcome.newest.table_version
    if outcome.warnings:
        shown["warnings"] = MetadataValue.md("\n".join(f"- {warning}" for warning in outcome.warnings))
    return shown


def watermark_metadata(entry: Entry | None, quarantine: Quarantine) -> dict[str, Any]:
    """Return the metadata of the watermark's output: an entry, and the files that it leaves in quarantine."""
    if entry is None:
        return {"state_number": 0, "watermark": MetadataValue.json({})}
    return {
        "state_number": entry.number,
        "watermark": MetadataValue.json(json.loads(entry.watermark)),
        "why": entry.why,
        "appended": entry.time,
        "total_rows": entry.total_rows,
        "total_files": entry.total_files,
        "in_quarantine": len(quarantine.held),
        **({"quarantine": _quarantine_table(quarantine)} if quarantine.held else {}),
    }


def lag_seconds(entry: Entry, now: datetime) -> float | None:
    """Return how old the newest committed file is, by the store's clock and this machine's; None if unknown."""
    return None if entry.modified is None else round(now.timestamp() - entry.modified / 1000, 3)


def _quarantine_table(quarantine: Quarantine) -> MetadataValue:
    """Return the first hundred files in quarantine, with the reasons."""
    records = [
        TableRecord({"file": file.file.path, "reason": file.reason}) for file in quarantine.held[:_SHOWN]
    ]
    return MetadataValue.table(records, TableSchema([TableColumn("file"), TableColumn("reason")]))


def _plan_table(outcome: Outcome, profile: KindProfile) -> MetadataValue:
    """Return the plan's slices and skips, the first hundred of each."""
    plan = outcome.plan
    rows = [("-", PlanRow("nothing", 0, plan.why if plan else "the run failed before it planned"))]
    if plan and (plan.slices or plan.skips):
        slices = (
            (str(number), profile.plan_row(described, plan.why))
            for number, slice_ in enumerate(plan.slices, 1)
            for described in slice_.describe()
        )
        skips = (("skip", PlanRow(skip.what, 0, skip.why)) for skip in plan.skips[:_SHOWN])
        rows = [*islice(slices, _SHOWN), *skips]
    columns = [TableColumn("slice"), TableColumn("what"), TableColumn("files", "int"), TableColumn("why")]
    records = [TableRecord({"slice": name, **row._asdict()}) for name, row in rows]
    return MetadataValue.table(records=records, schema=TableSchema(columns=columns))
