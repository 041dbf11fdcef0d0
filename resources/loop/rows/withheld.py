"""Hold back the rows that a delete in force or the retention keeps out of a slice, and count them.

Every slice that a run writes passes here, whatever planned it: new, late and released files, rewinds,
replays, forced windows, epochs and batches of streams (docs/how-to/deleting-and-keeping.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from partitions.plan import pluralize
from resources.loop.rows.delete_marks import MARK, OptionalColumns, marked_rows
from resources.observation import observed_values
from resources.spark.frames import observed_rows
from resources.watermarks.deleted_rows import RETENTION, DeleteInForce

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation


class WithheldRows:
    """The counts of the rows that the slices of one run held back."""

    def __init__(self) -> None:
        """Start without rows."""
        self._observed: dict[int, tuple[Observation, Sequence[int]]] = {}
        self._counts: dict[int, dict[int, int]] = {}

    def withhold(
        self,
        dataflow: str,
        rows: DataFrame,
        deletes: Sequence[DeleteInForce],
        optional: OptionalColumns,
        number: int,
    ) -> DataFrame:
        """Return the rows of a slice that no delete in force names; writing them counts the others.

        Args:
            dataflow: name for messages.
            rows: all rows of the slice, as they would be written.
            deletes: the deletes in force, and the retention as one more.
            optional: the columns that the rows may lack.
            number: number of the slice.

        Raises:
            NeedsDecision: code ``delete_unfit``: a condition does not fit the rows.
        """
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        if not deletes:
            return rows
        observation, numbers = Observation(), [delete.number for delete in deletes]
        aggregates = [
            F.count_if(F.col(MARK) == F.lit(place)).alias(f"d{entry}") for place, entry in enumerate(numbers)
        ]
        marked = observed_rows(marked_rows(dataflow, rows, deletes, optional), observation, *aggregates)
        self._observed[number] = (observation, numbers)
        return marked.where(F.col(MARK).isNull()).drop(MARK)

    def count(self, number: int) -> None:
        """Read from Spark how many rows of a slice were held back, once its other rows are written."""
        observation, numbers = self._observed.pop(number, (None, ()))
        if observation is None:
            return
        values = observed_values(observation)
        if values:
            counts = {entry: int(values.get(f"d{entry}") or 0) for entry in numbers}
            self._counts[number] = {entry: rows for entry, rows in counts.items() if rows}

    def of_slice(self, number: int) -> Mapping[int, int] | None:
        """Return a slice's withheld rows by the number of the delete's entry; None if they are not counted."""
        return self._counts.get(number)

    @property
    def warnings(self) -> Sequence[str]:
        """One sentence for each delete, and for the retention, that has held back rows."""
        totals: dict[int, int] = {}
        for counts in self._counts.values():
            for entry, rows in counts.items():
                totals[entry] = totals.get(entry, 0) + rows
        return [withheld_in_words({entry: rows}) for entry, rows in totals.items()]


def withheld_in_words(counts: Mapping[int, int] | None) -> str:
    """Return how many rows were held back, for people; "" if there are none."""
    return ", ".join(
        f"{pluralize(rows, 'row')} withheld by {_rule_in_words(entry)}"
        for entry, rows in (counts or {}).items()
    )


def _rule_in_words(entry: int) -> str:
    return "the retention" if entry == RETENTION else f"the delete of entry {entry}"
