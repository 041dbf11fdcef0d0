"""What a materialisation shows of a run (spec 08, What happened). Every number was measured by the run itself."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from dagster import MetadataValue, TableColumn, TableRecord, TableSchema

from partitions.path.quarantine import Quarantine
from partitions.sentinels import encode
from resources.loop.outcome import Outcome
from resources.places import Place
from resources.watermarks.entry import Entry

_SHOWN = 100


def table_metadata(outcome: Outcome, place: Place) -> dict[str, Any]:
    """Of the table's output."""
    kind = outcome.plan.kind if outcome.plan else (outcome.newest.kind if outcome.newest else "path")
    before, after = encode(outcome.before), encode(outcome.after)
    shown: dict[str, Any] = {
        "status": outcome.status,
        "rows": outcome.rows,
        **_amounts(outcome, kind),
        "slices": len(outcome.committed),
        "seconds": round(outcome.seconds, 3),
        "watermark_before": MetadataValue.json(before),
        "watermark_effective": MetadataValue.json(before),
        "watermark_after": MetadataValue.json(after),
        "state_number": outcome.newest.number if outcome.newest else 0,
        "plan": _plan_table(outcome),
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
    """Of the watermark's output: an entry, and the files that it leaves in quarantine."""
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
    """How old the newest committed file is, by the store's clock and ours."""
    return None if entry.modified is None else round(now.timestamp() - entry.modified / 1000, 3)


def _quarantine_table(quarantine: Quarantine) -> MetadataValue:
    """The first hundred files that wait for somebody, with the reasons."""
    records = [TableRecord({"file": one.file.path, "reason": one.reason}) for one in quarantine.held[:_SHOWN]]
    return MetadataValue.table(records, TableSchema([TableColumn("file"), TableColumn("reason")]))


def _amounts(outcome: Outcome, kind: str) -> dict[str, Any]:
    """How much was loaded, in what the kind counts."""
    if kind == "window":
        return {"work_units": outcome.work_units, "failed_units": outcome.failed_units}
    return {
        "files": outcome.files,
        "late": outcome.late,
        "quarantined": outcome.quarantined,
        "bytes": outcome.bytes,
        "listing_calls": outcome.calls,
    }


def _plan_table(outcome: Outcome) -> MetadataValue:
    """The plan's slices and skips, the first hundred of each."""
    plan = outcome.plan
    records = []
    for index, piece in enumerate(plan.slices[:_SHOWN] if plan else (), 1):
        records += [_plan_record(index, one, plan.why if plan else "") for one in piece.describe()]
    records = records[:_SHOWN]
    records.extend(
        TableRecord({"slice": "skip", "what": skip.what, "files": 0, "why": skip.why})
        for skip in (plan.skips[:_SHOWN] if plan else ())
    )
    if not records:
        why = plan.why if plan else "the run failed before it planned"
        records.append(TableRecord({"slice": "-", "what": "nothing", "files": 0, "why": why}))
    columns = [TableColumn("slice"), TableColumn("what"), TableColumn("files", "int"), TableColumn("why")]
    return MetadataValue.table(records=records, schema=TableSchema(columns=columns))


def _plan_record(index: int, described: dict[str, Any], why: str) -> TableRecord:
    """Files from the first to the last, or a window of a unit."""
    if "files" in described:
        files = described["files"]
        what = f"{files[0]} … {files[-1]}" if len(files) > 1 else "".join(files)
        return TableRecord({"slice": str(index), "what": what, "files": len(files), "why": why})
    window, read = described["window"], described["read"]
    unit = json.dumps(described["unit"], ensure_ascii=False) if described["unit"] else ""
    part = f", read from {read['start']}" if read["start"] != window["start"] else ""
    span = f"[{window['start']}, {window['end']})" if window["start"] else ""
    return TableRecord(
        {"slice": str(index), "what": f"{span} {unit}{part}".strip(), "files": 0, "why": described["reason"]}
    )
