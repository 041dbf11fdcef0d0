"""Slices of the path kind: some files, one commit, and the state after it (docs/reference/files.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from partitions.errors import BadPart
from partitions.path.closing import closed
from partitions.path.definition import Checkpoint, PathWatermark
from partitions.path.order import pair_order
from partitions.path.quarantined_files import Quarantined
from partitions.path.source import SourceFile, in_pair_order
from partitions.path.state import PathState
from partitions.plan import Size
from partitions.sentinels import Watermark

SliceWhy = Literal["run", "replay", "late", "release"]
"""Files above the watermark; ones below it that are read again; late ones; ones that an operator has released from quarantine."""


@dataclass(frozen=True)
class PathSlice:
    """The next files, one commit.

    Attributes:
        files: in pair order.
        before: the state below it.
        after: the state after it; the same for files that are late or released, or read again.
        why: what brought the files here.
        quarantined: files that it passes over, with the reasons.
        replaces: whether the table's rows of the same files are deleted.
        since: where a filtered cold start began; None for any other slice.
    """

    files: tuple[SourceFile, ...]
    before: Watermark
    after: Watermark
    definition: PathWatermark
    closing: datetime | None = None
    why: SliceWhy = "run"
    quarantined: tuple[Quarantined, ...] = ()
    replaces: bool = False
    since: Watermark | None = None

    @property
    def all_files(self) -> tuple[SourceFile, ...]:
        """Those that are passed over, too; in pair order."""
        return in_pair_order([*self.files, *(held.file for held in self.quarantined)])

    @property
    def lower(self) -> Watermark | None:
        """The state before: files are strictly above it. None on a first run, and beside the watermark."""
        unbounded = self.why != "run" or all(value is None for value in self.before.values())
        return None if unbounded else self.before

    @property
    def upper(self) -> Watermark:
        """The last file."""
        return {"path": self.all_files[-1].path}

    @property
    def size(self) -> Size:
        """Files and bytes."""
        return Size(len(self.files), sum(file.size for file in self.files))

    @property
    def keys(self) -> Collection[str]:
        """The paths of its files."""
        return [file.path for file in self.files]

    @property
    def failures(self) -> Mapping[str, str]:
        """None: files go to quarantine, and do not fail."""
        return {}

    def contains(self, bad: BadPart) -> bool:
        """Whether the file is of this slice."""
        return any(file.path == bad.part for file in self.files)

    def up_to(self, bad: BadPart) -> PathSlice | None:
        """The files before the bad one, in order."""
        count = next((index for index, file in enumerate(self.files) if file.path == bad.part), 0)
        return self.take(count) if count else None

    def advance(self, _before: Watermark) -> Watermark:
        """The state after it; a plan's slices follow each other, so each knows its own."""
        return self.after

    def describe(self) -> list[dict[str, Any]]:
        """The files in order, and why if they do not lie above the watermark."""
        beside = {} if self.why == "run" else {"reason": self.why}
        return [{"files": [file.path for file in self.files], **beside}]

    def take(self, count: int) -> PathSlice:
        """The slice of only the first ``count`` files and of what is passed over before the last of them; it closes nothing."""
        files = self.files[:count]
        last = pair_order(files[-1].path)
        aside = tuple(held for held in self.quarantined if pair_order(held.file.path) < last)
        return self._of(self.before, files, None, aside)

    def halve(self) -> tuple[PathSlice, ...]:
        """Two slices of about as many files each."""
        if len(self.files) < 2 or self.quarantined:
            return (self,)
        first = self.take(len(self.files) // 2)
        return first, self._of(first.after, self.files[len(first.files) :], self.closing)

    def without(self, path: str, reason: str) -> PathSlice:
        """The same slice, which passes over one of its files."""
        bad = next(file for file in self.files if file.path == path)
        kept = tuple(file for file in self.files if file.path != path)
        aside = sorted(
            [*self.quarantined, Quarantined(bad, reason)], key=lambda held: pair_order(held.file.path)
        )
        return replace(self, files=kept, quarantined=tuple(aside))

    def leaving(self, paths: Collection[str]) -> PathSlice | None:
        """The same slice beside the watermark, without files that wait; None if these are all of it."""
        files = tuple(file for file in self.files if file.path not in paths)
        return replace(self, files=files) if files or self.quarantined else None

    def _of(
        self,
        before: Watermark,
        files: tuple[SourceFile, ...],
        closing: datetime | None,
        aside: tuple[Quarantined, ...] = (),
    ) -> PathSlice:
        if self.why != "run":
            return replace(self, files=files, quarantined=aside)
        made = slice_of(self.definition, before, (*files, *(held.file for held in aside)), closing)
        return replace(made, files=files, quarantined=aside, replaces=self.replaces, since=self.since)


def cut(
    definition: PathWatermark,
    before: Watermark,
    files: Sequence[SourceFile],
    closing: datetime | None,
) -> Iterator[PathSlice]:
    """Cut files above a state, in pair order, into slices within the checkpoint's limits.

    Args:
        definition: what the user declared.
        before: the state below the first file.
        files: all of them.
        closing: the clock, if the last slice may close partitions.
    """
    for portion in _portions(definition.checkpoint, files):
        last = portion[-1] is files[-1]
        slice_ = slice_of(definition, before, portion, closing if last else None)
        yield slice_
        before = slice_.after


def cut_pending(
    definition: PathWatermark,
    state: Watermark,
    files: Sequence[SourceFile],
    why: SliceWhy,
    *,
    replaces: bool = False,
) -> Iterator[PathSlice]:
    """Cut files that do not move the watermark into slices within the checkpoint's limits."""
    for portion in _portions(definition.checkpoint, files):
        yield PathSlice(portion, state, state, definition, why=why, replaces=replaces)


def slice_of(
    definition: PathWatermark, before: Watermark, files: tuple[SourceFile, ...], closing: datetime | None
) -> PathSlice:
    """The slice of these files above a state."""
    state = PathState.of(before).processed(file.path for file in files)
    after = watermark_of(definition, state)
    if closing and definition.scope == "partition":
        after = closed(definition, state, closing)
    return PathSlice(files, before, after, definition, closing)


def watermark_of(definition: PathWatermark, state: PathState) -> Watermark:
    """The watermark of a state, in the form of the definition's scope."""
    return state.global_watermark() if definition.scope == "global" else state.partition_watermark()


def _portions(limits: Checkpoint, files: Sequence[SourceFile]) -> Iterator[tuple[SourceFile, ...]]:
    """As many files at a time as make a slice, in order."""
    start = 0
    while start < len(files):
        count = _fits(limits, files, start)
        yield tuple(files[start : start + count])
        start += count


def _fits(limits: Checkpoint, files: Sequence[SourceFile], start: int) -> int:
    """How many files from ``start`` make a slice; one at least, however large it is."""
    size, count = 0, 0
    for file in files[start : start + limits.interval_files]:
        size += file.size
        if count and size > limits.interval_bytes:
            break
        count += 1
    return count
