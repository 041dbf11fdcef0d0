"""Which rows of the table go in the commit of a slice of files: those that a rewind or a replay reads again (docs/reference/files.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.loads import Load, OrderByPath, ReplaceKeys, load_for_target
from partitions.path.slices import PathSlice
from partitions.predicate import EVERYTHING, NOTHING, Among
from resources.kinds.contract.writing import Writing
from resources.sources.files.paths import SOURCE_FILE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class PathWriting(Writing[PathSlice]):
    """Loads of files.

    Attributes:
        dataflow: which says how its target is loaded.
    """

    dataflow: Dataflow

    @override
    def load(self, slice_: PathSlice, rows: DataFrame) -> Load:
        """As the target says; after a rewind that replaces, the rows of the same files go, also of those that it passes over: released, they add theirs.

        A file that is loaded beside the watermark, or again, leaves the rows of later ones as they are.
        """
        paths = tuple(file.path for file in slice_.all_files)
        by_file = (OrderByPath(SOURCE_FILE),)
        where = Among(SOURCE_FILE, paths) if slice_.replaces else NOTHING
        load = load_for_target(self.dataflow.target, where, by_file, guard=by_file)
        if slice_.why == "replay" and isinstance(load, ReplaceKeys):
            return replace(load, later=EVERYTHING, order=by_file, own=Among(SOURCE_FILE, paths))
        return load
