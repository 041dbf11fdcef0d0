"""A replay in place of files: those of a range of partition folders, in slices by ``checkpoint`` (docs/replay.md, Files)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.path.slices import PathSlice
from partitions.plan import Plan
from partitions.request import ReplayFiles
from resources.kinds.path.kind import PathKind
from resources.kinds.path.opening import open_path
from resources.platform.stores import Stores
from resources.replay.asked import Asked, asked_partitions
from resources.replay.parts import PartsReplay
from resources.sources.files.paths import SOURCE_FILE


@dataclass(frozen=True)
class FileReplay(PartsReplay):
    """Files of a range of partitions.

    Attributes:
        asked: the range, and what becomes of rows that are there.
    """

    asked: Asked

    @classmethod
    def of(cls, platform: Stores, dataflow: Dataflow, asked: Asked, now: datetime) -> FileReplay:
        """Files that can be read again."""
        asked_partitions(dataflow, asked)
        if asked.replace or dataflow.target.way == "merge_overwrite":
            check_files_of_rows(platform, dataflow)
        return cls(platform, dataflow, asked.words, now, asked)

    def planned(self) -> tuple[PathKind, Plan[PathSlice]]:
        """List the source."""
        kind, newest = open_path(self.platform, self.dataflow), self.platform.log.newest(self.dataflow.name)
        start, end = asked_partitions(self.dataflow, self.asked)
        return kind, kind.read_again(newest, start, end, self.now, replaces=self.asked.replace)

    def label(self, slice_: PathSlice) -> str:
        """Its files."""
        return ", ".join(slice_.keys)

    def bounds(self, slice_: PathSlice) -> tuple[Any, Any]:
        """Its first and its last file."""
        return slice_.files[0].path, slice_.files[-1].path

    def request(self, slice_: PathSlice, since: int) -> ReplayFiles:
        """Its files, as they are when they are read."""
        return ReplayFiles(tuple(slice_.keys), since, self.words, replaces=self.asked.replace)


def check_files_of_rows(platform: Stores, dataflow: Dataflow) -> None:
    """Raise ConfigurationError if rows of the table do not tell their files, so that those of a file cannot go."""
    table = platform.table(dataflow)
    known = table.columns() if table.exists() else [SOURCE_FILE] if dataflow.target.origin_columns else []
    if SOURCE_FILE not in known:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: the rows of each file that is read again are looked for: expected a column {SOURCE_FILE} in table"
            f" {dataflow.table}, found {', '.join(known) or 'none (origin_columns: false)'}"
        )
