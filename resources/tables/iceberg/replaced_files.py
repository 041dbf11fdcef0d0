"""The files of an Iceberg table that a commit removes: as a whole, or in part, as bounds tell of a load by a condition; rows that stay are written again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from partitions.file_statistics import Extent, Match, match_of
from partitions.loads import Replace
from partitions.predicate import columns_of
from resources.connections.places import Place
from resources.tables.contract.conflict_retries import NeedsEngine
from resources.tables.data_files.footers import file_footer
from resources.tables.data_files.reading import files_reader, is_spark_readable
from resources.tables.data_files.written import MOST_REWRITTEN_BYTES
from resources.tables.iceberg.catalog import key_below
from resources.tables.iceberg.metadata import spark_schema
from resources.tables.iceberg.plain_table import PlainTable
from resources.tables.iceberg.rows import bound_of

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile, ManifestEntry, ManifestFile
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField
    from pyspark.sql import DataFrame, SparkSession

_MOST_FILES = 1000
"""Of a table whose manifests are read here; of more Spark reads them, several at once."""
_MOST_REWRITTEN = 100
"""Whose footers are read here."""


@dataclass(frozen=True)
class ReplacedFiles:
    """What a commit removes from a table.

    Attributes:
        entries: of the files, as the manifests have them.
        part: keys, below the table's place, of those of which the other rows are written again.
        part_rows: how many rows these have.
        manifests: those that name the files.
        neighbours: entries of other files in these manifests.
    """

    entries: Sequence[ManifestEntry] = ()
    part: Sequence[str] = ()
    part_rows: int = 0
    manifests: Sequence[ManifestFile] = ()
    neighbours: Sequence[ManifestEntry] = ()

    @property
    def rows(self) -> int:
        """How many rows they have."""
        return sum(entry.data_file.record_count for entry in self.entries)

    @property
    def size(self) -> int:
        """How many bytes they have."""
        return sum(entry.data_file.file_size_in_bytes for entry in self.entries)

    def read(self, session: SparkSession, table: PlainTable, place: Place) -> DataFrame | None:
        """Return the rows of the files that go in part, with the columns of their table; None if there are no such files."""
        from pyspark.sql.types import StructType

        if not self.part:
            return None
        reader = files_reader(session, StructType.fromJson(spark_schema(table.metadata.schema)))
        # Without it days before 1582 would be read in a calendar that a file of another writer does not name.
        reader = reader.option("datetimeRebaseMode", "CORRECTED")
        return reader.parquet(*(place.child(key).spark_url for key in self.part))


def check_read_here(table: PlainTable) -> None:
    """Raise NeedsEngine if files cannot be told apart without Spark: the table has deletes beside them, or too many files."""
    from pyiceberg.manifest import ManifestContent

    if any(manifest.content != ManifestContent.DATA for manifest in table.manifests):
        raise NeedsEngine("the table has deletes beside its files")
    counts = ((each.added_files_count, each.existing_files_count) for each in table.manifests)
    if sum((added or 0) + (existing or 0) for added, existing in counts) > _MOST_FILES:
        raise NeedsEngine(f"the table has more than {_MOST_FILES} files")


def replaced_files(table: PlainTable, load: Replace, place: Place) -> ReplacedFiles:
    """Return what a load removes.

    Args:
        table: whose files are read here.
        load: by a condition.
        place: of the table.

    Raises:
        NeedsEngine: Spark must look which rows these are.
    """
    return _removed(table, _Columns(load, table.schema).match, place, MOST_REWRITTEN_BYTES)


def files_named(table: PlainTable, names: Collection[str], place: Place) -> ReplacedFiles:
    """Return files with these names as what is removed in part.

    Args:
        table: whose files are read here.
        names: of files, as the manifests have them.
        place: of the table.

    Raises:
        NeedsEngine: Spark must read them, as Iceberg does.
        ValueError: the table has not all of them.
    """
    if len(names) > _MOST_REWRITTEN:
        raise NeedsEngine(f"rows change in more than {_MOST_REWRITTEN} files")
    found = _removed(table, lambda file: Match.UNKNOWN if file.file_path in names else Match.NONE, place)
    if len(found.entries) != len(names):
        raise ValueError(
            f"table {place}: expected {len(names)} files of one snapshot, found {len(found.entries)}"
        )
    return found


def _removed(
    table: PlainTable, match: Callable[[DataFile], Match], place: Place, most_copied: int | None = None
) -> ReplacedFiles:
    gone, part, touched, neighbours = list["ManifestEntry"](), list["DataFile"](), [], []
    for manifest in table.manifests:
        matches = [(entry, match(entry.data_file)) for entry in manifest.fetch_manifest_entry(table.io)]
        mine = [entry for entry, found in matches if found is not Match.NONE]
        if not mine:
            continue
        if manifest.partition_spec_id != table.layout.spec_id:
            raise NeedsEngine("files that go were written when the table was partitioned")
        gone += mine
        part += [entry.data_file for entry, found in matches if found is Match.UNKNOWN]
        touched.append(manifest)
        neighbours += [entry for entry, found in matches if found is Match.NONE]
    if most_copied is not None and sum(file.file_size_in_bytes for file in part) > most_copied:
        # So large that Spark should look first whether there is a row of the load.
        raise NeedsEngine(f"more than {most_copied // 2**20} MiB of files may go in part")
    rows = sum(file.record_count for file in part)
    return ReplacedFiles(gone, _keys(part, table, place), rows, touched, neighbours)


def _keys(files: Sequence[DataFile], table: PlainTable, place: Place) -> list[str]:
    """Return where files lie below the table's place; raise NeedsEngine if Spark must read them, as Iceberg does."""
    from pyiceberg.manifest import FileFormat

    keys = []
    for file in files:
        key = key_below(place, file.file_path)
        if (
            key is None
            or not is_spark_readable(place.child(key).url)
            or file.file_format != FileFormat.PARQUET
        ):
            raise NeedsEngine("a file that goes in part lies elsewhere, or is no Parquet file")
        if not table.is_read_by_names(file_footer(place, key, file.file_size_in_bytes)):
            raise NeedsEngine("a file that goes in part has other columns than the table")
        keys.append(key)
    return keys


class _Columns:
    """The columns that a load compares, and what manifests say of them."""

    def __init__(self, load: Replace, schema: Schema) -> None:
        self._where = load.where
        fields = {field.name.lower(): field for field in schema.fields}
        known = {name: fields.get(name.lower()) for name in columns_of(load.where)}
        self._fields = {
            name: (field.field_id, bound_of(field)) for name, field in known.items() if _is_bounded(field)
        }

    def match(self, file: DataFile) -> Match:
        """Return how many rows of a file are replaced."""
        return match_of(self._where, {name: self._extent(file, name) for name in self._fields})

    def _extent(self, file: DataFile, name: str) -> Extent:
        id_, value = self._fields[name]
        lower, upper = value(file.lower_bounds), value(file.upper_bounds)
        nulls = (file.null_value_counts or {}).get(id_)
        if nulls is None:
            return Extent(lower, upper)
        return Extent(lower, upper, nulls > 0, nulls < file.record_count)


def _is_bounded(field: NestedField | None) -> TypeGuard[NestedField]:
    """Whether bounds of a column are those of all its values: NaN, above all numbers with a fraction, is in none."""
    from pyiceberg.types import DoubleType, FloatType

    return field is not None and not isinstance(field.field_type, (FloatType, DoubleType))
