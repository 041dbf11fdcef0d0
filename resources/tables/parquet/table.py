"""A Parquet table as the contract defines it. The modules beside this one do the work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.errors import RowsRefused
from partitions.evolution import SchemaMode
from partitions.loads import Load
from resources.connections.places import Place
from resources.tables.contract.adopting import AdoptableState
from resources.tables.contract.commits import TableCommit, TableHead, Tag, TaggedCommit, Version
from resources.tables.contract.table import FollowsUp, Table
from resources.tables.parquet.commit import ParquetCommit
from resources.tables.parquet.commit_log import ParquetCommits
from resources.tables.parquet.contents import ParquetContents
from resources.tables.parquet.file_check import FileCheck, check_files
from resources.tables.parquet.head import adoptable_state, compare_head, read_tip
from resources.tables.parquet.log import CommitLog
from resources.tables.parquet.maintenance import ParquetMaintenance
from resources.tables.parquet.placement import Placement
from resources.tables.parquet.plain_reader_files import visible_files
from resources.tables.removal import remove_files
from resources.tables.rows.replacement import OUTSIDE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ParquetTable(Table, FollowsUp):
    """One folder of Parquet files with lists of them; it need not exist."""

    def __init__(
        self, place: Place, partition_by: Sequence[str] = (), *, schema_mode: SchemaMode = "strict"
    ) -> None:
        """Use the table at a place; the first write creates it with the partition columns."""
        self._place = place
        self._partition_by = tuple(partition_by)
        self._schema_mode = schema_mode
        self._log = CommitLog(place)
        self._placement = Placement.of(place)
        self._file_check: FileCheck | None = None

    def with_schema_mode(self, mode: SchemaMode) -> ParquetTable:
        """Return the same table, whose writes change its columns as the mode says."""
        return ParquetTable(self._place, self._partition_by, schema_mode=mode)

    @property
    def place(self) -> Place:
        """Place of the table."""
        return self._place

    @property
    def contents(self) -> ParquetContents:
        """Contents of the table."""
        return ParquetContents(self._log, self._placement)

    @property
    def maintenance(self) -> ParquetMaintenance:
        """Maintenance of the table."""
        return ParquetMaintenance(self._log, self._placement, datetime.now(UTC))

    @property
    def commits(self) -> ParquetCommits:
        """Commits of the table."""
        return ParquetCommits(self.contents)

    def head(self, recorded: TableCommit | None, app_id: str | None) -> TableHead:
        """Compare the table's lists with the recorded commit, and once with the existing files."""
        snapshot = self._log.snapshot()
        if snapshot is None:
            visible = tuple(sorted(visible_files(self._place)))
            return TableHead(
                None, has_recorded=recorded is None or recorded.version is None, foreign_files=visible
            )
        if self._file_check is None:
            self._file_check = check_files(self._log, self._placement)
        return compare_head(self._log, snapshot, self._file_check, recorded, app_id)

    def tip(self, app_id: str | None) -> TableHead:
        """Return the newest commit and the highest tag."""
        snapshot = self._log.snapshot()
        return TableHead(None) if snapshot is None else read_tip(snapshot, app_id)

    def adoptable_state(self, app_id: str | None = None) -> AdoptableState | None:
        """Return the state of the newest commit up to which no file is missing."""
        return adoptable_state(self._log, check_files(self._log, self._placement), app_id)

    @override
    def after_append(self, commit: TableCommit, dataflow: str) -> None:
        """Move the newest commit's files into the table, and remove staged folders of finished numbers."""
        snapshot = self._log.snapshot()
        if snapshot is None:
            return
        self._placement.finish(snapshot.newest)
        self._placement.staging.drop_leftovers(snapshot)
        if self._file_check is not None and self._file_check.stray_paths:
            self._placement.removed_files.set_aside(
                path for path in self._file_check.stray_paths if path not in snapshot.files
            )

    def exists(self) -> bool:
        """Return whether the table has a list.

        Parquet files without one may belong to a table of another format that is being created.
        """
        return bool(self._log.versions())

    @override
    def complete_counts(self, commit: TaggedCommit, rows_before: int) -> TaggedCommit:
        """Return the commit as it is: its list has all counts."""
        return commit

    def identity(self) -> str | None:
        """Return the id that the first list gave the table."""
        snapshot = self._log.snapshot()
        return snapshot.newest.table if snapshot else None

    def write(self, rows: DataFrame, load: Load, tag: Tag, state: str, *, base: Version | None) -> None:
        """Load rows in one commit; :meth:`after_append` moves its files into the table."""
        self._commit(tag, state).write(rows, load, self._partition_by, base)

    @override
    def give_up(
        self,
        spark: SparkSession,
        tag: Tag,
        state: str,
        first_rows: Callable[[], DataFrame] | None,
    ) -> None:
        """Write a list that changes no row."""
        columns = (lambda: first_rows().schema) if first_rows else None
        self._commit(tag, state).give_up(columns, self._partition_by)

    @override
    def remove(self, session: Callable[[], SparkSession]) -> None:
        """Remove the table's folder, and its staged and removed files beside it."""
        self._placement.remove()
        remove_files(self)

    def refuses_rows_outside(self, error: Exception) -> bool:
        """Return whether a row was refused because it lies outside the replaced rows."""
        return isinstance(error, RowsRefused) and error.code == OUTSIDE

    def _commit(self, tag: Tag, state: str) -> ParquetCommit:
        lost_paths = (
            frozenset(self._file_check.missing_paths) if self._file_check is not None else frozenset()
        )
        return ParquetCommit(self._log, self._placement, tag, state, lost_paths, self._schema_mode)
