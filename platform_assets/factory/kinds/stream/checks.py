"""The checks of a stream over splits: bounds of epochs, order of rows, drift of splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple

from partitions.checks import EPOCH_BOUNDS, SORTED, SPLIT_DRIFT
from partitions.dataflow import Dataflow
from partitions.predicate import Among
from partitions.stream.operators import EPOCH, Aggregate, OverWindow, splits_operator
from partitions.stream.slices import EpochSlice
from partitions.stream.state import StreamState
from partitions.stream.ticks import ticks
from platform_assets.factory.check_results import ERROR, CheckFinding, RunCheck
from resources.outcome import Outcome
from resources.platform.platform import Platform
from resources.tables.contract.spans import TellsSpans

_MILLISECOND = 1000
"""Ticks of a millisecond, to which statistics may truncate times."""


class EpochTimes(NamedTuple):
    """The range of event times of an epoch's file, in ticks; sorted by the lowest."""

    lowest: int | None
    highest: int


def run_checks(dataflow: Dataflow) -> Sequence[RunCheck]:
    """Return the checks that each run of a stream over splits evaluates."""
    files = {
        EPOCH_BOUNDS: "Each row of an epoch lies below the epoch's global watermark and not below the previous epoch's; windows count by their end."
    }
    if not isinstance(splits_operator(dataflow.operators), OverWindow):
        files[SORTED] = (
            "The files of an epoch do not overlap in event time (windows: in their end), by the files' statistics."
        )
    drift = "The fastest split is not further ahead of the slowest than watermark.buffer.max_drift."
    return [RunCheck(files, _check_files), RunCheck({SPLIT_DRIFT: drift}, _check_split_drift)]


_Epochs = Sequence[tuple[EpochSlice, Sequence[EpochTimes]]]


def _check_files(dataflow: Dataflow, platform: Platform, outcome: Outcome) -> Sequence[CheckFinding]:
    """Return the findings of the checks of file statistics, which are read once."""
    epochs = tuple(_epochs(dataflow, platform, outcome))
    findings = [_check_epoch_bounds(dataflow, epochs)]
    if not isinstance(splits_operator(dataflow.operators), OverWindow):
        findings.append(_check_sorted(epochs))
    return findings


def _check_epoch_bounds(dataflow: Dataflow, epochs: _Epochs) -> CheckFinding:
    is_window = isinstance(splits_operator(dataflow.operators), Aggregate)
    is_over_window = isinstance(splits_operator(dataflow.operators), OverWindow)
    outside = list[int]()
    for slice_, spans in epochs:
        before, after = slice_.judged.before.drained, slice_.judged.after.drained
        cut = _MILLISECOND if isinstance(before, datetime) else 1
        lower = None if before is None or is_over_window else ticks(before) // cut * cut
        above = after is None or any(span.highest >= ticks(after) + is_window for span in spans)
        below = lower is not None and any(span.lowest is not None and span.lowest < lower for span in spans)
        if spans and (above or below):
            outside.append(slice_.number)
    return _finding(EPOCH_BOUNDS, "epochs_outside", outside)


def _check_sorted(epochs: _Epochs) -> CheckFinding:
    overlapping = [
        slice_.number
        for slice_, spans in epochs
        if any(
            following.lowest is not None and following.lowest < previous.highest
            for previous, following in pairwise(spans)
        )
    ]
    return _finding(SORTED, "epochs_that_overlap", overlapping)


def _finding(name: str, metadata_key: str, epochs: Sequence[int]) -> CheckFinding:
    return CheckFinding(
        name,
        passed=not epochs,
        severity=ERROR,
        metadata={metadata_key: ", ".join(map(str, epochs)) or "none"},
    )


def _epochs(
    dataflow: Dataflow, platform: Platform, outcome: Outcome
) -> Iterator[tuple[EpochSlice, Sequence[EpochTimes]]]:
    """Yield the run's epochs that wrote rows, with the times of their files.

    If the format's statistics lack the times, only the highest time is known.
    """
    epochs = [
        committed.slice
        for committed in outcome.committed
        if committed.rows and isinstance(committed.slice, EpochSlice)
    ]
    if not epochs:
        return
    is_window = isinstance(splits_operator(dataflow.operators), Aggregate)
    column = "window_end" if is_window else dataflow.stream.event_time
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


def _check_split_drift(dataflow: Dataflow, _: Platform, outcome: Outcome) -> Sequence[CheckFinding]:
    splits = StreamState.of(outcome.after).splits
    watermarks = sorted(
        (split.watermark, name) for name, split in splits.items() if split.watermark is not None
    )
    max_drift: Any = dataflow.stream.buffer.max_drift
    drift: Any = watermarks[-1][0] - watermarks[0][0] if watermarks else None
    comparable = drift is not None and isinstance(drift, int) == isinstance(max_drift, int)
    finding = CheckFinding(
        SPLIT_DRIFT,
        passed=not comparable or drift <= max_drift,
        metadata={
            "drift": "none" if drift is None else str(drift),
            "slowest": watermarks[0][1] if watermarks else "none",
            "fastest": watermarks[-1][1] if watermarks else "none",
        },
    )
    return (finding,)
