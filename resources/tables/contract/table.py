"""The contract of a table that dataflows load: one class a format.

Abilities that only some formats have are protocols of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from partitions.evolution import SchemaMode
from partitions.loads import Load
from resources.connections.places import Place
from resources.tables.contract.commits import TableCommit, TableHead, Tag, TaggedCommit, Version
from resources.tables.contract.contents import TableContents
from resources.tables.contract.maintenance import TableMaintenance

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Table(Protocol):
    """One table and its commits. Only methods that take a session or a DataFrame start Spark.

    Every method raises TargetError if the table's log cannot be read.
    """

    @property
    def place(self) -> Place:
        """Place of the table."""
        ...

    @property
    def contents(self) -> TableContents:
        """Contents of the table."""
        ...

    @property
    def maintenance(self) -> TableMaintenance:
        """Maintenance of the table."""
        ...

    def head(self, recorded: TableCommit | None, app_id: str | None) -> TableHead:
        """Compare the table's log with the recorded commit; return the result.

        Args:
            recorded: commit that the table must have; None if none was recorded yet.
            app_id: dataflow whose tags count.
        """
        ...

    def tip(self, app_id: str | None) -> TableHead:
        """Return the newest commit and the highest number under the dataflow's tag, without a comparison."""
        ...

    def with_schema_mode(self, mode: SchemaMode) -> Table:
        """Return the same table, whose writes change its columns as the mode says.

        ``partitions.evolution`` has the rules. In mode merge rows may lack columns and have narrower types; in mode rescue the table only gains
        ``_rescued_data``. A write raises RowsRefused if the mode does not accept a change. The change is
        part of the rows' commit, or of a commit before it that changes no row and can safely be repeated.
        """
        ...

    def exists(self) -> bool:
        """Return whether a table of this format exists."""
        ...

    def complete_counts(self, commit: TaggedCommit, rows_before: int) -> TaggedCommit:
        """Return a commit of the table with all of its counts.

        Args:
            commit: commit of the table.
            rows_before: rows of the table before the commit, as the watermark log counts them.
        """
        ...

    def write(self, rows: DataFrame, load: Load, tag: Tag, state: str, *, base: Version | None) -> None:
        """Load rows in one commit that carries the tag.

        A number at or below the highest under the tag's app id is skipped. This check and the commit are
        one step, so of several writers with one tag exactly one commits, and the others raise nothing.

        Args:
            rows: all rows of the slice, evaluated once. Columns match by name; a column that only the
                table has is NULL.
            load: what happens to existing rows.
            tag: tag of the commit.
            state: sentinel JSON text of the watermark after the commit.
            base: version that the slice was planned on, from which a format may validate; None: there was
                no table, so the write creates one with the columns of ``rows``. A table that was created
                meanwhile is refused, because no one has decided about its rows.

        Raises:
            WriteConflict: another writer changed what this write builds on; the same write may succeed
                now.
            RowsRefused: the table can never take these rows; nothing was committed, and the number is
                given up. Spark's AnalysisException means the same. After any other error the next run
                writes the same slice again.
        """
        ...

    def give_up(
        self, spark: SparkSession, tag: Tag, state: str, first_rows: Callable[[], DataFrame] | None
    ) -> None:
        """Fence a number by a commit that changes no row.

        Like :meth:`write`, raise nothing if the tag is taken.

        Args:
            spark: session.
            tag: tag of the commit.
            state: sentinel JSON text of the watermark, which does not change.
            first_rows: returns an empty frame with the columns of a table that must be created, refused as
                by :meth:`write`; None if the table exists.
        """
        ...

    def identity(self) -> str | None:
        """Return the id of the table; None if there is no table.

        Every version has the same id; another table at the same place has another.
        """
        ...

    def remove(self, session: Callable[[], SparkSession]) -> None:
        """Remove the table with all of its files; do nothing if there is none.

        The caller makes sure that no one needs the table.

        Args:
            session: returns a session, if one is needed.

        Raises:
            TargetError: some files are still there; the next call removes them.
        """
        ...


@runtime_checkable
class CanPrepare(Protocol):
    """A format whose first write in a session can be prepared in advance."""

    def prepare_next(self, spark: SparkSession) -> None:
        """Prefetch the table state that the next write needs.

        Changes nothing; the caller need not wait for it.
        """
        ...


@runtime_checkable
class TellsRefusals(Protocol):
    """A format whose errors say why it refuses rows."""

    def refuses_rows_outside(self, error: Exception) -> bool:
        """Return whether a write failed because some rows lie outside the rows that its load replaces."""
        ...


@runtime_checkable
class FollowsUp(Protocol):
    """A format with work to do after a commit's entry was appended, such as a tag that keeps a snapshot."""

    def after_append(self, commit: TableCommit, dataflow: str) -> None:
        """Finish the work that follows the entry of a commit. Repeating it does no harm.

        A run calls it after each entry, and once at its start for the newest entry, because the run before
        may have died in between. A decision also calls it before its own entry.
        """
        ...
