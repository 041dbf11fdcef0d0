"""Delete the rows that are older than the retention, in one commit of the maintenance.

See docs/how-to/deleting-and-keeping.md, Keep 90 days.
"""

from __future__ import annotations

import json
from typing import Any

from partitions.plan import format_duration
from resources.loop.context import RunContext
from resources.loop.deleting import commit_expiry
from resources.loop.rows.retention import expired_rows
from resources.loop.verifying import guarded_head
from resources.tables.contract.maintenance import MaintenanceResult
from resources.watermarks.entry import Entry


def expire_rows(run: RunContext[Any], last: Entry) -> tuple[Entry, MaintenanceResult]:
    """Delete the rows that are older than the retention; return the newest entry then, and the result.

    Without such rows there is no commit and no entry.

    Raises:
        ConfigurationError: the table lacks the column, or its type has no time.
        NeedsDecision: state and table do not match.
        Conflict, DataflowHeld: another run was faster, or works on the number.
        TargetError: the write failed. Unless the message says otherwise, the next run or maintenance
            finishes it.
    """
    retention, contents = run.dataflow.target.retention, run.table.contents
    described = contents.schema()
    if retention is None or described is None:
        return last, MaintenanceResult()
    guarded_head(run, last)
    version, columns = described
    types = {field["name"]: str(field["type"]) for field in json.loads(columns)["fields"]}
    rows = expired_rows(run.dataflow, types, run.now)
    if not contents.holds_any(version, rows):
        return last, MaintenanceResult()
    reason = f"{rows.column} older than {format_duration(retention.keep.total_seconds())}"
    entry = commit_expiry(run, last, rows, reason)
    return entry, MaintenanceResult(rows=entry.deleted)
