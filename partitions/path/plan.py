"""The planner of the path kind: which files are next, cut into slices, and the state after each (spec 01, Advancing)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from partitions.path.definition import Checkpoint, PathWatermark
from partitions.path.naming import NamingReport, examine
from partitions.path.order import FileKey, pair_order
from partitions.path.position import AbovePartitions, AbovePath, Position, Start
from partitions.path.state import PathState
from partitions.path.template import TimeTemplate
from partitions.plan import Plan, Skip, counted
from partitions.sentinels import Watermark

ROOT_FILES_IGNORED = "root_level_files_ignored"
"""Warning: there are files at the root, and the watermark has a partition, so they are not found (spec 01, Scope)."""

_SAMPLE = 1000


@dataclass(frozen=True)
class SourceFile:
    """One file as it was listed.

    Attributes:
        path: relative to the source's root.
        size: bytes.
        version: what changes when the file does: the etag, or the modification time in nanoseconds.
        modified: when it was last modified, epoch milliseconds by the store's clock.
    """

    path: str
    size: int
    version: str
    modified: int


@dataclass(frozen=True)
class Found:
    """What a listing found above a position.

    Attributes:
        files: in pair order, each once.
        root_files: whether files were seen at the root.
        calls: LIST calls, or folders opened on a local folder.
    """

    files: tuple[SourceFile, ...]
    root_files: bool = False
    calls: int = 0


@dataclass(frozen=True)
class PathSlice:
    """The next files, one commit.

    Attributes:
        files: in pair order.
        after: the state after it.
        before: the state below it.
    """

    files: tuple[SourceFile, ...]
    before: Watermark
    after: Watermark
    definition: PathWatermark
    closing: datetime | None = None

    @property
    def lower(self) -> Watermark | None:
        """The state before: files are strictly above it."""
        return None if all(value is None for value in self.before.values()) else self.before

    @property
    def upper(self) -> Watermark:
        """The last file."""
        return {"path": self.files[-1].path}

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def describe(self) -> dict[str, Any]:
        """The files in order."""
        return {"files": [file.path for file in self.files]}

    def take(self, count: int) -> PathSlice:
        """The slice of only the first ``count`` files, which closes nothing."""
        return _slice(self.definition, self.before, self.files[:count], None)

    def halve(self) -> tuple[PathSlice, ...]:
        """Two slices of about as many files each."""
        if len(self.files) < 2:
            return (self,)
        first = self.take(len(self.files) // 2)
        return first, _slice(self.definition, first.after, self.files[len(first.files) :], self.closing)


def position(definition: PathWatermark, state: PathState, now: datetime) -> Position:
    """Where a listing starts. The partition filter narrows a cold start only: later it would lose a gap."""
    leaf = definition.layout == "leaf"
    if definition.scope == "partition" and (state.names or state.closed_before):
        leaf = leaf or all(_reaches_leaves(definition, partition) for partition in state.names)
        return AbovePartitions(state.names, definition.template, state.closed_before, leaf)
    if definition.scope == "global" and state.last is not None:
        return AbovePath(state.last, leaf or _reaches_leaves(definition, state.last.partition))
    return Start.within(_cold_prefixes(definition, now))


def plan(
    definition: PathWatermark, state: PathState, found: Found, now: datetime, *, dataflow: str, number: int
) -> Plan[PathSlice]:
    """Cut what was found into slices.

    Args:
        definition: what the user declared.
        state: what is committed.
        found: the files above ``position(definition, state, now)``.
        now: the clock of this run, aware.
        dataflow: its name.
        number: of the entry that holds ``state``; 0 without one.
    """
    files, skips = _settled(definition, found.files, now)
    # A file that settles must not be late by then because its partition was closed.
    closing = None if skips else now
    warnings = []
    if definition.scope == "partition":
        files, skips = _without_root(files, skips)
    if found.root_files and (definition.scope == "partition" or position(definition, state, now).partitioned):
        warnings.append(ROOT_FILES_IGNORED)
    if definition.layout == "leaf" and state.status == "initial" and (breach := _leaf_breach(found.files)):
        warnings.append(
            f"layout leaf: {breach} holds files and folders; its sub-folders may be found only by the late-file sweep"
        )
    unparsed = _unparsed(definition, files)
    if unparsed:
        warnings.append(
            f"{len(unparsed)} partitions do not fit the time template and never close, such as {unparsed[0]!r}"
        )
    slices = tuple(_cut(definition, state, files, now, closing))
    why = _why(state, files, slices, skips)
    return Plan(dataflow, "path", number, now, why, slices, skips, (*warnings, *naming(found.files).findings))


def naming(files: Sequence[SourceFile]) -> NamingReport:
    """The report on a sample of what was found: the first, the last and evenly between."""
    step = max(1, len(files) // _SAMPLE)
    return examine([file.path for file in files[::step]])


def _why(
    state: PathState, files: Sequence[SourceFile], slices: Sequence[PathSlice], skips: Sequence[Skip]
) -> str:
    if not files:
        held = f"; {len(skips)} wait to settle" if skips else ""
        return (
            f"no file is above the watermark{held}"
            if state.status != "initial"
            else f"the source holds no file yet{held}"
        )
    start = (
        "to start with"
        if state.status == "initial"
        else f"above {state.path}"
        if state.last
        else "above the open partitions"
    )
    return f"{counted(len(files), 'file')} {start}, in {counted(len(slices), 'slice')}"


def _cold_prefixes(definition: PathWatermark, now: datetime) -> list[str]:
    chosen = definition.partition_filter
    return TimeTemplate(chosen.prefix_template).prefixes(chosen.lookback, now) if chosen else []


def _reaches_leaves(definition: PathWatermark, partition: str) -> bool:
    """A filter whose template names every folder down to the file says that no folder holds both."""
    chosen = definition.partition_filter
    return bool(chosen and partition and chosen.prefix_template.count("/") == partition.count("/"))


def _settled(
    definition: PathWatermark, files: tuple[SourceFile, ...], now: datetime
) -> tuple[tuple[SourceFile, ...], tuple[Skip, ...]]:
    """Leave young files alone, and every file after one in order: else the watermark would pass it."""
    if not definition.settle:
        return files, ()
    limit = int((now - definition.settle).timestamp() * 1000)
    kept: list[SourceFile] = []
    skips: list[Skip] = []
    groups = (
        [files]
        if definition.scope == "global"
        else [tuple(group) for _, group in groupby(files, lambda file: FileKey.of(file.path).partition)]
    )
    for group in groups:
        young = next((index for index, file in enumerate(group) if file.modified > limit), len(group))
        kept.extend(group[:young])
        skips.extend(
            Skip(
                file.path,
                f"younger than settle ({definition.settle})"
                if index == 0
                else "after a file that is still settling",
            )
            for index, file in enumerate(group[young:])
        )
    return tuple(kept), tuple(skips)


def _without_root(
    files: tuple[SourceFile, ...], skips: tuple[Skip, ...]
) -> tuple[tuple[SourceFile, ...], tuple[Skip, ...]]:
    root = tuple(
        Skip(file.path, "scope partition: a file at the root has no partition to be remembered by")
        for file in files
        if "/" not in file.path
    )
    return tuple(file for file in files if "/" in file.path), (*skips, *root)


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


def _cut(
    definition: PathWatermark,
    state: PathState,
    files: Sequence[SourceFile],
    now: datetime,
    closing: datetime | None,
) -> Iterator[PathSlice]:
    before = _watermark(definition, state)
    if definition.scope == "partition" and state.status == "initial" and definition.partition_filter:
        template = TimeTemplate(definition.partition_filter.prefix_template)
        before = {
            "paths": {},
            "closed_before": template.step(template.floor(now), -definition.partition_filter.lookback),
        }
    start = 0
    while start < len(files):
        count = _fits(definition.checkpoint, files, start)
        last = start + count == len(files)
        piece = _slice(definition, before, tuple(files[start : start + count]), closing if last else None)
        yield piece
        before, start = piece.after, start + count


def _fits(limits: Checkpoint, files: Sequence[SourceFile], start: int) -> int:
    """How many files from ``start`` make a slice; one at least, however large it is."""
    size, count = 0, 0
    for file in files[start : start + limits.interval_files]:
        size += file.size
        if count and size > limits.interval_bytes:
            break
        count += 1
    return count


def _slice(
    definition: PathWatermark, before: Watermark, files: tuple[SourceFile, ...], closing: datetime | None
) -> PathSlice:
    state = PathState.of(before).processed(file.path for file in files)
    after = _watermark(definition, state)
    if closing and definition.scope == "partition":
        after = _closed(definition, state, closing)
    return PathSlice(files, before, after, definition, closing)


def _watermark(definition: PathWatermark, state: PathState) -> Watermark:
    return state.global_watermark() if definition.scope == "global" else state.partition_watermark()


def _closed(definition: PathWatermark, state: PathState, now: datetime) -> Watermark:
    """Close what ended ``close_after`` ago, never the newest; only with the last slice, when no older file is left over."""
    template, closed = definition.template, state.closed_before
    if template and definition.close_after is not None:
        times = [start for name in state.names if (start := template.time(name))]
        if times:
            limit = min(template.floor(now - definition.close_after), max(times))
            closed = limit if closed is None else max(closed, limit)
    if template and closed:
        bound = closed
        names = {
            name: last
            for name, last in state.names.items()
            if not ((start := template.time(name)) and start < bound)
        }
        return {"paths": names, "closed_before": closed}
    return state.partition_watermark()


def in_pair_order(files: Sequence[SourceFile]) -> tuple[SourceFile, ...]:
    """Sort files as the watermark orders them, each path once."""
    unique = {file.path: file for file in files}
    return tuple(unique[path] for path in sorted(unique, key=pair_order))
