"""Find the files of an Iceberg table that a commit removes, wholly or in part, by their bounds.

The remaining rows of partly removed files are written again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from partitions.file_statistics import ColumnStatistics, FileMatch, match_statistics
from partitions.loads import Replace
from partitions.predicate import columns_of
from resources.connections.places import Place
from resources.tables.contract.conflict_retries import NeedsEngine
from resources.tables.data_files.footers import file_footer
from resources.tables.data_files.reading import files_reader, is_spark_readable
from resources.tables.data_files.written import MAX_REWRITTEN_BYTES
from resources.tables.iceberg.catalog import key_below
from resources.tables.iceberg.metadata import spark_schema
from resources.tables.iceberg.plain_table import PlainTable
from resources.tables.iceberg.rows import bound_reader

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile, ManifestEntry, ManifestFile
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField
    from pyspark.sql import DataFrame, SparkSession

_MAX_FILES = 1000
"""Most files of a table whose manifests are read here; above it Spark reads them in parallel."""
_MAX_REWRITTEN_FILES = 100
"""Most files whose footers are read here."""


@dataclass(frozen=True)
class ReplacedFiles:
    """The files that a commit removes from a table.

    Attributes:
        entries: manifest entries of the files.
        partial_keys: paths below the table's place of the files whose other rows are written again.
        partial_rows: number of rows in these files.
        manifests: manifests that name the files.
        neighbours: entries of other files in these manifests.
    """

    entries: Sequence[ManifestEntry] = ()
    partial_keys: Sequence[str] = ()
    partial_rows: int = 0
    manifests: Sequence[ManifestFile] = ()
    neighbours: Sequence[ManifestEntry] = ()

    @property
    def rows(self) -> int:
        """Number of rows in the files."""
        return sum(entry.data_file.record_count for entry in self.entries)

    @property
    def size(self) -> int:
        """Size of the files in bytes."""
        return sum(entry.data_file.file_size_in_bytes for entry in self.entries)

    def read(self, session: SparkSession, table: PlainTable, place: Place) -> DataFrame | None:
        """Return the rows of the partly removed files; None if no file is removed in part.

        The rows have the table's columns.
        """
        from pyspark.sql.types import StructType

        if not self.partial_keys:
            return None
        reader = files_reader(session, StructType.fromJson(spark_schema(table.metadata.schema)))
        # Otherwise dates before 1582 in other writers' files would be read in Spark's old calendar.
        reader = reader.option("datetimeRebaseMode", "CORRECTED")
        return reader.parquet(*(place.child(key).spark_url for key in self.partial_keys))


def check_readable_without_spark(table: PlainTable) -> None:
    """Raise NeedsEngine if the table has delete files, or too many files to read here."""
    from pyiceberg.manifest import ManifestContent

    if any(manifest.content != ManifestContent.DATA for manifest in table.manifests):
        raise NeedsEngine("the table has deletes beside its files")
    counts = ((manifest.added_files_count, manifest.existing_files_count) for manifest in table.manifests)
    if sum((added or 0) + (existing or 0) for added, existing in counts) > _MAX_FILES:
        raise NeedsEngine(f"the table has more than {_MAX_FILES} files")


def find_replaced_files(table: PlainTable, load: Replace, place: Place) -> ReplacedFiles:
    """Return the files that a load by a condition removes.

    Args:
        table: table whose manifests are read here.
        load: load by a condition.
        place: place of the table.

    Raises:
        NeedsEngine: Spark must find the rows.
    """
    return _find_files(table, _ComparedColumns(load, table.schema).match, place, MAX_REWRITTEN_BYTES)


def find_named_files(table: PlainTable, names: Collection[str], place: Place) -> ReplacedFiles:
    """Return the files with certain names, as files of which rows are removed in part.

    Args:
        table: table whose manifests are read here.
        names: paths of files, as the manifests have them.
        place: place of the table.

    Raises:
        NeedsEngine: Spark must read them, as Iceberg does.
        ValueError: the table lacks some of them.
    """
    if len(names) > _MAX_REWRITTEN_FILES:
        raise NeedsEngine(f"rows change in more than {_MAX_REWRITTEN_FILES} files")
    replaced = _find_files(
        table, lambda file: FileMatch.UNKNOWN if file.file_path in names else FileMatch.NONE, place
    )
    if len(replaced.entries) != len(names):
        raise ValueError(
            f"table {place}: expected {len(names)} files of one snapshot, found {len(replaced.entries)}"
        )
    return replaced


def _find_files(
    table: PlainTable, match: Callable[[DataFile], FileMatch], place: Place, most_copied: int | None = None
) -> ReplacedFiles:
    entries, partial_files, manifests, neighbours = list["ManifestEntry"](), list["DataFile"](), [], []
    for manifest in table.manifests:
        matches = [(entry, match(entry.data_file)) for entry in manifest.fetch_manifest_entry(table.io)]
        matching_entries = [entry for entry, match_ in matches if match_ is not FileMatch.NONE]
        if not matching_entries:
            continue
        if manifest.partition_spec_id != table.partition_spec.spec_id:
            raise NeedsEngine("removed files were written when the table was partitioned")
        entries += matching_entries
        partial_files += [entry.data_file for entry, match_ in matches if match_ is FileMatch.UNKNOWN]
        manifests.append(manifest)
        neighbours += [entry for entry, match_ in matches if match_ is FileMatch.NONE]
    if most_copied is not None and sum(file.file_size_in_bytes for file in partial_files) > most_copied:
        # For large files Spark first checks whether they hold rows to replace.
        raise NeedsEngine(f"more than {most_copied // 2**20} MiB of files may be rewritten")
    rows = sum(file.record_count for file in partial_files)
    return ReplacedFiles(entries, _keys(partial_files, table, place), rows, manifests, neighbours)


def _keys(files: Sequence[DataFile], table: PlainTable, place: Place) -> list[str]:
    """Return the paths of files below the table's place; raise NeedsEngine if only Iceberg can read them."""
    from pyiceberg.manifest import FileFormat

    keys = []
    for file in files:
        key = key_below(place, file.file_path)
        if (
            key is None
            or not is_spark_readable(place.child(key).url)
            or file.file_format != FileFormat.PARQUET
        ):
            raise NeedsEngine("a rewritten file lies elsewhere, or is no Parquet file")
        if not table.is_read_by_names(file_footer(place, key, file.file_size_in_bytes)):
            raise NeedsEngine("a rewritten file has other columns than the table")
        keys.append(key)
    return keys


class _ComparedColumns:
    """The columns that a load compares, with their bounds in manifests."""

    def __init__(self, load: Replace, schema: Schema) -> None:
        self._where = load.where
        fields = {field.name.lower(): field for field in schema.fields}
        fields_by_name = {name: fields.get(name.lower()) for name in columns_of(load.where)}
        self._fields = {
            name: (field.field_id, bound_reader(field))
            for name, field in fields_by_name.items()
            if _is_bounded(field)
        }

    def match(self, file: DataFile) -> FileMatch:
        """Return whether none, all or some rows of a file are replaced."""
        return match_statistics(self._where, {name: self._extent(file, name) for name in self._fields})

    def _extent(self, file: DataFile, name: str) -> ColumnStatistics:
        id_, value = self._fields[name]
        lower, upper = value(file.lower_bounds), value(file.upper_bounds)
        nulls = (file.null_value_counts or {}).get(id_)
        if nulls is None:
            return ColumnStatistics(lower, upper)
        return ColumnStatistics(lower, upper, nulls > 0, nulls < file.record_count)


def _is_bounded(field: NestedField | None) -> TypeGuard[NestedField]:
    """Return whether bounds of a column cover all its values; they leave out NaN of floating types."""
    from pyiceberg.types import DoubleType, FloatType

    return field is not None and not isinstance(field.field_type, (FloatType, DoubleType))
