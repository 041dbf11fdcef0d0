"""Slices of files as the log stores them: the listed files, and the passed-over ones with the reason."""

from __future__ import annotations

from dataclasses import dataclass

from partitions.dataflow import Dataflow
from partitions.path.cold_start import first_state
from partitions.path.definition import PathWatermark
from partitions.path.quarantined_files import QuarantinedFile
from partitions.path.slices import PathSlice
from partitions.path.source import SourceFile
from partitions.path.state import PathState
from partitions.sentinels import deserialise
from resources.kinds.contract.stored_slices import StoredSlices
from resources.watermarks.entry import Intent
from resources.watermarks.lists import INGESTED_FILES, ListKind, StoredList


@dataclass(frozen=True)
class StoredPathSlices(StoredSlices[PathSlice]):
    """Conversion of slices to lists of files.

    Attributes:
        dataflow: the definition.
    """

    dataflow: Dataflow

    @property
    def _definition(self) -> PathWatermark:
        return self.dataflow.path

    @property
    def list_kind(self) -> ListKind:
        """The list of ingested files."""
        return INGESTED_FILES

    def to_rows(self, slice_: PathSlice) -> StoredList:
        """Return path, size, version and modification time of each file, and why it is passed over."""
        loaded = [(*file.row, None) for file in slice_.files]
        passed_over = [(*aside.file.row, aside.reason) for aside in slice_.quarantined]
        return StoredList(INGESTED_FILES, [*loaded, *passed_over])

    def from_rows(self, intent: Intent, stored: StoredList) -> PathSlice:
        """Return the slice with the same files and the same state after them."""
        files = [(SourceFile(*row), reason) for *row, reason in stored.rows]
        since = deserialise(intent.since) if intent.since else None
        return PathSlice(
            tuple(file for file, reason in files if reason is None),
            first_state(self._definition, PathState.of(deserialise(intent.before)), since),
            deserialise(intent.watermark),
            self._definition,
            why=intent.why if intent.why in ("late", "release", "replay") else "run",
            quarantined=tuple(QuarantinedFile(file, reason) for file, reason in files if reason is not None),
            replaces=intent.replaces == "own",
            since=since,
        )
