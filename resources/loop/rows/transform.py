"""The steps after the read: the user's function or query, and the origin columns.

docs/reference/files.md, Target and the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from partitions.change_events import columns_needed
from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, StrandlineError
from partitions.history import end_value
from partitions.spelling import describe_missing
from partitions.target import ABSENT_COLUMN, DATAFLOW_COLUMN, HELPER_PREFIX, RUN_COLUMNS
from resources.loop.rows.delete_when import check_delete_when
from resources.spark.frames import type_of_column, with_typed_columns
from resources.spark.settings import TIME_ZONE
from resources.sql import quoted
from resources.tables.rows.deduplicate import has_no_order
from resources.user_functions import USERS_ERRORS, ship_modules, user_error_line, user_function

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(frozen=True)
class Batch:
    """The second argument of a user's function: where its rows come from.

    Attributes:
        dataflow: the dataflow's name.
        number: the slice's number.
        lower: the lower bound, sentinel JSON text; None on a first run.
        upper: the upper bound, sentinel JSON text.
        run_id: Dagster's run id; None outside of Dagster.
        time: when the slice was begun, ISO in UTC; a recovered slice keeps its own.
        inputs: the other tables that the dataflow reads, by their names in its definition; each at one
            version, which a recovered slice keeps.
    """

    dataflow: str
    number: int
    lower: str | None
    upper: str | None
    run_id: str | None
    time: str
    inputs: Mapping[str, DataFrame] = field(default_factory=dict)


def transformed(
    spark: SparkSession,
    dataflow: Dataflow,
    df: DataFrame,
    batch: Batch,
    folder: Path,
    *,
    compiled: Sequence[str] | None = None,
) -> DataFrame:
    """Apply the user's step to the rows, then add the origin columns.

    Args:
        spark: the session of the rows.
        dataflow: the definition.
        df: the rows that were read.
        batch: the slice.
        folder: the project's folder, which may hold the step's module.
        compiled: the columns that were read, if Spark compiles the query before it runs it; else None.

    Raises:
        ConfigurationError: the function does not exist; or code ``query``: a column has a reserved name or
            the name of another one, or the rows lack a column that the target names, or one of a type that
            the target cannot use.
        StrandlineError: code ``query``: the function fails, changes the session's time zone, or returns no
            DataFrame.
    """
    if dataflow.transform:
        function = user_function("transform", dataflow.transform, folder)
        ship_modules(folder)
        df = _call_function(function, dataflow, df, batch)
    if dataflow.sql:
        for view, rows in {"input": df, **batch.inputs}.items():
            rows.createOrReplaceTempView(view)  # the session is this run's own
        df = spark.sql(dataflow.sql)
    _check_names(dataflow, df)
    if compiled is not None and dataflow.has_step:
        compiled = df.columns
    df = _with_origin(dataflow, df, batch, compiled)
    _check_target_columns(dataflow, df)
    return df


def _with_origin(
    dataflow: Dataflow, df: DataFrame, batch: Batch, compiled: Sequence[str] | None
) -> DataFrame:
    """Add the columns that tell which run and which dataflow wrote a row, as far as the target has them.

    ``compiled`` are the rows' columns, if Spark compiles the query before it runs it; else None.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, TimestampType

    if dataflow.target.origin_columns:
        moment = F.lit(batch.time).cast("timestamp")
        origin = {
            "_ingested_at": (moment if compiled is None else _as_data(moment, compiled), TimestampType()),
            "_run_id": (F.lit(batch.run_id).cast("string"), StringType()),
        }
        df = with_typed_columns(df, origin)
    if dataflow.target.shared:
        df = with_typed_columns(df, {DATAFLOW_COLUMN: (F.lit(dataflow.name), StringType())})
    return df


def _check_target_columns(dataflow: Dataflow, df: DataFrame) -> None:
    """Raise if the rows lack a column that the target names, or cannot be compared or laid out by it."""
    target = dataflow.target
    _check_columns(dataflow, "partition_by", target.partition_by, df)
    _check_columns(dataflow, "cluster_by", target.cluster_by, df)
    _check_columns(dataflow, "merge_keys", target.merge_keys, df)
    _check_comparable(dataflow, "merge_keys", target.merge_keys, df)
    if target.effective_column is not None:
        _check_columns(dataflow, "effective_column", (target.effective_column,), df)
        _check_comparable(dataflow, "effective_column", (target.effective_column,), df)
        _check_open_end(dataflow, target.effective_column, df)
    _check_columns(dataflow, "track", target.track or (), df)
    _check_columns(dataflow, "ignore", target.ignore or (), df)
    _check_columns(dataflow, "immutable", target.immutable or (), df)
    check_delete_when(dataflow, df)
    _check_columns_of_load(dataflow, df)
    _check_folders(dataflow, df)


def _check_open_end(dataflow: Dataflow, effective: str, df: DataFrame) -> None:
    """Raise ConfigurationError if the open end is no value of the effective column's type."""
    open_end = dataflow.target.open_end
    if open_end is None:
        return
    data_type = type_of_column(df, effective)
    if end_value(open_end, data_type) is None:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: target.open_end: expected a value of type {data_type}, as {effective} "
            f"has, found {open_end!r}. Correct target.open_end, or remove it: current versions end with NULL then",
            code="query",
        )


def _check_columns_of_load(dataflow: Dataflow, df: DataFrame) -> None:
    """Raise ConfigurationError if the rows lack a column that the load itself compares."""
    load = dataflow.target.load
    for name in dataflow.watermark.columns_of_loads.get(load, ()):
        if name not in df.columns:
            raise ConfigurationError(
                f"dataflow {dataflow.name}: expected a column {name} in the rows, since load: {load} needs it, found "
                f"{', '.join(df.columns)}. Return it from sql or transform",
                code="query",
            )
    for name, why in columns_needed(dataflow.source, dataflow.target).items():
        if name not in df.columns:
            raise ConfigurationError(
                f"dataflow {dataflow.name}: expected a column {name} in the rows, since {why}, found "
                f"{', '.join(df.columns)}. Return it from sql or transform",
                code="query",
            )


def _check_folders(dataflow: Dataflow, df: DataFrame) -> None:
    """Raise ConfigurationError if a partition column holds bytes, which folder names cannot represent."""
    partition_names = {name.lower() for name in dataflow.target.names_folders}
    for name, data_type in df.dtypes if partition_names else ():
        if name.lower() in partition_names and data_type == "binary":
            raise ConfigurationError(
                f"dataflow {dataflow.name}: target.partition_by: expected columns whose values can name "
                f"folders, found {name} of type {data_type}. Convert it to text in sql, for example with "
                "hex, or use format: iceberg",
                code="query",
            )


def _call_function(
    function: Callable[..., Any], dataflow: Dataflow, df: DataFrame, batch: Batch
) -> DataFrame:
    """Call the user's function. Spark's own errors pass through, as for any query.

    Raises:
        StrandlineError: code ``query``: it fails, changes the session's time zone, or returns something
            else than a DataFrame; or an error that it raised itself.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame

    subject = f"dataflow {dataflow.name}: transform {dataflow.transform}"
    try:
        result = function(df, batch)
    except (PySparkException, StrandlineError):
        raise
    except USERS_ERRORS as error:
        raise StrandlineError(
            f"{subject}: {user_error_line(error)}. The run stopped before it changed anything. Correct "
            "the function",
            code="query",
        ) from error
    if (zone := df.sparkSession.conf.get(TIME_ZONE)) != "UTC":
        raise StrandlineError(
            f"{subject}: expected the session's time zone ({TIME_ZONE}) to stay UTC, found {zone}, which "
            "changes the meaning of all times that are read and written. The run stopped before it "
            "changed anything. Convert times in the function: from_utc_timestamp, to_utc_timestamp",
            code="query",
        )
    if not isinstance(result, DataFrame):
        raise StrandlineError(
            f"{subject}: expected a Spark DataFrame, found {type(result).__name__}. The run stopped "
            "before it changed anything. Have the function return the rows",
            code="query",
        )
    return result


def _as_data(value: Column, names: Sequence[str]) -> Column:
    """Return the value as data of a compiled query, instead of as part of its code.

    Spark writes a literal time into the code, which would differ for each slice: it would be compiled
    again, and stay slow until the JVM has compiled it, too. An array is data; its index depends on a row,
    so that Spark does not fold it into a literal.

    Args:
        value: the time.
        names: the rows' columns.
    """
    from pyspark.sql import functions as F

    counts = Counter(name.casefold() for name in names)
    unique_name = next((name for name in names if counts[name.casefold()] == 1), None)
    if unique_name is None:
        return value
    return F.get(F.array(value, value), F.isnull(F.col(quoted(unique_name))).cast("int"))


def _check_names(dataflow: Dataflow, df: DataFrame) -> None:
    """Raise if a column has a reserved name, or two columns have the same name.

    A first load would lose values, or leave a number that no run can finish.
    """
    target = dataflow.target
    own_marks = {ABSENT_COLUMN} if target.keeps_missing_columns else set()
    helper = next(
        (name for name in df.columns if name.lower().startswith(HELPER_PREFIX) and name not in own_marks),
        None,
    )
    if helper is not None:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected no column whose name starts with {HELPER_PREFIX}, which "
            f"Strandline's own queries use, found {helper}. Rename it in sql or at the source",
            code="query",
        )
    counts = Counter(name.lower() for name in df.columns)
    duplicate = next((name for name in df.columns if counts[name.lower()] > 1), None)
    if duplicate is not None:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected columns with different names, found two named {duplicate}: "
            "tables ignore upper and lower case. Rename one of them in sql or at the source",
            code="query",
        )
    reads_tables = any(source.lake_table for source in dataflow.source.parts.values())
    reserved = target.reserved(records_deletes=dataflow.deletes_keys)
    reserved |= target.reserved_of_runs(reads_tables=reads_tables)
    reserved_name = next((name for name in df.columns if name.lower() in reserved), None)
    if reserved_name is not None:
        why = reserved[reserved_name.lower()]
        added = ", ".join(name for name, key in reserved.items() if key == why)
        instead = "; or set origin_columns: false to keep it" if reserved_name.lower() in RUN_COLUMNS else ""
        raise ConfigurationError(
            f"dataflow {dataflow.name}: target.{why}: expected rows without {added}, which it adds, found "
            f"{reserved_name!r}. Rename the column in sql or at the source{instead}",
            code="query",
        )


def _check_comparable(dataflow: Dataflow, key: str, columns: Sequence[str], df: DataFrame) -> None:
    """Raise if a column's values cannot be compared: later loads could not find rows by it."""
    compared_names = {name.lower() for name in columns}
    for name, data_type in df.dtypes if compared_names else ():
        if name.lower() in compared_names and has_no_order(data_type):
            raise ConfigurationError(
                f"dataflow {dataflow.name}: target.{key}: expected columns whose values can be compared, "
                f"found {name} of type {data_type}. In sql, replace it by parts of it or by to_json of it",
                code="query",
            )


def _check_columns(dataflow: Dataflow, key: str, columns: Sequence[str], df: DataFrame) -> None:
    if not columns:
        return
    target = dataflow.target
    history = target.history_columns(records_deletes=dataflow.deletes_keys)
    added = history if key in ("partition_by", "cluster_by") else ()
    available_names = {name.lower() for name in (*df.columns, *added)}
    missing = [name for name in columns if name.lower() not in available_names]
    if missing:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: target.{key}: expected columns of the rows, found "
            f"{describe_missing(missing, df.columns)}. Correct target.{key}, or add the column in sql or "
            "transform",
            code="query",
        )
