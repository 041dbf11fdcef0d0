"""Rows that others have deleted from the table, and that a decision or replay would bring back.

Loads record how many rows they wrote. What the table holds less than that, others have deleted: a DELETE of
Spark, deltalake or pyiceberg. Such rows do not come back unless an operator says so
(docs/reference/state.md, Rows that others deleted).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from partitions.errors import NeedsDecision
from partitions.plan import pluralize
from partitions.spelling import first_few
from resources.tables.contract.table import Table
from resources.watermarks.entry import Entry

DeletedRows = Literal["load", "skip"]
"""What becomes of rows that others deleted: they are loaded again, or count as loaded."""

_NAMED = 3


@dataclass(frozen=True)
class LostRows:
    """Rows that loads have written and the table does not hold any more.

    Attributes:
        rows: how many; None: it cannot be known.
        files: files that they came from, if rows tell their file.
        is_exact: whether all of these rows come back, and no others; else some of them may.
        forgotten: conditions of forgotten deletes, which may have deleted or withheld rows of the files.
        is_other_table: whether the table is not as the state knows it, such as an older one that was put
            back: then nobody needs to have deleted the rows.
    """

    rows: int | None = 0
    files: tuple[str, ...] = ()
    is_exact: bool = False
    is_other_table: bool = False
    forgotten: tuple[str, ...] = ()

    @property
    def are_none(self) -> bool:
        """Whether no row is known to be lost, and none may be."""
        return self.rows == 0 and not self.forgotten

    def describe(self) -> str:
        """Return what is lost, for people."""
        of_files = f" of {first_few(self.files, _NAMED)}" if self.files else ""
        if self.forgotten:
            deletes = pluralize(len(self.forgotten), "delete")
            were = "was" if len(self.forgotten) == 1 else "were"
            return f"{deletes} that {were} forgotten ({first_few(self.forgotten, _NAMED)}), or others, may have deleted rows{of_files}; deleted rows that are read again would come back"
        if self.rows is None:
            return f"nothing tells whether others have deleted rows{of_files} from the table; deleted rows that are read again would come back"
        verb = "would come back" if self.is_exact else "would come back as far as they are read again"
        rows = f"{pluralize(self.rows, 'row')}{of_files}"
        if self.is_other_table:
            return f"the table is another one than the state knows, or an older version: it lacks {rows}, which {verb}"
        return f"others have deleted {rows} from the table, which {verb}"


def lost_in_all(table: Table, entry: Entry | None) -> LostRows:
    """Return how many rows the table has less than its loads have written, as an entry counts.

    Rows that others have added hide what they have deleted since the last decision that counted the table.
    """
    if entry is None or not table.exists():
        return LostRows()
    if entry.lost_rows == "unknown":
        return LostRows(None)
    lost_since = max(entry.total_rows - table.contents.count_rows(), 0)
    return LostRows(entry.lost_rows + lost_since)


def fields_of_counts(table: Table, lost_rows: LostRows) -> dict[str, int | Literal["unknown"]]:
    """Return the fields of an entry that takes a table as it is: the rows there, and those that it lacks."""
    lacking = lost_rows.rows
    return {
        "total_rows": table.contents.count_rows(),
        "lost_rows": "unknown" if lacking is None else lacking,
    }


def lost_since_created(
    table: Table, app_id: str | None, present_rows: int, newest: int | None = None
) -> LostRows:
    """Return how many rows the table has less than its own commits have written; for a lost log.

    Unknown unless the table's log reaches back to the commit that made the table.

    Args:
        table: the table.
        app_id: the dataflow's id in its commits.
        present_rows: the rows of the dataflow that it holds.
        newest: the number of the newest commit when the rows were counted; None: whatever it was. Unknown if
            it is another by now, since a run has written meanwhile, or others have overwritten the table.
    """
    head = table.head(None, app_id)
    commits = head.tagged_commits
    if newest is not None and commits and commits[-1].number != newest:
        return LostRows(None)
    if not commits or commits[0].follows is not None or any(commit.uncounted for commit in commits):
        return LostRows(None)
    written = 0
    for commit in commits:
        written = commit.rows if commit.removed is None else written + commit.rows - commit.removed
    lost_rows = written - present_rows
    return LostRows(lost_rows if lost_rows >= 0 else None)


def lost_by_log(table: Table, entry: Entry | None, app_id: str | None) -> LostRows:
    """Return how many rows the table has less than an entry counts; without one, than its commits wrote."""
    if entry is not None or not table.exists():
        return lost_in_all(table, entry)
    return lost_since_created(table, app_id, table.contents.count_rows())


def check_lost_rows(
    dataflow: str, lost_rows: LostRows, answer: DeletedRows | None, commands: Sequence[str]
) -> tuple[str, ...]:
    """Return what comes back, for people; raise if rows would and nobody has said that they shall.

    Args:
        dataflow: the dataflow's name.
        lost_rows: the rows that the table has lost.
        answer: what an operator has said.
        commands: the commands that answer.

    Raises:
        NeedsDecision: code ``deleted_rows``.
    """
    if lost_rows.are_none:
        return ()
    if answer is None:
        fates = "--deleted load loads them again when they are read"
        if any("--deleted skip" in command for command in commands):
            fates += "; --deleted skip counts their files as loaded, so the rows stay away"
        else:
            fates += f". To keep some away, name them first: strandline delete {dataflow} --where SQL --reason TEXT"
        raise NeedsDecision(
            f"dataflow {dataflow}: {lost_rows.describe()}. Choose what happens to these rows: {fates}",
            code="deleted_rows",
            choices=tuple(commands),
        )
    fate = "accepted by --deleted load" if answer == "load" else "they count as loaded (--deleted skip)"
    return (f"{lost_rows.describe()}: {fate}",)
