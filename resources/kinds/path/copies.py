"""Find files with the content of loaded ones: within a slice, and in the record of ingested files.

Only files of an equal size are compared. See docs/reference/files.md, Duplicates.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from partitions.dataflow import Dataflow
from partitions.path.copies import (
    Content,
    CopiedFile,
    content_of,
    copies_warning,
    find_copies,
    freed_copies_warning,
    original_of,
    reason_of_copy,
)
from partitions.path.slices import PathSlice
from partitions.path.source import SourceFile, in_pair_order
from partitions.predicate import Between
from resources.connections.places import Place
from resources.decisions.reasons import DELETED, OTHER_ROOT, WITH_ROWS
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
        reasons: why the files in each range of the record were not loaded.
    """

    dataflow: Dataflow
    root: Place
    log: WatermarkLog
    table: Table
    judged: dict[frozenset[str], str] = field(default_factory=dict)
    sizes: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, Any] = field(default_factory=dict)

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
        if policy == "load" and not slice_.replaces:
            return slice_
        record = IngestedFiles(self.log, self.dataflow.name, entry)
        replaced_paths = self._replaced_paths(slice_)
        files = in_pair_order([*slice_.files, *(copy.file for copy in slice_.copies)])
        if policy == "load":
            originals = {original_of(copy.reason) for copy in self._copies_of(record, replaced_paths)}
            files = tuple(file for file in files if file.path in originals)
        checksums = checksums_of(self.root, files)
        contents = {
            file.path: content
            for file in files
            if (content := content_of(file.path, file.size, file.version, checksums.get(file.path)))
            is not None
        }
        own = record.find_records(list(contents))
        copies = () if policy == "load" else self.find_copies(files, contents, own, record, replaced_paths)
        new_contents = {path: contents.get(path) for path in replaced_paths}
        if policy == "skip":
            new_contents |= {copy.file.path: None for copy in copies if is_loaded(own.get(copy.file.path))}
        in_slice = {file.path for file in slice_.all_files}
        freed_copies = self.find_freed_copies(record, new_contents, in_slice)
        self._warn(slice_, copies, freed_copies)
        if policy == "load":
            return replace(slice_, freed_copies=tuple(freed_copies))
        if policy == "skip":
            return slice_.with_copies(copies, checksums, freed_copies)
        named = [[copy.file.path, copy.original] for copy in copies[:_NAMED]]
        if copies or self.log.note(self.dataflow.name, NOTE):
            self.log.put_note(self.dataflow.name, NOTE, {"count": len(copies), "files": named})
        return slice_.with_copies((), checksums, freed_copies)

    def find_copies(
        self,
        files: Sequence[SourceFile],
        contents: Mapping[str, Content],
        own: Mapping[str, IngestedFile],
        record: IngestedFiles,
        replaced_paths: Collection[str],
    ) -> tuple[CopiedFile, ...]:
        """Return the files of a commit whose content is in the table already, or comes with another file.

        A file is read again if it has a record. It is no copy of a file whose rows others have deleted from
        the table, or it would be nowhere. A new file is: those rows were deleted on purpose.

        Args:
            files: the files, in pair order.
            contents: their contents by path, as far as known.
            own: their records.
            record: the record of ingested files.
            replaced_paths: files whose rows the commit deletes.
        """
        originals = self._loaded_originals(contents, own, record, replaced_paths)
        loaded = {path: recorded for path, recorded in own.items() if is_loaded(recorded)}
        contents_read_again = {contents[path] for path in own}
        counts = Counter(contents.values())
        doubtful = [file for content in contents_read_again for file in originals.get(content, ())]
        doubtful += [
            file for path, file in loaded.items() if contents[path] in originals or counts[contents[path]] > 1
        ]
        lost_paths = self._without_rows(doubtful)
        loaded_contents = {
            content: remaining[0]
            for content, records in originals.items()
            if (
                remaining := [
                    file.path
                    for file in records
                    if content not in contents_read_again or file.path not in lost_paths
                ]
            )
        }
        return find_copies(files, contents, loaded.keys() - lost_paths, loaded_contents)

    def find_freed_copies(
        self,
        record: IngestedFiles,
        new_contents: Mapping[str, Content | None],
        in_commit: Collection[str],
    ) -> list[SourceFile]:
        """Return the files that were skipped as copies of files whose content a commit takes away.

        Args:
            record: the record of ingested files.
            new_contents: by path of such a file, the content that it has from now on; None: none, or unknown.
            in_commit: files of the commit, which are judged by themselves.
        """
        return [
            SourceFile(*copy[:4])
            for copy in self._copies_of(record, new_contents)
            if copy.path not in in_commit
            and new_contents[str(original_of(copy.reason))] != content_of_record(copy)
        ]

    def foresee_freed_copies(self, slices: Sequence[PathSlice], entry: Entry | None) -> list[SourceFile]:
        """Return the skipped copies that the commits of planned slices free, whether or not they read them.

        Only files that have changed since they were recorded are read for their checksums.

        Args:
            slices: the planned slices.
            entry: the newest entry.
        """
        read_again = {
            file.path: file for slice_ in slices if self._replaced_paths(slice_) for file in slice_.all_files
        }
        gone_paths = {path for slice_ in slices for path in slice_.gone_paths}
        record = IngestedFiles(self.log, self.dataflow.name, entry)
        copies = self._copies_of(record, {*read_again, *gone_paths})
        originals = {str(original_of(copy.reason)) for copy in copies}
        recorded = record.find_records(sorted(originals)) | {copy.path: copy for copy in copies}
        contents = {path: content_of_record(file) for path, file in recorded.items()}
        files = [file for path in recorded if (file := read_again.get(path)) is not None]
        changed_files = [
            file
            for file in files
            if contents[file.path] is None or file.row != SourceFile(*recorded[file.path][:4]).row
        ]
        checksums = checksums_of(self.root, changed_files)
        contents |= {
            file.path: content_of(file.path, file.size, file.version, checksums.get(file.path))
            for file in changed_files
        } | dict.fromkeys(gone_paths)
        return [
            SourceFile(*copy[:4])
            for copy in copies
            if contents[copy.path] != contents[str(original_of(copy.reason))]
        ]

    def _replaced_paths(self, slice_: PathSlice) -> set[str]:
        """Return the files whose rows a slice's commit deletes; scd2 deletes none."""
        if not slice_.replaces or self.dataflow.target.load == "scd2":
            return set()
        return {*(file.path for file in slice_.all_files), *slice_.gone_paths}

    def _copies_of(self, record: IngestedFiles, originals: Iterable[str]) -> list[IngestedFile]:
        """Return the records of files that were skipped as copies of these files."""
        reasons = {reason_of_copy(path) for path in originals}
        return list(RecordTables(record).find_reasons(reasons, self.reasons))

    def _loaded_originals(
        self,
        contents: Mapping[str, Content],
        own: Mapping[str, IngestedFile],
        record: IngestedFiles,
        replaced_paths: Collection[str],
    ) -> Mapping[Content, Sequence[IngestedFile]]:
        """Return loaded files with one of these contents, whose rows stay in the table.

        The record of a skipped file tells that its content came with another file, which may have been
        loaded with other content since, beside the old rows.
        """
        originals = defaultdict[Content, list[IngestedFile]](list)
        sought_contents = {*contents.values()}
        for recorded in RecordTables(record).find_sizes(
            {content.size for content in sought_contents}, self.sizes
        ):
            content = content_of_record(recorded)
            is_elsewhere = recorded.path not in contents and recorded.path not in replaced_paths
            if content in sought_contents and is_elsewhere and is_loaded(recorded):
                assert content is not None
                originals[content].append(recorded)
        originals_by_copy = {
            path: original
            for path, copy in own.items()
            if (original := original_of(copy.reason)) and content_of_record(copy) == contents[path]
        }
        records = record.find_records(sorted({*originals_by_copy.values()} - {*replaced_paths}))
        for path, original in originals_by_copy.items():
            recorded_original = records.get(original)
            if recorded_original and is_loaded(recorded_original):
                originals[contents[path]].append(recorded_original)
        return originals

    def _without_rows(self, files: Sequence[IngestedFile]) -> set[str]:
        """Return the paths of loaded files of which the table has no row, since others have deleted them.

        A load by keys may have replaced all rows of a file, so nothing is known then. Rows of a file that was
        taken as loaded under another name carry that name.
        """
        paths = {file.path for file in files if file.reason != OTHER_ROOT}
        table = self.table
        if not paths or not self.dataflow.target.only_adds or not table.exists():
            return set()
        if SOURCE_FILE not in table.contents.columns():
            return set()
        rows = Between(SOURCE_FILE, min(paths), max(paths), upper_inclusive=True)
        return paths - count_rows_of_files(table, rows).keys()

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


def content_of_record(recorded: IngestedFile) -> Content | None:
    """Return the content that a file had when it was recorded; None if nothing tells it."""
    return content_of(recorded.path, recorded.size, recorded.version, recorded.checksum)


def is_loaded(recorded: IngestedFile | None) -> bool:
    """Return whether a file counts as loaded: a copy would double its rows, or bring deleted ones back."""
    return recorded is not None and recorded.reason in (*WITH_ROWS, DELETED, OTHER_ROOT, UNPROCESSED)
