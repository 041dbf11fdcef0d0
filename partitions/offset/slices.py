"""Slices of an offset watermark: some files of a first read, or a range of commits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from partitions.errors import BadPart
from partitions.log_position import LogPosition
from partitions.offset.commits import Commit, SnapshotFiles
from partitions.offset.definition import CommitCheckpoint
from partitions.offset.state import OffsetState, SnapshotProgress
from partitions.plan import Size
from partitions.sentinels import Watermark


@dataclass(frozen=True)
class SnapshotRange:
    """Some files of a first read, in the order of their paths.

    Attributes:
        position: the position whose rows are read.
        start: the index of the first file, inclusive.
        end: the index behind the last file.
        files_in_all: the number of all files of the version.
        bytes: the size of the files in the range.
        time: when the version was made, aware; None: the log does not say.
    """

    position: LogPosition
    start: int
    end: int
    files_in_all: int
    bytes: int
    time: datetime | None = None

    @property
    def files(self) -> int:
        """The number of files in the range."""
        return self.end - self.start

    @property
    def last(self) -> LogPosition:
        """The position that the version has."""
        return self.position

    @property
    def words(self) -> str:
        """The range for people."""
        if self.files == self.files_in_all:
            return f"all rows of {self.position.words}"
        return (
            f"files {self.start + 1:,} to {self.end:,} of the {self.files_in_all:,} of {self.position.words}"
        )

    def state_after(self, before: OffsetState) -> OffsetState:
        """Return the state after the range."""
        progress = SnapshotProgress(self.position.version, self.end, self.files_in_all)
        return before.in_snapshot(self.position, progress, self.numbers(before)[self.position.version])

    def numbers(self, before: OffsetState) -> Mapping[int, int]:
        """Return the number of the rows by their version; all slices of a first read have the same."""
        version = self.position.version
        current = before.last_number if before.snapshot is not None else None
        return {version: before.number_of(version) if current is None else current}


@dataclass(frozen=True)
class CommitRange:
    """A range of commits, each read as a whole.

    Attributes:
        since: the position before the first commit; None: there is none.
        commits: ascending; empty if only the position is recorded.
        last: the position after the range.
        later: commits behind the range, ascending, which a replay reads beside it: the last change of a key
            counts, whichever commit made it.
    """

    since: LogPosition | None
    commits: tuple[Commit, ...]
    last: LogPosition
    later: tuple[Commit, ...] = ()

    @property
    def files(self) -> int:
        """The number of files to read."""
        return sum(commit.files for commit in self.commits)

    @property
    def bytes(self) -> int:
        """The size of all files that are read, also those of later commits."""
        return sum(commit.bytes for commit in self.all_commits)

    @property
    def all_commits(self) -> tuple[Commit, ...]:
        """The commits of the range, and the later ones."""
        return (*self.commits, *self.later)

    @property
    def read_until(self) -> LogPosition:
        """The position after the last commit that is read."""
        return self.later[-1].position if self.later else self.last

    @property
    def words(self) -> str:
        """The range for people."""
        if not self.commits:
            return f"nothing: the position {self.last.words} is recorded"
        first, last = self.commits[0].position, self.commits[-1].position
        return first.words if first == last else f"{first.words} to {last.words}"

    def state_after(self, before: OffsetState) -> OffsetState:
        """Return the state after the range."""
        numbers = self.numbers(before)
        last = numbers[self.commits[-1].position.version] if self.commits else None
        return before.at(self.last, [commit.position for commit in self.commits], number=last)

    def numbers(self, before: OffsetState) -> Mapping[int, int]:
        """Return the number of each commit by its version: they rise, also after a rollback.

        Args:
            before: the state before the range.
        """
        numbers: dict[int, int] = {}
        state = before
        for commit in self.all_commits:
            numbers[commit.position.version] = number = state.number_of(commit.position.version)
            state = replace(state, number=number)
        return numbers


@dataclass(frozen=True)
class OffsetSlice:
    """The rows that one commit loads.

    Attributes:
        before: the state that it starts from.
        input: what it reads.
        why: ``replay`` if it reads commits again.
        replaces: whether the commit also deletes the rows that the table has of these commits.
        saves: whether the state moves behind the range; else it stays.
        since: always None: an offset has no filtered cold start (:class:`partitions.plan.Slice`).
    """

    before: Watermark
    input: SnapshotRange | CommitRange

    why: Literal["run", "replay", "late", "release"] = "run"
    replaces: bool = False
    since: None = None
    saves: bool = True

    @property
    def passes_over(self) -> tuple[str, ...]:
        """The changes that are passed over, for people."""
        commits = self.input.commits if isinstance(self.input, CommitRange) else ()
        return tuple(str(commit.changes) for commit in commits if commit.is_passed_over)

    @property
    def reads_nothing(self) -> bool:
        """Whether no row is read: only the position is recorded."""
        return not self.input.files

    @property
    def numbers(self) -> Mapping[int, int]:
        """The number that rows have as ``_commit_version``, by the version of their commit.

        A replay that leaves the state as it is numbers its commits from their own versions on.
        """
        return self.input.numbers(OffsetState.of(self.before) if self.saves else OffsetState())

    @property
    def last_number(self) -> int:
        """The number of the last commit of the range."""
        version = self.input.last.version
        return self.numbers.get(version, version)

    @property
    def lower(self) -> Watermark | None:
        """The state before it; None on a first run. Of a replay, the position before its commits."""
        if self.why == "replay":
            since = self.input.since if isinstance(self.input, CommitRange) else None
            return OffsetState(since).watermark() or None
        return self.before or None

    @property
    def upper(self) -> Watermark:
        """The state after it. Of a replay, the position after its commits."""
        if self.why == "replay":
            return OffsetState(self.input.last).watermark()
        return self.advance(self.before)

    @property
    def size(self) -> Size:
        """The size: commits, or files of a first read."""
        if isinstance(self.input, SnapshotRange):
            return Size(self.input.files, self.input.bytes)
        return Size(bytes=self.input.bytes, commits=len(self.input.commits))

    @property
    def keys(self) -> Collection[Any]:
        """A key for each commit; one for a part of a first read, or a position that is recorded."""
        part = self.input
        if isinstance(part, SnapshotRange):
            return [(part.position, part.end)]
        return [commit.position for commit in part.commits] or [part.last]

    @property
    def failures(self) -> Mapping[Any, str]:
        """Always empty: a commit is read as a whole, or not at all."""
        return {}

    def contains(self, _bad: BadPart, /) -> bool:
        """Return False: a bad part of the table cannot be traced to a commit."""
        return False

    def up_to(self, bad: BadPart) -> None:
        """Return None: a slice cannot be shortened to end before a bad part."""

    def advance(self, before: Watermark, /) -> Watermark:
        """Return the state after it."""
        if not self.saves:
            return before
        return self.input.state_after(OffsetState.of(before)).watermark()

    def describe(self) -> list[dict[str, Any]]:
        """Return what it reads (docs/reference/cli.md)."""
        commits = self.input.commits if isinstance(self.input, CommitRange) else ()
        row_counts = [commit.rows for commit in commits if commit.rows is not None]
        return [
            {
                "reads": self.input.words,
                "commits": [commit.position.version for commit in commits],
                "files": self.input.files,
                "bytes": self.input.bytes,
                "inserts": sum(row_counts) if len(row_counts) == len(commits) and commits else None,
                "changes": [commit.changes for commit in commits if commit.changes],
                "passes_over": list(self.passes_over),
                "reason": self._reason,
            }
        ]

    @property
    def _reason(self) -> str:
        if self.why == "replay":
            return "replay"
        return "snapshot" if isinstance(self.input, SnapshotRange) else "commits"

    def halve(self) -> tuple[OffsetSlice, ...]:
        """Return two slices, each with half of the files or commits; only itself if it cannot be cut."""
        part = self.input
        if isinstance(part, SnapshotRange) or self.why == "replay":
            return (self,)  # the sizes of its files are not known any more; or the slice is a whole chunk
        if len(part.commits) < 2:
            return (self,)
        middle = len(part.commits) // 2
        first, second = part.commits[:middle], part.commits[middle:]
        lower = replace(self, input=CommitRange(part.since, first, first[-1].position))
        upper = replace(self, before=lower.upper, input=CommitRange(first[-1].position, second, part.last))
        return lower, upper


def cut_files(limits: CommitCheckpoint | None, snapshot: SnapshotFiles, done: int) -> Iterator[SnapshotRange]:
    """Yield the ranges of a first read that are left: at least one file each, in order.

    Args:
        limits: the limits of a slice; None: there are none.
        snapshot: the files of the version.
        done: the number of files that are read.
    """
    sizes, start = snapshot.sizes, done
    while start < len(sizes):
        end, size = start, 0
        while end < len(sizes):
            exceeds = limits and (end - start >= limits.files or size + sizes[end] > limits.bytes)
            if end > start and exceeds:
                break
            size += sizes[end]
            end += 1
        yield SnapshotRange(snapshot.position, start, end, len(sizes), size, snapshot.time)
        start = end


def cut_commits(
    limits: CommitCheckpoint, since: LogPosition | None, commits: Sequence[Commit]
) -> Iterator[CommitRange]:
    """Yield ranges of commits. Those without rows join the range before them, or the first one.

    Numbers rise within a range, since rows tell by them which commit is later. Those of an Iceberg table
    that was set to another snapshot may not.

    Args:
        limits: the limits of a slice.
        since: the position before the first commit; None: there is none.
        commits: ascending.
    """
    group: list[Commit] = []
    for commit in commits:
        is_full = commit.files and any(other.files for other in group) and not _fits(limits, group, commit)
        if is_full or (group and commit.position.version <= group[-1].position.version):
            yield CommitRange(since, tuple(group), group[-1].position)
            since, group = group[-1].position, []
        group.append(commit)
    if group:
        yield CommitRange(since, tuple(group), group[-1].position)


def _fits(limits: CommitCheckpoint, group: Sequence[Commit], commit: Commit) -> bool:
    members = [*group, commit]
    return (
        sum(1 for member in members if member.files) <= limits.commits
        and sum(member.files for member in members) <= limits.files
        and sum(member.bytes for member in members) <= limits.bytes
    )
