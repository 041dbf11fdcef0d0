"""Warn about files that a listing would not find, by the folders that may hold files.

See docs/reference/files.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from partitions.path.definition import PathWatermark
from partitions.path.names_by_time import NamingReport, examine
from partitions.path.order import FileKey
from partitions.path.source import ListedFiles, SourceFile

ROOT_FILES_IGNORED = "root_level_files_ignored"
"""Warning: the watermark has a partition, so files at the root are not found (docs/reference/files.md)."""

_SAMPLE = 1000


def reaches_leaves(definition: PathWatermark, partition: str) -> bool:
    """Return whether a filter names every folder down to the files.

    Then no folder holds both files and folders.
    """
    chosen = definition.partition_filter
    return bool(chosen and partition and chosen.prefix_template.count("/") == partition.count("/"))


def layout_warnings(
    definition: PathWatermark, listed: ListedFiles, *, partitioned: bool, initial: bool
) -> Iterator[str]:
    """Yield warnings about files that a listing will not find.

    Args:
        definition: the user's definition.
        listed: the result of a listing.
        partitioned: whether the listing looked for files in partitions only.
        initial: whether this is a cold start.
    """
    if listed.root_files and partitioned:
        yield ROOT_FILES_IGNORED
    if definition.layout == "leaf" and initial and (breach := _leaf_breach(listed.files)):
        yield (
            f"layout leaf: {breach} holds files and folders; only the sweep for late files may find the "
            "sub-folders"
        )


def _leaf_breach(files: Sequence[SourceFile]) -> str | None:
    holders = {FileKey.of(file.path).partition for file in files}
    for partition in sorted(holders):
        parent = partition
        while parent:
            parent = FileKey.of(parent).partition
            if parent in holders:
                return parent or "the root"
    return None


def naming_report(definition: PathWatermark, files: Sequence[SourceFile]) -> NamingReport:
    """Return the report on a sample of files: the first and others at even distances."""
    step = max(1, len(files) // _SAMPLE)
    return examine([file.path for file in files[::step]], by_partition=definition.scope == "partition")
