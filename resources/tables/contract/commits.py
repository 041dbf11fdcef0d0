"""Commits of tables in the terms that all formats share: tags, versions and counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Version = int | str
"""A format's name for a state of the table. Outside of its package only equality has a meaning."""


MAX_ROWS = 1_000_000
"""Longest list of units, in distinct rows. A longer one comes from a column that is no id."""


@dataclass(frozen=True)
class Writer:
    """The state that a commit belongs to, as the commit records it. It holds no secret.

    Attributes:
        project: folder of the project, for people.
        state: address of the watermark log's store.
        table: address of the table. A lake that was moved or copied has another one.
    """

    project: str
    state: str
    table: str

    @classmethod
    def parse(cls, record: object) -> Writer | None:
        """Return the writer in a commit's record; None for a commit of an older version."""
        if not isinstance(record, Mapping):
            return None
        return cls(*(str(record.get(name) or "") for name in ("project", "state", "table")))


@dataclass(frozen=True)
class Tag:
    """The mark that makes a commit idempotent and recognisable.

    Attributes:
        app_id: the dataflow's random id.
        number: number of the slice.
        owner: id of the intent or fence that the commit belongs to.
        gives_up: whether the commit only fences the number, so that a writer that still runs cannot take
            it.
        after: table commit that the previous state describes; None if that state says nothing of rows.
        rewound: whether the table holds rows above the new state, which the next load of them deletes.
        writer: state that the commit belongs to; None for tables beside the dataflow's own.
        deletes: whether the commit deletes rows for good and adds none; readers of appends skip it.
    """

    app_id: str
    number: int
    owner: str
    gives_up: bool = False
    after: TableCommit | None = None
    rewound: bool = False
    writer: Writer | None = None
    deletes: bool = False


@dataclass(frozen=True)
class TableCommit:
    """A table commit as the watermark log records it, so that a run can look for it in the table.

    Attributes:
        version: version of the table; None: there was no table.
        id: id of the intent or fence that made the commit; for another writer's commit a hash of its text;
            None: unknown.
        number: highest number under the dataflow's tag up to that commit; 0 if there is none.
        file: name of a data file that the commit added; None if it added none. Once the commit is cleaned
            from the table's log, this file proves that it was not undone.
    """

    version: Version | None
    id: str | None = None
    number: int = 0
    file: str | None = None


@dataclass(frozen=True)
class TaggedCommit:
    """A commit that carries a number under a dataflow's tag.

    Attributes:
        owner: id of the intent or fence that made it; None if its text is missing or not Strandline's.
        version: version of the table.
        rows: rows that the commit wrote, by its own count, without rows that it only copied.
        bytes: bytes that the commit wrote.
        gives_up: whether the commit is a fence.
        removed: rows that the commit deleted; None: all rows of the table.
        number: number of the slice.
        uncounted: whether the deleted rows can only be counted by comparing the versions before and after.
        file: name of a data file that the commit added, or that another commit added since the recorded one
            if that one's file is removed; None if there is none.
        removed_recorded_file: whether the file of the recorded commit was removed up to this commit.
        follows: version before it; None if it created the table.
        committed_by: writer of the commit, for people; None if unknown.
        deleted: number of removed rows that an upsert did not write again.
    """

    owner: str | None
    version: Version
    rows: int
    bytes: int
    gives_up: bool = False
    removed: int | None = 0
    number: int = 0
    uncounted: bool = False
    file: str | None = None
    follows: Version | None = None
    committed_by: str | None = None
    deleted: int = 0
    removed_recorded_file: bool = False

    @property
    def commit(self) -> TableCommit:
        """Commit as the watermark log records it."""
        return TableCommit(self.version, self.owner, self.number, self.file)


@dataclass(frozen=True)
class TableHead:
    """The state of a table's log, compared with the commit that the watermark log recorded.

    Attributes:
        newest: newest commit; None if there is no table. Only :meth:`Table.tip` must set its number.
        has_recorded: whether the recorded commit is still part of the table; if it was cleaned from the
            log, the tag decides. Every table has a recorded commit without a version (there was no table);
            a missing table has no commit with one.
        is_older: whether the table lacks the recorded commit and its newest commit is older.
        commits_cleaned: whether commits after the recorded one were cleaned from the table's log.
        highest_tag: highest number under the dataflow's tag in the commits that were read; in the whole
            table if the recorded commit is not part of it or was cleaned.
        tagged_commits: commits under the dataflow's tag after the recorded one, oldest first; all of them
            if the table lacks the recorded one.
        emptied_by: another writer's later commit that removed all rows, for people; None if there is none,
            or if a RESTORE brought back the rows of the recorded commit and of the tagged ones after it.
        lacks_recorded_file: whether the recorded commit was cleaned from the log and the table no longer
            has the file that it added.
        tags_expire: table property that makes tags expire; None if it is not set.
        missing_files: data files that the table lists and that another writer removed without a commit.
        foreign_files: files of other writers that plain readers of the folder see and that no commit
            added.
        writer: state that the newest commit under the tag belongs to; None if no commit that was read
            tells it.
        lacks_commit_column: whether the format needs a column by which each row tells its commit, and the
            table has none: another writer created it, or dropped the column.
    """

    newest: TableCommit | None
    has_recorded: bool = True
    is_older: bool = False
    commits_cleaned: bool = False
    highest_tag: int = 0
    tagged_commits: tuple[TaggedCommit, ...] = ()
    emptied_by: str | None = None
    lacks_recorded_file: bool = False
    tags_expire: str | None = None
    missing_files: tuple[str, ...] = ()
    foreign_files: tuple[str, ...] = ()
    writer: Writer | None = None
    lacks_commit_column: bool = False

    @property
    def version(self) -> Version | None:
        """Newest version; None if there is no table."""
        return self.newest.version if self.newest else None

    def find_tagged_commit(self, number: int) -> TaggedCommit | None:
        """Return the commit that carries a number; None if no commit that was read does."""
        return next((commit for commit in reversed(self.tagged_commits) if commit.number == number), None)
