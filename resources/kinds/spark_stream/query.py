"""Build the streaming DataFrame of a declared stream. Nothing is read here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any

from partitions.errors import ConfigurationError
from partitions.spark_stream.union_join import joined_names
from partitions.stream.operators import (
    Aggregate,
    DropDuplicates,
    DropDuplicatesWithinWatermark,
    HoppingWindows,
    Join,
    Operator,
    OverWindow,
    SessionWindows,
    TransformWithState,
    TumblingWindows,
    Union,
)
from resources.spark.failures import root_cause

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_WINDOW = "__window"
"""Column with the window of an aggregate's rows; later operators find their event time by it."""

_ONE_GROUP = "__group"
"""Helper column with one value for all rows."""

_SECOND_KEY = "__second_"
"""Prefix of the columns with a join's keys from the second source, while rows have both sources' keys."""


@dataclass(frozen=True)
class StreamInput:
    """One source of a stream.

    Attributes:
        name: name of the source in the definition.
        rows: streaming DataFrame of its rows.
        delay: Spark's ``delayThreshold``, the timeout of the source.
    """

    name: str
    rows: DataFrame
    delay: str


def stream_query(
    inputs: Sequence[StreamInput],
    event_time: str,
    operators: Sequence[Operator],
    *,
    output_mode: str = "append",
    load_class: Callable[[str], type[Any]],
) -> DataFrame:
    """Return the streaming DataFrame of the rows that a stream writes.

    Args:
        inputs: at least one source; several are combined by the first operator, a union or a join.
        event_time: event-time column of all sources.
        operators: operators, in the order in which rows pass them.
        output_mode: output mode of the query.
        load_class: imports a user's class by ``package.module:Class``.

    Raises:
        ConfigurationError: Spark refuses the stream; the message quotes Spark.
    """
    try:
        watermarked = [input_rows.rows.withWatermark(event_time, input_rows.delay) for input_rows in inputs]
        stream_rows = _StreamRows(watermarked[0], event_time)
        for operator in operators:
            match operator:
                case Union():
                    _check_columns(inputs)
                    stream_rows.rows = reduce(lambda left, right: left.unionByName(right), watermarked)
                case Join():
                    stream_rows.rows = _joined(operator, watermarked, inputs, event_time)
                case TransformWithState():
                    stream_rows.rows = _transformed(operator, stream_rows.rows, output_mode, load_class)
                case _:
                    assert not isinstance(operator, OverWindow)  # refused when a definition is loaded
                    stream_rows = stream_rows.through(operator)
        rows = stream_rows.rows_to_write()
        _ = rows.schema  # Spark Connect analyses a query only when something asks for its result
    except ConfigurationError:
        raise
    except Exception as error:
        if _is_spark_error(error):
            raise ConfigurationError(
                f"Spark refuses the stream: {root_cause(error).rstrip(' .;')}. Check event_time, timeout and operators"
            ) from error
        raise
    return rows


@dataclass
class _StreamRows:
    """The rows between two operators.

    Attributes:
        rows: streaming DataFrame.
        time: name of the event-time column.
    """

    rows: DataFrame
    time: str

    def through(self, operator: Aggregate | DropDuplicates | DropDuplicatesWithinWatermark) -> _StreamRows:
        """Return the rows after an operator, with the event-time column that it leaves."""
        match operator:
            case DropDuplicates(keys=keys):
                return _StreamRows(self.rows.dropDuplicates(_list(keys)), self.time)
            case DropDuplicatesWithinWatermark(keys=keys):
                return _StreamRows(self.rows.dropDuplicatesWithinWatermark(_list(keys)), self.time)
            case Aggregate():
                return _StreamRows(self._aggregated(operator), _WINDOW)

    def _aggregated(self, operator: Aggregate) -> DataFrame:
        """Return one row for each window and group.

        The window stays a column of its own: Spark finds a row's event time by it.
        """
        from pyspark.sql import functions as F

        rows, helpers = self.rows, []
        if isinstance(operator.window, SessionWindows) and not operator.group_by:
            # Spark's session windows need a grouping column, and refuse a literal.
            rows, helpers = (
                rows.withColumn(_ONE_GROUP, F.expr(f"hash({_quoted(self.time)}) % 1")),
                [_ONE_GROUP],
            )
        window = _window(operator, self.time)
        columns = [F.expr(sql).alias(name) for name, sql in operator.aggregates.items()]
        grouped = rows.groupBy(
            window.alias(_WINDOW), *(F.col(_quoted(name)) for name in (*operator.group_by, *helpers))
        )
        return grouped.agg(*columns).drop(*helpers)

    def rows_to_write(self) -> DataFrame:
        """Return the rows to write; a window becomes the first two columns, its start and end."""
        from pyspark.sql import functions as F

        if _WINDOW not in self.rows.columns:
            return self.rows
        ends = [F.col(f"{_WINDOW}.{end}").alias(f"window_{end}") for end in ("start", "end")]
        rest = [F.col(_quoted(name)) for name in self.rows.columns if name != _WINDOW]
        return self.rows.select(*ends, *rest)


def _window(operator: Aggregate, time: str) -> Column:
    """Return the window of a row, by its event-time column."""
    from pyspark.sql import functions as F

    at = F.col(_quoted(time))
    match operator.window:
        case TumblingWindows(size=size):
            return F.window(at, _interval(size))
        case HoppingWindows(size=size, slide=slide):
            return F.window(at, _interval(size), _interval(slide))
        case SessionWindows(gap=gap):
            return F.session_window(at, _interval(gap))


def _check_columns(inputs: Sequence[StreamInput]) -> None:
    """Raise unless all sources of a union have the same columns; Spark would widen types or fill gaps."""
    (first, expected_columns), *other_inputs = (
        (
            input_rows.name,
            {field.name.casefold(): field.dataType.simpleString() for field in input_rows.rows.schema},
        )
        for input_rows in inputs
    )
    for name, columns in other_inputs:
        differing = sorted(
            column
            for column in {**expected_columns, **columns}
            if expected_columns.get(column) != columns.get(column)
        )
        if differing:
            column = differing[0]
            raise ConfigurationError(
                f"source {name}: expected the columns of source {first}, since a union combines both; "
                f"found {column} {columns.get(column, 'missing')} in {name}, "
                f"{expected_columns.get(column, 'missing')} in {first}"
            )


def _joined(
    join: Join, watermarked: Sequence[DataFrame], inputs: Sequence[StreamInput], event_time: str
) -> DataFrame:
    """Return the joined rows of two sources; later operators use the first source's event time."""
    from pyspark.sql import functions as F

    left, right = watermarked
    try:
        names = joined_names(left.columns, right.columns, join, inputs[-1].name)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    right = right.select(
        *(F.col(_quoted(name)) for name in join.on),
        *(F.col(_quoted(name)).alias(new) for name, new in names.items()),
    )
    second_time = next((new for name, new in names.items() if name.casefold() == event_time.casefold()), None)
    if join.within is None:
        return _with_one_event_time(left.join(right, list(join.on), join.how), second_time)
    # A definition with `within` and the event time among `on` is refused when it is loaded.
    assert second_time is not None
    keys = {name: f"{_SECOND_KEY}{place}" for place, name in enumerate(join.on)}
    for name, new in keys.items():
        right = right.withColumnRenamed(name, new)
    pairs = [F.col(_quoted(name)) == F.col(new) for name, new in keys.items()]
    first_at, second_at = F.col(_quoted(event_time)), F.col(_quoted(second_time))
    span = F.expr(f"INTERVAL {join.within // timedelta(microseconds=1)} MICROSECONDS")
    is_near = (first_at >= second_at - span) & (first_at <= second_at + span)
    rows = left.join(right, reduce(lambda both, condition: both & condition, [*pairs, is_near]), join.how)
    if join.how in ("right", "full"):
        # A row without a partner in the first source has only the second's keys.
        for name, new in keys.items():
            rows = rows.withColumn(name, F.coalesce(F.col(_quoted(name)), F.col(new)))
    return _with_one_event_time(rows.drop(*keys.values()), second_time)


def _with_one_event_time(rows: DataFrame, second_time: str | None) -> DataFrame:
    """Return joined rows in which the second event time is a plain column: Spark accepts only one."""
    from pyspark.sql import functions as F

    columns = [(name, F.col(_quoted(name))) for name in rows.columns]
    return rows.select(
        *(column.alias(name, metadata={}) if name == second_time else column for name, column in columns)
    )


def _transformed(
    operator: TransformWithState,
    rows: DataFrame,
    output_mode: str,
    load_class: Callable[[str], type[Any]],
) -> DataFrame:
    """Return the rows that a user's class yields; raise ConfigurationError if it is no StatefulProcessor."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    processor = load_class(operator.function)
    if not (isinstance(processor, type) and issubclass(processor, StatefulProcessor)):
        raise ConfigurationError(
            f"transform_with_state: expected a class at {operator.function} that extends pyspark's StatefulProcessor, found {processor!r}"
        )
    return rows.groupBy(*operator.group_by).transformWithState(
        statefulProcessor=processor(),
        outputStructType=operator.output,
        outputMode=output_mode.capitalize(),
        timeMode="EventTime",
    )


def _interval(span: timedelta | int) -> str:
    """Return a duration as Spark reads it."""
    assert isinstance(span, timedelta)  # a whole number is refused when a definition is loaded
    return f"{span // timedelta(microseconds=1)} microseconds"


def _list(keys: Sequence[str] | None) -> list[str] | None:
    return None if keys is None else list(keys)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _is_spark_error(error: Exception) -> bool:
    from pyspark.errors import PySparkException

    return isinstance(error, PySparkException)
