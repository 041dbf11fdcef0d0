"""The contract of a table: what the protocol, the guards, decisions, checks and readers use of it, whatever its format.

Belongs here: the contract and its values. One package a format carries it out; ``tests/contract/test_table.py`` runs on all of them.
A table knows no kind of watermark and no watermark log. What only some formats can do is a contract of its own, asked for by type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from partitions.errors import ConfigurationError
from partitions.evolution import SchemaMode
from partitions.load import Load
from partitions.plan import counted
from partitions.predicate import EVERYTHING, Predicate
from resources.connections.places import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Version = int | str
"""What a format calls a state of the table: only equality means anything outside of its package."""

MOST_ROWS = 1_000_000
"""Distinct rows of a list of units. A longer one is a mistake: a column that is no id."""


class OthersFirst(Exception):
    """Others have changed what readers see since it was looked at."""


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


@dataclass(frozen=True)
class Adopted:
    """What a table tells of the state that it was written with.

    Attributes:
        state: sentinel JSON text of the watermark of the newest commit whose rows, and those of all commits before it, are in the table;
            None if there is no such commit any more.
        app_id: the dataflow's id in the table's tags; None if no commit tells.
        number: that the commit carries.
        owner: the intent that it belongs to.
        beyond: whether the table may hold rows of Strandline's that the state does not cover.
        rewound: whether it holds rows above the state that are deleted when they are loaded again, as the intent's entry says, too.
    """

    state: str | None
    app_id: str | None
    number: int = 0
    owner: str | None = None
    beyond: bool = False
    rewound: bool = False


class Table(Protocol):
    """One table. Only what takes a session or a DataFrame starts Spark.

    Every method raises TargetError if the table's log cannot be read, and SourceError if its rows cannot; what a source reads with,
    :meth:`newest_version` and :meth:`distinct_rows`, raises SourceError for both.
    """

    @property
    def place(self) -> Place:
        """Return where it lies."""
        ...

    def head(self, recorded: TableCommit | None, app_id: str | None) -> TableHead:
        """Compare the table's log with what was recorded of it.

        Args:
            recorded: the commit that the table must have; None if nothing was recorded yet.
            app_id: the dataflow's, whose tags are looked for.
        """
        ...

    def tip(self, app_id: str | None) -> TableHead:
        """Return what the table is now, whatever was recorded of it: the newest commit, and the highest number under the dataflow's tag."""
        ...

    def taking_columns(self, mode: SchemaMode) -> Table:
        """Return the same table, whose writes change its columns as the mode says (``partitions.evolution``).

        In mode merge rows may lack columns, and have narrower types; in mode rescue the table only gets ``_rescued_data``. A change that the
        mode does not accept is refused (RowsRefused). A change is in the commit of its rows; or in one before, which changes no row, and does
        no harm if it is done twice.
        """
        ...

    def exists(self) -> bool:
        """Return whether there is a table of this format."""
        ...

    def has_data(self) -> bool:
        """Return whether the table holds rows, whoever wrote them, or remembers a tag."""
        ...

    def counted(self, commit: TaggedCommit, before: int) -> TaggedCommit:
        """Return the commit with all of its counts.

        Args:
            commit: one of the table's.
            before: rows of the table before it, as far as the watermark log knows.
        """
        ...

    def write(self, rows: DataFrame, load: Load, tag: Tag, state: str, *, base: Version | None) -> None:
        """Load rows in one commit that carries the tag; of several with one tag only one commits, and the others raise nothing.

        A number at or below the highest under the tag's app id is skipped. Whether it is, and the commit, are one step: two writers that
        both found the number free must not both commit.

        Args:
            rows: all of the slice's, to be evaluated once. Their columns are matched by name; one that the table has and they lack is NULL.
            load: what becomes of the rows that are there.
            tag: of the commit.
            state: sentinel JSON text of the watermark after it.
            base: the version that the slice was planned on, from which a format may validate; None: there was no table, so that it is made
                with the columns of ``rows``. A table that came since is refused: nobody has decided about its rows.

        Raises:
            WriteConflict: another writer was faster, and touched what this write builds on; the same write may succeed now.
            RowsRefused: the table cannot take these rows, now or later; nothing was committed, and the number is given up. Spark's
                AnalysisException means the same. After any other error the next run writes the same slice again.
        """
        ...

    def give_up(
        self, spark: SparkSession, tag: Tag, state: str, first_rows: Callable[[], DataFrame] | None
    ) -> None:
        """Fence a number by a commit that changes no row; like :meth:`write`, it raises nothing if the tag is taken.

        Args:
            spark: a session.
            tag: of the commit.
            state: sentinel JSON text of the watermark, which the commit leaves as it is.
            first_rows: gives no rows, of the columns of a table that has to be made, and refused as by :meth:`write`; None if there is a table.
        """
        ...

    def columns(self) -> list[str]:
        """Return the names of the columns; none if there is no table."""
        ...

    def schema(self) -> tuple[Version, str] | None:
        """Return the newest version, and its columns as Spark's JSON; None if there is no table."""
        ...

    def identity(self) -> str | None:
        """Return what tells the table from another one at its place, whatever its version; None if there is no table."""
        ...

    def count_rows(self) -> int:
        """Return the number of rows; 0 if there is no table."""
        ...

    def count_bytes(self) -> int | None:
        """Return the bytes of the newest version's data files, as the table's log counts them; 0 if there is no table, None if it does not tell.

        Those of a shared table are all of its files'. Reads no data file.
        """
        ...

    def highest_values(
        self, columns: Sequence[str], version: Version | None = None, rows: Predicate | None = None
    ) -> dict[str, Any]:
        """Return the highest value of columns; None: no row has a value. Types are kept as by :meth:`distinct_rows`, texts compared by bytes.

        Args:
            columns: with single values.
            version: of the table; None: the newest.
            rows: that are looked at; None: all.
        """
        ...

    def texts(self, column: str) -> set[str]:
        """Return all texts of a column, each once; none if there is no such column. Reads the column's data."""
        ...

    def distinct_rows(self, columns: Sequence[str], most: int = MOST_ROWS) -> Iterator[dict[str, Any]]:
        """Return the distinct rows of the newest version, sorted by the columns in their order, NULLs first.

        Types are kept: whole numbers are int, text is str, instants are aware and in UTC, times without zone are naive, decimals are
        Decimal.

        Args:
            columns: with single values; at least one.
            most: distinct rows that are taken.

        Raises:
            SourceError: if there is no table, a column is not there or holds nested values, or there are more rows. Never is any of
                these an empty list.
        """
        ...

    def holds_any(self, version: Version, rows: Predicate) -> bool:
        """Return whether a version has at least one of these rows. Reads as few files as their statistics allow."""
        ...

    def file_maxima(self, version: Version, column: str) -> list[tuple[Any, int]]:
        """Return the highest value of a column in each data file of a version, with the file's number of rows, in any order.

        From statistics alone, which may be a little low, or high if rows were deleted. Files without a value are missing.
        """
        ...

    def newest_version(self) -> Version:
        """Return the newest version, for a read that can be repeated.

        Raises:
            SourceError: code ``source_missing``: there is no table.
        """
        ...

    def read(self, spark: SparkSession, version: Version, rows: Predicate = EVERYTHING) -> DataFrame:
        """Return the rows of a version.

        Args:
            spark: a session.
            version: of the table.
            rows: that the caller keeps, and filters by itself: others may be missing.
        """
        ...

    def remove(self, session: Callable[[], SparkSession]) -> None:
        """Remove the table with all of its files; there is none afterwards, nor is it an error if there was none. Who calls it knows that nobody needs it.

        Args:
            session: gives one, if it is needed.

        Raises:
            TargetError: some of it is still there; the next call removes the rest.
        """
        ...


@runtime_checkable
class CanAdopt(Protocol):
    """A format whose commits tell the state that they were written with.

    Without it a state that was lost is found again from rows alone, and what is loaded then has a new app id: a write that a dead run
    left under the old one is not fenced.
    """

    def adopted(self, app_id: str | None = None) -> Adopted | None:
        """Return what Strandline's commits tell that the table's rows go back to.

        A commit's state says that all rows up to it are in the table. That holds as long as the commit that the state before was true of
        is one that the table's rows go back to: not if a RESTORE or another writer's overwrite came between the two, or the table was
        removed there.

        Args:
            app_id: whose commits count; None are those of whoever wrote the newest.

        Returns:
            None if there is no commit of Strandline, and no rows were removed either.

        Raises:
            NeedsDecision: code ``state_object_missing``: the watermark lies beside the table, and is gone or is another one.
        """
        ...


def adopted_state(table: Table, app_id: str | None = None) -> Adopted | None:
    """Return what a table tells, if its format can; see :meth:`CanAdopt.adopted`."""
    return table.adopted(app_id) if isinstance(table, CanAdopt) else None


@dataclass(frozen=True)
class Cared:
    """What a table's care has done.

    Attributes:
        added: data files that were written.
        removed: data files that are part of the newest version no more.
        deleted: files that were there before, and that it has deleted.
        statistics: files whose statistics left rows out, and were written again.
    """

    added: int = 0
    removed: int = 0
    deleted: int = 0
    statistics: int = 0

    def counts(self) -> dict[str, int]:
        """Those that are not 0."""
        counts = {
            "files added": self.added,
            "files removed": self.removed,
            "files deleted": self.deleted,
            "files with exact statistics again": self.statistics,
        }
        return {name: count for name, count in counts.items() if count}

    def __str__(self) -> str:
        """In words."""
        counts = [
            f"{counted(count, 'file')} {name.removeprefix('files ')}" for name, count in self.counts().items()
        ]
        return ", ".join(counts) or "nothing to do"


@runtime_checkable
class CanOptimize(Protocol):
    """A format that joins small files. No row and no tag changes, and :meth:`Table.head` keeps what was recorded before.

    Who calls it holds the dataflow; other writers may commit meanwhile.
    """

    def optimize(self, session: Callable[[], SparkSession], cluster_by: Sequence[str]) -> Cared:
        """Join small files into larger ones. Older versions stay readable.

        Args:
            session: gives one, if it is needed.
            cluster_by: columns by which rows are put together in the files that are written; none: rows stay in their order.

        Raises:
            TargetError: it failed; nothing, or all of it, is in the table.
        """
        ...


@runtime_checkable
class CanVacuum(Protocol):
    """A format that keeps files which its newest version does not need. Who calls it holds the dataflow, as of :class:`CanOptimize`."""

    def vacuum(self, session: Callable[[], SparkSession]) -> Cared:
        """Delete files that only versions older than the table's retention need, and files that no commit knows and that are as old.

        Args:
            session: gives one, if it is needed.

        Raises:
            TargetError: it failed; the next one deletes the rest.
        """
        ...


class WrongStatistics(NamedTuple):
    """What the log of a table tells wrong of its files.

    Attributes:
        files: paths of the files of which it has bounds that leave rows out.
        can_be_written: whether care of the table writes exact ones in their place.
    """

    files: Sequence[str]
    can_be_written: bool


@runtime_checkable
class TellsWrongStatistics(Protocol):
    """A format whose writers may keep bounds that are not exact, so that readers skip files that they need."""

    def wrong_statistics(self) -> WrongStatistics:
        """Compare the log of the newest version with the files.

        Raises:
            TargetError: the log cannot be read.
            SourceError: a file cannot be read.
        """
        ...


@runtime_checkable
class CanBeShared(Protocol):
    """A format whose tables several dataflows may load (docs/loads.md, Tables that dataflows share)."""

    def share_of(self, dataflow: str) -> Table:
        """Return the table as one of the dataflows that share it sees it.

        It deletes, updates and counts the rows whose ``_dataflow`` is that dataflow alone, adopts the states of its commits alone, and takes a
        table that another one has made for its own.
        """
        ...


def share_of(table: Table, dataflow: str) -> Table:
    """Return a dataflow's share of a table; see :meth:`CanBeShared.share_of`.

    Raises:
        ConfigurationError: its format cannot be shared.
    """
    if isinstance(table, CanBeShared):
        return table.share_of(dataflow)
    raise ConfigurationError(
        f"dataflow {dataflow}: expected a table of a format that dataflows can share, found another. Remove target.shared, and give it a table of its own"
    )


@runtime_checkable
class CanPrepare(Protocol):
    """A format whose first look in a session can be taken in advance."""

    def prepare_next(self, spark: SparkSession) -> None:
        """Have the engine do now what the next write would do first. Changes nothing; the caller waits for it or not."""
        ...


@runtime_checkable
class TellsRefusals(Protocol):
    """A format whose errors tell why it refuses rows."""

    def refuses_rows_outside(self, error: Exception) -> bool:
        """Return whether a write failed because some of its rows are not among those that its load replaces."""
        ...


@runtime_checkable
class TellsNextColumns(Protocol):
    """A format whose columns may change apart from rows, so that the newest version has others than the next."""

    def next_columns(self) -> str | None:
        """Return the columns that the next write finds, as Spark's JSON; None: there is no table."""
        ...


class FileSpan(NamedTuple):
    """What statistics tell of one data file.

    Attributes:
        group: the value of a column that is the same in all of the file's rows.
        lowest: value of another column.
        highest: value of it.
        rows: how many it has.
    """

    group: Any
    lowest: Any
    highest: Any
    rows: int


@runtime_checkable
class TellsSpans(Protocol):
    """A format whose statistics tell the lowest value of a column, too."""

    def file_spans(self, version: Version, group: str, column: str) -> list[FileSpan] | None:
        """Return the span of a column in each data file of a version, in any order; None if statistics do not tell it of all files.

        They do not where another writer has joined files of several groups, or has deleted rows of files that stay. Times may be cut to
        milliseconds. Starts no Spark, reads no row.

        Args:
            version: of the table.
            group: a column with one value in each file.
            column: with single values, never NULL.
        """
        ...


VERSION = "_strandline_version"
"""The column that says which version appended a row."""


class AppendedFile(NamedTuple):
    """A data file that a version appends.

    Attributes:
        path: as the table's log has it.
        bytes: of it.
        values: of the columns of partitions, as text; None is NULL.
    """

    path: str
    bytes: int
    values: Mapping[str, str | None]


class Mark(NamedTuple):
    """Up to where the versions of a table were read.

    Attributes:
        version: the last one.
        id: what that version had, and no other version of its number; None if it was not noted.
    """

    version: int
    id: str | None = None


class Appended(NamedTuple):
    """What one version appends.

    Attributes:
        version: its number.
        files: how many it appends; 0 if it changes no row.
        bytes: of these.
        id: what no other version of its number has.
        changes: how it changes rows that were there; None if it does not.
        whole: whether the files are all that were there by then, since older versions are not told any more.
        listed: the files, where the log lists them.
    """

    version: int
    files: int
    bytes: int
    id: str
    changes: str | None = None
    whole: bool = False
    listed: tuple[AppendedFile, ...] = ()

    @property
    def mark(self) -> Mark:
        """Where a read of it ends."""
        return Mark(self.version, self.id)


class Appends(NamedTuple):
    """What versions append.

    Attributes:
        table: id of the table, which another one at the same place does not have.
        newest: version of it.
        versions: ascending.
    """

    table: str
    newest: int
    versions: tuple[Appended, ...]


@runtime_checkable
class TellsAppends(Protocol):
    """A format whose log tells which rows each version appends."""

    def appends(self, since: Mark | None, until: int | None = None) -> Appends:
        """Return what each version appends. Starts no Spark.

        Args:
            since: the version before the first; None: from the beginning.
            until: the last version; None: the newest.

        Raises:
            NeedsDecision: code ``versions_gone``: the log does not tell all of them any more; code ``source_replaced``: they do not follow the
                version that was read last, since the table was rolled back or restored.
            SourceError: there is no table, or its log cannot be read.
        """
        ...

    def version_of(self, mark: Mark) -> Version:
        """Return the version that :meth:`Table.read` reads up to there."""
        ...

    def mark_of(self, version: Version) -> Mark:
        """Return where a read up to a version ends: of what :meth:`version_of` returns the same mark, as far as the version tells it."""
        ...

    def rows_of_appends(self, spark: SparkSession, appended: Sequence[Appended]) -> DataFrame:
        """Return the rows of these versions, with the version of each in the column ``VERSION``."""
        ...


@runtime_checkable
class FollowsUp(Protocol):
    """A format with work left after the entry of a commit was appended: a tag that keeps a snapshot, files that move to their place."""

    def after_append(self, commit: TableCommit, dataflow: str) -> None:
        """Do what is left for a commit of a dataflow; done twice it does no harm.

        A run calls it after each entry, and once at its beginning for the newest one, since the run before may have died in between; so does
        a decision before its own entry.
        """
        ...
