"""A Parquet table of the lake, as the contract has it. What each method needs is in the modules beside this one."""

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
from resources.tables.parquet.commit import Commit
from resources.tables.parquet.contents import ParquetContents
from resources.tables.parquet.file_check import Look, look_at
from resources.tables.parquet.head import adoptable_state, compared, tip_of
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
        """Use the table at a place, which the first write makes, partitioned as given."""
        self._place = place
        self._partition_by = tuple(partition_by)
        self._schema_mode = schema_mode
        self._log = CommitLog(place)
        self._placement = Placement.of(place)
        self._look: Look | None = None

    def taking_columns(self, mode: SchemaMode) -> ParquetTable:
        """Return the same table, whose writes change its columns as the mode says."""
        return ParquetTable(self._place, self._partition_by, schema_mode=mode)

    @property
    def place(self) -> Place:
        """Where it lies."""
        return self._place

    @property
    def contents(self) -> ParquetContents:
        """What it holds."""
        return ParquetContents(self._log, self._placement)

    @property
    def maintenance(self) -> ParquetMaintenance:
        """What cares for it."""
        return ParquetMaintenance(self._log, self._placement, datetime.now(UTC))

    def head(self, recorded: TableCommit | None, app_id: str | None) -> TableHead:
        """Compare the table's lists with what was recorded of it, and once with the files that are there."""
        snapshot = self._log.snapshot()
        if snapshot is None:
            visible = tuple(sorted(visible_files(self._place)))
            return TableHead(
                None, has_recorded=recorded is None or recorded.version is None, foreign_files=visible
            )
        if self._look is None:
            self._look = look_at(self._log, self._placement)
        return compared(self._log, snapshot, self._look, recorded, app_id)

    def tip(self, app_id: str | None) -> TableHead:
        """Return what the table is now."""
        snapshot = self._log.snapshot()
        return TableHead(None) if snapshot is None else tip_of(snapshot, app_id)

    def adoptable_state(self, app_id: str | None = None) -> AdoptableState | None:
        """Return the state of the newest commit whose files, and those of all commits before it, are there."""
        return adoptable_state(self._log, look_at(self._log, self._placement), app_id)

    @override
    def after_append(self, commit: TableCommit, dataflow: str) -> None:
        """Move the newest commit's files to their places, and remove what is staged for numbers that the table holds."""
        snapshot = self._log.snapshot()
        if snapshot is None:
            return
        self._placement.finish(snapshot.newest)
        self._placement.staging.drop_leftovers(snapshot)
        if self._look is not None and self._look.stray:
            self._placement.aside.put(path for path in self._look.stray if path not in snapshot.files)

    def exists(self) -> bool:
        """Return whether there is a list: without one, Parquet files in a folder may be those of a table of another format that is being made."""
        return bool(self._log.versions())

    @override
    def complete_counts(self, commit: TaggedCommit, rows_before: int) -> TaggedCommit:
        """Return the commit, whose list has all counts."""
        return commit

    def identity(self) -> str | None:
        """Return the id that its first list has given."""
        snapshot = self._log.snapshot()
        return snapshot.newest.table if snapshot else None

    def write(self, rows: DataFrame, load: Load, tag: Tag, state: str, *, base: Version | None) -> None:
        """Load rows in one commit; their files are moved to their places by :meth:`after_append`."""
        self._commit(tag, state).write(rows, load, self._partition_by, base)

    @override
    def give_up(
        self,
        spark: SparkSession,
        tag: Tag,
        state: str,
        first_rows: Callable[[], DataFrame] | None,
    ) -> None:
        """Put a list that changes no row."""
        columns = (lambda: first_rows().schema) if first_rows else None
        self._commit(tag, state).give_up(columns, self._partition_by)

    @override
    def remove(self, session: Callable[[], SparkSession]) -> None:
        """Remove its folder, and what lies beside it: files that are staged, and those that were set aside."""
        self._placement.remove()
        remove_files(self)

    def refuses_rows_outside(self, error: Exception) -> bool:
        """Return whether a row was refused."""
        return isinstance(error, RowsRefused) and error.code == OUTSIDE

    def _commit(self, tag: Tag, state: str) -> Commit:
        lost = frozenset(self._look.missing) if self._look is not None else frozenset()
        return Commit(self._log, self._placement, tag, state, lost, self._schema_mode)
