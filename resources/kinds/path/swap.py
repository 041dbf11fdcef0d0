"""The promote of a replay of files: it swaps the rows of each file, and judges copies as runs do.

See docs/reference/replay.md, Files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from partitions.dataflow import Dataflow
from partitions.path.copies import (
    Content,
    CopiedFile,
    copies_warning,
    freed_copies_warning,
    original_of,
)
from partitions.path.slices import PathSlice, watermark_of
from partitions.path.source import SourceFile, in_pair_order
from partitions.path.state import PathState
from partitions.plan import pluralize
from partitions.predicate import Among, Between, Predicate
from partitions.replay.promoted import promoted_files, rows_of_files
from partitions.spelling import first_few
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.kinds.path.copies import CopyFinder, content_of_record, is_loaded
from resources.kinds.path.opening import path_planning
from resources.platform.stores import Stores
from resources.replay.isolated.chunks import chunks_of
from resources.replay.isolated.refusals import never_loaded, only_copies, range_loaded_again
from resources.replay.isolated.standing import IsolatedReplay
from resources.replay.kind import Swap
from resources.sources.files.paths import SOURCE_FILE
from resources.sql import quoted
from resources.watermarks.entry import Entry
from resources.watermarks.file_ranges import IngestedFile
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.quarantine_list import read_quarantine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_MAX_NAMED = 100
"""The most files that one condition lists by name."""


@dataclass(frozen=True)
class FileSwap:
    """The swap of one dataflow's rows, file by file.

    Attributes:
        stores: the resources.
        dataflow: the definition.
    """

    stores: Stores
    dataflow: Dataflow

    def swap(self, isolated: IsolatedReplay, entry: Entry | None) -> Swap:
        """Swap the rows of the replayed files, except files that live runs have loaded since or will load."""
        log, dataflow = self.stores.log, self.dataflow
        replayed_files = list(IngestedFiles(log, isolated.log, log.newest(isolated.log)).all())
        paths = [file.path for file in replayed_files]
        record = IngestedFiles(log, dataflow.name, entry)
        recorded = record.find_records(paths)
        newer = {path for path, file in recorded.items() if file.number > isolated.number}
        released = {file.file.path for file in read_quarantine(log, entry).released}
        below = path_planning(self.stores, dataflow).at_or_below_watermark(entry, paths) - released
        gone_paths = self._gone_since(isolated, entry)
        swapped = self._swapped_files(
            list(promoted_files(replayed_files, newer, below)), recorded, record, gone_paths
        )
        swapped_paths = {*swapped.paths, *gone_paths}
        if not swapped_paths:
            if newer:
                number = max(recorded[path].number for path in newer)
                raise range_loaded_again(isolated, f"entry {number}")
            if swapped.copies:
                raise only_copies(isolated, [f"{copy.file.path} ({copy.reason})" for copy in swapped.copies])
            raise never_loaded(isolated)
        state = watermark_of(dataflow.path, PathState.of(entry.state() if entry else None))
        slice_ = PathSlice(
            swapped.files,
            state,
            state,
            dataflow.path,
            why="replay",
            replaces=True,
            copies=swapped.copies,
            checksums={file.path: file.checksum for file in replayed_files if file.checksum},
            gone_paths=gone_paths,
            freed_copies=swapped.freed_copies,
        )
        stays = _staying(replayed_files, newer, below, swapped)
        where = partial(self._where, swapped_paths, {*paths} - swapped_paths)
        amount = f"rows of {pluralize(len(swapped_paths), 'file')} ({isolated.words})"
        return Swap(slice_, None, slice_.upper, where, amount, stays)

    def _swapped_files(
        self,
        replayed_files: Sequence[IngestedFile],
        recorded: Mapping[str, IngestedFile],
        record: IngestedFiles,
        gone_paths: Sequence[str],
    ) -> _SwappedFiles:
        """Judge copies as the live dataflow does, which has more files than the range.

        The replay may have loaded a copy of a file outside of its range. It may have skipped a loaded file as
        the copy of another one: if its rows are still right they stay, else the other file brings them.

        Args:
            replayed_files: files that may be swapped, as the replay recorded them.
            recorded: the live records of these files.
            record: the live record.
            gone_paths: files whose rows are deleted.
        """
        contents = {file.path: _content(file, recorded.get(file.path)) for file in replayed_files}
        files = in_pair_order([SourceFile(*file[:4]) for file in replayed_files if file.reason is None])
        loaded_paths = {file.path for file in files}
        skipped_files = {file.path: file for file in replayed_files if original_of(file.reason)}
        unchanged_paths = {
            path
            for path in skipped_files
            if is_loaded(recorded.get(path)) and content_of_record(recorded[path]) == contents[path]
        }
        moved_files = [
            file
            for path, file in skipped_files.items()
            if path not in unchanged_paths and original_of(file.reason) in loaded_paths
        ]
        moved_paths = {file.path for file in moved_files}
        platform, dataflow = self.stores, self.dataflow
        finder = CopyFinder(dataflow, platform.root_of(dataflow), platform.log, platform.table(dataflow))
        known_contents = {path: content for path in loaded_paths if (content := contents[path]) is not None}
        own = {path: recorded[path] for path in known_contents if path in recorded}
        replaced_paths = {*loaded_paths, *moved_paths, *gone_paths}
        copies = (
            list(finder.find_copies(files, known_contents, own, record, replaced_paths))
            if dataflow.path.duplicates == "skip"
            else []
        )
        originals = {copy.file.path: copy.original for copy in copies}
        files = tuple(file for file in files if file.path not in originals)
        for file in moved_files:
            original = str(original_of(file.reason))
            copies.append(CopiedFile(SourceFile(*file[:4]), originals.get(original, original)))
        new_contents = {file.path: contents[file.path] for file in files}
        freed_copies = finder.find_freed_copies(
            record,
            new_contents | dict.fromkeys([*moved_paths, *gone_paths]),
            {*new_contents, *(copy.file.path for copy in copies)},
        )
        return _SwappedFiles(
            files,
            {*new_contents, *moved_paths},
            tuple(copies),
            sorted(unchanged_paths),
            tuple(freed_copies),
        )

    def _gone_since(self, isolated: IsolatedReplay, entry: Entry | None) -> tuple[str, ...]:
        """Return the files that were gone when the replay began, and that no run has loaded since."""
        log = self.stores.log
        gone_paths = [path for chunk in chunks_of(log, isolated) for path in chunk.gone_paths]
        recorded = (
            IngestedFiles(log, self.dataflow.name, entry).find_records(gone_paths) if gone_paths else {}
        )
        return tuple(path for path in gone_paths if recorded[path].number <= isolated.number)

    def _where(self, swapped: Collection[str], other_paths: Collection[str], rows: DataFrame) -> Predicate:
        """Return the predicate of the rows of files.

        Many files become ranges of paths that hold no other file of either table, since each path costs
        some milliseconds.
        """
        live = self.stores.table(self.dataflow)
        if len(swapped) <= _MAX_NAMED or not live.exists():
            return Among(SOURCE_FILE, tuple(sorted(swapped)))
        within = Between(SOURCE_FILE, min(swapped), max(swapped), upper_inclusive=True)
        live_rows = live.contents.read(rows.sparkSession, live.contents.newest_version(), within).where(
            predicate_sql(within, SPARK)
        )
        live_paths = {row[0] for row in live_rows.select(quoted(SOURCE_FILE)).distinct().collect()}
        return rows_of_files(SOURCE_FILE, swapped, live_paths.union(other_paths))


class _SwappedFiles(NamedTuple):
    """What a promote does with the files of a replay.

    Attributes:
        files: their rows come.
        paths: files whose live rows go.
        copies: files without rows, since other files have their content.
        unchanged_paths: loaded files that the replay skipped as copies, and whose rows are still right.
        freed_copies: files outside of the range that are copies no longer.
    """

    files: tuple[SourceFile, ...]
    paths: set[str]
    copies: tuple[CopiedFile, ...]
    unchanged_paths: Sequence[str]
    freed_copies: tuple[SourceFile, ...]


def _content(file: IngestedFile, recorded: IngestedFile | None) -> Content | None:
    """Return a replayed file's content, by the replay or by the live record of the same version."""
    if file.checksum is None and recorded and (recorded.size, recorded.version) == (file.size, file.version):
        return content_of_record(recorded)
    return content_of_record(file)


def _staying(
    replayed_files: Sequence[IngestedFile],
    newer: Collection[str],
    below: Collection[str],
    swapped: _SwappedFiles,
) -> list[str]:
    """Return what stays as it is, and why, in sentences for people.

    Args:
        replayed_files: all files of the replay.
        newer: paths of files that later runs have loaded.
        below: paths at or below the watermark.
        swapped: files whose rows are swapped, and those that have not changed.
    """
    loaded = {file.path for file in replayed_files if file.reason is None}
    paths_by_reason = {
        "the files could not be read": [
            file.path for file in replayed_files if file.reason and not original_of(file.reason)
        ],
        "later runs loaded them": sorted(newer),
        "they have not changed": swapped.unchanged_paths,
        "the next run loads them": sorted(loaded - {*below} - {*newer}),
    }
    sentences = [
        f"rows of {_named(names)} stay as they are: {why}" for why, names in paths_by_reason.items() if names
    ]
    sentences += [copies_warning(swapped.copies, are_loaded=False)] if swapped.copies else []
    return sentences + ([freed_copies_warning(swapped.freed_copies)] if swapped.freed_copies else [])


def _named(paths: Sequence[str]) -> str:
    return f"{pluralize(len(paths), 'file')} ({first_few(paths, 5)})"
