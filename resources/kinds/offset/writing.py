"""What the commit of a slice of an offset does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.loads import Load, Replace
from partitions.offset.past_commits import rows_of_commits
from partitions.offset.slices import CommitRange, OffsetSlice
from partitions.predicate import NOTHING, Predicate
from resources.kinds.contract.writing import SteersRows, Writing
from resources.kinds.offset.change_rows import changed_up_to, check_change_columns, load_of, steered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class OffsetWriting(Writing[OffsetSlice], SteersRows[OffsetSlice]):
    """Commits of one dataflow.

    Attributes:
        dataflow: the definition, which says how its target is loaded.
    """

    dataflow: Dataflow

    @override
    def steered(self, rows: DataFrame, slice_: OffsetSlice | None) -> DataFrame:
        """Return the rows with the columns that say which of two rows of a key is later, and which deletes it.

        A replay beside later commits loads the keys alone that its own commits have changed.

        Raises:
            ConfigurationError: the user's step left out the columns of changes.
        """
        check_change_columns(self.dataflow, rows.columns, of_step=True)
        if slice_ is not None and isinstance(slice_.input, CommitRange) and slice_.input.later:
            rows = changed_up_to(rows, self.dataflow.target.merge_keys, slice_.last_number)
        return steered(self.dataflow, rows)

    @override
    def load_of_rejected(self) -> Load:
        """Return the target's load."""
        return load_of(self.dataflow)

    @override
    def own_rows(self, slice_: OffsetSlice, rows: DataFrame) -> Predicate:
        """Return the changes of the commits that a replay of kept changes reads again."""
        if slice_.replaces and isinstance(slice_.input, CommitRange):
            return rows_of_commits(slice_.input.commits)
        return NOTHING

    @override
    def load(self, slice_: OffsetSlice, rows: DataFrame) -> Load:
        """Return the target's load; of two rows of a key the one of the later commit counts.

        A replay of changes that are all kept deletes those that the table has of its commits.
        """
        if slice_.replaces and isinstance(slice_.input, CommitRange):
            return Replace(rows_of_commits(slice_.input.commits))
        return load_of(self.dataflow)
