"""Slices of the path kind: some files, one commit, and the state after it (docs/reference/files.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from partitions.errors import BadPart
from partitions.path.closing import close_old_partitions
from partitions.path.copies import CopiedFile
from partitions.path.definition import Checkpoint, PathWatermark
from partitions.path.order import pair_order
from partitions.path.quarantined_files import QuarantinedFile
from partitions.path.source import SourceFile, in_pair_order
from partitions.path.state import PathState
from partitions.plan import Size
from partitions.sentinels import Watermark

SliceWhy = Literal["run", "replay", "late", "release"]
"""New files above the watermark; replayed ones below it; late ones; ones released from quarantine."""


@dataclass(frozen=True)
class PathSlice:
    """The files of one commit.

    Attributes:
        files: the files in pair order.
        before: the state that it starts from.
        after: the state after it; equal to ``before`` for late and released files, and for a replay in place.
        closing: the clock, if it may close partitions.
        why: the reason for loading the files.
        quarantined: files that it puts into quarantine, with the reasons.
        replaces: whether the table's rows of the same files are deleted.
        since: where a filtered cold start began; None for any other run.
        copies: files that are not loaded, since others have their content.
        checksums: computed checksums of its files and copies, by path.
        gone_paths: paths of loaded files that are gone at the source, in pair order: the commit deletes their rows.
        kept_paths: paths of gone files whose rows stay while later slices read all other later files again; None:
        the rows of every later file stay.
        freed_copies: files that were skipped as copies of files whose rows the commit replaces by other
        content, or deletes. They are loaded later, like late files.
    """

    files: tuple[SourceFile, ...]
    before: Watermark
    after: Watermark
    definition: PathWatermark
    closing: datetime | None = None
    why: SliceWhy = "run"
    quarantined: tuple[QuarantinedFile, ...] = ()
    replaces: bool = False
    since: Watermark | None = None
    copies: tuple[CopiedFile, ...] = ()
    checksums: Mapping[str, str] = field(default_factory=dict)
    gone_paths: tuple[str, ...] = ()
    freed_copies: tuple[SourceFile, ...] = ()
    kept_paths: tuple[str, ...] | None = None

    @property
    def all_files(self) -> tuple[SourceFile, ...]:
        """Its files, the quarantined ones and the copies, in pair order."""
        return in_pair_order([*self.files, *_files_of(self.quarantined, self.copies)])

    @property
    def lower(self) -> Watermark | None:
        """The state before, exclusive; None on a first run, and for files that do not move the watermark."""
        unbounded = self.why != "run" or all(value is None for value in self.before.values())
        return None if unbounded else self.before

    @property
    def upper(self) -> Watermark:
        """The path of the last file; without files, of the last gone file whose rows are deleted."""
        return {"path": self.all_files[-1].path if self.all_files else self.gone_paths[-1]}

    @property
    def size(self) -> Size:
        """The number of files and their bytes."""
        return Size(len(self.files), sum(file.size for file in self.files))

    @property
    def keys(self) -> Collection[str]:
        """The paths of its files, and of those whose rows it only deletes."""
        return [*(file.path for file in self.files), *self.gone_paths]

    @property
    def failures(self) -> Mapping[str, str]:
        """Always empty: bad files go to quarantine instead."""
        return {}

    def contains(self, bad: BadPart) -> bool:
        """Return whether the bad file belongs to this slice."""
        return any(file.path == bad.part for file in self.files)

    def up_to(self, bad: BadPart) -> PathSlice | None:
        """Return the slice of the files before the bad one, in order; None if there are none."""
        count = next((index for index, file in enumerate(self.files) if file.path == bad.part), 0)
        return self.take(count) if count else None

    def advance(self, _before: Watermark) -> Watermark:
        """Return the state after it, which it knows, since a plan's slices follow each other."""
        return self.after

    def describe(self) -> list[dict[str, Any]]:
        """Return its files in order, with the reason if they do not move the watermark."""
        reason = {} if self.why == "run" else {"reason": self.why}
        gone_paths = {"gone": list(self.gone_paths)} if self.gone_paths else {}
        return [{"files": [file.path for file in self.files], **reason, **gone_paths}]

    def take(self, count: int) -> PathSlice:
        """Return the slice of the first ``count`` files.

        It keeps the quarantined files, copies and gone files before the last of them, and closes no partition.
        """
        files = self.files[:count]
        last = pair_order(files[-1].path)
        quarantined = tuple(entry for entry in self.quarantined if pair_order(entry.file.path) < last)
        copies = tuple(copy for copy in self.copies if pair_order(copy.file.path) < last)
        gone_paths = tuple(path for path in self.gone_paths if pair_order(path) < last)
        return self._of(self.before, files, None, quarantined, copies, gone_paths)

    def halve(self) -> tuple[PathSlice, ...]:
        """Return two slices of about as many files each."""
        if len(self.files) < 2 or self.quarantined or self.copies:
            return (self,)
        first = self.take(len(self.files) // 2)
        rest = self.files[len(first.files) :]
        return first, self._of(
            first.after, rest, self.closing, gone_paths=self.gone_paths[len(first.gone_paths) :]
        )

    def without(self, path: str, reason: str) -> PathSlice:
        """Return the same slice with one of its files in quarantine."""
        bad = next(file for file in self.files if file.path == path)
        remaining = tuple(file for file in self.files if file.path != path)
        quarantined = sorted(
            [*self.quarantined, QuarantinedFile(bad, reason)], key=lambda entry: pair_order(entry.file.path)
        )
        return replace(self, files=remaining, quarantined=tuple(quarantined))

    def with_copies(
        self,
        copies: Sequence[CopiedFile],
        checksums: Mapping[str, str],
        freed_copies: Sequence[SourceFile] = (),
    ) -> PathSlice:
        """Return the same slice, in which exactly these of its files and copies are copies.

        Args:
            copies: the copies.
            checksums: computed checksums by path.
            freed_copies: files outside of the slice that are copies no longer.
        """
        paths = {copy.file.path for copy in copies}
        files = in_pair_order([*self.files, *(copy.file for copy in self.copies)])
        return replace(
            self,
            files=tuple(file for file in files if file.path not in paths),
            copies=tuple(copies),
            checksums=checksums,
            freed_copies=tuple(freed_copies),
        )

    def leaving(self, paths: Collection[str]) -> PathSlice | None:
        """Return the same slice without some of its late or released files; None if nothing remains."""
        files = tuple(file for file in self.files if file.path not in paths)
        return replace(self, files=files) if files or self.quarantined or self.copies else None

    def _of(
        self,
        before: Watermark,
        files: tuple[SourceFile, ...],
        closing: datetime | None,
        quarantined: tuple[QuarantinedFile, ...] = (),
        copies: tuple[CopiedFile, ...] = (),
        gone_paths: tuple[str, ...] = (),
    ) -> PathSlice:
        if self.why != "run":
            return replace(self, files=files, quarantined=quarantined, copies=copies, gone_paths=gone_paths)
        all_files = (*files, *_files_of(quarantined, copies))
        slice_ = make_slice(self.definition, before, all_files, closing)
        return replace(
            slice_,
            files=files,
            quarantined=quarantined,
            copies=copies,
            replaces=self.replaces,
            kept_paths=self.kept_paths,
            since=self.since,
            gone_paths=gone_paths,
        )


def _files_of(quarantined: Sequence[QuarantinedFile], copies: Sequence[CopiedFile]) -> tuple[SourceFile, ...]:
    """Return the files that a slice passes over."""
    return (*(entry.file for entry in quarantined), *(copy.file for copy in copies))


def cut_slices(
    definition: PathWatermark,
    before: Watermark,
    files: Sequence[SourceFile],
    closing: datetime | None,
) -> Iterator[PathSlice]:
    """Cut files above a state, in pair order, into slices within the checkpoint's limits.

    Args:
        definition: the user's definition.
        before: the state below the first file.
        files: all files, in pair order.
        closing: the clock, if the last slice may close partitions.
    """
    for portion in _portions(definition.checkpoint, files):
        last = portion[-1] is files[-1]
        slice_ = make_slice(definition, before, portion, closing if last else None)
        yield slice_
        before = slice_.after


def cut_pending_slices(
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


def make_slice(
    definition: PathWatermark, before: Watermark, files: tuple[SourceFile, ...], closing: datetime | None
) -> PathSlice:
    """Return the slice of these files above a state."""
    state = PathState.of(before).after_files(file.path for file in files)
    after = watermark_of(definition, state)
    if closing and definition.scope == "partition":
        after = close_old_partitions(definition, state, closing)
    return PathSlice(files, before, after, definition, closing)


def watermark_of(definition: PathWatermark, state: PathState) -> Watermark:
    """Return a state's watermark in the form of the definition's scope."""
    return state.global_watermark() if definition.scope == "global" else state.partition_watermark()


def _portions(limits: Checkpoint, files: Sequence[SourceFile]) -> Iterator[tuple[SourceFile, ...]]:
    """Yield the files of one slice after another, in order."""
    start = 0
    while start < len(files):
        count = _next_slice_length(limits, files, start)
        yield tuple(files[start : start + count])
        start += count


def _next_slice_length(limits: Checkpoint, files: Sequence[SourceFile], start: int) -> int:
    """Return how many files from ``start`` make a slice: at least one, however large it is."""
    size, count = 0, 0
    for file in files[start : start + limits.interval_files]:
        size += file.size
        if count and size > limits.interval_bytes:
            break
        count += 1
    return count
