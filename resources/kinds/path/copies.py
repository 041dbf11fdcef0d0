"""Find files with the content of loaded ones: within a slice, and in the record of ingested files.

Only files of an equal size are compared. See docs/reference/files.md, Duplicates.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from partitions.dataflow import Dataflow
from partitions.path.copies import (
    SAME_CONTENT,
    Content,
    CopiedFile,
    content_of,
    copies_warning,
    find_copies,
    freed_copies_warning,
)
from partitions.path.slices import PathSlice
from partitions.path.source import SourceFile, in_pair_order
from resources.connections.places import Place
from resources.decisions.reasons import OTHER_ROOT, WITH_ROWS
from resources.kinds.path.row_counts import count_rows_of_files
from resources.sources.files.checksums import checksums_of
from resources.sources.files.paths import SOURCE_FILE
from resources.tables.contract.table import Table
from resources.watermarks.entry import Entry
from resources.watermarks.file_ranges import UNPROCESSED, IngestedFile
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.log import WatermarkLog
from resources.watermarks.record_tables import RecordTables

NOTE = "duplicates"
"""The note with the copies that the last slice has loaded (``duplicates: alert``)."""

_NAMED = 50


@dataclass(frozen=True)
class CopyFinder:
    """Finds copies as the dataflow's ``duplicates`` says.

    Attributes:
        dataflow: the definition.
        root: the root of the files.
        log: the log.
        table: the table, whose rows may tell their file.
        judged: the warning about the copies of each slice, by the paths of the slice's files.
        sizes: sizes of the files in each range of the record, which never change.
    """

    dataflow: Dataflow
    root: Place
    log: WatermarkLog
    table: Table
    judged: dict[frozenset[str], str] = field(default_factory=dict)
    sizes: dict[str, Any] = field(default_factory=dict)

    @property
    def remarks(self) -> Sequence[str]:
        """The warnings about copies, by the last judgement of each file."""
        return tuple(self.judged.values())

    def mark_copies(self, slice_: PathSlice, entry: Entry | None) -> PathSlice:
        """Return the slice with its copies marked, and with the checksums of its files; warn of copies.

        Args:
            slice_: the slice; copies that it has already are judged again.
            entry: the newest entry, on which the slice was planned.
        """
        policy = self.dataflow.path.duplicates
        if policy == "load":
            return slice_
        files = in_pair_order([*slice_.files, *(copy.file for copy in slice_.copies)])
        checksums = checksums_of(self.root, files)
        contents = {
            file.path: content
            for file in files
            if (content := content_of(file.path, file.size, file.version, checksums.get(file.path)))
            is not None
        }
        record = IngestedFiles(self.log, self.dataflow.name, entry)
        own = record.find_records(list(contents))
        loaded_paths = {path for path, recorded in own.items() if _is_loaded(recorded)}
        loaded_contents = self._loaded_contents(record, set(contents.values()), contents)
        copies = find_copies(files, contents, loaded_paths, loaded_contents)
        copies = self._without_lost_originals(copies, own, slice_)
        freed_copies = self._freed_copies(slice_, record, contents) if policy == "skip" else []
        self._warn(slice_, copies, freed_copies)
        if policy == "skip":
            return slice_.with_copies(copies, checksums, freed_copies)
        named = [[copy.file.path, copy.original] for copy in copies[:_NAMED]]
        if copies or self.log.note(self.dataflow.name, NOTE):
            self.log.put_note(self.dataflow.name, NOTE, {"count": len(copies), "files": named})
        return slice_.with_copies((), checksums)

    def _without_lost_originals(
        self, copies: tuple[CopiedFile, ...], own: Mapping[str, IngestedFile], slice_: PathSlice
    ) -> tuple[CopiedFile, ...]:
        """Return the copies but those that are read again while the table has no row of their original.

        A decision reads them again. The original's rows were deleted, and it does not come with the slice. A
        load by keys may have replaced the rows of the original, so nothing is known then.
        """
        paths = {file.path for file in slice_.files}
        doubtful = {
            copy.original
            for copy in copies
            if copy.original not in paths and str(_reason(own, copy.file.path)).startswith(SAME_CONTENT)
        }
        if not doubtful or not self._rows_tell_files:
            return copies
        lost_originals = doubtful - count_rows_of_files(self.table).keys()
        first_copies: dict[str, str] = {}
        remaining = []
        for copy in copies:
            if copy.original not in lost_originals:
                remaining.append(copy)
            elif (first := first_copies.setdefault(copy.original, copy.file.path)) != copy.file.path:
                remaining.append(CopiedFile(copy.file, first))
        return tuple(remaining)

    def _freed_copies(
        self, slice_: PathSlice, record: IngestedFiles, contents: Mapping[str, Content]
    ) -> list[SourceFile]:
        """Return skipped copies of files whose rows the slice deletes, or replaces by other content."""
        if not slice_.replaces or not self._rows_tell_files:
            return []
        replaced = {file.path: contents.get(file.path) for file in slice_.all_files}
        return find_freed_copies(record, replaced | dict.fromkeys(slice_.gone_paths))

    @property
    def _rows_tell_files(self) -> bool:
        """Whether only the deletion of a file's rows can have taken them out of the table."""
        table = self.table
        return self.dataflow.target.only_adds and table.exists() and SOURCE_FILE in table.contents.columns()

    def _warn(
        self, slice_: PathSlice, copies: Sequence[CopiedFile], freed_copies: Sequence[SourceFile]
    ) -> None:
        """Store the warning about a slice's copies in the place of earlier ones about its files."""
        paths = frozenset(file.path for file in slice_.all_files)
        for earlier in [earlier for earlier in self.judged if earlier & paths]:
            del self.judged[earlier]
        warnings = []
        if copies:
            are_loaded = self.dataflow.path.duplicates == "alert"
            warnings.append(copies_warning(copies, are_loaded=are_loaded))
        if freed_copies:
            warnings.append(freed_copies_warning(freed_copies))
        if warnings:
            self.judged[paths] = "; ".join(warnings)

    def _loaded_contents(
        self, record: IngestedFiles, contents: Collection[Content], in_slice: Collection[str]
    ) -> Mapping[Content, str]:
        """Return the paths of loaded files with one of these contents, outside of the slice."""
        originals: dict[Content, str] = {}
        for recorded in RecordTables(record).find_sizes({content.size for content in contents}, self.sizes):
            content = content_of(recorded.path, recorded.size, recorded.version, recorded.checksum)
            if content in contents and _is_loaded(recorded) and recorded.path not in in_slice:
                assert content is not None
                originals.setdefault(content, recorded.path)
        return originals


def find_freed_copies(record: IngestedFiles, new_contents: Mapping[str, Content | None]) -> list[SourceFile]:
    """Return files that were skipped as copies of files whose rows a commit replaces or deletes.

    Args:
        record: the record of ingested files.
        new_contents: by path of such a file, the content that it has from now on; None: none, or unknown.
    """
    originals = {f"{SAME_CONTENT}{path}": path for path in new_contents}
    freed = []
    for copy in RecordTables(record).find_reasons(originals):
        content = content_of(copy.path, copy.size, copy.version, copy.checksum)
        if copy.path not in new_contents and new_contents[originals[str(copy.reason)]] != content:
            freed.append(SourceFile(*copy[:4]))
    return freed


def _reason(records: Mapping[str, IngestedFile], path: str) -> str | None:
    """Return why a file was not loaded; None if it was, or has no record."""
    return records[path].reason if path in records else None


def _is_loaded(recorded: IngestedFile) -> bool:
    """Return whether the rows of a file are in the table, so that a copy would double them."""
    return recorded.reason in (*WITH_ROWS, OTHER_ROOT, UNPROCESSED)
