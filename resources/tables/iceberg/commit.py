"""One commit of an Iceberg table: its snapshots, and what Strandline has written into their summaries (docs/reference/iceberg.md)."""

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
"""The table property that says that the column is Strandline's, as the snapshots do; for readers it is a column like any other else."""

_TEXT = "strandline"
_APP_ID = "strandline.app-id"
_NUMBER = "strandline.number"
_LOAD = "strandline.load"
_BASE = "strandline.base"
COPIED = "strandline.copied-records"
"""Keys of a summary: what the commit says of itself, under which tag, how it was made, on which snapshot, if others may be between, and how many rows it only moved."""

_MERGED = "spark.merge-into.num-target-rows-"
"""Before what Spark counts in a MERGE."""

_REPLACED_ALL, _APPENDED, _PUBLISHED, _FENCED = "replace-all", "append", "publish", "fence"

DIGITS = 10
"""Of a number, so that the texts are in the order of the numbers."""


def commit_value(app_id: str, number: int) -> str:
    """Return what rows carry that a commit wrote."""
    return f"{app_id}:{number:0{DIGITS}d}"


def summary_of(tag: Tag, text: str, load: Load | None, base: int | None = None) -> dict[str, str]:
    """Return the properties of the summary of a commit.

    Args:
        tag: of the commit.
        text: what it says of itself.
        load: that it carries out; None if it only takes its number.
        base: the snapshot on which it is made beside what readers see; None if they see each snapshot of it at once.
    """
    how = _PUBLISHED if base or not isinstance(load, Append) else _APPENDED
    if load is None:
        how = _FENCED
    elif isinstance(load, ReplaceAll):
        how = _REPLACED_ALL
    return {
        _TEXT: json.dumps(json.loads(text)[_TEXT]),
        _APP_ID: tag.app_id,
        _NUMBER: str(tag.number),
        _LOAD: how,
        **({_BASE: str(base)} if base else {}),
    }


@dataclass(frozen=True)
class Commit:
    """What readers see at once.

    Attributes:
        snapshot: the one that they see.
        parts: those that were made on the way to it, oldest first.
        before: the snapshot that it follows; None if it is the first, or if that one was expired.
    """

    snapshot: Snapshot
    parts: tuple[Snapshot, ...] = ()
    before: Snapshot | None = None

    @cached_property
    def ours(self) -> Mapping[str, Any]:
        """What Strandline has written into the summary; nothing if it is another writer's."""
        try:
            return dict(json.loads(self.snapshot.summary.get(_TEXT) or "null"))
        except (ValueError, TypeError):
            return {}

    def is_of_another(self, dataflow: str | None) -> bool:
        """Return whether it is the commit of another dataflow that shares the table; None: nobody shares it."""
        return dataflow is not None and self.ours.get("dataflow", dataflow) != dataflow

    @property
    def fences(self) -> bool:
        """Whether it only takes a number: what it has added it has taken away."""
        return self.snapshot.summary.get(_LOAD) == _FENCED

    @property
    def app_id(self) -> str | None:
        """Under whose tag it is; None if it carries none.

        An append that has added no file keeps nobody out of its number, and is no commit of it: the one that follows is.
        """
        summary = self.snapshot.summary
        if summary.get(_LOAD) == _APPENDED and self.follows and not self.snapshot.count("added-data-files"):
            return None
        return summary.get(_APP_ID)

    @property
    def number(self) -> int:
        """Under its tag."""
        return self.snapshot.count(_NUMBER)

    @property
    def id(self) -> str:
        """What tells the commit from any other: the intent or fence that it belongs to, else the hash of its summary."""
        text = json.dumps([self.snapshot.id, sorted(self.snapshot.summary.items())])
        return str(self.ours.get("owner") or hashlib.sha256(text.encode()).hexdigest()[:32])

    @property
    def follows(self) -> int | None:
        """The snapshot before it, whether it is still there or not."""
        return (self.parts[0] if self.parts else self.snapshot).parent

    @property
    def recorded(self) -> TableCommit:
        """As the watermark log records it."""
        return TableCommit(self.snapshot.version, self.id)

    @property
    def shown(self) -> str:
        """In a few words, for people."""
        return f"{self.snapshot.operation} (version {self.snapshot.version})"

    @property
    def tagged(self) -> TaggedCommit:
        """Return the commit as one under its tag."""
        rows, removed, counted = self._counts
        return TaggedCommit(
            self.ours.get("owner"),
            self.snapshot.version,
            rows,
            self.snapshot.count("added-files-size"),
            bool(self.ours.get("gives_up")),
            removed,
            self.number,
            uncounted=not counted,
            follows=self.before.version if self.before else None,
            committed_by=self.ours.get("committed_by"),
        )

    @property
    def _counts(self) -> tuple[int, int | None, bool]:
        """Rows that it wrote, those that it deleted (None: all), and whether the summaries tell. Rows that were only moved are neither."""
        snapshot, load = self.snapshot, self.snapshot.summary.get(_LOAD)
        if self.fences:
            return 0, 0, True
        written = snapshot.count("added-records")
        if load == _REPLACED_ALL and self.before is not None:
            return written, None, True
        if COPIED in snapshot.summary:
            moved = snapshot.count(COPIED)
            return written - moved, snapshot.count("deleted-records") - moved, True
        moved = 0
        if changes_rows(snapshot):
            counts = [snapshot.count(f"{_MERGED}{what}") for what in ("inserted", "updated")]
            if f"{_MERGED}inserted" not in snapshot.summary or min(counts) < 0:
                return written, 0, False
            moved = written - sum(counts)
        before = self.before.rows if self.before else None if self.follows else 0
        if before is None or snapshot.rows is None:
            return written - moved, 0, not any(map(changes_rows, (*self.parts, snapshot)))
        return written - moved, before + written - moved - snapshot.rows, True

    @property
    def removed_by_files(self) -> int:
        """Rows that it deleted, as the counts of its files tell: beside deletes by values also rows that those had deleted before."""
        all_ = (*self.parts, self.snapshot)
        gone = sum(each.count("deleted-records") + each.count("added-position-deletes") for each in all_)
        return max(0, gone + self._counts[0] - sum(each.count("added-records") for each in all_))


def changes_rows(snapshot: Snapshot) -> bool:
    """Return whether a snapshot has not only added files."""
    return bool(snapshot.count("deleted-data-files") or snapshot.count("added-delete-files"))


def commits_of(newest_first: Iterable[Snapshot]) -> list[Commit]:
    """Return the commits that a line of snapshots is made of, oldest first."""
    line = list(newest_first)
    at = {snapshot.id: number for number, snapshot in enumerate(line)}
    commits: list[Commit] = []
    here = 0
    while here < len(line):
        base = line[here].count(_BASE) or line[here].parent
        following = at.get(base, len(line)) if base is not None else len(line)
        following = max(following, here + 1)
        before = line[following] if following < len(line) else None
        commits.append(Commit(line[here], tuple(line[here + 1 : following][::-1]), before))
        here = following
    return commits[::-1]
