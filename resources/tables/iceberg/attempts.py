"""The attempts to write one slice into an Iceberg table: by Strandline's own commit, or by Spark's (docs/explanation/adr/0032)."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from partitions.errors import RowsRefused, TargetError, WriteConflict
from partitions.evolution import SchemaMode
from partitions.loads import Append, ByKeys, Load, ReplaceAll
from resources.tables.contract.conflict_retries import retry_conflicts
from resources.tables.iceberg.branches import Branches
from resources.tables.iceberg.column_changes import ColumnChanges
from resources.tables.iceberg.columns import OUTSIDE, check_reserved, check_types, is_outside
from resources.tables.iceberg.conflicts import conflict_of, is_conflict
from resources.tables.iceberg.creation import create_table, take_over
from resources.tables.iceberg.metadata import Metadata
from resources.tables.iceberg.numbered_commit import NumberedCommit
from resources.tables.iceberg.own_commit import OwnCommit
from resources.tables.iceberg.spark_commit import SparkCommit
from resources.tables.row_columns import with_validity
from resources.tables.rows.row_counts import cache_and_count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_slice(
    commit: NumberedCommit,
    rows: DataFrame,
    load: Load,
    partition_by: tuple[str, ...],
    schema_mode: SchemaMode,
    *,
    first: bool,
) -> None:
    """Load rows, unless the number is taken; see :meth:`resources.tables.contract.table.Table.write`.

    Args:
        commit: of the number.
        rows: of the slice.
        load: what becomes of the rows in the table.
        partition_by: columns of a table that is made, or given new columns.
        schema_mode: what becomes of the table's columns if rows come with others.
        first: whether the write makes the table.
    """
    check_reserved(rows)
    changes = ColumnChanges(commit, schema_mode)
    if not first:
        changes.make(rows, load)
    writing = _Writing(commit, changes, rows, load, partition_by, first=first)
    try:
        retry_conflicts(writing.attempt)
    finally:
        writing.own.remove_staged()


class _Writing:
    """The attempts to write one slice: what the first of them has looked at or written serves the next."""

    def __init__(
        self,
        commit: NumberedCommit,
        changes: ColumnChanges,
        rows: DataFrame,
        load: Load,
        partition_by: tuple[str, ...],
        *,
        first: bool,
    ) -> None:
        self._commit, self._changes, self._partition_by = commit, changes, partition_by
        self._rows, self._load, self._first = rows, load, first
        own = commit.with_writer("Strandline (pyiceberg)")
        self.own = OwnCommit(
            commit.place, commit.catalog, commit.value, own.summary(load, None), commit.is_taken
        )
        self._by_keys = not first and isinstance(load, ByKeys)
        self._is_again = False
        self._count: int | None = None
        self._uuid: str | None = None

    def attempt(self) -> None:
        """Write the slice, unless its number is taken.

        Raises:
            WriteConflict: another writer was first.
        """
        commit = self._commit
        metadata = commit.catalog.newest()
        if commit.is_taken(metadata):
            return
        if (metadata is None and not self._first) or self._uuid not in (None, metadata and metadata.uuid):
            raise commit.gone(metadata)
        self._uuid = metadata.uuid if metadata else None
        if self._by_keys and not self._is_again:
            # Whatever finds out what they change uses them more than once, and a source may answer otherwise the second time.
            self._rows, self._count = cache_and_count(self._rows)
        try:
            self._write(metadata)
        except WriteConflict:
            raise
        except Exception as error:
            if is_outside(error):
                raise RowsRefused(
                    f"table {commit.shown}: rows are not among those that are replaced", code=OUTSIDE
                ) from error
            # Rows that are kept do not fail. Files that others have removed do, with their snapshot.
            if self._first or not (is_conflict(error) or (self._by_keys and self._has_moved(metadata))):
                raise
            raise conflict_of(commit.shown, commit.tag.number, error) from error
        finally:
            self._is_again = True

    def _write(self, metadata: Metadata | None) -> None:
        commit, load, partition_by = self._commit, self._load, self._partition_by
        if metadata is not None and isinstance(load, ReplaceAll):
            metadata = take_over(commit, self._rows, metadata, partition_by)
        if metadata is None or self._first:
            create_table(commit, self._rows, load, partition_by)
            return
        fitted = self._changes.fitted(self._rows, load, metadata)
        if isinstance(load, ByKeys):
            check_types(with_validity(fitted.schema, load), commit.columns(metadata), commit.shown)
        placed = partial(commit.placed, metadata=metadata)
        reason = self.own.land(fitted, load, metadata, placed, self._count)
        if reason is None:
            Branches(commit.catalog, commit.tag).drop_abandoned(metadata)
            return
        in_one = isinstance(load, Append) and not self._is_again
        by_spark = SparkCommit(commit.with_writer(f"Spark: {reason}"), partition_by)
        by_spark.write(fitted, load, metadata, in_one=in_one)

    def _has_moved(self, since: Metadata | None) -> bool:
        """Whether readers see another snapshot by now, or another table."""
        with suppress(TargetError):
            now = self._commit.catalog.newest()
            before, after = (
                metadata and (metadata.uuid, metadata.current and metadata.current.id)
                for metadata in (since, now)
            )
            return before != after
        return False
