"""A declared stream as a streaming DataFrame of Spark's. Nothing is read here."""

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
"""The window of an aggregate's rows, by which a later operator knows their event time."""
_ONE_GROUP = "__group"
_OF_SECOND = "__second_"
"""Keys of the second source of a join, while both sources' are there."""


@dataclass(frozen=True)
class StreamInput:
    """One source of a stream.

    Attributes:
        name: as the definition says.
        rows: a streaming DataFrame.
        delay: Spark's ``delayThreshold``.
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
    """Return the rows that a stream yields, as a streaming DataFrame.

    Args:
        inputs: at least one; several go through the first operator, a union or a join.
        event_time: column of all of them.
        operators: in the order of the rows.
        output_mode: of the query.
        load_class: imports a class of the user by ``package.module:Class``.

    Raises:
        ConfigurationError: Spark refuses it, in its words.
    """
    try:
        watermarked = [input_rows.rows.withWatermark(event_time, input_rows.delay) for input_rows in inputs]
        flow = _Flow(watermarked[0], event_time)
        for operator in operators:
            match operator:
                case Union():
                    _check_columns(inputs)
                    flow.rows = reduce(lambda left, right: left.unionByName(right), watermarked)
                case Join():
                    flow.rows = _joined(operator, watermarked, inputs, event_time)
                case TransformWithState():
                    flow.rows = _transformed(operator, flow.rows, output_mode, load_class)
                case _:
                    assert not isinstance(operator, OverWindow)  # refused when a definition is loaded
                    flow = flow.through(operator)
        rows = flow.rows_to_write()
        _ = rows.schema  # on Spark Connect nothing is looked at before it is asked for
    except ConfigurationError:
        raise
    except Exception as error:
        if _is_spark_s(error):
            raise ConfigurationError(
                f"Spark refuses the stream: {root_cause(error).rstrip(' .;')}. Check event_time, timeout and operators"
            ) from error
        raise
    return rows


@dataclass
class _Flow:
    """Rows between two operators.

    Attributes:
        rows: a streaming DataFrame.
        time: column of their event time.
    """

    rows: DataFrame
    time: str

    def through(self, operator: Aggregate | DropDuplicates | DropDuplicatesWithinWatermark) -> _Flow:
        match operator:
            case DropDuplicates(keys=keys):
                return _Flow(self.rows.dropDuplicates(_list(keys)), self.time)
            case DropDuplicatesWithinWatermark(keys=keys):
                return _Flow(self.rows.dropDuplicatesWithinWatermark(_list(keys)), self.time)
            case Aggregate():
                return _Flow(self._aggregated(operator), _WINDOW)

    def _aggregated(self, operator: Aggregate) -> DataFrame:
        """Rows of windows. Their window keeps its own column: Spark knows the event time of a row by it."""
        from pyspark.sql import functions as F

        rows, helper = self.rows, []
        if isinstance(operator.window, SessionWindows) and not operator.group_by:
            # Spark sessions need a group, and a literal is none to it.
            rows, helper = (
                rows.withColumn(_ONE_GROUP, F.expr(f"hash({_quoted(self.time)}) % 1")),
                [_ONE_GROUP],
            )
        window = _window(operator, self.time)
        columns = [F.expr(sql).alias(name) for name, sql in operator.aggregates.items()]
        grouped = rows.groupBy(
            window.alias(_WINDOW), *(F.col(_quoted(name)) for name in (*operator.group_by, *helper))
        )
        return grouped.agg(*columns).drop(*helper)

    def rows_to_write(self) -> DataFrame:
        """Return the rows as they are written: the window's ends first, as columns."""
        from pyspark.sql import functions as F

        if _WINDOW not in self.rows.columns:
            return self.rows
        ends = [F.col(f"{_WINDOW}.{end}").alias(f"window_{end}") for end in ("start", "end")]
        rest = [F.col(_quoted(name)) for name in self.rows.columns if name != _WINDOW]
        return self.rows.select(*ends, *rest)


def _window(operator: Aggregate, time: str) -> Column:
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
    """Raise unless a union's sources have the same columns; Spark would widen or fill them."""
    (first, expected_columns), *others = (
        (
            input_rows.name,
            {field.name.casefold(): field.dataType.simpleString() for field in input_rows.rows.schema},
        )
        for input_rows in inputs
    )
    for name, columns in others:
        differs = sorted(
            column
            for column in {**expected_columns, **columns}
            if expected_columns.get(column) != columns.get(column)
        )
        if differs:
            column = differs[0]
            raise ConfigurationError(
                f"source {name}: expected the columns of source {first}, since both come into a union; found {column}"
                f" {columns.get(column, 'missing')} in {name}, {expected_columns.get(column, 'missing')} in {first}"
            )


def _joined(
    join: Join, watermarked: Sequence[DataFrame], inputs: Sequence[StreamInput], event_time: str
) -> DataFrame:
    """Rows of both sources. The event time of what follows is the first source's."""
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
    second = next((new for name, new in names.items() if name.casefold() == event_time.casefold()), None)
    if join.within is None:
        return _of_one_time(left.join(right, list(join.on), join.how), second)
    assert second is not None  # refused when a definition is loaded: within beside the event time among on
    keys = {name: f"{_OF_SECOND}{place}" for place, name in enumerate(join.on)}
    for name, new in keys.items():
        right = right.withColumnRenamed(name, new)
    pairs = [F.col(_quoted(name)) == F.col(new) for name, new in keys.items()]
    at, of_second = F.col(_quoted(event_time)), F.col(_quoted(second))
    span = F.expr(f"INTERVAL {join.within // timedelta(microseconds=1)} MICROSECONDS")
    near = (at >= of_second - span) & (at <= of_second + span)
    rows = left.join(right, reduce(lambda condition, other: condition & other, [*pairs, near]), join.how)
    if join.how in ("right", "full"):  # a row without one of the first source has its keys from the second
        for name, new in keys.items():
            rows = rows.withColumn(name, F.coalesce(F.col(_quoted(name)), F.col(new)))
    return _of_one_time(rows.drop(*keys.values()), second)


def _of_one_time(rows: DataFrame, second: str | None) -> DataFrame:
    """Return a join's rows with the second event time as a plain column: Spark accepts only one."""
    from pyspark.sql import functions as F

    columns = [(name, F.col(_quoted(name))) for name in rows.columns]
    return rows.select(*(at.alias(name, metadata={}) if name == second else at for name, at in columns))


def _transformed(
    operator: TransformWithState,
    rows: DataFrame,
    output_mode: str,
    load_class: Callable[[str], type[Any]],
) -> DataFrame:
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
    assert isinstance(span, timedelta)  # a whole number is refused when a definition is loaded
    return f"{span // timedelta(microseconds=1)} microseconds"


def _list(keys: Sequence[str] | None) -> list[str] | None:
    return None if keys is None else list(keys)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _is_spark_s(error: Exception) -> bool:
    from pyspark.errors import PySparkException

    return isinstance(error, PySparkException)
