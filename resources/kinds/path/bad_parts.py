"""Find the unreadable files and records of a slice; skip or quarantine the files.

See docs/reference/files.md.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import BadFile, BadPart
from partitions.path.bad_files import is_skipped
from partitions.path.slices import PathSlice
from resources.kinds.contract.bad_parts import BadParts, SetsAside, SetsRecordsAside
from resources.sources.files.checked import BadRecord
from resources.sources.files.source import FileSource
from resources.watermarks.entry import Entry
from resources.watermarks.lists import QUARANTINED_FILES, StoredList
from resources.watermarks.log import WatermarkLog
from resources.watermarks.quarantine_list import read_quarantine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
        self, spark: SparkSession, slice_: PathSlice, pinned: str, bad: BadPart
    ) -> Sequence[BadFile]:
        """Return all files that are bad in the same way. One by one, each would cost a number and a write."""
        if not isinstance(bad, BadFile):
            return ()
        return self.source.find_similar(spark, slice_.files, pinned, bad)

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
