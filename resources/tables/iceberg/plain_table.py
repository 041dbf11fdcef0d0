"""Decide whether our own commit can write an Iceberg table: plain Parquet, no partitions, unsorted.

Whatever is not known to need nothing of a writer counts as needing Spark's (docs/explanation/adr/0032).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from partitions.target import COMMIT_COLUMN
from resources.connections.places import Place
from resources.sql import quoted
from resources.tables.contract.conflict_retries import NeedsEngine
from resources.tables.data_files.footers import has_legacy_calendar
from resources.tables.iceberg.catalog import strip_file_scheme
from resources.tables.iceberg.commit_column import owns_commit_column
from resources.tables.iceberg.metadata import Metadata, spark_schema

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyspark.sql import DataFrame

_PLAIN_TYPES = frozenset(
    {"boolean", "int", "long", "float", "double", "date", "timestamp", "timestamptz", "string", "binary"}
)
"""Types that a plain Parquet file holds as Iceberg reads them, like decimals and structs of these."""
_CODEC, _CODECS = "write.parquet.compression-codec", ("zstd", "snappy", "gzip", "uncompressed")
_KNOWN_PROPERTIES = frozenset(
    {
        "write.metadata.delete-after-commit.enabled",
        "write.metadata.previous-versions-max",
        f"write.metadata.metrics.column.{COMMIT_COLUMN}",
        _CODEC,
    }
)
"""Properties that our own commit honours."""
_MAX_MANIFESTS = 100
"""Number of manifests at which a commit merges them, Iceberg's default. Spark's commit does it."""
_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True)
class PlainTable:
    """The table as one version of its metadata describes it."""

    metadata: Metadata

    def check_plain(self, place: Place) -> None:
        """Raise NeedsEngine if our own commit cannot write the table at a place."""
        if unmet := self._unmet_demand(place):
            raise NeedsEngine(unmet)

    def _unmet_demand(self, place: Place) -> str | None:
        metadata = self.metadata
        writer_properties = {key for key in metadata.properties if key.startswith(("write.", "encryption."))}
        columns = [column["name"] for column in metadata.schema["fields"] if not _is_plain(column)]
        if metadata.format_version != 2:
            return f"the table has format version {metadata.format_version}"
        if metadata.current is None:
            return "the table has no snapshot"
        if strip_file_scheme(metadata.table_location) != place.spark_url:
            return "the table does not lie where its name says"
        if metadata.partition_spec.is_partitioned:
            return "the table is partitioned"
        if metadata.sorted_by:
            return "the table has a sort order"
        if writer_properties - _KNOWN_PROPERTIES:
            return f"the table sets {', '.join(sorted(writer_properties - _KNOWN_PROPERTIES))}"
        if self.codec not in _CODECS:
            return f"the table's files are compressed by {self.codec}"
        if not owns_commit_column(metadata):
            return "the table is another writer's"
        if columns:
            return f"column {columns[0]} is required, or has a type that plain files do not hold"
        return None if self._can_add_manifest else "the table's manifests must be merged"

    @property
    def codec(self) -> str:
        """Compression of the table's files."""
        return self.metadata.properties.get(_CODEC, _CODECS[0]).lower()

    def with_ids(self, rows: DataFrame) -> DataFrame:
        """Return rows whose columns have the table's field ids, which Spark writes into files.

        Fields of structs have ids, too.
        """
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructType

        schema = self.metadata.schema
        # DataFrame.to does the same, but loses the ids of literal columns (Spark 4.1).
        columns = []
        for field in StructType.fromJson(_with_field_ids(spark_schema(schema), schema)):
            column = F.col(quoted(field.name))
            typed_column = column.cast(field.dataType) if isinstance(field.dataType, StructType) else column
            columns.append(typed_column.alias(field.name, metadata=field.metadata))
        return rows.select(*columns)

    def matches_footer(self, footer: FileMetaData) -> bool:
        """Return whether a file has the table's field ids, and times as readers expect them.

        Times need full precision and the common calendar. The session's settings may have changed any of
        these.
        """
        schema = footer.schema
        columns = [schema.column(number) for number in range(len(schema))]
        instants_fit = all(
            column.physical_type != "INT96" and column.converted_type != "TIMESTAMP_MILLIS"
            for column in columns
        )
        return (
            instants_fit
            and not has_legacy_calendar(footer)
            and list(_ids_in(schema.to_arrow_schema())) == list(_ids_of(self.metadata.schema))
        )

    def is_read_by_names(self, footer: FileMetaData) -> bool:
        """Return whether a file also has exactly the table's columns by name and type.

        Then any Parquet reader reads it as Iceberg does.
        """
        from pyiceberg.io.pyarrow import pyarrow_to_schema

        if not self.matches_footer(footer):
            return False
        file_fields = pyarrow_to_schema(footer.schema.to_arrow_schema()).fields
        return [(field.name, field.field_type) for field in file_fields] == [
            (field.name, field.field_type) for field in self.schema.fields
        ]

    @cached_property
    def io(self) -> FileIO:
        """Reader and writer of the table's files."""
        from pyiceberg.io import load_file_io

        return load_file_io(dict(self.metadata.storage), self.metadata.location)

    @cached_property
    def schema(self) -> Schema:
        """Columns of the table."""
        from pyiceberg.schema import Schema

        return Schema.model_validate(self.metadata.schema)

    @property
    def partition_spec(self) -> PartitionSpec:
        """Default spec of the table, which has no partitions."""
        from pyiceberg.partitioning import PartitionSpec

        return PartitionSpec(spec_id=self.metadata.raw.get("default-spec-id", 0))

    @cached_property
    def manifests(self) -> list[ManifestFile]:
        """Manifests of the snapshot that readers see."""
        from pyiceberg.manifest import read_manifest_list

        current = self.metadata.current
        path = next(
            snapshot["manifest-list"]
            for snapshot in self.metadata.raw["snapshots"]
            if current is not None and snapshot["snapshot-id"] == current.id
        )
        return list(read_manifest_list(self.io.new_input(path)))

    @property
    def _can_add_manifest(self) -> bool:
        """Return whether the table takes one more manifest before they should be merged."""
        properties = self.metadata.properties
        if properties.get("commit.manifest-merge.enabled", "true").lower() != "true":
            return True
        merge_threshold = int(properties.get("commit.manifest.min-count-to-merge", _MAX_MANIFESTS))
        return len(self.manifests) + 1 < merge_threshold


def _is_plain(column: Mapping[str, Any]) -> bool:
    """Return whether a column is optional and a plain file holds it as Iceberg reads it."""
    data_type = column["type"]
    if column["required"]:
        return False
    is_struct = isinstance(data_type, Mapping)
    return has_plain_type(column) and (not is_struct or all(map(_is_plain, data_type["fields"])))


def has_plain_type(column: Mapping[str, Any]) -> bool:
    """Return whether a plain file holds a column as Iceberg reads it."""
    data_type = column["type"]
    if isinstance(data_type, Mapping):
        return data_type["type"] == "struct" and all(map(has_plain_type, data_type["fields"]))
    return data_type in _PLAIN_TYPES or data_type.startswith("decimal(")


def _with_field_ids(struct: Mapping[str, Any], columns: Mapping[str, Any]) -> dict[str, Any]:
    """Add the table's field ids to Spark's JSON of its columns."""
    fields = [
        {
            **field,
            "type": _with_field_ids(field["type"], column["type"])
            if isinstance(field["type"], Mapping)
            else field["type"],
            "metadata": {"parquet.field.id": column["id"]},
        }
        for field, column in zip(struct["fields"], columns["fields"], strict=True)
    ]
    return {**struct, "fields": fields}


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
