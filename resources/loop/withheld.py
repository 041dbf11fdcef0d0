"""The one place that holds back rows which a delete in force names, and counts them.

Every slice that a run writes passes here, whatever planned it: new, late and released files, rewinds,
replays, forced windows, epochs and batches of streams (docs/how-to/deleting-and-keeping.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from partitions.errors import NeedsDecision
from partitions.plan import pluralize
from partitions.target import HELPER_PREFIX
from resources.observation import observed_values
from resources.spark.failures import root_cause
from resources.spark.frames import observed_rows
from resources.sql import quoted
from resources.watermarks.deleted_rows import RETENTION, DeleteInForce

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

_DELETE = f"{HELPER_PREFIX}delete"
"""Helper column: number of the first delete that names the row; NULL if none does."""

_ORIGINAL = f"{HELPER_PREFIX}original_"
"""Prefix of helper columns: values of a column whose type is not the one that the deletes compare."""


def without_deleted_rows(dataflow: str, rows: DataFrame, deletes: Sequence[DeleteInForce]) -> DataFrame:
    """Return the rows that no delete in force names.

    Raises:
        NeedsDecision: code ``delete_unfit``: a condition does not fit the rows.
    """
    if not deletes:
        return rows
    return _unmarked(_marked(dataflow, rows, deletes))


class WithheldRows:
    """The rows that the slices of one run did not write."""

    def __init__(self) -> None:
        """Start without rows."""
        self._observed: dict[int, tuple[Observation, Sequence[int]]] = {}
        self._counts: dict[int, dict[int, int]] = {}

    def withhold(
        self, dataflow: str, rows: DataFrame, deletes: Sequence[DeleteInForce], number: int
    ) -> DataFrame:
        """Return the rows of a slice that no delete in force names; writing them counts the others.

        Args:
            dataflow: name for messages.
            rows: all rows of the slice, as they would be written.
            deletes: the deletes in force.
            number: number of the slice.

        Raises:
            NeedsDecision: code ``delete_unfit``: a condition does not fit the rows.
        """
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        if not deletes:
            return rows
        observation, numbers = Observation(), [delete.number for delete in deletes]
        aggregates = [F.count_if(F.col(_DELETE) == F.lit(entry)).alias(f"d{entry}") for entry in numbers]
        marked = observed_rows(_marked(dataflow, rows, deletes), observation, *aggregates)
        self._observed[number] = (observation, numbers)
        return _unmarked(marked)

    def count(self, number: int) -> None:
        """Take the counts of a slice whose rows are written."""
        observation, numbers = self._observed.pop(number, (None, ()))
        if observation is None:
            return
        values = observed_values(observation)
        if values:
            counts = {entry: int(values.get(f"d{entry}") or 0) for entry in numbers}
            self._counts[number] = {entry: rows for entry, rows in counts.items() if rows}

    def of_slice(self, number: int) -> Mapping[int, int] | None:
        """Return the withheld rows of a slice by the number of the delete's entry; None if not counted."""
        return self._counts.get(number)

    @property
    def warnings(self) -> Sequence[str]:
        """One sentence for each delete that has held back rows."""
        totals: dict[int, int] = {}
        for counts in self._counts.values():
            for entry, rows in counts.items():
                totals[entry] = totals.get(entry, 0) + rows
        return [f"{withheld_in_words({entry: rows})}" for entry, rows in totals.items()]


def withheld_in_words(counts: Mapping[int, int] | None) -> str:
    """Return how many rows were held back, for people; "" if there are none."""
    return ", ".join(
        f"{pluralize(rows, 'row')} withheld by {_rule_in_words(entry)}"
        for entry, rows in (counts or {}).items()
    )


def _rule_in_words(entry: int) -> str:
    return "the retention" if entry == RETENTION else f"the delete of entry {entry}"


def _marked(dataflow: str, rows: DataFrame, deletes: Sequence[DeleteInForce]) -> DataFrame:
    """Return the rows with the helper column of deletes."""
    from pyspark.sql import functions as F

    types = {name.casefold(): (name, data_type) for name, data_type in rows.dtypes}
    replaced, added = dict[str, str](), dict[str, str]()
    for delete in deletes:
        for name, data_type in delete.columns.items():
            own_name, own_type = types.get(name.casefold(), (None, None))
            if own_name is None:
                added[name] = data_type
            elif own_type != data_type and _is_single(data_type) and _is_single(own_type or ""):
                replaced[own_name] = data_type
    columns = list(rows.columns)
    helpers = [F.col(quoted(name)).alias(f"{_ORIGINAL}{name}") for name in replaced]
    compared = [
        F.expr(f"try_cast({quoted(name)} AS {replaced[name]})").alias(name)
        if name in replaced
        else F.col(quoted(name))
        for name in columns
    ]
    missing = [F.expr(f"CAST(NULL AS {data_type})").alias(name) for name, data_type in added.items()]
    cases = " ".join(f"WHEN ({delete.predicate}) THEN {delete.number}" for delete in deletes)
    mark = F.expr(f"CASE {cases} END").cast("int").alias(_DELETE)
    try:
        frame = rows.select(*compared, *helpers, *missing) if replaced or added else rows
        frame = frame.select("*", mark)
        if replaced or added:
            frame = frame.select(
                *(
                    F.col(quoted(f"{_ORIGINAL}{name}")).alias(name)
                    if name in replaced
                    else F.col(quoted(name))
                    for name in columns
                ),
                _DELETE,
            )
        _ = frame.schema  # on Spark Connect nothing is analysed before it is asked for
    except Exception as error:
        raise _unfit_error(dataflow, deletes, error) from error
    return frame


def _unmarked(marked: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return marked.where(F.col(_DELETE).isNull()).drop(_DELETE)


def _is_single(data_type: str) -> bool:
    """Return whether a type has single values, so that another one can be cast to it."""
    return "<" not in data_type


def _unfit_error(dataflow: str, deletes: Sequence[DeleteInForce], error: Exception) -> NeedsDecision:
    """Return the error for conditions that do not fit the rows: what they name must not come back."""
    conditions = "; ".join(f"entry {delete.number}: {delete.predicate}" for delete in deletes[:3])
    return NeedsDecision(
        f"dataflow {dataflow}: the conditions of its deletes ({conditions}) do not fit the rows: "
        f"{root_cause(error).rstrip(' .;')}. The run stopped before it changed anything. Restore the "
        "columns; or forget the delete, and its rows come back",
        code="delete_unfit",
        choices=tuple(
            f"strandline delete {dataflow} --forget {delete.number} --reason TEXT" for delete in deletes[:3]
        ),
    )
