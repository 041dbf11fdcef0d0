"""The snapshot of an own commit: its manifests, and its summary, as pyiceberg writes them and the metadata has them (docs/explanation/adr/0032).

By hand, since pyiceberg's ``overwrite`` keeps each manifest that names removed files alone, and reads all manifests twice: the hundredth commit takes 40 times as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from resources.tables.data_files.written import WrittenFile
from resources.tables.iceberg.commit import COPIED
from resources.tables.iceberg.metadata import now_after
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
"""Counts of a summary that go on from the snapshot before, each with what it grows and shrinks by."""


@dataclass(frozen=True)
class SnapshotChange:
    """Files that a snapshot adds and removes, in manifests of their own.

    Attributes:
        id: of the snapshot.
        io: what writes beside the table's metadata.
        manifests: of these files; and of those which stay of the manifests that named the removed ones.
        instead: paths of the manifests whose place they take.
        counts: of the summary.
    """

    id: int
    io: FileIO
    manifests: Sequence[ManifestFile]
    instead: frozenset[str]
    counts: Mapping[str, int]

    @classmethod
    def of(
        cls, written: Sequence[WrittenFile], table: PlainTable, replaced: ReplacedFiles, copied: int | None
    ) -> SnapshotChange:
        """Write the manifest.

        Args:
            written: files that are added.
            table: that they are written for.
            replaced: what is removed from it.
            copied: rows that the files have of removed ones; None if nothing is replaced.

        Raises:
            NeedsEngine: a file is not as Iceberg reads it.
        """
        id_ = uuid4().int >> 65
        files = [data_file(file, table) for file in written]
        # Apart from those that stay: what is replaced next is as a rule what comes now, and this manifest is then not written again.
        manifests = [_manifest(table, id_, added=files, removed=replaced.entries)]
        if replaced.neighbours:
            manifests.append(_manifest(table, id_, existing=replaced.neighbours))
        counts = {
            "added-data-files": len(written),
            "added-records": sum(file.rows for file in written),
            "added-files-size": sum(file.size for file in written),
        }
        if copied is not None:
            counts |= {
                "deleted-data-files": len(replaced.entries),
                "deleted-records": replaced.rows,
                "removed-files-size": replaced.size,
                COPIED: copied,
            }
        instead = frozenset(manifest.manifest_path for manifest in replaced.manifests)
        return cls(id_, table.io, manifests, instead, counts)

    def snapshot(self, table: PlainTable, summary: Mapping[str, str]) -> dict[str, Any]:
        """Write the list of manifests of the snapshot after a table's; return the snapshot as the JSON of metadata has it."""
        from pyiceberg.manifest import write_manifest_list

        # The list gives a manifest of its own its number, and a copy that is not deep would keep it for the next list (pyiceberg 0.12).
        own = deepcopy(self.manifests)
        metadata, before = table.metadata, table.metadata.current
        assert before is not None
        number = metadata.raw["last-sequence-number"] + 1
        path = f"{metadata.table_location}/metadata/snap-{self.id}-{uuid4()}.avro"
        # One that only tells which files an earlier snapshot removed says nothing of this one.
        others = [
            manifest
            for manifest in table.manifests
            if manifest.manifest_path not in self.instead
            and (manifest.has_added_files() or manifest.has_existing_files())
        ]
        with write_manifest_list(
            2, self.io.new_output(path), self.id, before.id, number, "deflate"
        ) as manifest_list:
            manifest_list.add_manifests([*own, *others])
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
            "timestamp-ms": now_after(metadata),
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
        """In Iceberg's words."""
        if not self.instead:
            return "append"
        return "overwrite" if self.counts["added-data-files"] else "delete"

    def forget(self, snapshot: Mapping[str, Any]) -> None:
        """Remove the list of a snapshot that did not come to be."""
        with suppress(Exception):
            self.io.delete(snapshot["manifest-list"])


def _manifest(
    table: PlainTable,
    snapshot: int,
    added: Sequence[DataFile] = (),
    existing: Sequence[ManifestEntry] = (),
    removed: Sequence[ManifestEntry] = (),
) -> ManifestFile:
    """Write a manifest for a snapshot of a table; at least one of its files is given."""
    from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, write_manifest

    target = table.io.new_output(f"{table.metadata.table_location}/metadata/{uuid4()}-m0.avro")
    with write_manifest(2, table.layout, table.schema, target, snapshot, "deflate") as manifest:
        for file in added:
            status = ManifestEntryStatus.ADDED
            manifest.add_entry(ManifestEntry.from_args(status=status, snapshot_id=snapshot, data_file=file))
        for entry in existing:
            manifest.existing(entry)
        for entry in removed:
            manifest.delete(entry)
    return manifest.to_manifest_file()
