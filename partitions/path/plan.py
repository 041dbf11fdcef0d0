"""The planner of the path kind: which files are next, cut into slices, and the state after each (docs/reference/files.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from partitions.errors import ConfigurationError
from partitions.path.closing import never_closing
from partitions.path.cold_start import cold_start, first_state
from partitions.path.definition import PathWatermark
from partitions.path.layout import layout_warnings, naming
from partitions.path.position_of_state import position
from partitions.path.settle import of_the_future, settled, settled_each
from partitions.path.skipped import skip_warnings
from partitions.path.slices import PathSlice, cut, cut_pending, watermark_of
from partitions.path.source import ListedFiles, SourceFile, in_pair_order
from partitions.path.state import PathState
from partitions.plan import Plan, Skip, counted
from partitions.request import DUE, Due, Forced, LateOnly, Request


@dataclass(frozen=True)
class PendingFiles:
    """What waits beside the watermark, and what an operator has decided about the files above it.

    Attributes:
        late: files at or below the watermark that were never ingested.
        released: files that were released from quarantine.
        replace_until: rows of files at or below this state are deleted when the files are loaded again.
        known: set tracking: which of the listed files were ingested.
    """

    late: tuple[SourceFile, ...] = ()
    released: tuple[SourceFile, ...] = ()
    replace_until: PathState | None = None
    known: frozenset[str] = frozenset()


_NONE_PENDING = PendingFiles()


def plan(
    definition: PathWatermark,
    state: PathState,
    listed: ListedFiles,
    now: datetime,
    *,
    dataflow: str,
    number: int,
    pending: PendingFiles = _NONE_PENDING,
    request: Request = DUE,
) -> Plan[PathSlice]:
    """Cut what was found into slices; what waits beside the watermark goes first.

    Args:
        definition: what the user declared.
        state: what is committed.
        listed: the files above ``position(definition, state, now)``.
        now: the clock of this run, aware.
        dataflow: its name.
        number: of the entry that holds ``state``; 0 without one.
        pending: what waits beside the watermark.
        request: what the run is asked for.

    Raises:
        ConfigurationError: if windows are asked for.
    """
    if isinstance(request, Due | Forced) and request.of is not None:
        raise ConfigurationError(f"dataflow {dataflow}: expected a watermark of type window, found path")
    fresh = tuple(file for file in listed.files if file.path not in pending.known)
    files, skips = settled(definition, fresh, now)
    # A file that settles must not be late by then because its partition was closed.
    closing = None if skips else now
    # What lies beside the watermark has no order that others would have to wait for.
    late, young = settled_each(definition, pending.late, now)
    released, younger = settled_each(definition, pending.released, now)
    warnings = _warnings(definition, state, listed, files, pending, now)
    pending, skips = replace(pending, late=late, released=released), (*young, *younger, *skips)
    slices = (
        *_pending_slices(definition, state, pending),
        *_new_slices(definition, state, files, now, closing, pending.replace_until),
    )
    by_set = definition.tracking == "set"
    why = _why(state, files, slices, skips, pending, by_set)
    if isinstance(request, LateOnly):
        slices = tuple(slice_ for slice_ in slices if slice_.why == "late")
    return Plan(dataflow, "path", number, now, why, slices, skips, warnings)


def _warnings(
    definition: PathWatermark,
    state: PathState,
    listed: ListedFiles,
    files: Sequence[SourceFile],
    pending: PendingFiles,
    now: datetime,
) -> tuple[str, ...]:
    """Return what people should know of the files that were found; ``files`` are those that have settled."""
    fresh = tuple(file for file in listed.files if file.path not in pending.known)
    is_partitioned = position(definition, state, now).partitioned
    return (
        *of_the_future(definition, fresh, (*pending.late, *pending.released), now),
        *layout_warnings(definition, listed, partitioned=is_partitioned, initial=state.status == "initial"),
        *never_closing(definition, files),
        *skip_warnings(listed.skipped),
        *(() if definition.tracking == "set" else naming(definition, listed.files).findings),
    )


def _why(
    state: PathState,
    files: Sequence[SourceFile],
    slices: Sequence[PathSlice],
    skips: Sequence[Skip],
    pending: PendingFiles,
    by_set: bool,
) -> str:
    parts = [
        f"{counted(len(waiting), 'file')} {how}"
        for waiting, how in ((pending.late, "late"), (pending.released, "released"))
        if waiting
    ]
    if files:
        parts.append(f"{counted(len(files), 'file')} {_start(state, by_set)}")
    if parts:
        return f"{', '.join(parts)}, in {counted(len(slices), 'slice')}"
    held = f"; {counted(len(skips), 'file')} still to settle" if skips else ""
    if state.status == "initial":
        return f"the source holds no file yet{held}"
    return f"no file is {'new' if by_set else 'above the watermark'}{held}"


def _start(state: PathState, by_set: bool) -> str:
    if state.status == "initial":
        return "to start with"
    if by_set:
        return "not ingested yet"
    return f"above {state.path}" if state.last else "above the open partitions"


def _pending_slices(
    definition: PathWatermark, state: PathState, pending: PendingFiles
) -> Iterator[PathSlice]:
    unmoved = watermark_of(definition, state)
    yield from cut_pending(definition, unmoved, in_pair_order(pending.late), "late")
    yield from cut_pending(definition, unmoved, in_pair_order(pending.released), "release")


def _new_slices(
    definition: PathWatermark,
    state: PathState,
    files: Sequence[SourceFile],
    now: datetime,
    closing: datetime | None,
    replace_until: PathState | None,
) -> Iterator[PathSlice]:
    since = cold_start(definition, now) if state.status == "initial" else None
    before = first_state(definition, state, since)
    old = position(definition, replace_until, now) if replace_until else None
    for slice_ in cut(definition, before, files, closing):
        again = old is not None and any(not old.above(file.path) for file in slice_.files)
        yield replace(slice_, replaces=again, since=since)
