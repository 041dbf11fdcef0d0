"""The contract of a table that dataflows load into: one class a format. Abilities that only some formats have stand beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from partitions.evolution import SchemaMode
from partitions.loads import Load
from resources.connections.places import Place
from resources.tables.contract.commits import TableCommit, TableHead, Tag, TaggedCommit, Version
from resources.tables.contract.contents import TableContents
from resources.tables.contract.maintenance import Maintenance

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Table(Protocol):
    """One table, and its commits. Only what takes a session or a DataFrame starts Spark.

    Every method raises TargetError if the table's log cannot be read.
    """

    @property
    def place(self) -> Place:
        """Return where it lies."""
        ...

    @property
    def contents(self) -> TableContents:
        """Return what it holds."""
        ...

    @property
    def maintenance(self) -> Maintenance:
        """Return what cares for it."""
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

    def identity(self) -> str | None:
        """Return what tells the table from another one at its place, whatever its version; None if there is no table."""
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
class FollowsUp(Protocol):
    """A format with work left after the entry of a commit was appended: a tag that keeps a snapshot, files that move to their place."""

    def after_append(self, commit: TableCommit, dataflow: str) -> None:
        """Do what is left for a commit of a dataflow; done twice it does no harm.

        A run calls it after each entry, and once at its beginning for the newest one, since the run before may have died in between; so does
        a decision before its own entry.
        """
        ...
