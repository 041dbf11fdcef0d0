"""What the commit of a slice of files deletes: rows that a rewind or replay reads again.

See docs/reference/files.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.change_events import load_of_events, order_of_rows
from partitions.dataflow import Dataflow
from partitions.loads import Load, ReplaceKeys, Upsert, load_for_target
from partitions.path.slices import PathSlice
from partitions.predicate import EVERYTHING, NOTHING, Among, Predicate
from resources.kinds.contract.writing import Writing
from resources.sources.files.paths import SOURCE_FILE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class PathWriting(Writing[PathSlice]):
    """Loads of files.

    Attributes:
        dataflow: the definition, which says how its target is loaded.
    """

    dataflow: Dataflow

    @override
    def load_of_rejected(self) -> Load:
        """Return the target's load; the row of a later file stays."""
        source = self.dataflow.source
        return load_of_events(source, load_for_target(self.dataflow.target, NOTHING, order_of_rows(source)))

    @override
    def own_rows(self, slice_: PathSlice, rows: DataFrame) -> Predicate:
        """Return the rows of files that the slice reads again; an append adds rows once more.

        No slice tells that a rewind brought it, so a load by keys looks for the rows of each.
        """
        replaces = slice_.replaces or slice_.why == "replay" or self.dataflow.target.merges
        if SOURCE_FILE not in rows.columns or not replaces:
            return NOTHING
        return Among(SOURCE_FILE, (*(file.path for file in slice_.all_files), *slice_.gone_paths))

    @override
    def load(self, slice_: PathSlice, rows: DataFrame) -> Load:
        """Return the target's load; if the slice replaces, its files' earlier rows are deleted, too.

        A slice replaces after a rewind or a replay with ``--replace``. The rows of passed-over files are
        deleted as well, since a release would add them again, and those of files that are gone at the
        source. A file that is loaded again, or beside the watermark, leaves the rows of later files as
        they are. During a rewind with ``--replace`` only the rows of gone files stay: all others are read
        again in the order of the files, so a key that a later file no longer holds keeps the row of this one.
        """
        paths = (*(file.path for file in slice_.all_files), *slice_.gone_paths)
        source = self.dataflow.source
        order = order_of_rows(source)
        where = Among(SOURCE_FILE, paths) if slice_.replaces else NOTHING
        load = load_of_events(source, load_for_target(self.dataflow.target, where, order, guard=order))
        if source.sends_changes:  # their position orders them, whichever file they are in
            return load
        if slice_.why == "replay" and isinstance(load, ReplaceKeys):
            return replace(load, later=EVERYTHING, order=order, own=Among(SOURCE_FILE, paths))
        if slice_.kept_paths is None:
            return load
        kept_rows = Among(SOURCE_FILE, slice_.kept_paths) if slice_.kept_paths else NOTHING
        if isinstance(load, Upsert):
            return replace(load, guard=load.guard if slice_.kept_paths else (), guarded=kept_rows)
        return replace(load, later=kept_rows, order=order) if isinstance(load, ReplaceKeys) else load
