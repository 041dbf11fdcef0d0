"""Show a retention in the ledger: its limit, and how many rows have expired."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.plan import format_duration, pluralize
from resources.watermarks.log import WatermarkLog


def retention_document(log: WatermarkLog, dataflow: Dataflow, now: datetime) -> dict[str, Any] | None:
    """Return the retention in the public JSON form (docs/reference/cli.md, JSON); None without one."""
    retention = dataflow.target.retention
    if retention is None:
        return None
    entry = log.newest(dataflow.name)
    return {
        "column": retention.column,
        "keep": format_duration(retention.keep.total_seconds()),
        "before": retention.limit(now).isoformat(),
        "expired_rows": entry.expired if entry else 0,
    }


def retention_in_words(retention: Mapping[str, Any]) -> str:
    """Return the retention's document as a line."""
    expired = pluralize(retention["expired_rows"], "row")
    return f"expired: {expired}; rows with {retention['column']} before {retention['before']} go (keep {retention['keep']})"
