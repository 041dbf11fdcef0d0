"""Write one slice into an Iceberg table, by our own commit or by Spark's (docs/explanation/adr/0032)."""

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
from resources.tables.iceberg.columns import OUTSIDE, check_reserved, check_types, is_outside_error
from resources.tables.iceberg.conflicts import conflict_error, is_conflict
from resources.tables.iceberg.creation import create_table, take_over
from resources.tables.iceberg.metadata import Metadata
from resources.tables.iceberg.numbered_commit import NumberedCommit
from resources.tables.iceberg.own_commit import IcebergOwnCommit
from resources.tables.iceberg.spark_commit import SparkCommit
from resources.tables.row_columns import written_columns
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
    creates_table: bool,
) -> None:
    """Load rows, unless the number is taken; see :meth:`resources.tables.contract.table.Table.write`.

    Args:
        commit: commit of the number.
        rows: rows of the slice.
        load: load of the slice.
        partition_by: partition columns of a new or fully replaced table.
        schema_mode: how writes change the table's columns.
        creates_table: whether the write creates the table.
    """
    check_reserved(rows)
    changes = ColumnChanges(commit, schema_mode)
    if not creates_table:
        changes.alter_table(rows, load)
    writing = _SliceWrite(commit, changes, rows, load, partition_by, creates_table=creates_table)
    try:
        retry_conflicts(writing.attempt)
    finally:
        writing.own_commit.remove_staged()


class _SliceWrite:
    """The attempts to write one slice, which share cached rows and written files."""

    def __init__(
        self,
        commit: NumberedCommit,
        changes: ColumnChanges,
        rows: DataFrame,
        load: Load,
        partition_by: tuple[str, ...],
        *,
        creates_table: bool,
    ) -> None:
        self._commit, self._changes, self._partition_by = commit, changes, partition_by
        self._rows, self._load, self._creates_table = rows, load, creates_table
        own_commit = commit.with_writer("Strandline (pyiceberg)")
        self.own_commit = IcebergOwnCommit(
            commit.place, commit.catalog, commit.value, own_commit.summary(load, None), commit.is_taken
        )
        self._is_keyed = not creates_table and isinstance(load, ByKeys)
        self._is_retry = False
        self._count: int | None = None
        self._uuid: str | None = None

    def attempt(self) -> None:
        """Write the slice, unless its number is taken.

        Raises:
            WriteConflict: another writer committed first.
        """
        commit = self._commit
        metadata = commit.catalog.newest()
        if commit.is_taken(metadata):
            return
        if (metadata is None and not self._creates_table) or self._uuid not in (
            None,
            metadata and metadata.uuid,
        ):
            raise commit.missing_table_error(metadata)
        self._uuid = metadata.uuid if metadata else None
        if self._is_keyed and not self._is_retry:
            # A keyed load reads its rows more than once, and a source may change in between.
            self._rows, self._count = cache_and_count(self._rows)
        try:
            self._write(metadata)
        except WriteConflict:
            raise
        except Exception as error:
            if is_outside_error(error):
                raise RowsRefused(
                    f"table {commit.table_name}: rows lie outside the part of the table that the load "
                    "replaces",
                    code=OUTSIDE,
                ) from error
            # The cached rows cannot fail, but files that others removed with their snapshot can.
            if self._creates_table or not (
                is_conflict(error) or (self._is_keyed and self._has_new_snapshot(metadata))
            ):
                raise
            raise conflict_error(commit.table_name, commit.tag.number, error) from error
        finally:
            self._is_retry = True

    def _write(self, metadata: Metadata | None) -> None:
        commit, load, partition_by = self._commit, self._load, self._partition_by
        if metadata is not None and isinstance(load, ReplaceAll):
            metadata = take_over(commit, self._rows, metadata, partition_by)
        if metadata is None or self._creates_table:
            create_table(commit, self._rows, load, partition_by)
            return
        fitted_rows = self._changes.fit_rows(self._rows, load, metadata)
        if isinstance(load, ByKeys):
            check_types(
                written_columns(fitted_rows.schema, load), commit.columns(metadata), commit.table_name
            )
        with_table_columns = partial(commit.with_table_columns, metadata=metadata)
        engine_reason = self.own_commit.commit_rows(
            fitted_rows, load, metadata, with_table_columns, self._count
        )
        if engine_reason is None:
            Branches(commit.catalog, commit.tag).drop_abandoned(metadata)
            return
        without_branch = isinstance(load, Append) and not self._is_retry
        by_spark = SparkCommit(commit.with_writer(f"Spark: {engine_reason}"), partition_by)
        by_spark.write(fitted_rows, load, metadata, without_branch=without_branch)

    def _has_new_snapshot(self, metadata: Metadata | None) -> bool:
        """Return whether readers now see another snapshot or another table."""
        with suppress(TargetError):
            newest = self._commit.catalog.newest()
            version_before, version_now = (
                version and (version.uuid, version.current and version.current.id)
                for version in (metadata, newest)
            )
            return version_before != version_now
        return False
