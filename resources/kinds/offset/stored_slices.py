"""Slices of offsets as the log stores them: the commits, or the files of a first read."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from partitions.log_position import LogPosition
from partitions.offset.commits import Commit
from partitions.offset.slices import CommitRange, OffsetSlice, SnapshotRange
from partitions.sentinels import deserialise
from resources.kinds.contract.stored_slices import StoredSlices
from resources.watermarks.entry import Intent
from resources.watermarks.lists import ListKind, StoredList

COMMITS = ListKind(
    "commits", 1, ("version", "id", "files", "bytes", "rows", "changes", "passed_over", "time")
)
"""One row for each commit of a slice: its number, identity, files to read, and how it changes rows.

The head has the table, the positions before and after, and the files of a first read. Of a replay it has how
many of the last rows are later commits (``later``), and whether the state moves (``saves``).
"""


class StoredOffsetSlices(StoredSlices[OffsetSlice]):
    """Conversion of slices to lists of commits."""

    @property
    def list_kind(self) -> ListKind:
        """The list of commits."""
        return COMMITS

    def to_rows(self, slice_: OffsetSlice) -> StoredList:
        """Return the commits, and what the slice reads beside them."""
        part = slice_.input
        head: dict[str, Any] = {"last": part.last.to_plain()}
        if isinstance(part, SnapshotRange):
            files = {
                "start": part.start,
                "end": part.end,
                "of": part.files_in_all,
                "bytes": part.bytes,
                "time": _time_text(part.time),
            }
            return StoredList(COMMITS, [], {**head, "files": files})
        rows = [
            [
                commit.position.version,
                commit.position.id,
                commit.files,
                commit.bytes,
                commit.rows,
                commit.changes,
                commit.is_passed_over,
                _time_text(commit.time),
            ]
            for commit in part.all_commits
        ]
        head["since"] = part.since.to_plain() if part.since else None
        later = {"later": len(part.later)} if part.later else {}
        saves = {} if slice_.saves else {"saves": False}
        return StoredList(COMMITS, rows, {**head, **later, **saves})

    def from_rows(self, intent: Intent, stored: StoredList) -> OffsetSlice:
        """Return the slice with the same commits or files."""
        head = stored.head
        last = LogPosition.of(head["last"])
        before = deserialise(intent.before)
        if "files" in head:
            files = head["files"]
            part: SnapshotRange | CommitRange = SnapshotRange(
                last, files["start"], files["end"], files["of"], files["bytes"], _time_of(files["time"])
            )
        else:
            since = LogPosition.of(head["since"]) if head["since"] else None
            commits = tuple(_commit_of(last, *row) for row in stored.rows)
            own = len(commits) - head.get("later", 0)
            part = CommitRange(since, commits[:own], last, commits[own:])
        return OffsetSlice(
            before,
            part,
            why="replay" if intent.why == "replay" else "run",
            replaces=intent.replaces == "own",
            saves=head.get("saves", True),
        )


def _commit_of(
    last: LogPosition,
    version: int,
    id_: str | None,
    files: int,
    size: int,
    rows: int | None,
    changes: str | None,
    is_passed_over: bool,
    time: str | None,
) -> Commit:
    position = LogPosition(last.table, version, id_, last.is_snapshot)
    return Commit(
        position,
        files,
        size,
        rows,
        changes,
        is_passed_over,
        time=_time_of(time),
    )


def _time_text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _time_of(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
