"""One commit of an Iceberg table: its snapshots and Strandline's metadata in them.

See docs/reference/iceberg.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from partitions.loads import Append, Load, ReplaceAll
from resources.tables.contract.commits import TableCommit, Tag, TaggedCommit
from resources.tables.iceberg.metadata import Snapshot

OWNS_COLUMN = "strandline.commit-column"
"""Table property that marks the commit column as Strandline's, as its snapshots do. Without it readers see the column."""

_METADATA_KEY = "strandline"
_APP_ID = "strandline.app-id"
_NUMBER = "strandline.number"
_LOAD = "strandline.load"
_BASE = "strandline.base"
COPIED = "strandline.copied-records"
DELETED = "strandline.deleted-records"
"""Keys of a summary: metadata, tag (app id and number), kind of load, base snapshot of its branch, number of copied rows, and of rows that an upsert deleted."""

MERGE_COUNTS = "spark.merge-into.num-target-rows-"
"""Prefix of Spark's counts of a MERGE."""

_REPLACED_ALL, _APPENDED, _PUBLISHED, _FENCED = "replace-all", "append", "publish", "fence"

DIGITS = 10
"""Width of a number, so that texts sort like numbers."""


def commit_value(app_id: str, number: int) -> str:
    """Return the value that rows of a commit carry."""
    return f"{app_id}:{number:0{DIGITS}d}"


def summary_of(tag: Tag, text: str, load: Load | None, base: int | None = None) -> dict[str, str]:
    """Return the properties of a commit's summary.

    Args:
        tag: tag of the commit.
        text: user metadata of the commit.
        load: load of the slice; None if the commit only takes its number.
        base: snapshot that the commit's branch starts from; None if readers see each snapshot at once.
    """
    load_kind = _PUBLISHED if base or not isinstance(load, Append) else _APPENDED
    if load is None:
        load_kind = _FENCED
    elif isinstance(load, ReplaceAll):
        load_kind = _REPLACED_ALL
    return {
        _METADATA_KEY: json.dumps(json.loads(text)[_METADATA_KEY]),
        _APP_ID: tag.app_id,
        _NUMBER: str(tag.number),
        _LOAD: load_kind,
        **({_BASE: str(base)} if base else {}),
    }


@dataclass(frozen=True)
class IcebergCommit:
    """The snapshots that become visible to readers at once.

    Attributes:
        snapshot: snapshot that readers see.
        parts: snapshots that were made on the way to it, oldest first.
        before: snapshot before the commit; None if it is the first, or if that one was expired.
    """

    snapshot: Snapshot
    parts: tuple[Snapshot, ...] = ()
    before: Snapshot | None = None

    @cached_property
    def strandline_metadata(self) -> Mapping[str, Any]:
        """Strandline's part of the summary; empty for another writer's commit."""
        try:
            return dict(json.loads(self.snapshot.summary.get(_METADATA_KEY) or "null"))
        except (ValueError, TypeError):
            return {}

    def is_of_other_dataflow(self, dataflow: str | None) -> bool:
        """Return whether another dataflow that shares the table made the commit.

        ``dataflow`` is None if no one shares the table.
        """
        return dataflow is not None and self.strandline_metadata.get("dataflow", dataflow) != dataflow

    @property
    def is_fence(self) -> bool:
        """Return whether the commit only takes a number: it removed what it added."""
        return self.snapshot.summary.get(_LOAD) == _FENCED

    @property
    def app_id(self) -> str | None:
        """App id of the commit's tag; None if it carries none.

        An append without files does not keep others from its number, so it carries no tag; the commit
        after it does.
        """
        summary = self.snapshot.summary
        if summary.get(_LOAD) == _APPENDED and self.follows and not self.snapshot.count("added-data-files"):
            return None
        return summary.get(_APP_ID)

    @property
    def number(self) -> int:
        """Number under the commit's tag."""
        return self.snapshot.count(_NUMBER)

    @property
    def id(self) -> str:
        """Identity of the commit: the id of its intent or fence, otherwise the hash of its summary."""
        text = json.dumps([self.snapshot.id, sorted(self.snapshot.summary.items())])
        return str(self.strandline_metadata.get("owner") or hashlib.sha256(text.encode()).hexdigest()[:32])

    @property
    def follows(self) -> int | None:
        """Id of the snapshot before the commit, which may be expired."""
        return (self.parts[0] if self.parts else self.snapshot).parent

    @property
    def as_table_commit(self) -> TableCommit:
        """Commit as the watermark log records it."""
        return TableCommit(self.snapshot.version, self.id)

    @property
    def description(self) -> str:
        """Operation and version, for people."""
        return f"{self.snapshot.operation} (version {self.snapshot.version})"

    @property
    def as_tagged(self) -> TaggedCommit:
        """Return the commit as one under its tag."""
        rows, removed_rows, are_counted = self._counts
        return TaggedCommit(
            self.strandline_metadata.get("owner"),
            self.snapshot.version,
            rows,
            self.snapshot.count("added-files-size"),
            bool(self.strandline_metadata.get("gives_up")),
            removed_rows,
            self.number,
            uncounted=not are_counted,
            follows=self.before.version if self.before else None,
            committed_by=self.strandline_metadata.get("committed_by"),
            deleted=max(0, *map(self.snapshot.count, (DELETED, f"{MERGE_COUNTS}deleted"))),
        )

    @property
    def _counts(self) -> tuple[int, int | None, bool]:
        """Number of written rows, of deleted rows (None: all), and whether the summaries count them.

        Rows that were only copied are neither.
        """
        snapshot, load = self.snapshot, self.snapshot.summary.get(_LOAD)
        if self.is_fence:
            return 0, 0, True
        written = snapshot.count("added-records")
        if load == _REPLACED_ALL and self.before is not None:
            return written, None, True
        if COPIED in snapshot.summary:
            copied_rows = snapshot.count(COPIED)
            return written - copied_rows, snapshot.count("deleted-records") - copied_rows, True
        copied_rows = 0
        if changes_rows(snapshot):
            counts = [snapshot.count(f"{MERGE_COUNTS}{suffix}") for suffix in ("inserted", "updated")]
            if f"{MERGE_COUNTS}inserted" not in snapshot.summary or min(counts) < 0:
                return written, 0, False
            copied_rows = written - sum(counts)
        rows_before = self.before.rows if self.before else None if self.follows else 0
        if rows_before is None or snapshot.rows is None:
            return written - copied_rows, 0, not any(map(changes_rows, (*self.parts, snapshot)))
        return written - copied_rows, rows_before + written - copied_rows - snapshot.rows, True

    @property
    def removed_by_files(self) -> int:
        """Number of deleted rows by the counts of files.

        If there are equality deletes, rows that those had deleted before count again.
        """
        snapshots = (*self.parts, self.snapshot)
        deleted_rows = sum(
            snapshot.count("deleted-records") + snapshot.count("added-position-deletes")
            for snapshot in snapshots
        )
        return max(
            0, deleted_rows + self._counts[0] - sum(snapshot.count("added-records") for snapshot in snapshots)
        )


def changes_rows(snapshot: Snapshot) -> bool:
    """Return whether a snapshot does more than add files."""
    return bool(snapshot.count("deleted-data-files") or snapshot.count("added-delete-files"))


def group_commits(newest_first: Iterable[Snapshot]) -> list[IcebergCommit]:
    """Group a line of snapshots into commits, oldest first."""
    snapshots = list(newest_first)
    index_of = {snapshot.id: number for number, snapshot in enumerate(snapshots)}
    commits: list[IcebergCommit] = []
    index = 0
    while index < len(snapshots):
        base = snapshots[index].count(_BASE) or snapshots[index].parent
        following = index_of.get(base, len(snapshots)) if base is not None else len(snapshots)
        following = max(following, index + 1)
        previous = snapshots[following] if following < len(snapshots) else None
        commits.append(
            IcebergCommit(snapshots[index], tuple(snapshots[index + 1 : following][::-1]), previous)
        )
        index = following
    return commits[::-1]
