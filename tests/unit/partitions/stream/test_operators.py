"""Operators of a stream over splits: what is refused, and in which words; what a state tells of open windows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from partitions.stream.operators import Aggregate, Operator, OverWindow, splits_operator, splits_refusals
from partitions.stream.state import Carry, Segment, StreamState

_OPERATORS = TypeAdapter[list[Operator]](list[Operator])
_COUNTED: dict[str, Any] = {
    "type": "aggregate",
    "window": {"type": "tumble", "size": "PT5M"},
    "aggregates": {"n": "count(*)"},
}
_OVER: dict[str, Any] = {"type": "over", "columns": {"number": {"fn": "row_number"}}}
_BY_NUMBER: dict[str, Any] = _COUNTED | {"window": {"type": "tumble", "size": 5}}
_DEDUPLICATED: dict[str, Any] = {"type": "drop_duplicates"}


def _refused(*operators: dict[str, Any], timeout: timedelta | int = timedelta(minutes=5)) -> list[str]:
    found = splits_refusals(_OPERATORS.validate_python(operators), timeout)
    return [f"{'.'.join(map(str, each.key))}: {each.actual}: {each.expected}" for each in found]


def test_one_aggregate_or_over_window_is_taken() -> None:
    assert _refused(_COUNTED) == _refused(_OVER) == _refused(_BY_NUMBER, timeout=3) == []
    assert isinstance(splits_operator(_OPERATORS.validate_python([_COUNTED])), Aggregate)
    assert isinstance(splits_operator(_OPERATORS.validate_python([_OVER])), OverWindow)
    assert splits_operator(()) is None


@pytest.mark.parametrize(
    ("operators", "timeout", "expected"),
    [
        ([_DEDUPLICATED], timedelta(minutes=5), "operators: drop_duplicates: aggregate or over, or engine: structured_streaming"),
        ([_COUNTED, _OVER], timedelta(minutes=5), "operators: aggregate, over: one operator (a second dataflow"),
        ([_BY_NUMBER], timedelta(minutes=5), "operators.window.size: 5: a duration such as PT5M, as watermark.timeout is (PT5M)"),
        ([_COUNTED], 7, "operators.window.size: PT5M: a whole number, as watermark.timeout is (7)"),
        ([_COUNTED | {"aggregates": {"_Epoch": "count(*)"}}], timedelta(minutes=5), "operators: a column _epoch: another name than _epoch"),
    ],
)  # fmt: skip
def test_what_a_stream_over_splits_cannot_do_is_refused_with_a_way_out(
    operators: list[dict[str, Any]], timeout: timedelta | int, expected: str
) -> None:
    (refused,) = _refused(*operators, timeout=timeout)
    assert refused.startswith(expected)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"a": {"fn": "lag"}}, "column: expected the column that lag reads"),
        ({"a": {"fn": "rank", "column": "x"}}, "column: expected no such key beside fn: rank"),
        ({"a": {"fn": "lag", "column": "x", "frame": [0, 1]}}, "frame: expected no such key beside fn: lag"),
        ({"a": {"fn": "sum", "column": "x"}}, "frame: expected the first and the last row that sum reads"),
        ({"a": {"fn": "max", "column": "x", "frame": [1, 0]}}, "frame: expected the first and the last row"),
        (
            {"a": {"fn": "row_number"}, "A": {"fn": "rank"}},
            "expected each column once, found a twice",
        ),
    ],
)
def test_an_over_windows_column_has_its_functions_keys(columns: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValidationError, match=expected):
        OverWindow.model_validate({"type": "over", "columns": columns})


def test_windows_are_open_from_the_lowest_row_below_the_global_watermark_that_waits() -> None:
    def at(minute: int) -> datetime:
        return datetime(2026, 1, 1, 0, minute, tzinfo=UTC)

    segments = (Segment("1", 2, at(3), at(9)), Segment("2", 1, at(7), at(7)))
    assert StreamState(segments=segments, drained=at(5)).open_from == at(3)
    assert StreamState(segments=segments, drained=at(3)).open_from is None
    assert StreamState(segments=segments).open_from is None


def test_rows_of_an_over_window_that_wait_count_as_buffered() -> None:
    segments = (Segment("1", 2, 3, 9),)
    assert StreamState(segments=segments, carry=Carry(4, 5, 3)).buffered == 5


def test_a_state_with_a_carry_is_read_as_it_was_written() -> None:
    state = StreamState(epoch=4, value=9, drained=9, carry=Carry(4, 5, 3))
    assert StreamState.of(state.watermark()) == state
