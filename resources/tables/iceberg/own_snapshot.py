"""The snapshot of our own commit: manifests and summary (docs/explanation/adr/0032).

We write manifests ourselves because pyiceberg's ``overwrite`` keeps each manifest that names removed files
alone and reads all manifests twice: its hundredth commit takes 40 times as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from resources.tables.data_files.written import WrittenFile
from resources.tables.iceberg.commit import COPIED, DELETED
from resources.tables.iceberg.metadata import next_timestamp
from resources.tables.iceberg.own_files import data_file
from resources.tables.iceberg.plain_table import PlainTable
from resources.tables.iceberg.replaced_files import ReplacedFiles

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile, ManifestEntry, ManifestFile

_TOTALS = {
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-delete-files": ("", ""),
    "total-position-deletes": ("", ""),
    "total-equality-deletes": ("", ""),
}
"""Totals of a summary, each with the counts that it grows and shrinks by."""


@dataclass(frozen=True)
class SnapshotChange:
    """The files that a snapshot adds and removes, in manifests of their own.

    Attributes:
        id: id of the snapshot.
        io: writer of files beside the table's metadata.
        manifests: manifests of these files, and of the remaining files of replaced manifests.
        replaced_manifests: paths of the manifests that these replace.
        counts: counts for the summary.
    """

    id: int
    io: FileIO
    manifests: Sequence[ManifestFile]
    replaced_manifests: frozenset[str]
    counts: Mapping[str, int]

    @classmethod
    def of(
        cls,
        written: Sequence[WrittenFile],
        table: PlainTable,
        replaced_files: ReplacedFiles,
        copied_rows: int | None,
        deleted_rows: int = 0,
    ) -> SnapshotChange:
        """Write the manifests of a change and return the change.

        Args:
            written: added files.
            table: table that they were written for.
            replaced_files: files to remove from it.
            copied_rows: rows of removed files that the added files contain; None if nothing is replaced.
            deleted_rows: rows that deletes of an upsert remove.

        Raises:
            NeedsEngine: a file is not as Iceberg reads it.
        """
        id_ = uuid4().int >> 65
        files = [data_file(file, table) for file in written]
        # Added files get their own manifest: they are usually the next to be replaced, and then the other manifest stays.
        manifests = [_manifest(table, id_, added_files=files, removed_entries=replaced_files.entries)]
        if replaced_files.neighbours:
            manifests.append(_manifest(table, id_, existing=replaced_files.neighbours))
        counts = {
            "added-data-files": len(written),
            "added-records": sum(file.rows for file in written),
            "added-files-size": sum(file.size for file in written),
        }
        if copied_rows is not None:
            counts |= {
                "deleted-data-files": len(replaced_files.entries),
                "deleted-records": replaced_files.rows,
                "removed-files-size": replaced_files.size,
                COPIED: copied_rows,
                **({DELETED: deleted_rows} if deleted_rows else {}),
            }
        replaced_paths = frozenset(manifest.manifest_path for manifest in replaced_files.manifests)
        return cls(id_, table.io, manifests, replaced_paths, counts)

    def snapshot(self, table: PlainTable, summary: Mapping[str, str]) -> dict[str, Any]:
        """Write the manifest list of the next snapshot; return that snapshot in the JSON of metadata."""
        from pyiceberg.manifest import write_manifest_list

        # pyiceberg 0.12 sets the sequence number in the manifests, so each list needs a deep copy.
        own_manifests = deepcopy(self.manifests)
        metadata, before = table.metadata, table.metadata.current
        assert before is not None
        number = metadata.raw["last-sequence-number"] + 1
        path = f"{metadata.table_location}/metadata/snap-{self.id}-{uuid4()}.avro"
        # A manifest that only lists files removed by an earlier snapshot does not belong to this one.
        other_manifests = [
            manifest
            for manifest in table.manifests
            if manifest.manifest_path not in self.replaced_manifests
            and (manifest.has_added_files() or manifest.has_existing_files())
        ]
        with write_manifest_list(
            2, self.io.new_output(path), self.id, before.id, number, "deflate"
        ) as manifest_list:
            manifest_list.add_manifests([*own_manifests, *other_manifests])
        counts = self.counts
        totals = {
            total: before.count(total) + counts.get(grows_by, 0) - counts.get(shrinks_by, 0)
            for total, (grows_by, shrinks_by) in _TOTALS.items()
            if total in before.summary
        }
        summary_counts = {"changed-partition-count": 1, **counts, **totals}
        return {
            "snapshot-id": self.id,
            "parent-snapshot-id": before.id,
            "sequence-number": number,
            "timestamp-ms": next_timestamp(metadata),
            "manifest-list": path,
            "schema-id": metadata.raw["current-schema-id"],
            "summary": {
                "operation": self._operation,
                **summary,
                **{name: str(count) for name, count in summary_counts.items()},
            },
        }

    @property
    def _operation(self) -> str:
        """Operation of the snapshot, in Iceberg's terms."""
        if not self.replaced_manifests:
            return "append"
        return "overwrite" if self.counts["added-data-files"] else "delete"

    def delete_manifest_list(self, snapshot: Mapping[str, Any]) -> None:
        """Delete the manifest list of a snapshot that was not committed."""
        with suppress(Exception):
            self.io.delete(snapshot["manifest-list"])


def _manifest(
    table: PlainTable,
    snapshot: int,
    added_files: Sequence[DataFile] = (),
    existing: Sequence[ManifestEntry] = (),
    removed_entries: Sequence[ManifestEntry] = (),
) -> ManifestFile:
    """Write a manifest of at least one file for a snapshot of a table."""
    from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, write_manifest

    target = table.io.new_output(f"{table.metadata.table_location}/metadata/{uuid4()}-m0.avro")
    with write_manifest(2, table.partition_spec, table.schema, target, snapshot, "deflate") as manifest:
        for file in added_files:
            status = ManifestEntryStatus.ADDED
            manifest.add_entry(ManifestEntry.from_args(status=status, snapshot_id=snapshot, data_file=file))
        for entry in existing:
            manifest.existing(entry)
        for entry in removed_entries:
            manifest.delete(entry)
    return manifest.to_manifest_file()
