"""An epoch: the state that judges its rows, and the state after it (docs/reference/streams.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from partitions.stream.event_time import EventTime, later
from partitions.stream.global_watermark import global_watermark
from partitions.stream.idle_splits import adopted_watermarks, excluded_splits, idle_epochs
from partitions.stream.split_changes import assign_watermarks, highest, merge_watermarks
from partitions.stream.split_watermark import raise_watermark
from partitions.stream.splits import SplitOptions
from partitions.stream.state import Split, StreamState


def open_epoch(state: StreamState, splits: SplitOptions, with_rows: Iterable[str]) -> StreamState:
    """Return the state that judges an epoch's rows: with its new splits, without undeclared unseen ones.

    Args:
        state: after the epoch before.
        splits: the options of splits.
        with_rows: the splits that have rows in this epoch which are not quarantined.
    """
    kept_splits = {
        name for name, split in state.splits.items() if split.watermark is not None or name in splits.declared
    }
    before = {name: state.splits[name].watermark for name in sorted(kept_splits)}
    names = sorted({*kept_splits, *splits.declared, *with_rows})
    changed = set(names) != kept_splits
    watermarks = assign_watermarks(before, names, splits.scaling, state.value) if changed else before
    idle = {name: state.splits[name].idle if name in kept_splits else 0 for name in watermarks}
    opened_state = _with_watermarks(state, splits, watermarks, idle)
    # In mode split, the global watermark of the epoch before judges rows, even if it rises because a name is no longer declared.
    return opened_state if splits.scaling == "unit" else replace(opened_state, value=state.value)


def close_epoch(
    state: StreamState, splits: SplitOptions, tops: Mapping[str, EventTime], *, counts: bool = True
) -> StreamState:
    """Return the state at an epoch's end, before its effect on the buffer.

    Args:
        state: as the epoch was opened.
        splits: the options of splits.
        tops: the highest event time of each split that had rows, including late ones.
        counts: whether the epoch read all present input; one that left some unread makes no split idle.
    """
    idle = idle_epochs(state, tops, counts=counts)
    watermarks = {
        name: raise_watermark(state.bound(name), tops[name], splits.timeout)
        if name in tops
        else split.watermark
        for name, split in state.splits.items()
    }
    if counts:
        watermarks |= adopted_watermarks(splits, idle, watermarks)
    newest = later(state.newest, highest(tops.values()))
    return replace(_with_watermarks(state, splits, watermarks, idle), newest=newest)


def state_without_splits(state: StreamState, splits: SplitOptions, names: Collection[str]) -> StreamState:
    """Return the state after splits were removed."""
    rest = [name for name in state.splits if name not in names]
    before = {name: split.watermark for name, split in state.splits.items()}
    watermarks = assign_watermarks(before, rest, splits.scaling, state.value)
    return _with_watermarks(state, splits, watermarks, {name: state.splits[name].idle for name in rest})


def state_with_merged_splits(
    state: StreamState, splits: SplitOptions, parents: Collection[str], into: str
) -> StreamState:
    """Return the state after splits are merged into one, with the maximum of their watermarks.

    It counts as idle for as long as the least idle of them. In mode ``unit`` each split takes the maximum
    of all, as after any change of the set.
    """
    before = {name: split.watermark for name, split in state.splits.items()}
    merged = merge_watermarks(before, parents, into)
    watermarks = (
        assign_watermarks(before, list(merged), "unit", state.value) if splits.scaling == "unit" else merged
    )
    family = [split.idle for name, split in state.splits.items() if name in parents or name == into]
    idle = {name: split.idle for name, split in state.splits.items()} | {into: min(family, default=0)}
    return _with_watermarks(state, splits, watermarks, idle)


def _with_watermarks(
    state: StreamState,
    splits: SplitOptions,
    watermarks: Mapping[str, EventTime | None],
    idle: Mapping[str, int],
) -> StreamState:
    value = global_watermark(state.value, watermarks, excluded_splits(splits, idle), splits.least)
    return replace(
        state, splits={name: Split(at, idle[name]) for name, at in watermarks.items()}, value=value
    )
