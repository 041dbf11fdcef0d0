"""A Delta table as the contract defines it. The modules beside this one do the work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.errors import RowsRefused, TargetError
from partitions.evolution import SchemaMode
from partitions.loads import Load
from resources.connections.places import Place
from resources.sql import quoted
from resources.tables.contract.adopting import AdoptableState
from resources.tables.contract.commits import TableCommit, TableHead, Tag, TaggedCommit, Version
from resources.tables.contract.table import Table
from resources.tables.delta.commit_log import DeltaCommits
from resources.tables.delta.contents import DeltaContents
from resources.tables.delta.head import compare_head, read_tip
from resources.tables.delta.history import adoptable_state
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.maintenance import DeltaMaintenance
from resources.tables.delta.rows import count_rows
from resources.tables.delta.share import DeltaShare
from resources.tables.delta.writing import DeltaWrites
from resources.tables.removal import remove_files
from resources.tables.rows.replacement import OUTSIDE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class DeltaLakeTable(Table):
    """One Delta table; it need not exist."""

    def __init__(
        self,
        place: Place,
        partition_by: Sequence[str] = (),
        *,
        dataflow: str | None = None,
        schema_mode: SchemaMode = "strict",
    ) -> None:
        """Use the table at a place.

        Args:
            place: place of the table.
            partition_by: partition columns that the first write creates.
            dataflow: dataflow that shares the table; None: no one shares it.
            schema_mode: how writes change the table's columns.
        """
        self._place = place
        self._log = DeltaLog(place)
        self._share = DeltaShare(self._log, dataflow)
        self._dataflow = dataflow
        self._schema_mode = schema_mode
        self._partition_by = tuple(partition_by)
        self._wrote_by_delta = False

    @property
    def place(self) -> Place:
        """Place of the table."""
        return self._place

    @property
    def contents(self) -> DeltaContents:
        """Contents of the table."""
        return DeltaContents(self._log, self._share)

    @property
    def maintenance(self) -> DeltaMaintenance:
        """Maintenance of the table."""
        return DeltaMaintenance(self._log)

    @property
    def commits(self) -> DeltaCommits:
        """Commits of the table."""
        return DeltaCommits(self._log)

    def exists(self) -> bool:
        """Return whether the place has a Delta log."""
        return self._log.exists()

    def identity(self) -> str | None:
        """Return the id in the table's metadata."""
        table = self._log.table()
        return str(table.metadata().id) if table else None

    def share_of(self, dataflow: str) -> DeltaLakeTable:
        """Return the table as one of its dataflows sees it."""
        return DeltaLakeTable(
            self._place, self._partition_by, dataflow=dataflow, schema_mode=self._schema_mode
        )

    def with_schema_mode(self, mode: SchemaMode) -> DeltaLakeTable:
        """Return the same table, whose writes change its columns as the mode says."""
        return DeltaLakeTable(self._place, self._partition_by, dataflow=self._dataflow, schema_mode=mode)

    def head(self, recorded: TableCommit | None, app_id: str | None) -> TableHead:
        """Compare the table's log with the recorded commit."""
        return compare_head(self._log, recorded, app_id, self._dataflow)

    def tip(self, app_id: str | None) -> TableHead:
        """Return the newest commit and the highest tag."""
        return read_tip(self._log, app_id)

    def adoptable_state(self, app_id: str | None = None) -> AdoptableState | None:
        """Return the state that the table's commits record."""
        return adoptable_state(self._log, app_id, self._dataflow)

    def complete_counts(self, commit: TaggedCommit, rows_before: int) -> TaggedCommit:
        """Return the commit with all of its counts.

        A commit that only deletes does not count rows, so the versions before and after it are compared.
        If the version before was cleaned from the log, ``rows_before`` stands in for it.
        """
        if not commit.uncounted:
            return commit
        version = int(commit.version)
        try:
            rows_before, rows_after = count_rows(self._log, version - 1), count_rows(self._log, version)
        except TargetError:
            rows_after = self.contents.count_rows()
        return replace(commit, removed=max(0, rows_before + commit.rows - rows_after), uncounted=False)

    def write(self, rows: DataFrame, load: Load, tag: Tag, state: str, *, base: Version | None) -> None:
        """Load rows in one commit. Any of the dataflows that share a table may create it."""
        creates_table = base is None and (self._dataflow is None or not self.exists())
        self._wrote_by_delta = self._writer().write(rows, load, tag, state, creates_table=creates_table)

    def give_up(
        self, spark: SparkSession, tag: Tag, state: str, first_rows: Callable[[], DataFrame] | None
    ) -> None:
        """Fence the number by an append of no rows."""
        creates_table = first_rows is not None and (self._dataflow is None or not self.exists())
        self._writer().give_up(spark, tag, state, first_rows, creates_table=creates_table)

    def _writer(self) -> DeltaWrites:
        return DeltaWrites(self._log, self._share, self._partition_by, self._schema_mode)

    def refuses_rows_outside(self, error: Exception) -> bool:
        """Return whether a write failed because a row lies outside the replaced rows.

        Delta reports the condition of ``replaceWhere`` as an unnamed constraint.
        """
        if isinstance(error, RowsRefused):
            return error.code == OUTSIDE
        return "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES" in str(error) and "EXPRESSION(" in str(error)

    @override
    def remove(self, session: Callable[[], SparkSession]) -> None:
        """Remove the folder of the table."""
        remove_files(self)

    def prepare_next(self, spark: SparkSession) -> None:
        """Have the engine load the table's state, which Delta caches until the next commit.

        Delta's own writer looks for its tag in that state, and loads it first if needed. DESCRIBE DETAIL
        is the cheapest read that does so. After a commit of our own the next one usually needs no engine
        either.
        """
        if not self._wrote_by_delta:
            return
        spark.sql(f"DESCRIBE DETAIL delta.{quoted(self._place.spark_url)}").collect()
