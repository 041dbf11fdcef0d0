"""The planner of epochs: the input of each, and the splits that are awaited or idle.

See docs/reference/streams.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from partitions.plan import Plan, Skip, pluralize
from partitions.stream.definition import StreamWatermark
from partitions.stream.ending import closes_at, closing_epoch, flush_epoch, pending_epoch
from partitions.stream.inputs import Input, NoInput
from partitions.stream.operators import Operator
from partitions.stream.slices import EpochSlice
from partitions.stream.splits import ONLY_SPLIT
from partitions.stream.state import StreamState
from partitions.stream.waiting_rows import slowest_splits, time_in_words


def plan(
    definition: StreamWatermark,
    state: StreamState,
    inputs: Sequence[Input],
    now: datetime,
    *,
    dataflow: str,
    state_number: int,
    held_back: Sequence[Skip] = (),
    operators: Sequence[Operator] = (),
) -> Plan[EpochSlice]:
    """Return the plan of the next epochs.

    Args:
        definition: the watermark's definition.
        state: the state after the newest entry.
        inputs: all inputs above the state's position, one per epoch.
        now: the clock, aware.
        dataflow: the dataflow's name.
        state_number: the number of the newest entry; 0 if there is none.
        held_back: the input that waits for a later run, with the reasons.
        operators: the stream's operators.
    """
    without = _without_input(definition, state, inputs, held_back, operators, now)
    # A decision lets waiting rows out only after the present input: otherwise the rows of that input would be late.
    all_inputs = [*inputs, *([without] if without else [])]
    planned = all_inputs[: definition.max_slices]
    slices = tuple(
        EpochSlice(
            state_number + place,
            {"epoch": state.epoch, "global": state.value},
            input_,
            counts=place == len(inputs) and not held_back and input_.files > 0,
        )
        for place, input_ in enumerate(planned, 1)
    )
    skips = [*_skips(definition, state), *held_back]
    leaves_at = closes_at(state, definition.close_after, operators)
    if leaves_at is not None and not slices:
        leave = f"wait, and leave at {leaves_at.isoformat()} if no input comes (close_after)"
        skips.append(Skip(pluralize(state.buffered, "row"), leave))
    if remaining := len(all_inputs) - len(planned):
        most = f"a run makes at most {definition.max_slices} (max_slices)"
        skips.append(Skip(pluralize(remaining, "epoch"), most))
    why = _why(state, slices, leaves=without is not None)
    return Plan(dataflow, "stream", state_number, now, why, slices, tuple(skips))


def _why(state: StreamState, slices: Sequence[EpochSlice], *, leaves: bool) -> str:
    """Return the purpose of the next epochs; ``leaves``: waiting rows leave after the input."""
    files = sum(slice_.input.files for slice_ in slices)
    why = (
        f"{pluralize(files, 'file')} of new input in {pluralize(len(slices), 'epoch')}"
        if files
        else "waiting rows leave without new input"
        if leaves
        else "the first epoch records the current position; later epochs read what comes after it "
        "(source.from: latest)"
        if slices
        else "the source has no new input"
    )
    if files and leaves:
        why += ", then waiting rows leave"
    if state.open_from is not None:
        why += f"; windows are open from {time_in_words(state.open_from)} on, and {pluralize(state.buffered, 'row')} buffered"
    return why


def _without_input(
    definition: StreamWatermark,
    state: StreamState,
    inputs: Sequence[Input],
    held_back: Sequence[Skip],
    operators: Sequence[Operator],
    now: datetime,
) -> NoInput | None:
    """Return the last epoch, which has no input; None if none is due, or another does its work."""
    if (flush := flush_epoch(state)) is not None:
        return flush
    if inputs:
        return None
    if (due := pending_epoch(state)) is not None:
        return due
    return None if held_back else closing_epoch(state, definition.close_after, operators, now)


def _skips(definition: StreamWatermark, state: StreamState) -> Sequence[Skip]:
    """Return the splits that the global watermark waits for, or goes on without."""
    splits = state.splits
    awaited = [name for name in definition.splits if name not in splits or splits[name].watermark is None]
    idle = [
        name
        for name, split in splits.items()
        if definition.idle == "exclude" and split.idle >= definition.idle_after
    ]
    skips = [Skip(f"split {name}", "awaited: it had no row yet") for name in awaited if name not in idle]
    skips += [
        Skip(f"split {name}", f"idle: no rows for {pluralize(splits[name].idle, 'epoch')}") for name in idle
    ]
    if state.buffered and (slowest := slowest_splits(definition, state)):
        name = slowest[0].name
        skips.append(
            Skip(
                f"split {name}" if name != ONLY_SPLIT else "newer rows",
                f"the slowest: rows from {time_in_words(state.value)} on wait for it",
            )
        )
    return skips
