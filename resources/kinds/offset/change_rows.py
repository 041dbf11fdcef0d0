"""Rows with what their commit did to them: for loads by keys, and for tables that keep every change.

See docs/reference/offsets.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.loads import Load, OrderByColumn, Scd2, Upsert, load_for_target
from partitions.offset.changes import CHANGE_COLUMNS, change_treatment
from partitions.predicate import NOTHING
from partitions.sources import TableSource
from partitions.target import DELETES_COLUMN, HELPER_PREFIX
from resources.kinds.offset.scd2_steps import COMES_BACK, DELETED_AT, GOES_BACK, scd2_steps
from resources.sql import quoted
from resources.tables.contract.commit_log import CHANGE, DELETE, INSERT, VERSION

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = CHANGE_COLUMNS
PREIMAGE, POSTIMAGE = "update_preimage", "update_postimage"

_ORDER = f"{HELPER_PREFIX}commit_order"
"""Column by which the row of a later commit is later, and an insert later than a delete of its commit."""

_FIRST_CHANGE = f"{HELPER_PREFIX}first_change"
_MICROSECOND = timedelta(microseconds=1)
_TIMES = ("timestamp", "timestamp_ntz", "date")


def keeps_changes(dataflow: Dataflow) -> bool:
    """Return whether every change becomes a row of the table."""
    return _treatment(dataflow) == "keep"


def reads_changes(dataflow: Dataflow) -> bool:
    """Return whether rows that went are read, too."""
    return _treatment(dataflow) in ("apply", "keep")


def carries_changes(dataflow: Dataflow) -> bool:
    """Return whether rows say what their commit did to them: those of loads by keys need its order."""
    return keeps_changes(dataflow) or dataflow.target.merges


def _treatment(dataflow: Dataflow) -> str:
    assert isinstance(dataflow.source, TableSource)
    return change_treatment(dataflow.source, dataflow.target)


def with_change_columns(
    rows: DataFrame, times: Mapping[int, datetime | None], numbers: Mapping[int, int]
) -> DataFrame:
    """Return rows of commits with the columns of changes in place of ``VERSION`` and ``CHANGE``.

    Args:
        rows: rows with ``VERSION``, and with ``CHANGE`` unless all were inserted.
        times: the time of each commit by its version; None if the log does not say.
        numbers: the number of each commit by its version; one that is missing is the version.
    """
    from pyspark.sql import functions as F

    instants = {version: _instant(time) for version, time in times.items() if time is not None}
    others = {version: F.lit(number).cast("long") for version, number in numbers.items() if number != version}
    change = F.col(CHANGE) if CHANGE in rows.columns else F.lit(INSERT)
    time = _by_version(instants) if instants else F.lit(None).cast("timestamp")
    version = F.col(VERSION).cast("long")
    number = F.coalesce(_by_version(others), version) if others else version
    columns = {CHANGE_TYPE: change, COMMIT_VERSION: number, COMMIT_TIMESTAMP: time}
    return rows.withColumns(columns).drop(VERSION, CHANGE)


def _by_version(values: Mapping[int, Column]) -> Column:
    """Return the value of a row's version; NULL if it has none."""
    from pyspark.sql import functions as F

    pairs = [(F.lit(version).cast("long"), value) for version, value in values.items()]
    return F.create_map(*chain.from_iterable(pairs))[F.col(VERSION)]


def _instant(time: datetime) -> Column:
    from pyspark.sql import functions as F

    microseconds = (time - datetime(1970, 1, 1, tzinfo=UTC)) // _MICROSECOND
    return F.timestamp_micros(F.lit(microseconds).cast("long"))


def check_change_columns(dataflow: Dataflow, columns: list[str], *, of_step: bool) -> None:
    """Raise ConfigurationError if rows lack the columns of changes, or the source has some of its own.

    Args:
        dataflow: the definition.
        columns: the names of the rows' columns.
        of_step: whether they are the rows after ``sql`` or ``transform``; else those of the table above.
    """
    if not carries_changes(dataflow):
        return
    own = {name.casefold() for name in columns}
    if not of_step:
        if twice := [name for name in CHANGE_COLUMNS if name in own]:
            raise ConfigurationError(
                f"dataflow {dataflow.name}: table {dataflow.source.label}: expected no columns {', '.join(CHANGE_COLUMNS)}, which this load needs for"
                f" its own use, found {', '.join(twice)}. Read a table without them, such as the one above it"
            )
        return
    needed = (
        CHANGE_COLUMNS if keeps_changes(dataflow) or dataflow.target.load == "scd2" else CHANGE_COLUMNS[:2]
    )
    if missing := [name for name in needed if name not in own]:
        step = "sql" if dataflow.sql else "transform"
        raise ConfigurationError(
            f"dataflow {dataflow.name}: {step}: expected the columns {', '.join(needed)} of its input in its result, since they say what a commit did"
            f" to a row; found none of {', '.join(missing)}. Select them, too"
        )


def changed_up_to(rows: DataFrame, keys: Sequence[str], version: int) -> DataFrame:
    """Return the rows of the keys that a commit up to some number has changed, of all commits.

    Args:
        rows: rows with the columns of changes.
        keys: the columns that identify a row.
        version: the number of the last such commit.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    of_key = Window.partitionBy(*[F.col(quoted(key)) for key in keys])
    first = F.min(COMMIT_VERSION).over(of_key)
    return rows.withColumn(_FIRST_CHANGE, first).where(f"{_FIRST_CHANGE} <= {version}").drop(_FIRST_CHANGE)


def steered(dataflow: Dataflow, rows: DataFrame) -> DataFrame:
    """Return rows after the user's step with the columns that steer the load, or with paired updates.

    A delete and an insert of one key in one commit are an update.
    """
    if not carries_changes(dataflow):
        return rows
    keys = dataflow.target.merge_keys
    if keeps_changes(dataflow):
        return _paired(rows, keys) if keys else rows
    return _steered(dataflow, rows)


def _steered(dataflow: Dataflow, rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    keys, load = dataflow.target.merge_keys, dataflow.target.load
    if load == "merge_overwrite":
        return _of_last_commit(rows, keys).drop(*CHANGE_COLUMNS)
    is_delete = F.col(CHANGE_TYPE) == DELETE
    order = F.col(COMMIT_VERSION) * 2 + F.when(is_delete, 0).otherwise(1)
    marked = rows.withColumn(_ORDER, order.cast("long"))
    if not reads_changes(dataflow):
        return marked.drop(*CHANGE_COLUMNS)
    marked = marked.withColumn(DELETES_COLUMN, is_delete)
    if load == "scd2":
        effective = str(dataflow.target.effective_column)
        marked = scd2_steps(marked, keys, effective, _effective_type(dataflow, rows))
    return marked.drop(*CHANGE_COLUMNS)


def _of_last_commit(rows: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """Return the rows of each key that its last commit has: one commit has all rows of a key."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    of_key = Window.partitionBy(*[F.col(quoted(key)) for key in keys])
    last = F.max(COMMIT_VERSION).over(of_key)
    return rows.withColumn(_ORDER, last).where(F.col(_ORDER) == F.col(COMMIT_VERSION)).drop(_ORDER)


def _paired(rows: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """Return the rows with the change types of updates where one key was deleted and inserted."""
    from pyspark.sql import functions as F

    change = (
        F.when((_change() == INSERT) & _has_other(keys, DELETE), POSTIMAGE)
        .when((_change() == DELETE) & _has_other(keys, INSERT), PREIMAGE)
        .otherwise(_change())
    )
    return rows.withColumn(CHANGE_TYPE, change)


def _has_other(keys: tuple[str, ...], change: str) -> Column:
    """Return whether the commit of a row has a change of another type for its key."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    of_key = Window.partitionBy(COMMIT_VERSION, *[F.col(quoted(key)) for key in keys])
    return F.max(_change() == change).over(of_key)


def _change() -> Column:
    from pyspark.sql import functions as F

    return F.col(CHANGE_TYPE)


def _effective_type(dataflow: Dataflow, rows: DataFrame) -> str:
    """Return the type of the effective column.

    Raises:
        ConfigurationError: it is not of the kind that the time of a commit has.
    """
    effective = dataflow.target.effective_column or ""
    types = {name.casefold(): data_type for name, data_type in rows.dtypes}
    data_type = types.get(effective.casefold(), "timestamp")
    if data_type not in _TIMES:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: target.effective_column: expected a time or a date beside on_change: apply, since a delete ends a version at"
            f" the time of its commit; found {effective} of type {data_type}. Set source.on_change to skip, or use load: merge_upsert"
        )
    return data_type


def load_of(dataflow: Dataflow) -> Load:
    """Return the target's load of rows that :func:`steered` has returned."""
    is_ordered = carries_changes(dataflow) and dataflow.target.load != "merge_overwrite"
    load = load_for_target(dataflow.target, NOTHING, (OrderByColumn(_ORDER),) if is_ordered else ())
    match load:
        case Upsert() if reads_changes(dataflow):
            return replace(load, deletes=DELETES_COLUMN)
        case Scd2() if reads_changes(dataflow):
            return replace(
                load,
                deletes=DELETES_COLUMN,
                delete_time=DELETED_AT,
                goes_back=GOES_BACK,
                comes_back=COMES_BACK,
            )
    return load
