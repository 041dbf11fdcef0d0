"""The checks of a stream over splits: epochs keep within their watermarks, rows lie in order, splits keep pace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple

from dagster import AssetCheckResult, AssetCheckSeverity, AssetCheckSpec

from partitions.dataflow import Dataflow
from partitions.predicate import Among
from partitions.stream.operators import EPOCH, Aggregate, OverWindow, one_of_splits
from partitions.stream.slices import EpochSlice
from partitions.stream.state import StreamState
from partitions.stream.ticks import ticks
from platform_assets.factory.asset_checks import RunCheck
from platform_assets.factory.dagster_names import table_key
from resources.outcome import Outcome
from resources.platform.platform import Platform
from resources.tables.contract.spans import TellsSpans

_MILLISECOND = 1000
"""Ticks of times, which statistics may cut to."""


class EpochTimes(NamedTuple):
    """The times of an epoch's files, in ticks, by their lowest."""

    lowest: int | None
    highest: int


def run_checks(dataflow: Dataflow) -> Sequence[RunCheck]:
    """Return the checks that each run evaluates."""
    table = table_key(dataflow)
    bounds = AssetCheckSpec(
        "epoch_bounds",
        asset=table,
        description="Each row of an epoch lies below its global watermark, and not below that of the epoch before; windows by their end.",
    )
    drift = AssetCheckSpec(
        "split_drift",
        asset=table,
        description="The fastest split is not further ahead of the slowest than watermark.buffer.max_drift.",
    )
    of_files = [bounds]
    if not isinstance(one_of_splits(dataflow.operators), OverWindow):
        in_order = AssetCheckSpec(
            "sorted",
            asset=table,
            description="Files of an epoch do not overlap in event time (windows: in their end), by the statistics of the table's files.",
        )
        of_files.append(in_order)
    return [RunCheck(tuple(of_files), _of_files), RunCheck((drift,), _split_drift)]


_Epochs = Sequence[tuple[EpochSlice, Sequence[EpochTimes]]]


def _of_files(dataflow: Dataflow, platform: Platform, outcome: Outcome) -> Sequence[AssetCheckResult]:
    """Both checks of the files' statistics, which are read once."""
    epochs = tuple(_epochs(dataflow, platform, outcome))
    results = [_epoch_bounds(dataflow, epochs)]
    if not isinstance(one_of_splits(dataflow.operators), OverWindow):
        results.append(_sorted(dataflow, epochs))
    return results


def _epoch_bounds(dataflow: Dataflow, epochs: _Epochs) -> AssetCheckResult:
    closes = isinstance(one_of_splits(dataflow.operators), Aggregate)
    waits = isinstance(one_of_splits(dataflow.operators), OverWindow)
    outside = list[int]()
    for slice_, spans in epochs:
        before, after = slice_.judged.before.drained, slice_.judged.after.drained
        cut = _MILLISECOND if isinstance(before, datetime) else 1
        lower = None if before is None or waits else ticks(before) // cut * cut
        above = after is None or any(span.highest >= ticks(after) + closes for span in spans)
        below = lower is not None and any(span.lowest is not None and span.lowest < lower for span in spans)
        if spans and (above or below):
            outside.append(slice_.number)
    return _result(dataflow, "epoch_bounds", "epochs_outside", outside)


def _sorted(dataflow: Dataflow, epochs: _Epochs) -> AssetCheckResult:
    mixed = [
        slice_.number
        for slice_, spans in epochs
        if any(right.lowest is not None and right.lowest < left.highest for left, right in pairwise(spans))
    ]
    return _result(dataflow, "sorted", "epochs_that_overlap", mixed)


def _result(dataflow: Dataflow, name: str, what: str, epochs: Sequence[int]) -> AssetCheckResult:
    return AssetCheckResult(
        passed=not epochs,
        check_name=name,
        asset_key=table_key(dataflow),
        metadata={what: ", ".join(map(str, epochs)) or "none"},
    )


def _epochs(
    dataflow: Dataflow, platform: Platform, outcome: Outcome
) -> Iterator[tuple[EpochSlice, Sequence[EpochTimes]]]:
    """Yield a run's epochs that have written rows, with the times of their files; of a format whose statistics do not tell them the highest time only."""
    epochs = [
        committed.slice
        for committed in outcome.committed
        if committed.rows and isinstance(committed.slice, EpochSlice)
    ]
    if not epochs:
        return
    windows = isinstance(one_of_splits(dataflow.operators), Aggregate)
    column = "window_end" if windows else dataflow.stream.event_time
    rows = platform.table(dataflow).contents
    spans = rows.file_spans(rows.newest_version(), EPOCH, column) if isinstance(rows, TellsSpans) else None
    by_epoch: dict[int, list[EpochTimes]] = {}
    for file in spans or ():
        by_epoch.setdefault(file.group, []).append(
            EpochTimes(_in_ticks(file.lowest), _in_ticks(file.highest))
        )
    for slice_ in epochs:
        if spans is None:
            highest = rows.highest_values([column], None, Among(EPOCH, (slice_.number,)))[column]
            yield slice_, [] if highest is None else [EpochTimes(None, _in_ticks(highest))]
        else:
            yield slice_, sorted(by_epoch.get(slice_.number, ()))


def _in_ticks(at: Any) -> int:
    return ticks(at.replace(tzinfo=UTC) if isinstance(at, datetime) and at.tzinfo is None else at)


def _split_drift(dataflow: Dataflow, _: Platform, outcome: Outcome) -> Sequence[AssetCheckResult]:
    splits = StreamState.of(outcome.after).splits
    marks = sorted((split.watermark, name) for name, split in splits.items() if split.watermark is not None)
    most: Any = dataflow.stream.buffer.max_drift
    drift: Any = marks[-1][0] - marks[0][0] if marks else None
    comparable = drift is not None and isinstance(drift, int) == isinstance(most, int)
    result = AssetCheckResult(
        passed=not comparable or drift <= most,
        check_name="split_drift",
        asset_key=table_key(dataflow),
        severity=AssetCheckSeverity.WARN,
        metadata={
            "drift": "none" if drift is None else str(drift),
            "slowest": marks[0][1] if marks else "none",
            "fastest": marks[-1][1] if marks else "none",
        },
    )
    return (result,)
