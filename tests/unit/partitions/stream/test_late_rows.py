"""What becomes of late rows, and of rows that wait beyond the limit."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from partitions.errors import StrandlineError
from partitions.stream.buffer_limit import check_buffer
from partitions.stream.late_rows import OnLateRows, are_diverted, are_refused, late_rows_error
from partitions.stream.state import Split, StreamState


@pytest.mark.parametrize(
    ("policy", "diverted", "refused"),
    [("divert", True, False), ("drop", False, False), ("fail", False, True)],
)
def test_late_rows_are_diverted_dropped_or_refused(policy: OnLateRows, diverted: bool, refused: bool) -> None:
    assert (are_diverted(policy, 1), are_refused(policy, 1)) == (diverted, refused)
    assert (are_diverted(policy, 0), are_refused(policy, 0)) == (False, False)


def test_the_error_of_late_rows_names_the_splits() -> None:
    error = late_rows_error("clicks", 3, 5, [("a", 4), ("", 1)])
    assert error.message == (
        "dataflow clicks: 5 rows of epoch 3 came late, and late is fail: 4 rows of split a, 1 row of the stream's only split. Nothing of"
        " this epoch was committed. Set watermark.late to divert or drop. A longer watermark.timeout does not lower a watermark that was already reached"
    )


def test_the_error_of_a_full_buffer_names_the_slowest_split() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    state = StreamState(splits={"a": Split(at), "b": Split(at.replace(hour=1))}, value=at)
    check_buffer("clicks", 2, (), state, waiting=3, count_for_splits=lambda: 3, most=3)
    with pytest.raises(StrandlineError) as raised:
        check_buffer("clicks", 2, (), state, waiting=3, count_for_splits=lambda: 3, most=2)
    assert raised.value.message == (
        "dataflow clicks: 3 rows would wait after epoch 2: 3 for split a, the slowest. That is more than watermark.buffer.max_rows, 2."
        " Nothing of this epoch was committed. Repair the split, remove it (`strandline splits remove`), or raise the limit"
    )
