"""Stop a stream before too many rows wait in its buffer (docs/reference/streams.md).

The error names the cause: the slowest split, or an operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from partitions.errors import StrandlineError
from partitions.plan import pluralize
from partitions.stream.operators import Aggregate, Operator, OverWindow, SessionWindows, splits_operator
from partitions.stream.splits import split_in_words
from partitions.stream.state import StreamState


def check_buffer(
    dataflow: str,
    epoch: int,
    operators: Sequence[Operator],
    after: StreamState,
    *,
    waiting: int,
    count_for_splits: Callable[[], int],
    most: int,
) -> None:
    """Raise StrandlineError, code ``buffer_full``, if too many rows would wait after an epoch.

    Args:
        dataflow: the dataflow's name.
        epoch: the epoch's number.
        operators: the dataflow's operators.
        after: the state after the epoch.
        waiting: the number of rows that would wait.
        count_for_splits: counts the waiting rows at or above the global watermark; the others wait for the
        operator. Called only if too many wait.
        most: the most rows that may wait (``watermark.buffer.max_rows``).
    """
    if waiting <= most:
        return
    for_splits = count_for_splits()
    reasons = [(for_splits, f"for {split_in_words(_slowest_split(after))}, the slowest")]
    if operators:
        reasons.append((waiting - for_splits, f"for {_waiting_cause(operators)}"))
    causes = ", ".join(f"{rows:,} {why}" for rows, why in sorted(reasons, reverse=True) if rows)
    remedy = (
        "Repair the split, remove it (`strandline splits remove`), or"
        if for_splits * 2 >= waiting
        else "Shorten the operator's windows or frame, or"
    )
    raise StrandlineError(
        f"dataflow {dataflow}: {pluralize(waiting, 'row')} would wait after epoch {epoch}: {causes}. That is more than"
        f" watermark.buffer.max_rows, {most:,}. Nothing of this epoch was committed. {remedy} raise the limit",
        code="buffer_full",
    )


def _slowest_split(state: StreamState) -> str:
    """Return the split that the global watermark waits for."""
    awaited = sorted(name for name, split in state.splits.items() if split.watermark is None)
    if awaited and state.value is None:
        return awaited[0]
    marks = [(split.watermark, name) for name, split in state.splits.items() if split.watermark is not None]
    return min(marks, default=(None, ""))[1]


def _waiting_cause(operators: Sequence[Operator]) -> str:
    """Return what keeps rows below the global watermark waiting."""
    match splits_operator(operators):
        case Aggregate(window=SessionWindows()):
            return "sessions that are still open"
        case OverWindow():
            return "rows whose values need later rows"
    return "windows that are still open"
