"""Mark the rows of a slice that a delete in force names, in a helper column of the slice's own query."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from partitions.compared_types import compared_type
from partitions.errors import NeedsDecision
from partitions.plan import pluralize
from partitions.spelling import describe_missing
from partitions.target import HELPER_PREFIX
from resources.spark.failures import root_cause
from resources.sql import quoted
from resources.watermarks.deleted_rows import DeleteInForce

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MARK = f"{HELPER_PREFIX}delete"
"""Helper column: place of the first delete that names the row, from 0; NULL if none does."""

OptionalColumns = Callable[[], Collection[str]]
"""Returns columns that rows may lack, by name in lower case. It is called only if they lack one."""

UNFIT = "delete_unfit"
"""Code of the error for a condition that does not fit the rows."""

_ROW = f"{HELPER_PREFIX}row_"
"""Prefix of helper columns: values of a column while a delete compares it as another type."""


class _ColumnsOfDelete(NamedTuple):
    """How deletes see the columns of the rows.

    Attributes:
        casts: types of columns that are compared as another type, by the rows' name.
        added: types of optional columns that the rows lack, by name: they are NULL.
    """

    casts: tuple[tuple[str, str], ...]
    added: tuple[tuple[str, str], ...]


def no_columns() -> Collection[str]:
    """Return no column: the rows must have each that a condition names."""
    return ()


def marked_rows(
    dataflow: str, rows: DataFrame, deletes: Sequence[DeleteInForce], optional: OptionalColumns
) -> DataFrame:
    """Return the rows with a column :data:`MARK`: the first delete that names the row, else NULL.

    Args:
        dataflow: name for messages.
        rows: all rows of a slice, as they would be written.
        deletes: the deletes in force, at least one; each compares columns by the types that it was made
            with.
        optional: the columns that the rows may lack.

    Raises:
        NeedsDecision: code ``delete_unfit``: a condition does not fit the rows.
    """
    groups: dict[_ColumnsOfDelete, dict[int, DeleteInForce]] = {}
    types = {name.casefold(): (name, data_type) for name, data_type in rows.dtypes}
    _check_columns(dataflow, rows.columns, deletes, optional)
    for place, delete in enumerate(deletes):
        groups.setdefault(_comparison(dataflow, delete, types), {})[place] = delete
    try:
        marked = rows
        for comparison, by_place in groups.items():
            marked = _with_marks(marked, comparison, by_place)
        _ = marked.schema  # on Spark Connect nothing is analysed before it is asked for
    except Exception as error:
        raise _unfit_error(
            dataflow,
            deletes,
            f"{root_cause(error).rstrip(' .;')}. The run stopped before it changed anything. Restore the columns",
        ) from error
    return marked


def failed_condition(
    dataflow: str, rows: DataFrame, deletes: Sequence[DeleteInForce], optional: OptionalColumns
) -> NeedsDecision | None:
    """Return the error, code ``delete_unfit``, of the first delete whose condition fails on a row.

    The rows are read once more: without the deletes, then with each of them. If they fail without, that
    is no delete's fault.

    Args:
        dataflow: name for messages.
        rows: all rows of a slice, before any were held back.
        deletes: the deletes in force.
        optional: the columns that the rows may lack.
    """
    if _failure(rows) is not None:
        return None
    for delete in deletes:
        failure = _failure(marked_rows(dataflow, rows, [delete], optional))
        if failure is not None:
            why = f"{root_cause(failure).rstrip(' .;')}. The slice was not loaded, and its number was abandoned. Correct the row at the source"
            return _unfit_error(dataflow, [delete], why)
    return None


def _failure(rows: DataFrame) -> Exception | None:
    """Return the failure of computing all rows; None if they can be computed."""
    from pyspark.errors import PySparkException

    try:
        rows.write.format("noop").mode("overwrite").save()
    except PySparkException as error:
        return error
    return None


def _check_columns(
    dataflow: str, columns: Sequence[str], deletes: Sequence[DeleteInForce], optional: OptionalColumns
) -> None:
    """Raise if rows lack a column of a condition, and nothing says that they have no value there.

    Raises:
        NeedsDecision: code ``delete_unfit``.
    """
    own_names = {name.casefold() for name in columns}
    lacked = [name for delete in deletes for name in delete.columns if name.casefold() not in own_names]
    allowed: Collection[str] = optional() if lacked else ()
    missing = list(dict.fromkeys(name for name in lacked if name.casefold() not in allowed))
    if missing:
        raise _unfit_error(
            dataflow,
            [delete for delete in deletes if not {*missing}.isdisjoint(delete.columns)],
            f"expected rows with each column of the condition, found rows without {describe_missing(missing, columns)}. The run "
            "stopped before it changed anything. Add the column in sql or transform, or declare it in source.schema",
        )


def _comparison(
    dataflow: str, delete: DeleteInForce, types: Mapping[str, tuple[str, str]]
) -> _ColumnsOfDelete:
    """Return which columns of the rows a delete casts, and which the rows lack.

    Args:
        dataflow: name for messages.
        delete: the delete.
        types: name and type of each column of the rows, by name in lower case.

    Raises:
        NeedsDecision: code ``delete_unfit``: a column has a type that does not compare exactly.
    """
    casts, added = dict[str, str](), dict[str, str]()
    for name, data_type in delete.columns.items():
        own_name, own_type = types.get(name.casefold(), (None, ""))
        if own_name is None:
            added[name] = data_type
            continue
        compared = compared_type(data_type, own_type)
        if compared is None:
            raise _unfit_error(
                dataflow,
                [delete],
                f"expected column {own_name} of type {data_type}, as when the delete was made, found "
                f"{own_type}. The run stopped before it changed anything. Give the column its type back, "
                "with source.schema or sql",
            )
        if compared != own_type:
            casts[own_name] = compared
    return _ColumnsOfDelete(tuple(casts.items()), tuple(added.items()))


def _with_marks(
    rows: DataFrame, comparison: _ColumnsOfDelete, deletes: Mapping[int, DeleteInForce]
) -> DataFrame:
    """Return rows with the marks of deletes that compare columns alike; of two marks the lower one stays.

    Args:
        rows: the rows, perhaps with marks of other deletes.
        comparison: the columns that these deletes cast or add.
        deletes: the deletes, by their place in the list of all.
    """
    from pyspark.sql import functions as F

    columns = [name for name in rows.columns if name != MARK]
    casts = dict(comparison.casts)
    cases = " ".join(f"WHEN ({delete.predicate}) THEN {place}" for place, delete in deletes.items())
    mark = F.expr(f"CASE {cases} END").cast("int")
    if MARK in rows.columns:
        mark = F.least(F.col(MARK), mark)
    if not casts and not comparison.added:
        return rows.select(*(F.col(quoted(name)) for name in columns), mark.alias(MARK))
    compared = [
        F.expr(f"CAST({quoted(name)} AS {casts[name]})").alias(name) if name in casts else F.col(quoted(name))
        for name in rows.columns
    ]
    originals = [F.col(quoted(name)).alias(f"{_ROW}{name}") for name in casts]
    missing = [F.expr(f"CAST(NULL AS {data_type})").alias(name) for name, data_type in comparison.added]
    restored = [
        F.col(quoted(f"{_ROW}{name}")).alias(name) if name in casts else F.col(quoted(name))
        for name in columns
    ]
    return rows.select(*compared, *originals, *missing).select(*restored, mark.alias(MARK))


def _unfit_error(dataflow: str, deletes: Sequence[DeleteInForce], why: str) -> NeedsDecision:
    """Return the error for conditions that do not fit the rows: what they name must not come back."""
    conditions = "; ".join(f"entry {delete.number}: {delete.predicate}" for delete in deletes[:3])
    return NeedsDecision(
        f"dataflow {dataflow}: {pluralize(len(deletes), 'delete')} in force ({conditions}) "
        f"{'does' if len(deletes) == 1 else 'do'} not fit the rows: {why}; or forget the delete: its rows are "
        "loaded then. Delete them again by a condition that fits",
        code=UNFIT,
        choices=tuple(
            f"strandline delete {dataflow} --forget {delete.number} --reason TEXT" for delete in deletes[:3]
        ),
    )
