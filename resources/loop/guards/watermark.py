"""The check that no value of a watermark falls; every slice passes it before its intent.

Each kind says what "at or above" means (``covers``; docs/explanation/watermarks.md).
"""

from __future__ import annotations

from partitions.errors import NeedsDecision
from resources.kinds.contract.slices import SliceT
from resources.loop.context import RunContext
from resources.watermarks.entry import Entry


def check_rises(run: RunContext[SliceT], entry: Entry | None, after: str) -> None:
    """Raise if a slice would lower a value of the watermark; only a rewind may.

    Such a slice was planned wrongly, or on another state.

    Raises:
        NeedsDecision: code ``would_fall``.
    """
    before = entry.watermark if entry else "{}"
    if not run.kind.planning.covers(after, before):
        again, choice = "rewind", f"strandline state rewind {run.name} --to NUMBER --reason TEXT"
        if not run.dataflow.watermark.rows_name_origin:  # it cannot go back
            again = "run the reset below"
            choice = f"strandline state reset {run.name} --replace --reason TEXT"
        raise NeedsDecision(
            f"dataflow {run.name}: expected a slice that ends at or above the watermark of entry {entry.number if entry else 0},"
            f" found one that ends below it. The run stopped before it changed anything. `strandline state show {run.name}"
            f" --full` shows the watermark. To read data again, {again}",
            code="would_fall",
            choices=(choice,),
        )
