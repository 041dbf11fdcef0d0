"""Decide what happens to late rows: they are diverted, dropped, or fail the run.

See docs/reference/streams.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from partitions.errors import StrandlineError
from partitions.plan import pluralize
from partitions.stream.splits import split_in_words

OnLateRows = Literal["divert", "drop", "fail"]
"""What happens to late rows: they go into a side table, are dropped, or fail the run."""


def are_diverted(policy: OnLateRows, late: int) -> bool:
    """Return whether late rows are written into their side table."""
    return policy == "divert" and late > 0


def are_refused(policy: OnLateRows, late: int) -> bool:
    """Return whether late rows fail the run."""
    return policy == "fail" and late > 0


def late_rows_error(
    dataflow: str, epoch: int, late: int, of_splits: Sequence[tuple[str, int]]
) -> StrandlineError:
    """Return the error for late rows that the policy refuses.

    Args:
        dataflow: the dataflow's name.
        epoch: the epoch's number.
        late: the number of late rows.
        of_splits: the splits with the most late rows, and the number of each.
    """
    splits = ", ".join(f"{pluralize(rows, 'row')} of {split_in_words(name)}" for name, rows in of_splits)
    return StrandlineError(
        f"dataflow {dataflow}: {pluralize(late, 'row')} of epoch {epoch} came late, and late is fail: "
        f"{splits}. Nothing of this epoch was committed. Set watermark.late to divert or drop. A longer "
        "watermark.timeout does not lower a watermark that was already reached",
        code="late_rows",
    )
