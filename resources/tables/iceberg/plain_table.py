"""An Iceberg table whose rows are its Parquet files, without partitions, orders and deletes beside them: what Strandline commits to itself (docs/explanation/adr/0032).

What is not known to ask nothing of a writer counts as asking.
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
from resources.tables.iceberg.catalog import without_scheme
from resources.tables.iceberg.metadata import Metadata, spark_schema
from resources.tables.iceberg.rows import owns_commit_column

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyspark.sql import DataFrame

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


@dataclass(frozen=True)
class PlainTable:
    """The table as one version of its metadata has it."""

    metadata: Metadata

    def check_plain(self, place: Place) -> None:
        """Raise NeedsEngine if a table at a place asks of a commit what it would not get here."""
        if demand := self._demand(place):
            raise NeedsEngine(demand)

    def _demand(self, place: Place) -> str | None:
        metadata = self.metadata
        asked = {key for key in metadata.properties if key.startswith(("write.", "encryption."))}
        columns = [column["name"] for column in metadata.schema["fields"] if not _is_plain(column)]
        if metadata.format_version != 2:
            return f"the table has format version {metadata.format_version}"
        if metadata.current is None:
            return "the table has no snapshot"
        if without_scheme(metadata.table_location) != place.spark_url:
            return "the table lies elsewhere than its name says"
        if metadata.partition_spec.is_partitioned:
            return "the table is partitioned"
        if metadata.sorted_by:
            return "the table has a sort order"
        if asked - _PROPERTIES:
            return f"the table sets {', '.join(sorted(asked - _PROPERTIES))}"
        if self.codec not in _CODECS:
            return f"the table's files are compressed by {self.codec}"
        if not owns_commit_column(metadata):
            return "the table is another writer's"
        if columns:
            return f"column {columns[0]} has a type, or needs values, that plain files do not tell"
        return None if self._has_room else "the table's manifests are to be joined"

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

    def holds(self, footer: FileMetaData) -> bool:
        """Return whether a file knows its columns by the ids of the table's, and has its times as readers count them and whole.

        What a session is told may say otherwise.
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
        """Return whether a file has exactly the table's columns, by name and by type, too: any reader of Parquet reads it as Iceberg does."""
        from pyiceberg.io.pyarrow import pyarrow_to_schema

        if not self.holds(footer):
            return False
        found = pyarrow_to_schema(footer.schema.to_arrow_schema()).fields
        return [(field.name, field.field_type) for field in found] == [
            (field.name, field.field_type) for field in self.schema.fields
        ]

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
