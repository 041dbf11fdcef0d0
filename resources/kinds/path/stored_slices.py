"""Slices of files as the log stores them: the listed files, and the passed-over ones with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from partitions.dataflow import Dataflow
from partitions.path.cold_start import first_state
from partitions.path.copies import SAME_CONTENT, CopiedFile
from partitions.path.definition import PathWatermark
from partitions.path.quarantined_files import QuarantinedFile
from partitions.path.slices import PathSlice
from partitions.path.source import SourceFile
from partitions.path.state import PathState
from partitions.sentinels import deserialise
from resources.kinds.contract.stored_slices import StoredSlices
from resources.watermarks.entry import Intent
from resources.watermarks.file_ranges import UNPROCESSED_WITHOUT_ROWS, WENT
from resources.watermarks.lists import CHECKSUMS, INGESTED_FILES, KEPT_PATHS, ListKind, StoredList


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
        """Return path, size, version and modification time of each file, and why it is not loaded.

        The head has the computed checksums, in the order of the rows.
        """
        loaded = [(*file.row, None) for file in slice_.files]
        skipped_files = [(*aside.file.row, aside.reason) for aside in slice_.quarantined]
        copies = [(*copy.file.row, copy.reason) for copy in slice_.copies]
        gone_rows = [(path, 0, "", 0, WENT) for path in slice_.gone_paths]
        freed = [(*file.row, UNPROCESSED_WITHOUT_ROWS) for file in slice_.freed_copies]
        rows = [*loaded, *skipped_files, *copies, *gone_rows, *freed]
        checksums = [slice_.checksums.get(path) for path, *_ in rows] if slice_.checksums else None
        head: dict[str, Any] = {CHECKSUMS: checksums} if checksums else {}
        if slice_.kept_paths is not None:
            head[KEPT_PATHS] = list(slice_.kept_paths)
        return StoredList(INGESTED_FILES, rows, head)

    def from_rows(self, intent: Intent, stored: StoredList) -> PathSlice:
        """Return the slice with the same files and the same state after them."""
        files = [(SourceFile(*row), reason) for *row, reason in stored.rows]
        since = deserialise(intent.since) if intent.since else None
        copies = [
            CopiedFile(file, reason.removeprefix(SAME_CONTENT))
            for file, reason in files
            if reason is not None and reason.startswith(SAME_CONTENT)
        ]
        kept_paths = stored.head.get(KEPT_PATHS)
        checksums = zip(stored.rows, stored.head.get(CHECKSUMS) or (), strict=False)
        return PathSlice(
            tuple(file for file, reason in files if reason is None),
            first_state(self._definition, PathState.of(deserialise(intent.before)), since),
            deserialise(intent.watermark),
            self._definition,
            why=intent.why if intent.why in ("late", "release", "replay") else "run",
            quarantined=tuple(
                QuarantinedFile(file, reason)
                for file, reason in files
                if reason not in (None, WENT, UNPROCESSED_WITHOUT_ROWS)
                and not str(reason).startswith(SAME_CONTENT)
            ),
            replaces=intent.replaces == "own",
            since=since,
            gone_paths=tuple(file.path for file, reason in files if reason == WENT),
            kept_paths=None if kept_paths is None else tuple(kept_paths),
            copies=tuple(copies),
            freed_copies=tuple(file for file, reason in files if reason == UNPROCESSED_WITHOUT_ROWS),
            checksums={path: checksum for (path, *_), checksum in checksums if checksum},
        )
