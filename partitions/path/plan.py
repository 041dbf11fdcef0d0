"""Plan the path kind: cut new files into slices, with the state after each (docs/reference/files.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from partitions.errors import ConfigurationError
from partitions.path.closing import unclosable_warnings
from partitions.path.cold_start import cold_start, first_state
from partitions.path.definition import PathWatermark
from partitions.path.gone import with_gone_files
from partitions.path.layout import layout_warnings, naming_report
from partitions.path.position_of_state import listing_start
from partitions.path.settle import future_file_warnings, split_settled, split_settled_each
from partitions.path.skipped import skip_warnings
from partitions.path.slices import PathSlice, cut_pending_slices, cut_slices, watermark_of
from partitions.path.source import ListedFiles, SourceFile, in_pair_order
from partitions.path.state import PathState
from partitions.plan import Plan, Skip, pluralize
from partitions.request import DUE, Due, Forced, LateOnly, Request


@dataclass(frozen=True)
class PendingFiles:
    """Files that do not move the watermark, and an operator's decisions on the files above it.

    Attributes:
        late: files at or below the watermark that were never loaded.
        released: files that were released from quarantine.
        replace_until: when files at or below this state are loaded again, their old rows are deleted.
        ingested_paths: tracking set: the listed files that were loaded before.
        gone_paths: paths of loaded files that are gone at the source, whose rows the next slices delete.
        kept_paths: paths of loaded files that are gone at the source, and whose rows stay.
    """

    late: tuple[SourceFile, ...] = ()
    released: tuple[SourceFile, ...] = ()
    replace_until: PathState | None = None
    ingested_paths: frozenset[str] = frozenset()
    gone_paths: tuple[str, ...] = ()
    kept_paths: tuple[str, ...] = ()


_NONE_PENDING = PendingFiles()


def plan(
    definition: PathWatermark,
    state: PathState,
    listed: ListedFiles,
    now: datetime,
    *,
    dataflow: str,
    state_number: int,
    pending: PendingFiles = _NONE_PENDING,
    request: Request = DUE,
) -> Plan[PathSlice]:
    """Cut the listed files into slices; late and released files come first.

    Args:
        definition: the user's definition.
        state: the committed state.
        listed: the files above ``listing_start(definition, state, now)``.
        now: the clock of this run, aware.
        dataflow: the dataflow's name.
        state_number: the number of the entry that holds ``state``; 0 if there is none.
        pending: late and released files, which do not move the watermark.
        request: the work that the run is asked for.

    Raises:
        ConfigurationError: the request is for windows.
    """
    if isinstance(request, Due | Forced) and request.of is not None:
        raise ConfigurationError(f"dataflow {dataflow}: expected a watermark of type window, found path")
    fresh = tuple(file for file in listed.files if file.path not in pending.ingested_paths)
    files, skips = split_settled(definition, fresh, now)
    # A file that settles must not be late by then because its partition was closed.
    closing = None if skips else now
    # Late and released files have no order that others would have to wait for.
    late, young = split_settled_each(definition, pending.late, now)
    released, younger = split_settled_each(definition, pending.released, now)
    warnings = _warnings(definition, state, listed, files, pending, now)
    pending, skips = replace(pending, late=late, released=released), (*young, *younger, *skips)
    new_slices = _new_slices(definition, state, files, now, closing, pending)
    slices = (
        *_pending_slices(definition, state, pending),
        *with_gone_files(new_slices, pending.gone_paths, definition, watermark_of(definition, state)),
    )
    by_set = definition.tracking == "set"
    why = _why(state, files, slices, skips, pending, by_set)
    if isinstance(request, LateOnly):
        slices = tuple(slice_ for slice_ in slices if slice_.why == "late")
    return Plan(dataflow, "path", state_number, now, why, slices, skips, warnings)


def _warnings(
    definition: PathWatermark,
    state: PathState,
    listed: ListedFiles,
    files: Sequence[SourceFile],
    pending: PendingFiles,
    now: datetime,
) -> tuple[str, ...]:
    """Return the warnings about listed files; ``files`` are those that have settled."""
    fresh = tuple(file for file in listed.files if file.path not in pending.ingested_paths)
    is_partitioned = listing_start(definition, state, now).partitioned
    return (
        *future_file_warnings(definition, fresh, (*pending.late, *pending.released), now),
        *layout_warnings(definition, listed, partitioned=is_partitioned, initial=state.status == "initial"),
        *unclosable_warnings(definition, files),
        *skip_warnings(listed.skipped),
        *(() if definition.tracking == "set" else naming_report(definition, listed.files).findings),
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
        f"{pluralize(len(waiting), 'file')} {how}"
        for waiting, how in ((pending.late, "late"), (pending.released, "released"))
        if waiting
    ]
    if files:
        parts.append(f"{pluralize(len(files), 'file')} {_start(state, by_set)}")
    if pending.gone_paths:
        parts.append(f"rows of {pluralize(len(pending.gone_paths), 'missing file')} to delete")
    if parts:
        return f"{', '.join(parts)}, in {pluralize(len(slices), 'slice')}"
    settling_note = f"; {pluralize(len(skips), 'file')} still to settle" if skips else ""
    if state.status == "initial":
        return f"the source holds no file yet{settling_note}"
    return f"no file is {'new' if by_set else 'above the watermark'}{settling_note}"


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
    yield from cut_pending_slices(definition, unmoved, in_pair_order(pending.late), "late")
    yield from cut_pending_slices(definition, unmoved, in_pair_order(pending.released), "release")


def _new_slices(
    definition: PathWatermark,
    state: PathState,
    files: Sequence[SourceFile],
    now: datetime,
    closing: datetime | None,
    pending: PendingFiles,
) -> Iterator[PathSlice]:
    since = cold_start(definition, now) if state.status == "initial" else None
    before = first_state(definition, state, since)
    old = listing_start(definition, pending.replace_until, now) if pending.replace_until else None
    kept_paths = None if old is None else pending.kept_paths
    for slice_ in cut_slices(definition, before, files, closing):
        again = old is not None and any(not old.is_above(file.path) for file in slice_.files)
        yield replace(slice_, replaces=again, since=since, kept_paths=kept_paths)
