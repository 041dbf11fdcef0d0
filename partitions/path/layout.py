"""Which folders may hold files: leaves only, or any, the root too; and what a listing shows of it (docs/reference/files.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from partitions.path.definition import PathWatermark
from partitions.path.names_by_time import NamingReport, examine
from partitions.path.order import FileKey
from partitions.path.source import ListedFiles, SourceFile

ROOT_FILES_IGNORED = "root_level_files_ignored"
"""Warning: there are files at the root, and the watermark has a partition, so they are not found (docs/reference/files.md)."""

_SAMPLE = 1000


def reaches_leaves(definition: PathWatermark, partition: str) -> bool:
    """Return whether a filter names every folder down to the file: then no folder holds both files and folders."""
    chosen = definition.partition_filter
    return bool(chosen and partition and chosen.prefix_template.count("/") == partition.count("/"))


def layout_warnings(
    definition: PathWatermark, listed: ListedFiles, *, partitioned: bool, initial: bool
) -> Iterator[str]:
    """Yield which files will not be found.

    Args:
        definition: what the user declared.
        listed: what a listing found.
        partitioned: whether it looked for files in partitions only.
        initial: whether it was a cold start.
    """
    if listed.root_files and partitioned:
        yield ROOT_FILES_IGNORED
    if definition.layout == "leaf" and initial and (breach := _leaf_breach(listed.files)):
        yield (
            f"layout leaf: {breach} holds files and folders; its sub-folders may be found only by the late-file sweep"
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


def naming(definition: PathWatermark, files: Sequence[SourceFile]) -> NamingReport:
    """The report on a sample of what was found: the first, the last and evenly between."""
    step = max(1, len(files) // _SAMPLE)
    return examine([file.path for file in files[::step]], by_partition=definition.scope == "partition")
