"""Find files with the content of loaded ones: within a slice, and in the record of ingested files.

Only files of an equal size are compared. See docs/reference/files.md, Duplicates.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from partitions.dataflow import Dataflow
from partitions.path.copies import Content, CopiedFile, content_of, copies_warning, find_copies
from partitions.path.slices import PathSlice
from partitions.path.source import in_pair_order
from resources.connections.places import Place
from resources.decisions.reasons import OTHER_ROOT, WITH_ROWS
from resources.sources.files.checksums import checksums_of
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
        judged: the warning about the copies of each slice, by the paths of the slice's files.
        sizes: sizes of the files in each range of the record, which never change.
    """

    dataflow: Dataflow
    root: Place
    log: WatermarkLog
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
        self._warn(slice_, copies)
        if policy == "skip":
            return slice_.with_copies(copies, checksums)
        named = [[copy.file.path, copy.original] for copy in copies[:_NAMED]]
        if copies or self.log.note(self.dataflow.name, NOTE):
            self.log.put_note(self.dataflow.name, NOTE, {"count": len(copies), "files": named})
        return slice_.with_copies((), checksums)

    def _warn(self, slice_: PathSlice, copies: Sequence[CopiedFile]) -> None:
        """Store the warning about a slice's copies in the place of earlier ones about its files."""
        paths = frozenset(file.path for file in slice_.all_files)
        for earlier in [earlier for earlier in self.judged if earlier & paths]:
            del self.judged[earlier]
        if copies:
            are_loaded = self.dataflow.path.duplicates == "alert"
            self.judged[paths] = copies_warning(copies, are_loaded=are_loaded)

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


def _is_loaded(recorded: IngestedFile) -> bool:
    """Return whether the rows of a file are in the table, so that a copy would double them."""
    return recorded.reason in (*WITH_ROWS, OTHER_ROOT, UNPROCESSED)
