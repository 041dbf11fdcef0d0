"""What a log says of files, as documents: what it covers, what came late, what is in quarantine."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.sentinels import deserialise, encode
from resources.loop.guards import check_definition
from resources.platform import Platform
from resources.sweep import LateFiles, Sweep, unhandled
from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog
from resources.watermarks.quarantine import read_quarantine

_SHOWN = 50


def aside(log: WatermarkLog, flow: Dataflow, entry: Entry | None, now: datetime) -> dict[str, Any]:
    """Files that were found late and are not dealt with, and files in quarantine, the first 50 of each.

    Released ones wait for a run, and not for the operator.
    """
    late = unhandled(log, flow, entry, now) if flow.kind == "path" else LateFiles()
    held = read_quarantine(log, entry).held
    files = [{"path": one.file.path, "reason": one.reason} for one in held[:_SHOWN]]
    return {
        "late": {"count": late.count, "paths": late.first(_SHOWN)},
        "quarantined": {"count": len(held), "files": files},
    }


def file_ledger(platform: Platform, flow: Dataflow, now: datetime) -> dict[str, Any]:
    """What a path watermark covers, and what is missing below it. Starts no Spark, opens no source.

    Raises:
        NeedsDecision: as a run would.
    """
    log, name = platform.log, flow.name
    entry = log.newest(name)
    check_definition(flow, entry, log)
    sweep = Sweep.read(log, name, entry.era if entry else 0)
    return {
        "dataflow": name,
        "now": now.isoformat(),
        "complete_up_to": None,
        "units": None,
        "covered": {
            "after": encode(deserialise(entry.since)) if entry and entry.since else None,
            "up_to": encode(entry.state()) or None if entry else None,
            "files": entry.total_files if entry else 0,
            "rows": entry.total_rows if entry else 0,
        },
        **aside(log, flow, entry, now),
        "verified_up_to": sweep.verified_path,
        "verified_at": sweep.verified_at,
    }
