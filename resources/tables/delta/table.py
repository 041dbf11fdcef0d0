"""A Delta table of the lake, as the contract has it. What each method needs is in the modules beside this one."""

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
from resources.tables.delta.appends import DeltaAppends
from resources.tables.delta.contents import DeltaContents
from resources.tables.delta.head import compared, tip_of
from resources.tables.delta.history import adoptable_state
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.maintenance import DeltaMaintenance
from resources.tables.delta.rows import count_rows
from resources.tables.delta.share import Share
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
        """Use the table at a place, which the first write makes, partitioned as given; for all, or for one of the dataflows that share it."""
        self._place = place
        self._log = DeltaLog(place)
        self._share = Share(self._log, dataflow)
        self._dataflow = dataflow
        self._schema_mode = schema_mode
        self._partition_by = tuple(partition_by)
        self._wrote_by_delta = False

    @property
    def place(self) -> Place:
        """Where it lies."""
        return self._place

    @property
    def contents(self) -> DeltaContents:
        """What it holds."""
        return DeltaContents(self._log, self._share)

    @property
    def maintenance(self) -> DeltaMaintenance:
        """What cares for it."""
        return DeltaMaintenance(self._log)

    @property
    def appends(self) -> DeltaAppends:
        """What its versions append."""
        return DeltaAppends(self._log)

    def exists(self) -> bool:
        """Return whether there is a Delta log."""
        return self._log.exists()

    def identity(self) -> str | None:
        """Return the id that its metadata has."""
        table = self._log.table()
        return str(table.metadata().id) if table else None

    def share_of(self, dataflow: str) -> DeltaLakeTable:
        """Return the table as one of the dataflows that share it sees it."""
        return DeltaLakeTable(
            self._place, self._partition_by, dataflow=dataflow, schema_mode=self._schema_mode
        )

    def taking_columns(self, mode: SchemaMode) -> DeltaLakeTable:
        """Return the same table, whose writes change its columns as the mode says."""
        return DeltaLakeTable(self._place, self._partition_by, dataflow=self._dataflow, schema_mode=mode)

    def head(self, recorded: TableCommit | None, app_id: str | None) -> TableHead:
        """Compare the table's log with what was recorded of it."""
        return compared(self._log, recorded, app_id, self._dataflow)

    def tip(self, app_id: str | None) -> TableHead:
        """Return what the table is now."""
        return tip_of(self._log, app_id)

    def adoptable_state(self, app_id: str | None = None) -> AdoptableState | None:
        """Return the state that the commits tell which the table's rows go back to."""
        return adoptable_state(self._log, app_id, self._dataflow)

    def complete_counts(self, commit: TaggedCommit, rows_before: int) -> TaggedCommit:
        """Return the commit with all of its counts. One that only deletes does not count rows: the table before and after it tells.

        If the version before was cleaned from the log, the watermark log's own count stands in for it.
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
        """Load rows in one commit; of a table that several dataflows share, whichever of them has made it."""
        first = base is None and (self._dataflow is None or not self.exists())
        self._wrote_by_delta = self._writes().write(rows, load, tag, state, first=first)

    def give_up(
        self, spark: SparkSession, tag: Tag, state: str, first_rows: Callable[[], DataFrame] | None
    ) -> None:
        """Append no row."""
        first = first_rows is not None and (self._dataflow is None or not self.exists())
        self._writes().give_up(spark, tag, state, first_rows, first=first)

    def _writes(self) -> DeltaWrites:
        return DeltaWrites(self._log, self._share, self._partition_by, self._schema_mode)

    def refuses_rows_outside(self, error: Exception) -> bool:
        """Return whether a row was refused. Delta shows the condition of ``replaceWhere`` as a constraint without a name of its own."""
        if isinstance(error, RowsRefused):
            return error.code == OUTSIDE
        return "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES" in str(error) and "EXPRESSION(" in str(error)

    @override
    def remove(self, session: Callable[[], SparkSession]) -> None:
        """Remove its folder."""
        remove_files(self)

    def prepare_next(self, spark: SparkSession) -> None:
        """Make the engine know the table's state, which Delta keeps until the next commit.

        Delta's own writer looks there for its tag, and makes the state first if it is not known. Of what only reads, the details of a
        table are what Delta takes out of it. Where the last write was a commit of ours, so is the next one, as a rule, which needs no engine.
        """
        if not self._wrote_by_delta:
            return
        spark.sql(f"DESCRIBE DETAIL delta.{quoted(self._place.spark_url)}").collect()
