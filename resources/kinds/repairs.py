"""What every kind asks of a repair before it plans one."""

from __future__ import annotations

from partitions.errors import Conflict
from partitions.request import Repair
from resources.watermarks.entry import Entry


def check_base(dataflow: str, entry: Entry | None, request: Repair) -> None:
    """Raise Conflict unless a repair builds on the entry that it has looked at."""
    number = entry.number if entry else 0
    if number != request.number:
        raise Conflict(
            f"dataflow {dataflow}: expected state {request.number}, on which the repair builds, found {number}: another"
            " run was faster. Nothing was changed. Run `reconcile --repair` again"
        )
