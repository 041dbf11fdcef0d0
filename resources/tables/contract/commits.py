"""Commits of tables as every format tells them: tags, versions, and what they have counted."""

from __future__ import annotations

from dataclasses import dataclass

Version = int | str
"""What a format calls a state of the table: only equality means anything outside of its package."""


MOST_ROWS = 1_000_000
"""Distinct rows of a list of units. A longer one is a mistake: a column that is no id."""


@dataclass(frozen=True)
class Tag:
    """What makes a commit idempotent and recognisable.

    Attributes:
        app_id: the dataflow's random id.
        number: the number of the slice.
        owner: the id of the intent, or of the fence, that the commit belongs to.
        gives_up: whether the commit only fences the number, so that no writer that may still run can take it.
        after: the commit of the table that the state before was true of; None if that state says nothing of rows.
        rewound: whether rows above the state after it are in the table, and are deleted when they are loaded again.
    """

    app_id: str
    number: int
    owner: str
    gives_up: bool = False
    after: TableCommit | None = None
    rewound: bool = False


@dataclass(frozen=True)
class TableCommit:
    """A commit of a table as the watermark log records it: enough to tell whether the table still has it.

    Attributes:
        version: the table's version; None: there was no table.
        id: of the intent or fence that made the commit; of another writer's commit a hash of its text. None: not known.
        number: the highest under the dataflow's tag up to that commit; 0 if there is none.
        file: name of a data file that it added, which tells that it was not undone once it is cleaned from the table's log; None if it
            added none.
    """

    version: Version | None
    id: str | None = None
    number: int = 0
    file: str | None = None


@dataclass(frozen=True)
class TaggedCommit:
    """A commit that carries a number under a dataflow's tag.

    Attributes:
        owner: the intent or fence that it belongs to; None if its text is gone or not Strandline's.
        version: the table's version.
        rows: rows written by it, as the commit itself counted them; those that it only moved are not among them.
        bytes: bytes written by it.
        gives_up: whether it is a fence.
        removed: rows that it deleted; None if all of the table's.
        number: the number.
        uncounted: whether only the table before and after the commit tells how many rows it deleted.
        file: name of a data file that it added; None if it added none.
        follows: the version before it; None if it made the table.
        committed_by: which writer made it, for people; None if it does not tell.
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

    @property
    def commit(self) -> TableCommit:
        """As the watermark log records it."""
        return TableCommit(self.version, self.owner, self.number, self.file)


@dataclass(frozen=True)
class TableHead:
    """What a table's log says, compared with what the watermark log has recorded of it.

    Attributes:
        newest: the newest commit; None if there is no table. Only :meth:`Table.tip` need tell its number.
        kept: whether the recorded commit is still part of the table; if it was cleaned from the log, the tag tells. A recorded commit without
            a version, which says that there was no table, is part of any; one with a version is not part of a table that is gone.
        older: whether the newest commit came before the recorded one, which the table does not have.
        cleaned: whether commits after the recorded one were cleaned from the table's log.
        tag: the highest number under the dataflow's tag, as far as the commits that were read tell; of the whole table if the recorded
            commit was not kept, or was cleaned.
        tagged: the commits under the dataflow's tag after the recorded one, oldest first; all that are there if that was not kept.
        undone: another writer's commit after the recorded one that removed all rows, for people; None if there is none, or if a RESTORE
            has brought back the rows of the recorded commit, and of those after it under the dataflow's tag.
        rewritten: whether the recorded commit was cleaned from the table's log and the file that it added is in the table no more.
        tags_expire: the table property by which tags are forgotten; None if it is not set.
        missing_files: data files that are part of the table, and that another writer has removed without a commit.
        foreign_files: files of other writers that plain readers of the table's folder see, and that no commit has added.
    """

    newest: TableCommit | None
    kept: bool = True
    older: bool = False
    cleaned: bool = False
    tag: int = 0
    tagged: tuple[TaggedCommit, ...] = ()
    undone: str | None = None
    rewritten: bool = False
    tags_expire: str | None = None
    missing_files: tuple[str, ...] = ()
    foreign_files: tuple[str, ...] = ()

    @property
    def version(self) -> Version | None:
        """The newest version; None if there is no table."""
        return self.newest.version if self.newest else None

    def find_tagged_commit(self, number: int) -> TaggedCommit | None:
        """Return the commit that carries a number; None if none of those that were read does."""
        return next((commit for commit in reversed(self.tagged) if commit.number == number), None)
