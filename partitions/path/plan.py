"""The planner of the path kind: which files are next, cut into slices, and the state after each (docs/guide-files.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby

from partitions.errors import ConfigurationError
from partitions.instants import milliseconds
from partitions.path.definition import PathWatermark
from partitions.path.naming import NamingReport, examine
from partitions.path.order import FileKey
from partitions.path.position import AbovePartitions, AbovePath, AtOrBelow, FromBeginning, Position
from partitions.path.slices import PathSlice, cut, cut_pending, watermark_of
from partitions.path.source import ListedFiles, SourceFile, in_pair_order
from partitions.path.state import PathState
from partitions.path.template import TimeTemplate
from partitions.plan import Plan, Skip, counted, lasting
from partitions.request import DUE, LateOnly, Request
from partitions.sentinels import Watermark

ROOT_FILES_IGNORED = "root_level_files_ignored"
"""Warning: there are files at the root, and the watermark has a partition, so they are not found (docs/guide-files.md)."""

_SAMPLE = 1000
_CLOCKS_DIFFER = timedelta(minutes=1)
"""How far a file's time may lie in the future without a word: by another clock, or because it came while a listing went on."""


@dataclass(frozen=True)
class PendingFiles:
    """What waits beside the watermark, and what an operator has decided about the files above it.

    Attributes:
        late: files at or below the watermark that were never ingested.
        released: files that somebody took out of quarantine.
        replace_until: rows of files at or below this state make room when the files are loaded again.
        known: set tracking: which of the listed files were ingested.
    """

    late: tuple[SourceFile, ...] = ()
    released: tuple[SourceFile, ...] = ()
    replace_until: PathState | None = None
    known: frozenset[str] = frozenset()


_NONE_PENDING = PendingFiles()


def position(
    definition: PathWatermark, state: PathState, now: datetime, since: PathState | None = None
) -> Position:
    """Where a listing starts. The partition filter narrows a cold start only: later it would lose a gap.

    Args:
        definition: what the user declared.
        state: what is committed.
        now: the clock of this run, aware.
        since: where a filtered cold start began (:func:`cold_start`).
    """
    if definition.tracking == "set" and state.status != "initial":
        return _above(definition, since) if since else FromBeginning()
    if state.status == "initial":
        return FromBeginning.within(_cold_prefixes(definition, now))
    return _above(definition, state)


def at_or_below(definition: PathWatermark, state: PathState, since: PathState | None) -> Position:
    """Where the late-file sweep looks: at everything from the cold start's beginning up to the watermark."""
    return AtOrBelow(_above(definition, state), _above(definition, since) if since else FromBeginning())


def upper_bound(definition: PathWatermark, state: PathState, paths: Iterable[str]) -> Watermark:
    """Return a watermark at or above all that a state covers, and at or above these paths."""
    above = _above(definition, state).above
    return watermark_of(definition, state.processed(path for path in paths if above(path)))


def adopted(definition: PathWatermark, paths: Iterable[str]) -> Watermark:
    """The watermark that loaded files tell, without any other record of them.

    If a filter has narrowed the cold start, all before the oldest partition that was loaded stays closed.
    """
    state = PathState().processed(paths)
    if definition.scope == "partition" and definition.partition_filter and definition.template:
        times = [start for name in state.names if (start := definition.template.time(name))]
        state = replace(state, closed_before=min(times, default=None))
    return watermark_of(definition, state)


def _above(definition: PathWatermark, state: PathState) -> Position:
    leaf = definition.layout == "leaf"
    if definition.scope == "partition":
        leaf = leaf or all(_reaches_leaves(definition, partition) for partition in state.names if partition)
        return AbovePartitions(state.names, definition.template, state.closed_before, leaf)
    if state.last is None:
        return FromBeginning()
    return AbovePath(state.last, leaf or _reaches_leaves(definition, state.last.partition))


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
    if not isinstance(request, LateOnly) and request.of is not None:
        raise ConfigurationError(f"dataflow {dataflow}: expected a watermark of type window, found path")
    fresh = tuple(file for file in listed.files if file.path not in pending.known)
    files, skips = _settled(definition, fresh, now)
    # A file that settles must not be late by then because its partition was closed.
    closing = None if skips else now
    # What lies beside the watermark has no order that others would have to wait for.
    late, young = _settled_each(definition, pending.late, now)
    released, younger = _settled_each(definition, pending.released, now)
    warnings = list(_of_the_future(definition, fresh, (*pending.late, *pending.released), now))
    pending, skips = replace(pending, late=late, released=released), (*young, *younger, *skips)
    if listed.root_files and position(definition, state, now).partitioned:
        warnings.append(ROOT_FILES_IGNORED)
    if definition.layout == "leaf" and state.status == "initial" and (breach := _leaf_breach(listed.files)):
        warnings.append(
            f"layout leaf: {breach} holds files and folders; its sub-folders may be found only by the late-file sweep"
        )
    unparsed = _unparsed(definition, files)
    if unparsed:
        named = repr(unparsed[0]) if unparsed[0] else "the root"
        single = len(unparsed) == 1
        warnings.append(
            f"{counted(len(unparsed), 'partition')} {'does' if single else 'do'} not fit the time template and never"
            f" {'closes' if single else 'close'}{':' if single else ', such as'} {named}"
        )
    slices = (
        *_pending_slices(definition, state, pending),
        *_new_slices(definition, state, files, now, closing, pending.replace_until),
    )
    by_set = definition.tracking == "set"
    why = _why(state, files, slices, skips, pending, by_set)
    if not by_set:
        warnings.extend(naming(definition, listed.files).findings)
    if isinstance(request, LateOnly):
        slices = tuple(slice_ for slice_ in slices if slice_.why == "late")
    return Plan(dataflow, "path", number, now, why, slices, skips, tuple(warnings))


def naming(definition: PathWatermark, files: Sequence[SourceFile]) -> NamingReport:
    """The report on a sample of what was found: the first, the last and evenly between."""
    step = max(1, len(files) // _SAMPLE)
    return examine([file.path for file in files[::step]], by_partition=definition.scope == "partition")


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
    held = f"; {len(skips)} wait to settle" if skips else ""
    if state.status == "initial":
        return f"the source holds no file yet{held}"
    return f"no file is {'new' if by_set else 'above the watermark'}{held}"


def _start(state: PathState, by_set: bool) -> str:
    if state.status == "initial":
        return "to start with"
    if by_set:
        return "not ingested yet"
    return f"above {state.path}" if state.last else "above the open partitions"


def _cold_prefixes(definition: PathWatermark, now: datetime) -> list[str]:
    chosen = definition.partition_filter
    return TimeTemplate(chosen.prefix_template).prefixes(chosen.lookback, now) if chosen else []


def _reaches_leaves(definition: PathWatermark, partition: str) -> bool:
    """A filter whose template names every folder down to the file says that no folder holds both."""
    chosen = definition.partition_filter
    return bool(chosen and partition and chosen.prefix_template.count("/") == partition.count("/"))


def settles(definition: PathWatermark, file: SourceFile, now: datetime) -> bool:
    """Whether a file is so young that somebody may still be writing it."""
    if not definition.settle:
        return False
    return file.modified > int((now - definition.settle).timestamp() * 1000)


def ready(definition: PathWatermark, files: Sequence[SourceFile], now: datetime) -> tuple[SourceFile, ...]:
    """Those of some new files, in pair order, that a run would load now."""
    return _settled(definition, tuple(files), now)[0]


def _settled_each(
    definition: PathWatermark, files: Sequence[SourceFile], now: datetime
) -> tuple[tuple[SourceFile, ...], tuple[Skip, ...]]:
    """Leave young files alone."""
    young = tuple(
        Skip(file.path, f"younger than settle ({definition.settle})")
        for file in files
        if settles(definition, file, now)
    )
    return tuple(file for file in files if not settles(definition, file, now)), young


def _settled(
    definition: PathWatermark, files: tuple[SourceFile, ...], now: datetime
) -> tuple[tuple[SourceFile, ...], tuple[Skip, ...]]:
    """Leave young files alone, and every file after one in order: else the watermark would pass it."""
    if not definition.settle or definition.tracking == "set":
        return _settled_each(definition, files, now)
    kept: list[SourceFile] = []
    skips: list[Skip] = []
    groups = (
        [files]
        if definition.scope == "global"
        else [tuple(group) for _, group in groupby(files, lambda file: FileKey.of(file.path).partition)]
    )
    for group in groups:
        first = next(
            (index for index, file in enumerate(group) if settles(definition, file, now)), len(group)
        )
        kept.extend(group[:first])
        skips.extend(
            Skip(
                file.path,
                f"younger than settle ({definition.settle})"
                if index == 0
                else "after a file that is still settling",
            )
            for index, file in enumerate(group[first:])
        )
    return tuple(kept), tuple(skips)


def _of_the_future(
    definition: PathWatermark, fresh: Sequence[SourceFile], pending: Sequence[SourceFile], now: datetime
) -> Iterator[str]:
    """A warning that names the first file whose time lies in the future: it settles then, and nobody would know why nothing is loaded."""
    if not definition.settle:
        return
    latest = milliseconds(now + _CLOCKS_DIFFER)
    files = [file for file in (*fresh, *pending) if file.modified > latest]
    if not files:
        return
    first, others = files[0], len(files) - 1
    after = ""
    if first in fresh and definition.tracking == "watermark":
        after = (
            f", and all new files after it{' in its partition' if definition.scope == 'partition' else ''}"
        )
    like = f" ({counted(others, 'more file')} {'is' if others == 1 else 'are'} like it)" if others else ""
    yield (
        f"{first.path}: its modification time lies {lasting((first.modified - milliseconds(now)) / 1000)} in the future{like}, so `settle` holds"
        f" it back until then{after}. Set its time (`touch`) or copy it again, and correct the clock of what writes there"
    )


def _leaf_breach(files: Sequence[SourceFile]) -> str | None:
    holders = {FileKey.of(file.path).partition for file in files}
    for partition in sorted(holders):
        parent = partition
        while parent:
            parent = FileKey.of(parent).partition
            if parent in holders:
                return parent or "the root"
    return None


def _unparsed(definition: PathWatermark, files: Sequence[SourceFile]) -> list[str]:
    template = definition.template
    if definition.scope == "global" or template is None:
        return []
    partitions = dict.fromkeys(FileKey.of(file.path).partition for file in files)
    return [partition for partition in partitions if template.time(partition) is None]


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
    before = watermark_of(definition, state)
    since = cold_start(definition, now) if state.status == "initial" else None
    if definition.scope == "partition" and since:
        before = since
    old = position(definition, replace_until, now) if replace_until else None
    for slice_ in cut(definition, before, files, closing):
        again = old is not None and any(not old.above(file.path) for file in slice_.files)
        yield replace(slice_, replaces=again, since=since)


def cold_start(definition: PathWatermark, now: datetime) -> Watermark | None:
    """The state below which a filtered cold start looks at nothing; None without a filter."""
    chosen = definition.partition_filter
    if chosen is None:
        return None
    template = TimeTemplate(chosen.prefix_template)
    if definition.scope == "partition":
        return {"paths": {}, "closed_before": template.step(template.floor(now), -chosen.lookback)}
    return {"path": f"{min(template.prefixes(chosen.lookback, now))}/"}
