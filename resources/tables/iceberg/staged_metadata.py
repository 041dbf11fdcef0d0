"""Read chosen files of an Iceberg table through metadata of their own, which name no other file.

Spark plans all files of a snapshot, even if a condition names a few: Iceberg does not skip files by their
names. So the files are listed in new manifests in a scratch folder, with their own sequence numbers and the
deletes that apply to them. Iceberg then reads exactly these, by the ids of columns, as it reads the table.
The price is four small files for each read. See docs/explanation/adr/0046.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from resources.connections.places import Place
from resources.tables.contract.scratch import ScratchFolder, put_scratch_file
from resources.tables.iceberg.avro_containers import AvroContainer
from resources.tables.iceberg.catalog import FolderCatalog
from resources.tables.iceberg.file_sets import FileSets, LiveFile
from resources.tables.iceberg.metadata import MAIN, Metadata

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EXISTING = 0
"""Status of a manifest entry whose file an earlier snapshot added."""
_TABLE = "files"


def read_staged(
    spark: SparkSession,
    sets: FileSets,
    snapshot: int,
    files: Sequence[LiveFile],
    file_column: str,
    scratch: ScratchFolder,
) -> DataFrame:
    """Return the rows of data files, with their deletes applied and the address of each row's file.

    Args:
        spark: session.
        sets: reader of the table's files.
        snapshot: snapshot whose columns the result has.
        files: data files, each once.
        file_column: name of the column for the address.
        scratch: returns the folder for the metadata.
    """
    folder = scratch().child(f"iceberg-{uuid4().hex}")
    place = folder.child(_TABLE)
    deletes = {delete.key: delete for file in files for delete in file.deletes}
    records = [
        _put_manifest(place, group)
        for side in (files, list(deletes.values()))
        for group in _by_manifest(side)
    ]
    listing = AvroContainer(sets.list_header(snapshot), records)
    put_scratch_file(place, "metadata/list.avro", listing.encode())
    summary = {
        "operation": "append",
        "total-data-files": str(len(files)),
        "total-records": str(sum(int(file.file["record_count"]) for file in files)),
        "total-files-size": str(sum(int(file.file["file_size_in_bytes"]) for file in files)),
        "total-delete-files": str(len(deletes)),
    }
    raw = _metadata(sets.metadata, snapshot, f"{place.spark_url}/metadata/list.avro", summary)
    put_scratch_file(place, "metadata/v1.metadata.json", json.dumps(raw).encode())
    put_scratch_file(place, "metadata/version-hint.text", b"1")
    rows = spark.read.table(FolderCatalog(place).name(spark))
    return rows.withColumn(file_column, rows.metadataColumn("_file"))


_DEFAULTS = {
    **dict.fromkeys(("content", "sequence_number", "min_sequence_number"), 0),
    **{
        f"{what}_{of}_count": 0
        for what in ("added", "existing", "deleted")
        for of in ("files", "data_files", "rows")
    },
}
"""What a manifest's record lacks that was written while the table had format version 1."""


def _by_manifest(files: Sequence[LiveFile]) -> list[list[LiveFile]]:
    groups: dict[str, list[LiveFile]] = {}
    for file in files:
        groups.setdefault(str(file.manifest.record["manifest_path"]), []).append(file)
    return list(groups.values())


def _put_manifest(place: Place, files: Sequence[LiveFile]) -> dict[str, Any]:
    """Write a manifest with some of the entries of another one; return its record for the list."""
    manifest = files[0].manifest
    name = f"metadata/{uuid4().hex}.avro"
    entries = [{**file.entry, "status": _EXISTING} for file in files]
    data = AvroContainer(manifest.container.header, entries).encode()
    put_scratch_file(place, name, data)
    rows = sum(int(file.file["record_count"]) for file in files)
    counts = {"existing_files_count": len(files), "existing_rows_count": rows}
    counts["existing_data_files_count"] = len(files)
    return {
        **_DEFAULTS,
        **{key: value for key, value in manifest.record.items() if not key.endswith("_count")},
        **counts,
        "manifest_path": f"{place.spark_url}/{name}",
        "manifest_length": len(data),
    }


def _metadata(
    metadata: Metadata, snapshot: int, listing: str, summary: Mapping[str, str]
) -> Mapping[str, Any]:
    """Return metadata with one snapshot, which names only the listed files."""
    raw = metadata.raw
    original = next(item for item in raw["snapshots"] if item["snapshot-id"] == snapshot)
    only = {key: value for key, value in original.items() if key != "parent-snapshot-id"}
    return {
        **raw,
        "current-schema-id": original.get("schema-id", raw.get("current-schema-id")),
        "current-snapshot-id": snapshot,
        "snapshots": [{**only, "manifest-list": listing, "summary": summary}],
        "snapshot-log": [],
        "metadata-log": [],
        "refs": {MAIN: {"snapshot-id": snapshot, "type": "branch"}},
        "statistics": [],
        "partition-statistics": [],
    }
