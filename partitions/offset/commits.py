"""The commits of a table, as their log describes them before any row is read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from partitions.log_position import LogPosition


@dataclass(frozen=True)
class Commit:
    """One commit.

    Attributes:
        position: the position after it.
        files: the number of files to read for its rows; 0 if it changes no row.
        bytes: the size of these files.
        rows: the number of rows that it inserts, if the log says so; None: unknown.
        changes: how it changes or removes rows, for people; None: it only adds some, or changes none.
        is_passed_over: whether none of its rows is read.
        is_whole: whether its files are all rows of the table, since the log no longer has older commits.
        time: when it was made, aware; None: the log does not say.
    """

    position: LogPosition
    files: int
    bytes: int
    rows: int | None = None
    changes: str | None = None
    is_passed_over: bool = False
    is_whole: bool = False
    time: datetime | None = None


@dataclass(frozen=True)
class SnapshotFiles:
    """The data files of one version, in the order of their paths.

    Attributes:
        position: the position of the version.
        sizes: the size of each file in bytes.
        time: when the version was made, aware; None: the log does not say.
    """

    position: LogPosition
    sizes: tuple[int, ...]
    time: datetime | None = None


@dataclass(frozen=True)
class LogTail:
    """What a log has behind the position of a dataflow.

    Attributes:
        newest: the newest position; None: the table has no commit.
        start: where a dataflow without a state begins; None: with the first commit, or it has a state.
        commits: the commits behind the position or the start, ascending.
        snapshot: the files of a first read, while some of them are left; None: there is none.
    """

    newest: LogPosition | None
    start: LogPosition | None = None
    commits: tuple[Commit, ...] = ()
    snapshot: SnapshotFiles | None = None
