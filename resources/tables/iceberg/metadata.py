"""One version of an Iceberg table's metadata, parsed from JSON: snapshots, parents, columns. No I/O."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from resources.tables.iceberg.partition_spec import PartitionSpec

MAIN = "main"
"""The branch that readers see."""

_GZIP = b"\x1f\x8b"
"""First bytes of a gzipped file."""

_MAX_VERSIONS = 100
"""Metadata files in a table's log, Iceberg's default."""

_SPARK_TYPES = {
    "int": "integer",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "uuid": "string",
    "unknown": "void",
}
"""Spark's names of types that differ from Iceberg's."""


@dataclass(frozen=True)
class Snapshot:
    """One state of the table.

    Attributes:
        id: random id.
        parent: id of the snapshot before it; None if it is the first.
        sequence: sequence number, which rises with each snapshot of the table.
        operation: ``append``, ``overwrite``, ``delete`` or ``replace``.
        summary: properties that the commit recorded.
        timestamp: time of the commit in epoch milliseconds.
    """

    id: int
    parent: int | None
    sequence: int
    operation: str
    summary: Mapping[str, str]
    timestamp: int = 0

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Snapshot:
        """Parse an item of the metadata's snapshot list."""
        summary = dict(raw.get("summary") or {})
        operation = str(summary.pop("operation", ""))
        return cls(
            raw["snapshot-id"],
            raw.get("parent-snapshot-id"),
            raw.get("sequence-number", 0),
            operation,
            summary,
            int(raw.get("timestamp-ms") or 0),
        )

    @property
    def version(self) -> str:
        """Version id in the contract: the sequence number, which people can compare, and the snapshot id."""
        return f"{self.sequence}-{self.id}"

    def count(self, name: str) -> int:
        """Return a number from the summary; 0 if it is missing."""
        return int(self.summary.get(name) or 0)

    @property
    def rows(self) -> int | None:
        """Number of rows in the table at that time; None if only a scan can count them."""
        if "total-records" not in self.summary or self.count("total-equality-deletes"):
            return None
        return self.count("total-records") - self.count("total-position-deletes")


@dataclass(frozen=True)
class Metadata:
    """The table as one metadata file describes it.

    Attributes:
        raw: JSON of the file.
        location: address of the file.
        version: number of the file if the catalog counts them; otherwise 0.
        storage: options by which pyiceberg reaches the table's files.
    """

    raw: Mapping[str, Any]
    location: str
    version: int = 0
    storage: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(
        cls, data: bytes, location: str, version: int = 0, storage: Mapping[str, str] | None = None
    ) -> Metadata:
        """Parse a metadata file, gzipped or not."""
        text = gzip.decompress(data) if data.startswith(_GZIP) else data
        return cls(json.loads(text), location, version, storage or {})

    @cached_property
    def snapshots(self) -> Mapping[int, Snapshot]:
        """Snapshots that the table still has, by id."""
        parsed = map(Snapshot.parse, self.raw.get("snapshots") or ())
        return {snapshot.id: snapshot for snapshot in parsed}

    @property
    def current(self) -> Snapshot | None:
        """Newest snapshot that readers see; None if nothing was ever written."""
        return self.snapshots.get(self.raw.get("current-snapshot-id") or -1)

    @property
    def version_id(self) -> str:
        """Newest version id in the contract."""
        return self.current.version if self.current else f"0-{self.uuid}"

    @property
    def uuid(self) -> str:
        """Id of the table, which a table that was recreated in its place lacks."""
        return str(self.raw.get("table-uuid"))

    @property
    def table_location(self) -> str:
        """Address of the table."""
        return str(self.raw.get("location"))

    @property
    def refs(self) -> Mapping[str, Mapping[str, Any]]:
        """Branches and tags by name."""
        return self.raw.get("refs") or {}

    @property
    def properties(self) -> Mapping[str, str]:
        """Properties of the table."""
        return self.raw.get("properties") or {}

    @property
    def format_version(self) -> int:
        """Version of Iceberg's specification; snapshots have sequence numbers from 2 on."""
        return int(self.raw.get("format-version", 1))

    @property
    def sorted_by(self) -> frozenset[int]:
        """Ids of the columns by which new files are sorted."""
        orders, order_id = self.raw.get("sort-orders") or (), self.raw.get("default-sort-order-id", 0)
        fields: list[Any] = next((order["fields"] for order in orders if order["order-id"] == order_id), [])
        return frozenset(field["source-id"] for field in fields)

    @property
    def identifiers(self) -> tuple[tuple[str, ...], ...]:
        """Paths of the columns that another writer declared as the key of a row."""
        key_ids = set(self.schema.get("identifier-field-ids") or ())
        return tuple(path for path, id_ in walk_columns(self.schema) if id_ in key_ids)

    def snapshot(self, version: str) -> Snapshot | None:
        """Return the snapshot of a version, even if readers no longer see it; None if it is gone."""
        return self.snapshots.get(int(version.partition("-")[2])) if names_snapshot(version) else None

    def lineage(self, newest: Snapshot | None = None) -> Iterator[Snapshot]:
        """Yield a snapshot (None: the visible one) and its ancestors that are not expired, newest first."""
        snapshot = newest or self.current
        while snapshot is not None:
            yield snapshot
            snapshot = self.snapshots.get(snapshot.parent) if snapshot.parent is not None else None

    @property
    def schema(self) -> Mapping[str, Any]:
        """Columns that the next write has."""
        return self._schema(self.raw.get("current-schema-id"))

    @property
    def version_schema(self) -> Mapping[str, Any]:
        """Columns of the newest version, without columns that were added after it."""
        return self.schema_of(self.raw.get("current-snapshot-id"))

    def schema_of(self, snapshot: int | None) -> Mapping[str, Any]:
        """Return the columns of a snapshot; the newest columns if it does not record them."""
        snapshots = self.raw.get("snapshots") or ()
        schema_id = next((raw.get("schema-id") for raw in snapshots if raw["snapshot-id"] == snapshot), None)
        return self.schema if schema_id is None else self._schema(schema_id)

    def _schema(self, schema_id: int | None) -> Mapping[str, Any]:
        schemas: Sequence[Mapping[str, Any]] = self.raw.get("schemas") or [self.raw["schema"]]
        return next(schema for schema in schemas if schema.get("schema-id", 0) == (schema_id or 0))

    @property
    def partition_spec(self) -> PartitionSpec:
        """Partition spec of new files."""
        specs = self.raw.get("partition-specs") or []
        spec_id = self.raw.get("default-spec-id", 0)
        fields: list[Any] = next((spec["fields"] for spec in specs if spec["spec-id"] == spec_id), [])
        return PartitionSpec(fields, {column["id"]: column["name"] for column in self.schema["fields"]})


def next_version(base: Metadata, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON of the next version: the changes, the time, and the metadata log within its limit."""
    raw = base.raw
    log_entry = {"timestamp-ms": raw["last-updated-ms"], "metadata-file": base.location}
    log = [*(raw.get("metadata-log") or []), log_entry]
    log_length = int(base.properties.get("write.metadata.previous-versions-max", _MAX_VERSIONS))
    return {
        **raw,
        "last-updated-ms": next_timestamp(base),
        "metadata-log": log[-max(1, log_length) :],
        **changes,
    }


def with_snapshot(base: Metadata, snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON of the next version, with one more snapshot that readers see."""
    raw, id_ = base.raw, snapshot["snapshot-id"]
    changes = {
        "snapshots": [*(raw.get("snapshots") or []), snapshot],
        "last-sequence-number": snapshot["sequence-number"],
        **main_snapshot_fields(snapshot["timestamp-ms"], raw, id_),
        "refs": {**base.refs, MAIN: {**base.refs.get(MAIN, {}), "snapshot-id": id_, "type": "branch"}},
    }
    return next_version(base, changes)


def main_snapshot_fields(timestamp: int, raw: Mapping[str, Any], snapshot: int) -> dict[str, Any]:
    """Return the fields that make readers see a snapshot from a time on, in epoch milliseconds."""
    log = [*(raw.get("snapshot-log") or []), {"timestamp-ms": timestamp, "snapshot-id": snapshot}]
    return {"current-snapshot-id": snapshot, "snapshot-log": log}


def dropped_metadata_files(base: Metadata, raw: Mapping[str, Any]) -> list[str]:
    """Return the metadata files that the next version no longer names; none if the table keeps them all."""
    if base.properties.get("write.metadata.delete-after-commit.enabled", "").lower() != "true":
        return []
    remaining_files = {version["metadata-file"] for version in raw["metadata-log"]}
    earlier_files = (version["metadata-file"] for version in base.raw.get("metadata-log") or ())
    return [file for file in earlier_files if file not in remaining_files]


def next_timestamp(base: Metadata) -> int:
    """Return the current time in epoch milliseconds, but never before the last change."""
    return max(int(time.time() * 1000), int(base.raw["last-updated-ms"]))


def walk_columns(data_type: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield path and id of each column of a struct and of nested structs.

    Arrays and maps are left out: their elements can be no key and no sort order.
    """
    if not isinstance(data_type, Mapping) or data_type["type"] != "struct":
        return
    for column in data_type["fields"]:
        column_path = (*path, column["name"])
        yield column_path, column["id"]
        yield from walk_columns(column["type"], column_path)


def spark_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns as Spark's JSON."""
    struct = _spark_type(schema)
    assert isinstance(struct, dict)
    return struct


def sequence_of(version: str) -> int:
    """Return the sequence number of a version id, by which versions compare."""
    return int(version.partition("-")[0])


def names_snapshot(version: str) -> bool:
    """Return whether a version id names a snapshot; else the table had none yet."""
    return version.partition("-")[2].isdigit()


def _spark_type(data_type: Any) -> str | dict[str, Any]:
    if isinstance(data_type, str):
        if data_type.startswith("fixed"):
            return "binary"
        return _SPARK_TYPES.get(data_type, data_type.replace(", ", ","))
    match data_type["type"]:
        case "struct":
            return {"type": "struct", "fields": [_spark_field(field) for field in data_type["fields"]]}
        case "list":
            return {
                "type": "array",
                "elementType": _spark_type(data_type["element"]),
                "containsNull": not data_type["element-required"],
            }
        case _:
            return {
                "type": "map",
                "keyType": _spark_type(data_type["key"]),
                "valueType": _spark_type(data_type["value"]),
                "valueContainsNull": not data_type["value-required"],
            }


def _spark_field(field: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": field["name"],
        "type": _spark_type(field["type"]),
        "nullable": not field["required"],
        "metadata": {},
    }
