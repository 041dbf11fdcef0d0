"""Find the unreadable files and records of a slice; skip or quarantine the files.

See docs/reference/files.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import BadFile, BadPart, TooManyBadParts
from partitions.path.bad_files import TOO_MANY_BAD_FILES, BadFileCount, is_skipped
from partitions.path.slices import PathSlice
from partitions.spelling import first_few
from resources.kinds.contract.bad_parts import BadParts, SetsAside, SetsRecordsAside
from resources.sources.files.checked import BadRecord
from resources.sources.files.source import FileSource
from resources.watermarks.entry import LOADS, NO_PROGRESS, Entry
from resources.watermarks.lists import QUARANTINED_FILES, StoredList
from resources.watermarks.log import WatermarkLog
from resources.watermarks.quarantine_list import read_quarantine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAMED = 10
"""The most bad files that an error names."""


@dataclass(frozen=True)
class PathBadParts(BadParts[PathSlice], SetsAside[PathSlice], SetsRecordsAside[PathSlice]):
    """Finds the bad files of one dataflow.

    Attributes:
        dataflow: the definition, which says how bad files are treated.
        source: the files under the dataflow's root.
        log: the log, which stores the quarantine.
    """

    dataflow: Dataflow
    source: FileSource
    log: WatermarkLog

    def find(self, spark: SparkSession, slice_: PathSlice, pinned: str, error: Exception) -> BadFile | None:
        """Return the file that Spark names, with its line if a record does not parse."""
        files = {file.path: file for file in slice_.files}
        return self.source.find_bad_file(spark, files, pinned, error)

    def slice_without(self, slice_: PathSlice, bad: BadPart) -> PathSlice | None:
        """Return the slice without the file; None if the run must stop at it."""
        if not is_skipped(self.dataflow.on_bad_file, bad.code) or not slice_.contains(bad):
            return None
        return slice_.without(bad.part, bad.why)

    def defer(self, slice_: PathSlice, parts: Collection[str]) -> PathSlice | None:
        """Return the slice without these files; a later plan finds them again beside the watermark."""
        return slice_.leaving(parts)

    def find_others(
        self, spark: SparkSession, slice_: PathSlice, pinned: str, bad: BadPart | None
    ) -> Sequence[BadFile]:
        """Return all files that are bad in the same way. One by one, each would cost a number and a write."""
        if bad is not None and not isinstance(bad, BadFile):
            return ()
        return self.source.find_similar(spark, slice_.files, pinned, bad)

    def too_many(
        self, slice_: PathSlice, entry: Entry | None, others: Callable[[], Sequence[BadPart]]
    ) -> TooManyBadParts | None:
        """Return the error if more files are bad than ``max_bad_files`` allows.

        Released files were bad before, so they go back into quarantine, however many they are.
        """
        if slice_.why == "release":
            return None
        limit = self.dataflow.max_bad_files
        total = len(slice_.all_files)
        bad = [
            BadFile(f"file {skipped.file.path}: {skipped.reason}", path=skipped.file.path, why=skipped.reason)
            for skipped in slice_.quarantined
        ]
        if not self._count(len(bad), total, entry).exceeds(limit):
            return None
        paths = {file.path for file in bad}
        bad += [
            BadFile(other.message, path=other.part, why=other.why)
            for other in others()
            if other.part not in paths
        ]
        return _too_many_error(self.dataflow, bad, self._count(len(bad), total, entry))

    def _count(self, bad: int, total: int, entry: Entry | None) -> BadFileCount:
        before = self._bad_right_before(entry) if bad == total and entry is not None else 0
        return BadFileCount(bad, total, before, is_first=entry is None or not entry.total_files)

    def _bad_right_before(self, newest: Entry) -> int:
        """Return how many files the newest entries quarantined, without a loaded file or a decision between."""
        bad = 0
        for entry in self.log.history(self.dataflow.name) if newest.number else ():
            if entry.why in NO_PROGRESS:
                continue
            if entry.files or not entry.quarantined or entry.why not in LOADS:
                break
            bad += entry.quarantined
        return bad

    def quarantine(self, entry: Entry | None, slice_: PathSlice) -> tuple[StoredList | None, int]:
        """Return the quarantine after the slice."""
        before = read_quarantine(self.log, entry)
        dealt_with = [*slice_.files, *(copy.file for copy in slice_.copies)]
        after = before.after([file.path for file in dealt_with], slice_.quarantined)
        stored = None if after == before else StoredList(QUARANTINED_FILES, after.rows())
        return stored, len(slice_.quarantined)

    def bad_records(
        self, spark: SparkSession, slice_: PathSlice, pinned: str
    ) -> Sequence[tuple[str, BadRecord]]:
        """Return the bad records of the files, in order.

        Raises:
            BadFile: the file whose record exceeds ``max_bad_records``.
        """
        return self.source.bad_records(spark, slice_.files, pinned)

    def parts(self, slice_: PathSlice) -> Sequence[str]:
        """Return the paths of its files, and of the gone files whose rows it deletes."""
        return [*(file.path for file in slice_.all_files), *slice_.gone_paths]


def _too_many_error(dataflow: Dataflow, bad: Sequence[BadPart], count: BadFileCount) -> TooManyBadParts:
    """Return the error that names up to ten bad files, the first one's reason, and what to do."""
    first, *rest = bad
    others = (
        f" The other bad files are {first_few([other.part for other in rest], _NAMED - 1)}." if rest else ""
    )
    changed = "If their format has changed, correct source.options or set target.schema_mode."
    wrong = "If the definition is wrong, correct source.format, source.schema or source.options."
    return TooManyBadParts(
        f"dataflow {dataflow.name}: {count.describe(dataflow.max_bad_files)}. The slice is not loaded, and "
        f"nothing is put in quarantine. The first bad file is {first.part}: {first.why}.{others} Repair or remove these "
        f"files. {wrong if count.is_first else changed} To quarantine them all the same, set max_bad_files: "
        f"{count.in_a_row}",
        parts=bad,
        code=TOO_MANY_BAD_FILES,
    )
