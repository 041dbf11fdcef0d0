"""One row of each key: of several the latest, always the same (docs/loads.md, Duplicates).

An aggregate, not a window function: each task that reads keeps one row of a key before rows move to the task of that key, so a million changes
of one key cost no task more memory, or more rows to move, than one change. A window function would bring all of them to one task and sort
them there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from partitions.loads import ByPath, Order
from resources.spark.frames import with_columns_as
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_NOT_ORDERED = ("map<", "variant", "interval")
"""Parts of types whose values Spark cannot compare; see :func:`comparable`."""

_TO_THE_MICROSECOND = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""JSON's own times end with milliseconds, and rows would look alike that are not."""


def latest_rows(rows: DataFrame, keys: Sequence[str], order: Order) -> DataFrame:
    """Return the latest row of each key, with the columns in their order.

    Of rows that are equally late the one whose other columns, from the first to the last, have the higher values is taken: that depends
    on the rows alone, not on where Spark reads them.

    Args:
        rows: all of them; read once.
        keys: columns; NULL is a value like any other.
        order: which of two rows is later.
    """
    from pyspark.sql import functions as F

    known = {key.lower() for key in keys}
    others = [(field.name, field.dataType) for field in rows.schema if field.name.lower() not in known]
    lateness = position(order, lambda name: F.col(quoted(name)))
    ordered: list[Column] = []
    unordered: list[Column] = []
    for name, kind in others:
        (unordered if has_no_order(kind.simpleString()) else ordered).append(F.col(quoted(name)))
    stand_ins = [comparable(name, kind) for name, kind in others if has_no_order(kind.simpleString())]
    place = [column.alias(f"c{number}") for number, column in enumerate([*lateness, *ordered, *stand_ins])]
    if not place:
        return with_columns_as(rows.distinct(), rows)
    whole = F.struct(*[column.alias(f"v{number}") for number, column in enumerate(unordered)])
    taken = [F.max(F.struct(*place)).alias("_strandline_latest")]
    taken += [F.max_by(whole, F.struct(*place)).alias("_strandline_rest")] if unordered else []
    latest = rows.groupBy(*[F.col(quoted(key)) for key in keys]).agg(*taken)
    return with_columns_as(latest.select(*_restored(rows, known, len(lateness))), rows)


def without_keys_of(rows: DataFrame, others: DataFrame, keys: Sequence[str], order: Order = ()) -> DataFrame:
    """Return the rows whose key no other row has.

    Args:
        rows: with the keys.
        others: with the keys.
        keys: columns; NULL is a value like any other.
        order: only others that are later in it than a row count; none: all do.
    """
    from pyspark.sql import functions as F

    columns = dict.fromkeys([*keys, *(by.column for by in order)])
    renamed = {name: f"_strandline_other_{number}" for number, name in enumerate(columns)}
    held = others.select([F.col(quoted(name)).alias(alias) for name, alias in renamed.items()])
    same = " AND ".join(f"{quoted(name)} <=> {quoted(renamed[name])}" for name in keys)
    if not order:
        return rows.join(held, F.expr(same), "left_anti")
    mine, theirs = (
        F.struct(*[column.alias(f"c{at}") for at, column in enumerate(position(order, made))])
        for made in (lambda name: F.col(quoted(name)), lambda name: F.col(quoted(renamed[name])))
    )
    return rows.join(held, F.expr(same) & (theirs > mine), "left_anti")


def position(order: Order, column: Callable[[str], Column]) -> list[Column]:
    """Return what rows are compared by, the most important first.

    Args:
        order: which of two rows is later.
        column: makes an expression of the name of a column.
    """
    from pyspark.sql import functions as F

    compared: list[Column] = []
    for by in order:
        value = column(by.column)
        if isinstance(by, ByPath):
            compared += [F.regexp_extract(value, "(?s)^(.*)/", 1), F.regexp_extract(value, "(?s)([^/]*)$", 1)]
        else:
            compared.append(value)
    return compared


def comparable(name: str, kind: DataType) -> Column:
    """Return what stands for the values of a column where two of them are compared.

    Args:
        name: of the column.
        kind: its type.
    """
    from pyspark.sql import functions as F

    return _comparable(F.col(quoted(name)), kind)


def _comparable(value: Column, kind: DataType) -> Column:
    """The value, with a list in place of each map, in the order of its keys: in which order a source writes them says nothing."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    if not has_no_order(kind.simpleString()):
        return value
    match kind:
        case T.MapType():
            entries = F.transform(
                F.map_entries(value),
                lambda each: F.struct(
                    each.getField("key").alias("key"),
                    _comparable(each.getField("value"), kind.valueType).alias("value"),
                ),
            )
            return F.array_sort(entries)
        case T.ArrayType():
            return F.transform(value, lambda each: _comparable(each, kind.elementType))
        case T.StructType():
            fields = [
                _comparable(value.getField(field.name), field.dataType).alias(f"f{number}")
                for number, field in enumerate(kind)
            ]
            return F.when(value.isNotNull(), F.struct(*fields))
    return F.to_json(F.struct(value.alias("v")), _TO_THE_MICROSECOND)


def has_no_order(kind: str) -> bool:
    """Return whether Spark cannot compare values of a type, given as its simple string."""
    return any(part in kind for part in _NOT_ORDERED)


def _restored(rows: DataFrame, keys: set[str], first: int) -> list[Column]:
    """The columns as they were: keys as they are grouped, the others out of the latest row.

    Args:
        rows: as they were.
        keys: in lower case.
        first: how many fields of the latest row tell only how late it is.
    """
    from pyspark.sql import functions as F

    columns: list[Column] = []
    compared, rest = first, 0
    for name, kind in rows.dtypes:
        if name.lower() in keys:
            columns.append(F.col(quoted(name)))
        elif has_no_order(kind):
            columns.append(F.col(f"_strandline_rest.v{rest}").alias(name))
            rest += 1
        else:
            columns.append(F.col(f"_strandline_latest.c{compared}").alias(name))
            compared += 1
    return columns
