"""A replay in place of files: those of a range of partition folders, in slices by ``checkpoint`` (docs/replay.md, Files)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.plan import Plan, Skip
from partitions.request import ReplayFiles
from resources.kinds.path import PathKind
from resources.loop.loop import Loop
from resources.platform import Platform
from resources.replay.asked import Asked, asked_partitions
from resources.replay.reading import Piece
from resources.replay.under_way import InPlace, begin, done_keys, find
from resources.sources.files.paths import SOURCE_FILE


@dataclass(frozen=True)
class FileReplay:
    """Files of a range of partitions; attributes as of :class:`resources.replay.columns.ColumnReplay`."""

    platform: Platform
    dataflow: Dataflow
    asked: Asked
    now: datetime

    def check(self) -> None:
        """Raise ConfigurationError if files of the dataflow cannot be read again so."""
        asked_partitions(self.dataflow, self.asked)
        name, target = self.dataflow.name, self.dataflow.target
        if target.way == "merge_overwrite":
            raise ConfigurationError(
                f"dataflow {name}: expected load append, merge_upsert or scd2, found merge_overwrite: rows that later files have of the same keys would go."
                f" Read all files from a state on again: strandline state rewind {name} --to NUMBER --reason TEXT"
            )
        table = self.platform.table(self.dataflow)
        if self.asked.replace and table.exists() and SOURCE_FILE not in table.columns():
            raise ConfigurationError(
                f"dataflow {name}: --replace deletes the rows of each file that is read again: expected a column {SOURCE_FILE} in table"
                f" {self.dataflow.table}, found {', '.join(table.columns())}"
            )

    def plan(self) -> Plan[Any]:
        """Return the slices that are still to be read. Lists the source."""
        return self._plan(find(self.platform.log, self.dataflow.name, self.asked))[0]

    def pieces(self, loop: Loop[Any]) -> tuple[Sequence[Piece], Sequence[str]]:  # noqa: ARG002 - of all replays
        """Begin, or go on: return all slices as chunks, and which files are gone."""
        log, name = self.platform.log, self.dataflow.name
        begun = find(log, name, self.asked) or begin(log, name, self.asked)
        made, done = self._plan(begun)
        pieces = []
        for slice_ in (*done, *made.slices):
            paths = tuple(file.path for file in slice_.files)
            request = partial(ReplayFiles, paths, begun.number, self.asked.words, replaces=self.asked.replace)
            pieces.append(Piece(paths[0], paths[-1], request, self.asked.words, done=slice_ in done))
        return pieces, made.warnings

    def _plan(self, begun: InPlace | None) -> tuple[Plan[Any], Sequence[Any]]:
        """The plan of what is left, and the slices that are done."""
        kind = self.platform.kind(self.dataflow)
        assert isinstance(kind, PathKind)
        start, end = asked_partitions(self.dataflow, self.asked)
        log = self.platform.log
        newest = log.newest(self.dataflow.name)
        made = kind.read_again(newest, start, end, self.now, replaces=self.asked.replace)
        known = done_keys(log, kind, begun)
        done = [slice_ for slice_ in made.slices if known.issuperset(slice_.keys)]
        left = tuple(slice_ for slice_ in made.slices if slice_ not in done)
        skips = [Skip(", ".join(slice_.keys), "done before") for slice_ in done]
        return replace(made, slices=left, skips=(*skips, *made.skips)), done
