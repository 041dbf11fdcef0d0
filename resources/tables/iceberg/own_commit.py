"""Strandline's own commit of an Iceberg table: Spark writes plain Parquet files, pyiceberg their manifest (docs/adr/0032).

A version of the metadata is put only as the one after that in which the number was free, so that a number is written once. Other writers' commits
between do no harm to an append, which is put on theirs; what replaces or changes rows is put only on the snapshot whose rows they are. What a table asks of
its writers beyond plain files and their bounds is Spark's to do (:mod:`resources.tables.iceberg.plain_table`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from partitions.errors import SourceError, StrandlineError, TargetError, in_one_line
from partitions.load import Append, ByKeys, Load, Replace, ReplaceKeys, Scd2, Upsert
from partitions.target import COMMIT_COLUMN
from resources.connections.places import Place
from resources.spark.frames import with_known_columns, with_typed_columns
from resources.tables.changed_rows import FILE, changes_of
from resources.tables.contract.commits import OthersFirst
from resources.tables.data_files.written import (
    Written,
    found_files,
    lacks_committer,
    remove_files,
    with_rows,
    write_files,
)
from resources.tables.iceberg.catalog import Catalog
from resources.tables.iceberg.commit import COPIED
from resources.tables.iceberg.metadata import Metadata, now_after, spark_schema
from resources.tables.iceberg.plain_table import PlainTable
from resources.tables.iceberg.replaced_files import ReplacedFiles, are_read_here, files_named, replaced_files
from resources.tables.rows.replacement import Replacement

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData, Statistics
    from pyiceberg.io import FileIO
    from pyiceberg.io.pyarrow import StatisticsCollector
    from pyiceberg.manifest import DataFile, ManifestEntry, ManifestFile
    from pyspark.sql import DataFrame

_TRIES = 100
"""Versions of the metadata that other writers may put first, one after another, before Spark is left to it."""
_DATA = "data"
"""The folder of a table's files."""
_FILE = "_file"
"""Iceberg's own column for the file of a row."""
_TOTALS = {
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-delete-files": ("", ""),
    "total-position-deletes": ("", ""),
    "total-equality-deletes": ("", ""),
}
"""Counts of a summary that go on from the snapshot before, each with what it grows and shrinks by."""


class _Unfit(Exception):
    """Spark's writer must do it."""


@dataclass(frozen=True)
class _Work:
    """What a commit writes and removes.

    Attributes:
        rows: to be written.
        gone: files that go.
        copied: returns how many of the rows were there before, and stay, as the folder and the files tell that were written; None if only rows are added,
            whatever there is.
    """

    rows: DataFrame
    gone: ReplacedFiles
    copied: Callable[[Place, Sequence[Written]], int] | None = None


@dataclass(frozen=True)
class OwnCommit:
    """One commit; see :meth:`resources.tables.contract.table.Table.write`.

    Attributes:
        place: of the table.
        catalog: of the table.
        commit: what rows carry of it.
        summary: what the snapshot says of itself.
        is_taken: tells of metadata whether the number is taken.
        placed: gives rows the columns of a table, that of their commit among them.
    """

    place: Place
    catalog: Catalog
    commit: str
    summary: Mapping[str, str]
    is_taken: Callable[[Metadata], bool]
    placed: Callable[[DataFrame], DataFrame]

    def lands(self, rows: DataFrame, load: Load, metadata: Metadata, count: int | None = None) -> bool:
        """Load rows, unless the number is taken; return False, and leave nothing behind, if Spark's writer must do it.

        Args:
            rows: of the slice; of a load by keys they are kept, since they are used more than once.
            load: what becomes of the rows that are there.
            metadata: of the table as it was when the number was free.
            count: how many rows the slice has, if that is known.

        Raises:
            OthersFirst: rows are to be replaced or changed, and readers see others by now.
            RowsRefused: a row does not fit the table, or is not among those that are replaced.
            TargetError: the commit failed otherwise. It may be there nevertheless, as an answer may be lost.
        """
        table = PlainTable(metadata)
        if not table.takes_files_at(self.place):
            return False
        work = self._work(rows, load, table, count)
        if work is None:
            return False
        folder, staged = self.place.child(_DATA), uuid4().hex
        gone = work.gone
        try:
            written = self._written(work.rows, table, folder, staged)
            copied = work.copied(folder.child(staged), written) if work.copied else None
        except _Unfit:
            return False
        except StrandlineError:
            remove_files(folder, staged)
            raise
        # From here on the table may name the files, whatever an error says.
        try:
            landed = self._commit(written, table, gone, copied)
        except _Unfit:
            remove_files(folder, staged)
            return False
        except OthersFirst:
            remove_files(folder, staged)
            raise
        if not landed or not written:
            remove_files(folder, staged)
        return True

    def _work(self, rows: DataFrame, load: Load, table: PlainTable, count: int | None) -> _Work | None:
        """What is to be written and removed; None if Spark must find that out."""
        match load:
            case Append():
                return _Work(self.placed(rows), ReplacedFiles())
            case _ if not are_read_here(table):
                return None
            case Replace():
                return self._replacing(self.placed(rows), load, table)
            case Upsert() | ReplaceKeys() | Scd2():
                return self._changing(rows, load, table, count)
        return None

    def _replacing(self, rows: DataFrame, load: Replace, table: PlainTable) -> _Work | None:
        gone = self._removed(lambda: replaced_files(table, load, self.place))
        if gone is None:
            return None
        there = gone.read(rows.sparkSession, table, self.place)
        replacement = Replacement(rows, load, there, gone.part_rows)
        return _Work(replacement.rows, gone, replacement.copied)

    def _changing(self, rows: DataFrame, load: ByKeys, table: PlainTable, count: int | None) -> _Work | None:
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType, StructType

        session, snapshot = rows.sparkSession, table.metadata.current
        assert snapshot is not None
        there = session.read.option("versionAsOf", str(snapshot.id)).table(self.catalog.name(session))
        columns = StructType.fromJson(spark_schema(table.metadata.schema))
        # A snapshot is read by the names that it was written under, and they may mean other columns by now.
        if (
            _FILE in map(str.casefold, columns.names)
            or table.metadata.version_schema != table.metadata.schema
        ):
            return None
        there = with_known_columns(there, columns)
        there = with_typed_columns(there, {FILE: (F.col(_FILE), StringType())})
        changes = changes_of(rows, load, there, self.placed, count, {COMMIT_COLUMN: self.commit})
        if changes is None:
            return None
        gone = self._removed(lambda: files_named(table, changes.files, self.place))
        if gone is None:
            return None
        change = changes.of(gone.read(session, table, self.place), gone.part_rows)
        return _Work(change.rows, gone, change.copied)

    def _removed(self, find: Callable[[], ReplacedFiles | None]) -> ReplacedFiles | None:
        try:
            return find()
        except (SourceError, OSError, ValueError, OverflowError):
            return None  # whatever is wrong with a file, Spark says it

    def _written(self, rows: DataFrame, table: PlainTable, folder: Place, staged: str) -> list[Written]:
        """Write files, or none of them.

        Raises:
            _Unfit: Spark has no way to write them so.
        """
        try:
            write_files(table.with_ids(rows), folder.child(staged), (), compression=table.codec)
            return with_rows(folder, found_files(folder, staged, rows))
        except Exception as error:
            remove_files(folder, staged)
            if lacks_committer(error):
                raise _Unfit from error
            if isinstance(error, SourceError):
                raise TargetError(
                    f"table {self.place}: what was written cannot be read: {error.message}"
                ) from error
            raise

    def _commit(
        self, written: Sequence[Written], begun: PlainTable, gone: ReplacedFiles, copied: int | None
    ) -> bool:
        """Add and remove files by the version after the newest, as often as other writers are faster; return False if the number is taken.

        Raises:
            _Unfit: the table is not any more what the files were written for.
            OthersFirst: readers see other rows than those among which some are replaced.
            TargetError: the commit failed.
        """
        if not written and not gone.entries:  # a commit without files takes its number in another way
            raise _Unfit
        change = self._change(written, begun, gone, copied)
        for _ in range(_TRIES):
            table = self._newest(begun)
            if self.is_taken(table.metadata):
                return False
            if not table.takes_files_at(self.place) or table.metadata.schema != begun.metadata.schema:
                raise _Unfit
            if copied is not None and table.metadata.current != begun.metadata.current:
                raise OthersFirst("readers see other rows than those that this commit was begun on")
            snapshot = change.snapshot(table, self.summary)
            try:
                if self.catalog.add_snapshot(table.metadata, snapshot):
                    return True
            except TargetError:
                if not self._has(change.id):
                    raise
                return True
            # A server behind a proxy, or one of files, may have been asked twice, and has told the second answer.
            if change.id in self._newest(begun).metadata.snapshots:
                return True
            change.forget(snapshot)
        raise _Unfit

    def _change(
        self, written: Sequence[Written], table: PlainTable, gone: ReplacedFiles, copied: int | None
    ) -> _Change:
        """Write the manifest of files; nothing is in the table yet."""
        try:
            return _Change.of(written, table, gone, copied)
        except (OSError, ValueError) as error:
            raise TargetError(
                f"table {self.place}: a manifest cannot be written: {type(error).__name__}: {in_one_line(str(error))}"
            ) from error

    def _newest(self, begun: PlainTable) -> PlainTable:
        newest = self.catalog.newest()
        if newest is None or newest.uuid != begun.metadata.uuid:
            raise gone(str(self.place), "that this write was begun on", newest)
        return PlainTable(newest)

    def _has(self, snapshot: int) -> bool:
        """Whether the table has a snapshot, as far as can be told now."""
        with suppress(TargetError):
            newest = self.catalog.newest()
            return newest is not None and snapshot in newest.snapshots
        return False


def gone(table: str, expected: str, now: Metadata | None) -> TargetError:
    """Return the error of a write whose table is not there any more."""
    found = "none: it was dropped" if now is None else "another one: it was dropped and made again"
    return TargetError(f"table {table}: expected the table {expected}, found {found} meanwhile")


@dataclass(frozen=True)
class _Change:
    """Files that a snapshot adds and removes, in manifests of their own.

    Attributes:
        id: of the snapshot.
        io: what writes beside the table's metadata.
        manifests: of these files; and of those which stay of the manifests that named the removed ones.
        instead: paths of the manifests whose place they take.
        counts: of the summary.
    """

    id: int
    io: FileIO
    manifests: Sequence[ManifestFile]
    instead: frozenset[str]
    counts: Mapping[str, int]

    @classmethod
    def of(
        cls, written: Sequence[Written], table: PlainTable, gone: ReplacedFiles, copied: int | None
    ) -> _Change:
        """Write the manifest.

        Args:
            written: files that are added.
            table: that they are written for.
            gone: what is removed from it.
            copied: rows that the files have of removed ones; None if nothing is replaced.

        Raises:
            _Unfit: a file is not as Iceberg reads it.
        """
        id_ = uuid4().int >> 65
        files = [_data_file(file, table) for file in written]
        # Apart from those that stay: what is replaced next is as a rule what comes now, and this manifest is then not written again.
        manifests = [_manifest(table, id_, added=files, removed=gone.entries)]
        if gone.neighbours:
            manifests.append(_manifest(table, id_, kept=gone.neighbours))
        counts = {
            "added-data-files": len(written),
            "added-records": sum(file.rows for file in written),
            "added-files-size": sum(file.size for file in written),
        }
        if copied is not None:
            counts |= {
                "deleted-data-files": len(gone.entries),
                "deleted-records": gone.rows,
                "removed-files-size": gone.size,
                COPIED: copied,
            }
        instead = frozenset(each.manifest_path for each in gone.manifests)
        return cls(id_, table.io, manifests, instead, counts)

    def snapshot(self, table: PlainTable, summary: Mapping[str, str]) -> dict[str, Any]:
        """Write the list of manifests of the snapshot after a table's; return the snapshot as the JSON of metadata has it."""
        from pyiceberg.manifest import write_manifest_list

        # The list gives a manifest of its own its number, and a copy that is not deep would keep it for the next list (pyiceberg 0.12).
        own = deepcopy(self.manifests)
        metadata, before = table.metadata, table.metadata.current
        assert before is not None
        number = metadata.raw["last-sequence-number"] + 1
        path = f"{metadata.table_location}/metadata/snap-{self.id}-{uuid4()}.avro"
        # One that only tells which files an earlier snapshot removed says nothing of this one.
        others = [
            each
            for each in table.manifests
            if each.manifest_path not in self.instead
            and (each.has_added_files() or each.has_existing_files())
        ]
        with write_manifest_list(2, self.io.new_output(path), self.id, before.id, number, "deflate") as made:
            made.add_manifests([*own, *others])
        counts = self.counts
        totals = {
            total: before.count(total) + counts.get(grows_by, 0) - counts.get(shrinks_by, 0)
            for total, (grows_by, shrinks_by) in _TOTALS.items()
            if total in before.summary
        }
        said = {"changed-partition-count": 1, **counts, **totals}
        return {
            "snapshot-id": self.id,
            "parent-snapshot-id": before.id,
            "sequence-number": number,
            "timestamp-ms": now_after(metadata),
            "manifest-list": path,
            "schema-id": metadata.raw["current-schema-id"],
            "summary": {
                "operation": self._operation,
                **summary,
                **{name: str(count) for name, count in said.items()},
            },
        }

    @property
    def _operation(self) -> str:
        """In Iceberg's words."""
        if not self.instead:
            return "append"
        return "overwrite" if self.counts["added-data-files"] else "delete"

    def forget(self, snapshot: Mapping[str, Any]) -> None:
        """Remove the list of a snapshot that did not come to be."""
        with suppress(Exception):
            self.io.delete(snapshot["manifest-list"])


def _manifest(
    table: PlainTable,
    snapshot: int,
    added: Sequence[DataFile] = (),
    kept: Sequence[ManifestEntry] = (),
    removed: Sequence[ManifestEntry] = (),
) -> ManifestFile:
    """Write a manifest for a snapshot of a table; at least one of its files is given."""
    from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, write_manifest

    target = table.io.new_output(f"{table.metadata.table_location}/metadata/{uuid4()}-m0.avro")
    with write_manifest(2, table.layout, table.schema, target, snapshot, "deflate") as manifest:
        for file in added:
            status = ManifestEntryStatus.ADDED
            manifest.add_entry(ManifestEntry.from_args(status=status, snapshot_id=snapshot, data_file=file))
        for entry in kept:
            manifest.existing(entry)
        for entry in removed:
            manifest.delete(entry)
    return manifest.to_manifest_file()


def _data_file(file: Written, table: PlainTable) -> DataFile:
    """What a manifest says of a file.

    Raises:
        _Unfit: it does not hold the table's columns as Iceberg reads them.
    """
    from pyiceberg.io.pyarrow import data_file_statistics_from_parquet_metadata, parquet_path_to_id_mapping
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    if not table.holds(file.footer):
        raise _Unfit
    ids = parquet_path_to_id_mapping(table.schema)
    try:
        statistics = data_file_statistics_from_parquet_metadata(
            file.footer, _plan(file.footer, table, ids), ids
        ).to_serialized_dict()
    except (
        ValueError,
        OverflowError,
    ) as error:  # Python has no word for a bound: a year after 9999, a text that is no UTF-8
        raise _Unfit from error
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{table.metadata.table_location}/{_DATA}/{file.path}",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        file_size_in_bytes=file.size,
        sort_order_id=None,
        spec_id=table.layout.spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics,
    )


def _plan(footer: FileMetaData, table: PlainTable, ids: Mapping[str, int]) -> dict[int, StatisticsCollector]:
    """What the manifest says of each column: of one whose bounds the footer does not tell, only how many values there are.

    Raises:
        ValueError: Python has no word for a bound.
        OverflowError: likewise.
    """
    from pyiceberg.io.pyarrow import MetricModeTypes, MetricsMode, compute_statistics_plan

    plan = compute_statistics_plan(table.schema, dict(table.metadata.properties))
    for number in range(footer.num_columns):
        groups = [footer.row_group(group).column(number) for group in range(footer.num_row_groups)]
        if not all(_tells_bounds(group.statistics) for group in groups):
            id_ = ids[groups[0].path_in_schema]
            plan[id_] = replace(plan[id_], mode=MetricsMode(MetricModeTypes.COUNTS))
    return plan


def _tells_bounds(group: Statistics | None) -> bool:
    """Whether the values of a group of rows are within bounds that it names. It names none of long texts, and NaN hides what others there are."""
    if group is None:
        return False
    if not group.has_min_max:
        return bool(group.num_values == 0)
    return bool(group.min == group.min and group.max == group.max)
