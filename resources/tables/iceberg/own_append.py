"""Strandline's own append to an Iceberg table: Spark writes plain Parquet files, pyiceberg their manifest (docs/adr/0032).

A version of the metadata is put only as the one after that in which the number was free, so that a number is written once. Other writers' commits
between do no harm: the append is put on theirs. What a table asks of its writers beyond plain files and their bounds is Spark's to do, so whatever is
not known to ask nothing counts as asking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from partitions.errors import SourceError, TargetError, in_one_line
from partitions.target import COMMIT_COLUMN
from resources.places import Place
from resources.sql import quoted
from resources.tables.data_files import (
    Written,
    found_files,
    is_of_another_calendar,
    lacks_committer,
    remove_files,
    write_files,
)
from resources.tables.iceberg.catalog import Catalog, without_scheme
from resources.tables.iceberg.metadata import Metadata, now_after, spark_schema
from resources.tables.iceberg.rows import owns_commit_column

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData, Statistics
    from pyiceberg.io import FileIO
    from pyiceberg.io.pyarrow import StatisticsCollector
    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyspark.sql import DataFrame

_TRIES = 100
"""Versions of the metadata that other writers may put first, one after another, before Spark is left to it."""
_DATA = "data"
"""The folder of a table's files."""
_TYPES = frozenset(
    {"boolean", "int", "long", "float", "double", "date", "timestamp", "timestamptz", "string", "binary"}
)
"""Those that a plain Parquet file holds as Iceberg reads them; so it does decimals, and structs of them."""
_CODEC, _CODECS = "write.parquet.compression-codec", ("zstd", "snappy", "gzip", "uncompressed")
_PROPERTIES = frozenset(
    {
        "write.metadata.delete-after-commit.enabled",
        "write.metadata.previous-versions-max",
        f"write.metadata.metrics.column.{COMMIT_COLUMN}",
        _CODEC,
    }
)
"""What a table may ask of its writers."""
_MOST_MANIFESTS = 100
"""Of a table, by Iceberg's default, before a commit joins them: Spark's does."""
_FIELD_ID = b"PARQUET:field_id"
_TOTALS = {
    "total-data-files": "added-data-files",
    "total-records": "added-records",
    "total-files-size": "added-files-size",
    "total-delete-files": "",
    "total-position-deletes": "",
    "total-equality-deletes": "",
}
"""Counts of a summary that go on from the snapshot before, each with what it grows by."""


class _Unfit(Exception):
    """Spark's writer must do it."""


@dataclass(frozen=True)
class OwnAppend:
    """One append; see :meth:`resources.tables.table.Table.write`.

    Attributes:
        place: of the table.
        catalog: of the table.
        summary: what the snapshot says of itself.
        is_taken: tells of metadata whether the number is taken.
    """

    place: Place
    catalog: Catalog
    summary: Mapping[str, str]
    is_taken: Callable[[Metadata], bool]

    def lands(self, rows: DataFrame, metadata: Metadata) -> bool:
        """Append rows, unless the number is taken; return False, and leave nothing behind, if Spark's writer must do it.

        Args:
            rows: with the table's columns, that of their commit among them.
            metadata: of the table as it was when the number was free.

        Raises:
            TargetError: the commit failed otherwise. It may be there nevertheless, as an answer may be lost.
        """
        table = _Table(metadata)
        if not table.takes_files_at(self.place):
            return False
        folder, staged = self.place.child(_DATA), uuid4().hex
        try:
            written = self._written(table.with_ids(rows), folder, staged, table.codec)
            landed = self._commit(written, table)
        except _Unfit:
            remove_files(folder, staged)
            return False
        if not landed:
            remove_files(folder, staged)
        return True

    def _written(self, rows: DataFrame, folder: Place, staged: str, codec: str) -> list[Written]:
        """Write files, or none of them.

        Raises:
            _Unfit: Spark has no way to write them so; or there are none, and a commit without files takes its number in another way.
        """
        try:
            write_files(rows, folder.child(staged), (), compression=codec)
            written = [file for file in found_files(folder, staged) if file.footer.num_rows]
        except Exception as error:
            remove_files(folder, staged)
            if lacks_committer(error):
                raise _Unfit from error
            if isinstance(error, SourceError):
                raise TargetError(
                    f"table {self.place}: what was written cannot be read: {error.message}"
                ) from error
            raise
        if not written:
            raise _Unfit
        return written

    def _commit(self, written: Sequence[Written], begun: _Table) -> bool:
        """Add files by the version after the newest, as often as other writers are faster; return False if the number is taken.

        Raises:
            _Unfit: the table is not any more what the files were written for.
            TargetError: the commit failed.
        """
        addition = self._added(written, begun)
        for _ in range(_TRIES):
            table = self._newest(begun)
            if self.is_taken(table.metadata):
                return False
            if not table.takes_files_at(self.place) or table.metadata.schema != begun.metadata.schema:
                raise _Unfit
            snapshot = addition.snapshot(table, self.summary)
            try:
                if self.catalog.add_snapshot(table.metadata, snapshot):
                    return True
            except TargetError:
                if not self._has(addition.id):
                    raise
                return True
            # A server behind a proxy, or one of files, may have been asked twice, and has told the second answer.
            if addition.id in self._newest(begun).metadata.snapshots:
                return True
            addition.forget(snapshot)
        raise _Unfit

    def _added(self, written: Sequence[Written], table: _Table) -> _Addition:
        """Write the manifest of files; nothing is in the table yet."""
        try:
            return _Addition.of(written, table)
        except (OSError, ValueError) as error:
            raise TargetError(
                f"table {self.place}: a manifest cannot be written: {type(error).__name__}: {in_one_line(str(error))}"
            ) from error

    def _newest(self, begun: _Table) -> _Table:
        newest = self.catalog.newest()
        if newest is None or newest.uuid != begun.metadata.uuid:
            raise gone(str(self.place), "that this write was begun on", newest)
        return _Table(newest)

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
class _Table:
    """The table as one version of its metadata has it."""

    metadata: Metadata

    def takes_files_at(self, place: Place) -> bool:
        """Return whether a table at a place asks nothing of an append that it would not get here."""
        metadata = self.metadata
        asked = {key for key in metadata.properties if key.startswith(("write.", "encryption."))}
        return (
            metadata.format_version == 2
            and metadata.current is not None
            and without_scheme(metadata.table_location) == place.spark_url
            and not metadata.is_partitioned
            and not metadata.sorted_by
            and asked <= _PROPERTIES
            and self.codec in _CODECS
            and owns_commit_column(metadata)
            and all(map(_is_plain, metadata.schema["fields"]))
            and self._has_room
        )

    @property
    def codec(self) -> str:
        """By which its files are compressed."""
        return self.metadata.properties.get(_CODEC, _CODECS[0]).lower()

    def with_ids(self, rows: DataFrame) -> DataFrame:
        """Return rows whose columns, and those of structs, have the ids of the table's: Spark writes them into its files."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructType

        schema = self.metadata.schema
        # DataFrame.to would say the same, and loses the ids of columns that are literals (Spark 4.1).
        columns = []
        for field in StructType.fromJson(_with_ids(spark_schema(schema), schema)):
            column = F.col(quoted(field.name))
            given = column.cast(field.dataType) if isinstance(field.dataType, StructType) else column
            columns.append(given.alias(field.name, metadata=field.metadata))
        return rows.select(*columns)

    @cached_property
    def io(self) -> FileIO:
        """What reads and writes its files."""
        from pyiceberg.io import load_file_io

        return load_file_io(dict(self.metadata.storage), self.metadata.location)

    @cached_property
    def schema(self) -> Schema:
        """Its columns."""
        from pyiceberg.schema import Schema

        return Schema.model_validate(self.metadata.schema)

    @property
    def layout(self) -> PartitionSpec:
        """That of a table without partitions."""
        from pyiceberg.partitioning import PartitionSpec

        return PartitionSpec(spec_id=self.metadata.raw.get("default-spec-id", 0))

    @cached_property
    def manifests(self) -> list[ManifestFile]:
        """Those of the snapshot that readers see."""
        from pyiceberg.manifest import read_manifest_list

        current = self.metadata.current
        path = next(
            each["manifest-list"]
            for each in self.metadata.raw["snapshots"]
            if current is not None and each["snapshot-id"] == current.id
        )
        return list(read_manifest_list(self.io.new_input(path)))

    @property
    def _has_room(self) -> bool:
        """Whether it takes one more manifest before they are to be joined."""
        properties = self.metadata.properties
        if properties.get("commit.manifest-merge.enabled", "true").lower() != "true":
            return True
        most = int(properties.get("commit.manifest.min-count-to-merge", _MOST_MANIFESTS))
        return len(self.manifests) + 1 < most


@dataclass(frozen=True)
class _Addition:
    """Files that a snapshot adds, in a manifest of their own.

    Attributes:
        id: of the snapshot.
        io: what writes beside the table's metadata.
        manifest: of the files.
        counts: of the summary.
    """

    id: int
    io: FileIO
    manifest: ManifestFile
    counts: Mapping[str, int]

    @classmethod
    def of(cls, written: Sequence[Written], table: _Table) -> _Addition:
        """Write the manifest of files.

        Raises:
            _Unfit: a file is not as Iceberg reads it.
        """
        from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, write_manifest

        id_ = uuid4().int >> 65
        files = [_data_file(file, table) for file in written]
        target = table.io.new_output(f"{table.metadata.table_location}/metadata/{uuid4()}-m0.avro")
        with write_manifest(2, table.layout, table.schema, target, id_, "deflate") as manifest:
            for file in files:
                added = ManifestEntryStatus.ADDED
                manifest.add_entry(ManifestEntry.from_args(status=added, snapshot_id=id_, data_file=file))
        counts = {
            "added-data-files": len(written),
            "added-records": sum(file.footer.num_rows for file in written),
            "added-files-size": sum(file.size for file in written),
        }
        return cls(id_, table.io, manifest.to_manifest_file(), counts)

    def snapshot(self, table: _Table, summary: Mapping[str, str]) -> dict[str, Any]:
        """Write the list of manifests of the snapshot after a table's; return the snapshot as the JSON of metadata has it."""
        from pyiceberg.manifest import write_manifest_list

        # The list gives a manifest of its own its number, and a copy that is not deep would keep it for the next list (pyiceberg 0.12).
        own = deepcopy(self.manifest)
        metadata, before = table.metadata, table.metadata.current
        assert before is not None
        number = metadata.raw["last-sequence-number"] + 1
        path = f"{metadata.table_location}/metadata/snap-{self.id}-{uuid4()}.avro"
        with write_manifest_list(2, self.io.new_output(path), self.id, before.id, number, "deflate") as made:
            made.add_manifests([own, *table.manifests])
        totals = {
            total: before.count(total) + self.counts.get(grows_by, 0)
            for total, grows_by in _TOTALS.items()
            if total in before.summary
        }
        counts = {**self.counts, "changed-partition-count": 1, **totals}
        said = {"operation": "append", **summary, **{name: str(count) for name, count in counts.items()}}
        return {
            "snapshot-id": self.id,
            "parent-snapshot-id": before.id,
            "sequence-number": number,
            "timestamp-ms": now_after(metadata),
            "manifest-list": path,
            "schema-id": metadata.raw["current-schema-id"],
            "summary": said,
        }

    def forget(self, snapshot: Mapping[str, Any]) -> None:
        """Remove the list of a snapshot that did not come to be."""
        with suppress(Exception):
            self.io.delete(snapshot["manifest-list"])


def _is_plain(column: Mapping[str, Any]) -> bool:
    """Whether a column takes anything of its type, and a plain file holds it as Iceberg reads it."""
    kind = column["type"]
    if column["required"]:
        return False
    if isinstance(kind, Mapping):
        return kind["type"] == "struct" and all(map(_is_plain, kind["fields"]))
    return kind in _TYPES or kind.startswith("decimal(")


def _with_ids(struct: Mapping[str, Any], columns: Mapping[str, Any]) -> dict[str, Any]:
    """Spark's JSON of columns with the ids that a table's own have."""
    fields = [
        {
            **field,
            "type": _with_ids(field["type"], column["type"])
            if isinstance(field["type"], Mapping)
            else field["type"],
            "metadata": {"parquet.field.id": column["id"]},
        }
        for field, column in zip(struct["fields"], columns["fields"], strict=True)
    ]
    return {**struct, "fields": fields}


def _data_file(file: Written, table: _Table) -> DataFile:
    """What a manifest says of a file.

    Raises:
        _Unfit: it does not hold the table's columns as Iceberg reads them.
    """
    from pyiceberg.io.pyarrow import data_file_statistics_from_parquet_metadata, parquet_path_to_id_mapping
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    if not _holds(file, table.metadata):
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


def _plan(footer: FileMetaData, table: _Table, ids: Mapping[str, int]) -> dict[int, StatisticsCollector]:
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


def _holds(file: Written, metadata: Metadata) -> bool:
    """Whether a file knows its columns by the ids of the table's, and has its times as readers count them and whole: what a session is told may say otherwise."""
    schema = file.footer.schema
    columns = [schema.column(number) for number in range(len(schema))]
    instants_fit = all(
        column.physical_type != "INT96" and column.converted_type != "TIMESTAMP_MILLIS" for column in columns
    )
    return (
        instants_fit
        and not is_of_another_calendar(file.footer)
        and list(_ids_in(schema.to_arrow_schema())) == list(_ids_of(metadata.schema))
    )


def _ids_in(fields: Any) -> Iterator[int]:
    import pyarrow as pa

    for field in fields:
        yield int((field.metadata or {}).get(_FIELD_ID, -1))
        if pa.types.is_struct(field.type):
            yield from _ids_in(field.type)


def _ids_of(struct: Mapping[str, Any]) -> Iterator[int]:
    for column in struct["fields"]:
        yield column["id"]
        if isinstance(column["type"], Mapping):
            yield from _ids_of(column["type"])
