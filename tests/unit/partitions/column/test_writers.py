"""Open transactions: which of an earlier look are still open, and how far a run may read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from partitions.column.definition import ColumnWatermark
from partitions.column.open_transactions import (
    AwaitedTransactions,
    OpenTransaction,
    WritingTransactions,
    bound_by_oldest,
    bound_by_open_transactions,
)
from partitions.column.refusals import refusals
from partitions.column.source import SourceObservation
from partitions.column.state import ColumnState, ReadBound
from partitions.dataflow_parts import DataflowParts
from partitions.sources import ApiSource, FilesSource, PythonSource, TableSource
from partitions.target import Target

NOW = datetime(2026, 3, 8, 14, tzinfo=UTC)
A, B = OpenTransaction("3/1", "700"), OpenTransaction("4/1")
PREPARED = OpenTransaction("3/1", "700", prepared=True)


def writers(*writing: OpenTransaction, server: str = "first", **keys: Any) -> WritingTransactions:
    return WritingTransactions(server, writing, **keys)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ([A, B], [], []),
        ([A, B], [B], [B]),
        ([A], [OpenTransaction("-1/700", "700", prepared=True)], [A]),
        ([B], [OpenTransaction("-1/701", "701", prepared=True)], [B]),  # it had no number, and may be this
        ([A], [OpenTransaction("-1/701", "701", prepared=True)], []),
        ([PREPARED, B], [PREPARED], [PREPARED]),  # which was prepared before, so it is not the other
    ],
)
def test_a_transaction_is_open_until_no_lock_may_be_its_own(
    before: list[OpenTransaction], now: list[OpenTransaction], expected: list[OpenTransaction]
) -> None:
    assert writers(*now).still_open(writers(*before), "whole") == tuple(expected)


def test_a_restart_of_the_server_ends_all_but_prepared_transactions() -> None:
    now = writers(A, server="second")
    assert now.still_open(writers(B), "whole") == ()
    assert writers(PREPARED, server="second").still_open(writers(A), "whole") == (A,)


def test_times_wait_for_prepared_and_untold_transactions() -> None:
    hidden = OpenTransaction("5/1")
    assert writers(A, PREPARED, hidden=(hidden,)).blocking("instant") == (PREPARED, hidden)
    assert writers(A, PREPARED, hidden=(hidden,)).blocking("whole") == (A, PREPARED)


def test_times_end_before_the_oldest_transaction() -> None:
    seen = SourceObservation(NOW, {"u": "instant"}, {})
    began = NOW - timedelta(minutes=1)
    assert bound_by_oldest(seen, writers(oldest=began)).settled == began - timedelta(microseconds=1)
    assert bound_by_oldest(seen, writers(oldest=NOW + timedelta(seconds=1))).settled is None


def settled(
    stored: dict[str, Any],
    looks: tuple[WritingTransactions, WritingTransactions],
    earlier: AwaitedTransactions | None = None,
) -> tuple[Any, AwaitedTransactions | None]:
    seen = SourceObservation(NOW, {"u": "whole"}, {"u": 9})
    found, awaited = bound_by_open_transactions(
        seen, {"u": ReadBound(9)}, ColumnState.of(stored), looks, earlier
    )
    return found.maxima["u"], awaited


def test_the_highest_value_is_a_bound_once_all_have_ended_that_were_open() -> None:
    assert settled({"u": 3}, (writers(A), writers(B))) == (9, None)


def test_until_then_the_stored_value_is_and_the_next_run_is_told() -> None:
    look = writers(A)
    assert settled({"u": 3}, (look, look)) == (3, AwaitedTransactions(ColumnState({"u": ReadBound(9)}), look))
    assert settled({}, (look, look))[0] is None


def test_the_value_of_an_earlier_look_is_a_bound_once_those_of_that_look_have_ended() -> None:
    look, earlier = writers(B), AwaitedTransactions(ColumnState({"u": ReadBound(7)}), writers(A))
    assert settled({"u": 3}, (look, look), earlier) == (
        7,
        AwaitedTransactions(ColumnState({"u": ReadBound(9)}), look),
    )
    assert settled({"u": 8}, (look, look), earlier)[0] == 8
    both = writers(A, B)
    assert settled({"u": 3}, (both, both), earlier) == (3, earlier)


def test_what_the_next_run_is_told_is_read_back() -> None:
    awaited = AwaitedTransactions(
        ColumnState({"u": ReadBound(7), "d": ReadBound(NOW)}), writers(A, PREPARED, hidden=(B,))
    )
    assert AwaitedTransactions.of(awaited.as_json()) == awaited


@pytest.mark.parametrize(
    "source",
    [
        ApiSource(type="api", connection="c", path="/rows"),
        FilesSource(type="files", path="./in", format="csv"),
        PythonSource(type="python", function="m:f"),
        TableSource(type="table", table="raw/rows"),
    ],
    ids=lambda source: source.type,
)
def test_a_source_that_knows_no_transactions_is_not_waited_for(source: Any) -> None:
    watermark = ColumnWatermark.model_validate({"type": "column", "columns": ["u"], "settle": "transactions"})
    (refusal,) = refusals(DataflowParts(source, watermark, Target(load="append")))
    assert (refusal.key, refusal.actual) == (
        ("watermark", "settle"),
        f"transactions beside a source of type {source.type}",
    )
    assert "backward: {by: 1000}" in refusal.expected
