"""Commit data files that Spark wrote to an Iceberg table with pyiceberg (docs/explanation/adr/0032).

A metadata version is written only as the successor of the one in which the number was free, so that a
number is written once. An append is valid on top of other writers' commits. A load that replaces or
changes rows is valid only on the snapshot that it read. Tables that need more than plain files and bounds
are left to Spark (:mod:`resources.tables.iceberg.plain_table`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from partitions.errors import SourceError, TargetError, WriteConflict, shorten_to_line
from partitions.loads import Append, ByKeys, Load, Replace, ReplaceKeys, Scd2, Upsert
from partitions.target import COMMIT_COLUMN
from resources.connections.places import Place
from resources.spark.frames import with_cached_columns, with_typed_columns
from resources.tables.changed_rows import FILE_COLUMN, find_changes
from resources.tables.contract.conflict_retries import NeedsEngine
from resources.tables.data_files.written import (
    WrittenFile,
    drop_empty_files,
    find_written_files,
    remove_files,
    removing_failed_files,
    write_files,
)
from resources.tables.iceberg.catalog import Catalog
from resources.tables.iceberg.metadata import Metadata, spark_schema
from resources.tables.iceberg.own_files import DATA
from resources.tables.iceberg.own_snapshot import SnapshotChange
from resources.tables.iceberg.plain_table import PlainTable
from resources.tables.iceberg.replaced_files import (
    ReplacedFiles,
    check_readable_without_spark,
    find_named_files,
    find_replaced_files,
)
from resources.tables.rows.replacement import Replacement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FILE = "_file"
"""Iceberg's own column for the file of a row."""


@dataclass(frozen=True)
class _SnapshotWrite:
    """The rows to write and the files to remove.

    Attributes:
        rows: rows to write.
        replaced: files to remove.
        count_copied: counts the copied rows among the written files; None if the load only adds rows,
            whatever the table holds.
        deleted_rows: rows that deletes of an upsert remove.
    """

    rows: DataFrame
    replaced: ReplacedFiles
    count_copied: Callable[[Place, Sequence[WrittenFile]], int] | None = None
    deleted_rows: int = 0


@dataclass(frozen=True)
class _StagedFiles:
    """Written files that no version of the table names yet.

    Attributes:
        folder: folder of the files, below the table's data folder.
        table: table that they were written for.
        change: snapshot that adds and removes files.
        needs_same_snapshot: whether the change is valid only on the snapshot that readers saw then,
            because it replaces or changes rows.
    """

    folder: str
    table: PlainTable
    change: SnapshotChange
    needs_same_snapshot: bool


class IcebergOwnCommit:
    """The commit of one number; see :meth:`resources.tables.contract.table.Table.write`.

    After a conflict its written files are used again if they are valid on top of any commit.
    """

    def __init__(
        self,
        place: Place,
        catalog: Catalog,
        commit: str,
        summary: Mapping[str, str],
        is_taken: Callable[[Metadata], bool],
    ) -> None:
        """Prepare a commit; write nothing yet.

        Args:
            place: place of the table.
            catalog: catalog of the table.
            commit: value that the commit's rows carry.
            summary: summary of the snapshot.
            is_taken: returns whether the number is taken in a version of the metadata.
        """
        self._place, self._catalog, self._commit = place, catalog, commit
        self._summary, self._is_taken = summary, is_taken
        self._staged: _StagedFiles | None = None

    def commit_rows(
        self,
        rows: DataFrame,
        load: Load,
        metadata: Metadata,
        with_table_columns: Callable[[DataFrame], DataFrame],
        count: int | None = None,
    ) -> str | None:
        """Load rows, unless the number is taken; return None, or the reason why Spark's writer must do it.

        If it returns a reason, it has left nothing behind.

        Args:
            rows: rows of the slice; cached for a keyed load, because they are read more than once.
            load: load of the slice.
            metadata: metadata of the table in which the number was free.
            with_table_columns: gives rows the table's columns, the commit's among them.
            count: number of rows in the slice, if known.

        Raises:
            WriteConflict: another writer committed first. The next call uses the written files again if
                they are still valid.
            RowsRefused: a row does not fit the table, or lies outside the rows that are replaced.
            TargetError: the commit failed otherwise. It may be in the table if that cannot be read now.
        """
        plain_table = PlainTable(metadata)
        try:
            plain_table.check_plain(self._place)
            if self._staged is None:
                self._stage(self._plan_write(rows, load, plain_table, with_table_columns, count), plain_table)
            self._commit_staged()
        except NeedsEngine as reason:
            self.remove_staged()
            return str(reason)
        return None

    def remove_staged(self) -> None:
        """Remove written files that no version of the table names."""
        if self._staged is not None:
            remove_files(self._place.child(DATA), self._staged.folder)
            self._staged = None

    def _plan_write(
        self,
        rows: DataFrame,
        load: Load,
        table: PlainTable,
        with_table_columns: Callable[[DataFrame], DataFrame],
        count: int | None,
    ) -> _SnapshotWrite:
        """Plan what to write and remove; raise NeedsEngine if Spark must find that out."""
        if isinstance(load, Append):
            return _SnapshotWrite(with_table_columns(rows), ReplacedFiles())
        check_readable_without_spark(table)
        match load:
            case Replace():
                return self._plan_replacement(with_table_columns(rows), load, table)
            case Upsert() | ReplaceKeys() | Scd2():
                return self._plan_changes(rows, load, table, with_table_columns, count)
        raise NeedsEngine("the whole table is replaced")

    def _plan_replacement(self, rows: DataFrame, load: Replace, table: PlainTable) -> _SnapshotWrite:
        replaced_files = self._without_spark(lambda: find_replaced_files(table, load, self._place))
        partly_replaced = replaced_files.read(rows.sparkSession, table, self._place)
        replacement = Replacement(rows, load, partly_replaced, replaced_files.partial_rows)
        return _SnapshotWrite(replacement.rows, replaced_files, replacement.count_copied)

    def _plan_changes(
        self,
        rows: DataFrame,
        load: ByKeys,
        table: PlainTable,
        with_table_columns: Callable[[DataFrame], DataFrame],
        count: int | None,
    ) -> _SnapshotWrite:
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType, StructType

        session, snapshot = rows.sparkSession, table.metadata.current
        assert snapshot is not None
        table_rows = session.read.option("versionAsOf", str(snapshot.id)).table(self._catalog.name(session))
        columns = StructType.fromJson(spark_schema(table.metadata.schema))
        if _FILE in map(str.casefold, columns.names):
            raise NeedsEngine(f"the table has a column {_FILE}, as Iceberg calls the file of a row")
        # A snapshot is read with the column names of its time, which may now mean other columns.
        if table.metadata.version_schema != table.metadata.schema:
            raise NeedsEngine("the table's columns have changed since its newest snapshot")
        table_rows = with_cached_columns(table_rows, columns)
        table_rows = with_typed_columns(table_rows, {FILE_COLUMN: (F.col(_FILE), StringType())})
        changes = find_changes(
            rows, load, table_rows, with_table_columns, count, {COMMIT_COLUMN: self._commit}
        )
        replaced_files = self._without_spark(lambda: find_named_files(table, changes.files, self._place))
        rewritten = changes.rewrite(
            replaced_files.read(session, table, self._place), replaced_files.partial_rows
        )
        return _SnapshotWrite(rewritten.rows, replaced_files, rewritten.count_copied, rewritten.deleted_rows)

    def _without_spark(self, find: Callable[[], ReplacedFiles]) -> ReplacedFiles:
        try:
            return find()
        except (SourceError, OSError, ValueError, OverflowError) as error:
            # Spark's own read reports what is wrong.
            raise NeedsEngine("a manifest or a removed file cannot be read without Spark") from error

    def _stage(self, work: _SnapshotWrite, table: PlainTable) -> None:
        """Write files and their manifest, or nothing.

        Raises:
            NeedsEngine: Spark cannot write the files, or writes them otherwise than Iceberg reads them.
        """
        folder, folder_name = self._place.child(DATA), uuid4().hex
        with removing_failed_files(self._place, folder, folder_name):
            write_files(table.with_ids(work.rows), folder.child(folder_name), (), compression=table.codec)
            written = drop_empty_files(folder, find_written_files(folder, folder_name, work.rows))
            copied_rows = work.count_copied(folder.child(folder_name), written) if work.count_copied else None
            change = self._change(written, table, work, copied_rows)
        if not written:
            remove_files(folder, folder_name)
        self._staged = _StagedFiles(folder_name, table, change, work.count_copied is not None)

    def _change(
        self,
        written: Sequence[WrittenFile],
        table: PlainTable,
        work: _SnapshotWrite,
        copied_rows: int | None,
    ) -> SnapshotChange:
        """Write the manifests of a change and return the change, which is not part of the table yet.

        Raises:
            NeedsEngine: nothing is added or removed, or a file is not as Iceberg reads it.
            TargetError: a manifest cannot be written.
        """
        if (
            not written and not work.replaced.entries
        ):  # a commit without files needs a fence to take its number
            raise NeedsEngine("nothing is added or removed")
        try:
            return SnapshotChange.of(written, table, work.replaced, copied_rows, work.deleted_rows)
        except (OSError, ValueError) as error:
            raise TargetError(
                f"table {self._place}: a manifest cannot be written: {type(error).__name__}: {shorten_to_line(str(error))}"
            ) from error

    def _commit_staged(self) -> None:
        """Add and remove files in the next metadata version, unless the number is taken there.

        Raises:
            NeedsEngine: the table is no longer the one that the files were written for.
            WriteConflict: another writer took the version, or readers see other rows than those that the
                change replaces.
            TargetError: the commit failed.
        """
        staged = self._staged
        assert staged is not None
        table = self._newest(staged.table)
        if self._is_taken(table.metadata):
            self.remove_staged()
            return
        table.check_plain(self._place)
        if table.metadata.schema != staged.table.metadata.schema:
            raise NeedsEngine("the table's columns changed while the rows were written")
        if staged.needs_same_snapshot and table.metadata.current != staged.table.metadata.current:
            self.remove_staged()
            raise WriteConflict(
                f"table {self._place}: readers see another snapshot than the one that this commit started "
                "from. No data is lost: run again"
            )
        # From here on the table may name the files, even if an error is raised.
        self._staged = None
        snapshot = staged.change.snapshot(table, self._summary)
        try:
            if self._catalog.add_snapshot(table.metadata, snapshot):
                return
        except TargetError:
            if not self._has_snapshot(staged.change.id):
                raise
            return
        # A proxy or file server may have sent the request twice and returned the second answer.
        if staged.change.id in self._newest(staged.table).metadata.snapshots:
            return
        staged.change.delete_manifest_list(snapshot)
        self._staged = staged
        raise WriteConflict(
            f"table {self._place}: another writer committed first. No data is lost: run again"
        )

    def _newest(self, base: PlainTable) -> PlainTable:
        newest = self._catalog.newest()
        if newest is None or newest.uuid != base.metadata.uuid:
            raise replaced_table_error(str(self._place), "that this write started from", newest)
        return PlainTable(newest)

    def _has_snapshot(self, snapshot: int) -> bool:
        """Return whether the table has a snapshot, as far as it can be read now."""
        with suppress(TargetError):
            newest = self._catalog.newest()
            return newest is not None and snapshot in newest.snapshots
        return False


def replaced_table_error(table: str, table_description: str, newest: Metadata | None) -> TargetError:
    """Return the error of a write whose table was dropped or recreated."""
    actual = (
        "none: it was dropped meanwhile"
        if newest is None
        else "another one: it was dropped and recreated meanwhile"
    )
    return TargetError(f"table {table}: expected the table {table_description}, found {actual}")
