"""Strandline's own commit of an Iceberg table: Spark writes plain Parquet files, pyiceberg their manifest (docs/explanation/adr/0032).

A version of the metadata is put only as the one after that in which the number was free, so that a number is written once. Other writers' commits
between do no harm to an append, which is put on theirs; what replaces or changes rows is put only on the snapshot whose rows they are. What a table asks of
its writers beyond plain files and their bounds is Spark's to do (:mod:`resources.tables.iceberg.plain_table`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from partitions.errors import SourceError, TargetError, WriteConflict, in_one_line
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
    lacks_committer,
    remove_files,
    write_files,
)
from resources.tables.iceberg.catalog import Catalog
from resources.tables.iceberg.metadata import Metadata, spark_schema
from resources.tables.iceberg.own_files import DATA
from resources.tables.iceberg.own_snapshot import SnapshotChange
from resources.tables.iceberg.plain_table import PlainTable
from resources.tables.iceberg.replaced_files import (
    ReplacedFiles,
    check_read_here,
    files_named,
    replaced_files,
)
from resources.tables.rows.replacement import Replacement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FILE = "_file"
"""Iceberg's own column for the file of a row."""


@dataclass(frozen=True)
class _Work:
    """What a commit writes and removes.

    Attributes:
        rows: to be written.
        replaced: files that go.
        copied: returns how many of the rows were there before, and stay, as the folder and the files tell that were written; None if only rows are added,
            whatever there is.
    """

    rows: DataFrame
    replaced: ReplacedFiles
    count_copied: Callable[[Place, Sequence[WrittenFile]], int] | None = None


@dataclass(frozen=True)
class _Staged:
    """Files that are written, and that no version of the table names yet.

    Attributes:
        folder: of the files, below that of the table's files.
        table: that they were written for.
        change: the snapshot that adds and removes files.
        on_snapshot: whether it is good on the snapshot alone that readers saw then: rows are replaced, or changed.
    """

    folder: str
    table: PlainTable
    change: SnapshotChange
    on_snapshot: bool


class OwnCommit:
    """The commit of one number; see :meth:`resources.tables.contract.table.Table.write`. Its files outlast a conflict if they are good beside any commit."""

    def __init__(
        self,
        place: Place,
        catalog: Catalog,
        commit: str,
        summary: Mapping[str, str],
        is_taken: Callable[[Metadata], bool],
    ) -> None:
        """Begin a commit; nothing is written yet.

        Args:
            place: of the table.
            catalog: of the table.
            commit: what rows carry of it.
            summary: what the snapshot says of itself.
            is_taken: tells of metadata whether the number is taken.
        """
        self._place, self._catalog, self._commit = place, catalog, commit
        self._summary, self._is_taken = summary, is_taken
        self._staged: _Staged | None = None

    def land(
        self,
        rows: DataFrame,
        load: Load,
        metadata: Metadata,
        placed: Callable[[DataFrame], DataFrame],
        count: int | None = None,
    ) -> str | None:
        """Load rows, unless the number is taken; return why Spark's writer must do it, with nothing left behind, or None.

        Args:
            rows: of the slice; of a load by keys they are kept, since they are used more than once.
            load: what becomes of the rows in the table.
            metadata: of the table as it was when the number was free.
            placed: gives rows the columns of the table, that of their commit among them.
            count: how many rows the slice has, if that is known.

        Raises:
            WriteConflict: another writer was first. The next call goes on with the files if they are good beside its commit.
            RowsRefused: a row does not fit the table, or is not among those that are replaced.
            TargetError: the commit failed otherwise. It may be there nevertheless, as an answer may be lost.
        """
        table = PlainTable(metadata)
        try:
            table.check_plain(self._place)
            if self._staged is None:
                self._stage(self._work(rows, load, table, placed, count), table)
            self._put()
        except NeedsEngine as reason:
            self.remove_staged()
            return str(reason)
        return None

    def remove_staged(self) -> None:
        """Remove files that were written, and that no version of the table names."""
        if self._staged is not None:
            remove_files(self._place.child(DATA), self._staged.folder)
            self._staged = None

    def _work(
        self,
        rows: DataFrame,
        load: Load,
        table: PlainTable,
        placed: Callable[[DataFrame], DataFrame],
        count: int | None,
    ) -> _Work:
        """Return what is to be written and removed; raise NeedsEngine if Spark must find that out."""
        if isinstance(load, Append):
            return _Work(placed(rows), ReplacedFiles())
        check_read_here(table)
        match load:
            case Replace():
                return self._replacing(placed(rows), load, table)
            case Upsert() | ReplaceKeys() | Scd2():
                return self._changing(rows, load, table, placed, count)
        raise NeedsEngine("the whole table is replaced")

    def _replacing(self, rows: DataFrame, load: Replace, table: PlainTable) -> _Work:
        replaced = self._found(lambda: replaced_files(table, load, self._place))
        copied = replaced.read(rows.sparkSession, table, self._place)
        replacement = Replacement(rows, load, copied, replaced.part_rows)
        return _Work(replacement.rows, replaced, replacement.count_copied)

    def _changing(
        self,
        rows: DataFrame,
        load: ByKeys,
        table: PlainTable,
        placed: Callable[[DataFrame], DataFrame],
        count: int | None,
    ) -> _Work:
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType, StructType

        session, snapshot = rows.sparkSession, table.metadata.current
        assert snapshot is not None
        table_rows = session.read.option("versionAsOf", str(snapshot.id)).table(self._catalog.name(session))
        columns = StructType.fromJson(spark_schema(table.metadata.schema))
        if _FILE in map(str.casefold, columns.names):
            raise NeedsEngine(f"the table has a column {_FILE}, as Iceberg calls the file of a row")
        # A snapshot is read by the names that it was written under, and they may mean other columns by now.
        if table.metadata.version_schema != table.metadata.schema:
            raise NeedsEngine("the table's columns have changed since its newest snapshot")
        table_rows = with_cached_columns(table_rows, columns)
        table_rows = with_typed_columns(table_rows, {FILE_COLUMN: (F.col(_FILE), StringType())})
        changes = find_changes(rows, load, table_rows, placed, count, {COMMIT_COLUMN: self._commit})
        replaced = self._found(lambda: files_named(table, changes.files, self._place))
        change = changes.rewrite(replaced.read(session, table, self._place), replaced.part_rows)
        return _Work(change.rows, replaced, change.count_copied)

    def _found(self, find: Callable[[], ReplacedFiles]) -> ReplacedFiles:
        try:
            return find()
        except (SourceError, OSError, ValueError, OverflowError) as error:
            # Whatever is wrong with a file, Spark says it.
            raise NeedsEngine("a manifest, or a file that goes, cannot be read without Spark") from error

    def _stage(self, work: _Work, table: PlainTable) -> None:
        """Write files and their manifest, or nothing.

        Raises:
            NeedsEngine: Spark has no way to write them so, or writes them otherwise than Iceberg reads them.
        """
        folder, staged = self._place.child(DATA), uuid4().hex
        try:
            write_files(table.with_ids(work.rows), folder.child(staged), (), compression=table.codec)
            written = drop_empty_files(folder, find_written_files(folder, staged, work.rows))
            copied = work.count_copied(folder.child(staged), written) if work.count_copied else None
            change = self._change(written, table, work.replaced, copied)
        except Exception as error:
            remove_files(folder, staged)
            if lacks_committer(error):
                raise NeedsEngine("Spark was started without the committer for S3") from error
            if isinstance(error, SourceError):
                raise TargetError(
                    f"table {self._place}: what was written cannot be read: {error.message}"
                ) from error
            raise
        if not written:
            remove_files(folder, staged)
        self._staged = _Staged(staged, table, change, work.count_copied is not None)

    def _change(
        self, written: Sequence[WrittenFile], table: PlainTable, replaced: ReplacedFiles, copied: int | None
    ) -> SnapshotChange:
        """Write the manifest of files; nothing is in the table yet."""
        if not written and not replaced.entries:  # a commit without files takes its number in another way
            raise NeedsEngine("nothing is added or removed")
        try:
            return SnapshotChange.of(written, table, replaced, copied)
        except (OSError, ValueError) as error:
            raise TargetError(
                f"table {self._place}: a manifest cannot be written: {type(error).__name__}: {in_one_line(str(error))}"
            ) from error

    def _put(self) -> None:
        """Add and remove files by the version after the newest, unless the number is taken there.

        Raises:
            NeedsEngine: the table is not any more what the files were written for.
            WriteConflict: another version is there; or readers see other rows than those among which some are replaced, or changed.
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
        if staged.on_snapshot and table.metadata.current != staged.table.metadata.current:
            self.remove_staged()
            raise WriteConflict(
                f"table {self._place}: readers see other rows than those that this commit was begun on. Nothing is lost: run again"
            )
        # From here on the table may name the files, whatever an error says.
        self._staged = None
        snapshot = staged.change.snapshot(table, self._summary)
        try:
            if self._catalog.add_snapshot(table.metadata, snapshot):
                return
        except TargetError:
            if not self._has(staged.change.id):
                raise
            return
        # A server behind a proxy, or one of files, may have been asked twice, and has told the second answer.
        if staged.change.id in self._newest(staged.table).metadata.snapshots:
            return
        staged.change.forget(snapshot)
        self._staged = staged
        raise WriteConflict(
            f"table {self._place}: another writer was first to put a version. Nothing is lost: run again"
        )

    def _newest(self, base: PlainTable) -> PlainTable:
        newest = self._catalog.newest()
        if newest is None or newest.uuid != base.metadata.uuid:
            raise table_gone(str(self._place), "that this write was begun on", newest)
        return PlainTable(newest)

    def _has(self, snapshot: int) -> bool:
        """Return whether the table has a snapshot, as far as can be told now."""
        with suppress(TargetError):
            newest = self._catalog.newest()
            return newest is not None and snapshot in newest.snapshots
        return False


def table_gone(table: str, expected: str, now: Metadata | None) -> TargetError:
    """Return the error of a write whose table is not there any more."""
    found = "none: it was dropped" if now is None else "another one: it was dropped and made again"
    return TargetError(f"table {table}: expected the table {expected}, found {found} meanwhile")
