"""Another engine's equality deletes of an Iceberg table: Spark reads them, but writes none.

See docs/reference/iceberg.md.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.typedef import Record, TableVersion
from pyiceberg.types import IntegerType, ListType, NestedField, StructType


class _Deletes(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    def _with_partition(self, format_version: TableVersion) -> Schema:
        """Return the columns of a manifest, with ids of 32 bits as Iceberg reads them."""
        entry = super()._with_partition(format_version)
        of_file = entry.find_field("data_file")
        assert isinstance(of_file.field_type, StructType)
        ids = NestedField(
            135, "equality_ids", ListType(136, IntegerType(), element_required=True), required=False
        )
        fields = [ids if field.field_id == ids.field_id else field for field in of_file.field_type.fields]
        other_fields = [field for field in entry.fields if field.field_id != of_file.field_id]
        return Schema(
            *other_fields, NestedField(of_file.field_id, "data_file", StructType(*fields), required=True)
        )

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def delete_by_values(folder: Path, column: str, values: list[int]) -> None:
    """Delete the rows of a table without partitions that have one of these values, as Flink does."""
    newest = max((folder / "metadata").glob("v*.metadata.json"), key=_number)
    table, raw, id_ = (
        StaticTable.from_metadata(str(newest)),
        json.loads(newest.read_text()),
        uuid4().int >> 66,
    )
    parent, sequence = table.current_snapshot(), raw["last-sequence-number"] + 1
    assert parent is not None
    listing = table.io.new_output(str(folder / "metadata" / f"snap-{id_}.avro"))
    manifest = _manifest(folder, table, id_, _file_of(folder, table, column, values))
    with write_manifest_list(2, listing, id_, parent.snapshot_id, sequence, "null") as manifests:
        manifests.add_manifests([manifest, *parent.manifests(table.io)])
    now = max(int(time.time() * 1000), raw["last-updated-ms"])
    totals = parent.summary.additional_properties if parent.summary else {}
    snapshot = {
        "snapshot-id": id_,
        "parent-snapshot-id": parent.snapshot_id,
        "sequence-number": sequence,
        "timestamp-ms": now,
        "summary": _summary(totals, len(values)),
        "manifest-list": listing.location,
        "schema-id": raw["current-schema-id"],
    }
    raw["snapshots"].append(snapshot)
    raw["refs"]["main"]["snapshot-id"] = raw["current-snapshot-id"] = id_
    raw["snapshot-log"].append({"timestamp-ms": now, "snapshot-id": id_})
    raw |= {"last-sequence-number": sequence, "last-updated-ms": now}
    (folder / "metadata" / f"v{_number(newest) + 1}.metadata.json").write_text(json.dumps(raw))


def _number(metadata: Path) -> int:
    return int(metadata.name[1:].partition(".")[0])


def _file_of(folder: Path, table: StaticTable, column: str, values: list[int]) -> DataFile:
    field_id, file = (
        table.schema().find_field(column).field_id,
        folder / "data" / f"{uuid4()}-deletes.parquet",
    )
    kind = pa.field(column, pa.int64(), metadata={"PARQUET:field_id": str(field_id)})
    pq.write_table(pa.table([pa.array(values, pa.int64())], schema=pa.schema([kind])), file)
    data_file = DataFile.from_args(
        content=DataFileContent.EQUALITY_DELETES,
        file_path=str(file),
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=len(values),
        file_size_in_bytes=file.stat().st_size,
        equality_ids=[field_id],
    )
    data_file.spec_id = table.spec().spec_id
    return data_file


def _manifest(folder: Path, table: StaticTable, id_: int, file: DataFile) -> ManifestFile:
    output = table.io.new_output(str(folder / "metadata" / f"{uuid4()}-m0.avro"))
    with _Deletes(table.spec(), table.schema(), output, id_, "null") as manifest:
        entry = ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=id_, data_file=file)
        manifest.add(entry)
    return manifest.to_manifest_file()


def _summary(totals: Mapping[str, str], values: int) -> dict[str, str]:
    counts = {"delete-files": 1, "equality-deletes": values}
    return {
        "operation": "delete",
        **{key: value for key, value in totals.items() if key.startswith("total-")},
        **{f"added-{name}": str(count) for name, count in counts.items()},
        **{
            f"total-{name}": str(int(totals.get(f"total-{name}", 0)) + count)
            for name, count in counts.items()
        },
    }
