"""That no value of a watermark falls (docs/explanation/watermarks.md).

Belongs here: the check that every slice passes before its intent. What "at or above" means is told by each kind (``covers``).
"""

from __future__ import annotations

from partitions.errors import NeedsDecision
from resources.kinds.contract.slices import SliceT
from resources.loop.context import RunContext
from resources.watermarks.entry import Entry


def check_rises(run: RunContext[SliceT], entry: Entry | None, after: str) -> None:
    """Refuse a slice after which a value would be lower: its plan is wrong, or was made on another state. Only a rewind lowers one.

    Raises:
        NeedsDecision: code ``would_fall``.
    """
    before = entry.watermark if entry else "{}"
    if not run.kind.planning.covers(after, before):
        raise NeedsDecision(
            f"dataflow {run.name}: expected a watermark at or above {before[:500]}, found a slice that ends at {after[:500]}:"
            " nothing was begun. To read files again, rewind",
            code="would_fall",
            choices=(f"strandline state rewind {run.name} --to NUMBER --reason TEXT",),
        )
