"""One version of an Iceberg table's metadata, as its JSON says: snapshots, who is whose parent, columns. Nothing is read here."""

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
"""What a packed file begins with."""

_MOST_VERSIONS = 100
"""Older files of metadata that a table names, by Iceberg's default."""

_SPARK_TYPES = {
    "int": "integer",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "uuid": "string",
}
"""Names of types that Spark has another word for."""


@dataclass(frozen=True)
class Snapshot:
    """One state of the table.

    Attributes:
        id: random.
        parent: the one before it; None if it is the first.
        sequence: a number that rises with each snapshot of the table.
        operation: ``append``, ``overwrite``, ``delete`` or ``replace``.
        summary: what the commit says of itself.
    """

    id: int
    parent: int | None
    sequence: int
    operation: str
    summary: Mapping[str, str]

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Snapshot:
        """Read one of the metadata's list."""
        summary = dict(raw.get("summary") or {})
        operation = str(summary.pop("operation", ""))
        return cls(
            raw["snapshot-id"],
            raw.get("parent-snapshot-id"),
            raw.get("sequence-number", 0),
            operation,
            summary,
        )

    @property
    def version(self) -> str:
        """What the contract calls it: its number, by which people see which is newer, and its id."""
        return f"{self.sequence}-{self.id}"

    def count(self, name: str) -> int:
        """Return a number of the summary; 0 if it is not there."""
        return int(self.summary.get(name) or 0)

    @property
    def rows(self) -> int | None:
        """Rows of the table then; None if only a scan tells."""
        if "total-records" not in self.summary or self.count("total-equality-deletes"):
            return None
        return self.count("total-records") - self.count("total-position-deletes")


@dataclass(frozen=True)
class Metadata:
    """The table as one file of metadata has it.

    Attributes:
        raw: the JSON.
        location: of the file.
        version: number of the file, where the catalog counts them; else 0.
        storage: how pyiceberg reaches the table's files.
    """

    raw: Mapping[str, Any]
    location: str
    version: int = 0
    storage: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(
        cls, data: bytes, location: str, version: int = 0, storage: Mapping[str, str] | None = None
    ) -> Metadata:
        """Read a file, packed or not."""
        plain = gzip.decompress(data) if data.startswith(_GZIP) else data
        return cls(json.loads(plain), location, version, storage or {})

    @cached_property
    def snapshots(self) -> Mapping[int, Snapshot]:
        """All that the table still has, by id."""
        parsed = map(Snapshot.parse, self.raw.get("snapshots") or ())
        return {snapshot.id: snapshot for snapshot in parsed}

    @property
    def current(self) -> Snapshot | None:
        """The newest of what readers see; None if nothing was ever written."""
        return self.snapshots.get(self.raw.get("current-snapshot-id") or -1)

    @property
    def version_id(self) -> str:
        """What the contract calls the newest version."""
        return self.current.version if self.current else f"0-{self.uuid}"

    @property
    def uuid(self) -> str:
        """What tells the table from one that was made again in its place."""
        return str(self.raw.get("table-uuid"))

    @property
    def table_location(self) -> str:
        """Where the table lies."""
        return str(self.raw.get("location"))

    @property
    def refs(self) -> Mapping[str, Mapping[str, Any]]:
        """Branches and tags by name."""
        return self.raw.get("refs") or {}

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.raw.get("properties") or {}

    @property
    def format_version(self) -> int:
        """Of Iceberg's specification; snapshots have numbers from 2 on."""
        return int(self.raw.get("format-version", 1))

    @property
    def sorted_by(self) -> frozenset[int]:
        """The ids of the columns by which new files are sorted."""
        orders, wanted = self.raw.get("sort-orders") or (), self.raw.get("default-sort-order-id", 0)
        fields: list[Any] = next((order["fields"] for order in orders if order["order-id"] == wanted), [])
        return frozenset(field["source-id"] for field in fields)

    @property
    def identifiers(self) -> tuple[tuple[str, ...], ...]:
        """The paths of the columns that another writer has declared to be the key of a row."""
        wanted = set(self.schema.get("identifier-field-ids") or ())
        return tuple(path for path, id_ in columns_within(self.schema) if id_ in wanted)

    def snapshot(self, version: str) -> Snapshot | None:
        """Return the snapshot of a version, also one that readers see no more; None if it is gone."""
        return self.snapshots.get(int(version.partition("-")[2])) if _has_snapshot(version) else None

    def lineage(self) -> Iterator[Snapshot]:
        """Yield what readers see and what that was made of, newest first, as far as it was not expired."""
        at = self.current
        while at is not None:
            yield at
            at = self.snapshots.get(at.parent) if at.parent is not None else None

    @property
    def schema(self) -> Mapping[str, Any]:
        """The columns that the next write has."""
        return self._schema(self.raw.get("current-schema-id"))

    @property
    def version_schema(self) -> Mapping[str, Any]:
        """The columns that the newest version has: those that came without rows since are not among them."""
        current = self.raw.get("current-snapshot-id")
        snapshots = self.raw.get("snapshots") or ()
        wanted = next((raw.get("schema-id") for raw in snapshots if raw["snapshot-id"] == current), None)
        return self.schema if wanted is None else self._schema(wanted)

    def _schema(self, wanted: int | None) -> Mapping[str, Any]:
        schemas: Sequence[Mapping[str, Any]] = self.raw.get("schemas") or [self.raw["schema"]]
        return next(schema for schema in schemas if schema.get("schema-id", 0) == (wanted or 0))

    @property
    def partition_spec(self) -> PartitionSpec:
        """How new files are laid out."""
        specs = self.raw.get("partition-specs") or []
        wanted = self.raw.get("default-spec-id", 0)
        fields: list[Any] = next((spec["fields"] for spec in specs if spec["spec-id"] == wanted), [])
        return PartitionSpec(fields, {column["id"]: column["name"] for column in self.schema["fields"]})


def next_version(before: Metadata, changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON of the version after one: with what has changed, when it was made, and the versions that it follows, as many as the table keeps."""
    raw = before.raw
    made_before = {"timestamp-ms": raw["last-updated-ms"], "metadata-file": before.location}
    log = [*(raw.get("metadata-log") or []), made_before]
    most = int(before.properties.get("write.metadata.previous-versions-max", _MOST_VERSIONS))
    return {**raw, "last-updated-ms": now_after(before), "metadata-log": log[-max(1, most) :], **changed}


def with_snapshot(before: Metadata, snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON of the version after one, with one more snapshot, which readers see."""
    raw, id_ = before.raw, snapshot["snapshot-id"]
    changed = {
        "snapshots": [*(raw.get("snapshots") or []), snapshot],
        "last-sequence-number": snapshot["sequence-number"],
        **seen_from(snapshot["timestamp-ms"], raw, id_),
        "refs": {**before.refs, MAIN: {**before.refs.get(MAIN, {}), "snapshot-id": id_, "type": "branch"}},
    }
    return next_version(before, changed)


def seen_from(now: int, raw: Mapping[str, Any], snapshot: int) -> dict[str, Any]:
    """Return what a table says, beside its branches, of a snapshot that readers see from a time on, epoch milliseconds."""
    log = [*(raw.get("snapshot-log") or []), {"timestamp-ms": now, "snapshot-id": snapshot}]
    return {"current-snapshot-id": snapshot, "snapshot-log": log}


def dropped_versions(before: Metadata, raw: Mapping[str, Any]) -> list[str]:
    """Return the files of metadata that the next version does not name any more; none if the table keeps them all."""
    if before.properties.get("write.metadata.delete-after-commit.enabled", "").lower() != "true":
        return []
    kept = {version["metadata-file"] for version in raw["metadata-log"]}
    named = (version["metadata-file"] for version in before.raw.get("metadata-log") or ())
    return [file for file in named if file not in kept]


def now_after(before: Metadata) -> int:
    """Return the time in epoch milliseconds; never before the last change."""
    return max(int(time.time() * 1000), int(before.raw["last-updated-ms"]))


def columns_within(kind: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the path and the id of each column of a struct, those of structs within it, too. What is in arrays and maps is nobody's key or order."""
    if not isinstance(kind, Mapping) or kind["type"] != "struct":
        return
    for column in kind["fields"]:
        below = (*path, column["name"])
        yield below, column["id"]
        yield from columns_within(column["type"], below)


def spark_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns as Spark's JSON has them."""
    struct = _spark_type(schema)
    assert isinstance(struct, dict)
    return struct


def sequence_of(version: str) -> int:
    """Return the number by which a version is newer or older than another one."""
    return int(version.partition("-")[0])


def _has_snapshot(version: str) -> bool:
    return version.partition("-")[2].isdigit()


def _spark_type(kind: Any) -> str | dict[str, Any]:
    if isinstance(kind, str):
        if kind.startswith("fixed"):
            return "binary"
        return _SPARK_TYPES.get(kind, kind.replace(", ", ","))
    match kind["type"]:
        case "struct":
            return {"type": "struct", "fields": [_spark_field(field) for field in kind["fields"]]}
        case "list":
            return {
                "type": "array",
                "elementType": _spark_type(kind["element"]),
                "containsNull": not kind["element-required"],
            }
        case _:
            return {
                "type": "map",
                "keyType": _spark_type(kind["key"]),
                "valueType": _spark_type(kind["value"]),
                "valueContainsNull": not kind["value-required"],
            }


def _spark_field(field: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": field["name"],
        "type": _spark_type(field["type"]),
        "nullable": not field["required"],
        "metadata": {},
    }
