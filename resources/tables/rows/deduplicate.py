"""Keep the latest row of each key, always the same row (docs/reference/loads.md, Duplicates).

This is an aggregate, not a window function: each task that reads keeps one row of a key before rows are
shuffled, so a million changes of one key cost no task more memory than one change. A window function would
bring all of them to one task and sort them there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from partitions.loads import Order, OrderByPath
from partitions.target import HELPER_PREFIX
from resources.spark.frames import with_columns_as
from resources.sql import quoted
from resources.tables.rows.absent_columns import is_absent

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructField

_UNORDERED_TYPES = ("map<", "variant", "interval")
"""Parts of type names whose values Spark cannot compare; see :func:`comparable`."""

_MICROSECOND_FORMATS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""By default JSON cuts times to milliseconds, which would make different rows equal."""


def latest_rows(
    rows: DataFrame,
    keys: Sequence[str],
    order: Order,
    *,
    is_earliest: bool = False,
    first_values: Mapping[str, Column] = MappingProxyType({}),
    absent: str | None = None,
) -> DataFrame:
    """Return the latest row of each key, with the columns in their order.

    Among equally late rows the one with the higher values wins, compared column by column. The result
    depends on the rows alone, not on where Spark reads them.

    Args:
        rows: all rows; read once.
        keys: key columns; NULL is a value like any other.
        order: order that says which of two rows is later.
        is_earliest: whether the earliest row is returned instead, of equally late ones that with the lower
            values.
        first_values: columns that get their value of the earliest row of the key that meets a condition;
            NULL if none does.
        absent: column with the names of columns that a row has no value for. Each gets the value of the
            latest row of the key that has one, of equally late rows the higher; None: there are none.
    """
    from pyspark.sql import functions as F

    folded_keys = {key.lower() for key in keys}
    others = [field for field in rows.schema if field.name.lower() not in folded_keys]
    unordered = [field for field in others if has_no_order(field.dataType.simpleString())]
    ordered = [F.col(quoted(field.name)) for field in others if field not in unordered]
    stand_ins = [comparable(field.name, field.dataType) for field in unordered]
    lateness = sort_key(order, lambda name: F.col(quoted(name)))
    if not (sort_columns := [*lateness, *ordered, *stand_ins]):
        return with_columns_as(rows.distinct(), rows)
    position = numbered_struct("c", sort_columns)
    of_row, of_values = (F.min, F.min_by) if is_earliest else (F.max, F.max_by)
    aggregates = [of_row(position).alias("_strandline_latest")]
    if unordered:
        rest = numbered_struct("v", [F.col(quoted(field.name)) for field in unordered])
        aggregates.append(of_values(rest, position).alias("_strandline_rest"))
    firsts = {name.lower(): f"_strandline_first_{number}" for number, name in enumerate(first_values)}
    aggregates += [
        F.min_by(F.col(quoted(name)), F.when(is_counted, position)).alias(firsts[name.lower()])
        for name, is_counted in first_values.items()
    ]
    not_filled = {by.column.lower() for by in order} | firsts.keys()
    filled = [] if absent is None else [field for field in others if _is_filled(field.name, not_filled)]
    present = {field.name: f"_strandline_present_{number}" for number, field in enumerate(filled)}
    aggregates += [
        _latest_present(field, F.col(quoted(absent or "")), lateness).alias(present[field.name])
        for field in filled
    ]
    latest = rows.groupBy(*[F.col(quoted(key)) for key in keys]).agg(*aggregates)
    columns = dict(zip(rows.columns, _original_columns(rows, folded_keys, len(lateness)), strict=True))
    columns |= {name: F.col(firsts[name.lower()]).alias(name) for name in columns if name.lower() in firsts}
    if absent is not None:
        columns |= _with_present_values(columns, absent, present)
    return with_columns_as(latest.select(*columns.values()), rows)


def numbered_struct(prefix: str, columns: Sequence[Column]) -> Column:
    """Return a struct of columns, in their order; its fields are numbered."""
    from pyspark.sql import functions as F

    return F.struct(*[column.alias(f"{prefix}{number}") for number, column in enumerate(columns)])


def _is_filled(name: str, not_filled: set[str]) -> bool:
    """Return whether a column that a row lacks gets the value of an earlier row.

    Args:
        name: the column.
        not_filled: columns of the order, and those that keep a first value, in lower case.
    """
    return name.lower() not in not_filled and not name.startswith(HELPER_PREFIX)


def _with_present_values(
    columns: Mapping[str, Column], absent: str, present: Mapping[str, str]
) -> dict[str, Column]:
    """Return the columns that may be filled, and the names of those that still have no value.

    Args:
        columns: columns of the latest row, by name.
        absent: column with the names of columns that a row has no value for.
        present: alias of the latest value that is present, by column.
    """
    from pyspark.sql import functions as F

    names = columns[absent]
    filled = {
        name: F.when(is_absent(names, name), F.col(f"{alias}.value")).otherwise(columns[name]).alias(name)
        for name, alias in present.items()
    }
    have_value = [F.when(F.col(alias).isNotNull(), F.lit(name.lower())) for name, alias in present.items()]
    still_absent = F.array_except(
        names, F.array(*have_value) if have_value else F.array().cast("array<string>")
    )
    return filled | {absent: still_absent.alias(absent)}


def _latest_present(field: StructField, absent: Column, lateness: Sequence[Column]) -> Column:
    """Return the value of a column in the latest row that has one, as a struct; NULL if no row has one."""
    from pyspark.sql import functions as F

    position = numbered_struct("c", [*lateness, comparable(field.name, field.dataType)])
    value = F.struct(F.col(quoted(field.name)).alias("value"))
    return F.max_by(value, F.when(~is_absent(absent, field.name), position))


def drop_shared_keys(
    rows: DataFrame, other_rows: DataFrame, keys: Sequence[str], order: Order = ()
) -> DataFrame:
    """Return the rows whose key no row of ``other_rows`` has; with an order, no later row.

    Args:
        rows: rows with the keys.
        other_rows: rows with the same keys.
        keys: key columns; NULL is a value like any other.
        order: if given, only other rows that are later than a row drop it.
    """
    from pyspark.sql import functions as F

    columns = dict.fromkeys([*keys, *(sort_column.column for sort_column in order)])
    aliases = {name: f"_strandline_other_{number}" for number, name in enumerate(columns)}
    renamed_rows = other_rows.select([F.col(quoted(name)).alias(alias) for name, alias in aliases.items()])
    same_keys = " AND ".join(f"{quoted(name)} <=> {quoted(aliases[name])}" for name in keys)
    if not order:
        return rows.join(renamed_rows, F.expr(same_keys), "left_anti")
    own_position, other_position = (
        numbered_struct("c", sort_key(order, to_column))
        for to_column in (lambda name: F.col(quoted(name)), lambda name: F.col(quoted(aliases[name])))
    )
    return rows.join(renamed_rows, F.expr(same_keys) & (other_position > own_position), "left_anti")


def sort_key(order: Order, column: Callable[[str], Column]) -> list[Column]:
    """Return the columns that rows are compared by, most significant first.

    Args:
        order: order that says which of two rows is later.
        column: makes an expression of a column's name.
    """
    from pyspark.sql import functions as F

    sort_columns: list[Column] = []
    for sort_column in order:
        value = column(sort_column.column)
        if isinstance(sort_column, OrderByPath):
            sort_columns += [
                F.regexp_extract(value, "(?s)^(.*)/", 1),
                F.regexp_extract(value, "(?s)([^/]*)$", 1),
            ]
        else:
            sort_columns.append(value)
    return sort_columns


def comparable(name: str, data_type: DataType) -> Column:
    """Return an expression whose values Spark can compare in place of a column's values.

    Args:
        name: name of the column.
        data_type: type of the column.
    """
    from pyspark.sql import functions as F

    return _comparable(F.col(quoted(name)), data_type)


def _comparable(value: Column, data_type: DataType) -> Column:
    """Return the value with each map as a sorted list of entries, since sources write maps in any order."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    if not has_no_order(data_type.simpleString()):
        return value
    match data_type:
        case T.MapType():
            entries = F.transform(
                F.map_entries(value),
                lambda entry: F.struct(
                    entry.getField("key").alias("key"),
                    _comparable(entry.getField("value"), data_type.valueType).alias("value"),
                ),
            )
            return F.array_sort(entries)
        case T.ArrayType():
            return F.transform(value, lambda element: _comparable(element, data_type.elementType))
        case T.StructType():
            fields = [
                _comparable(value.getField(field.name), field.dataType).alias(f"f{number}")
                for number, field in enumerate(data_type)
            ]
            return F.when(value.isNotNull(), F.struct(*fields))
    return F.to_json(F.struct(value.alias("v")), _MICROSECOND_FORMATS)


def has_no_order(data_type: str) -> bool:
    """Return whether Spark cannot compare values of a type, given as its simple string."""
    return any(part in data_type for part in _UNORDERED_TYPES)


def _original_columns(rows: DataFrame, keys: set[str], lateness_fields: int) -> list[Column]:
    """Return the original columns: keys as grouped, others from the latest row.

    Args:
        rows: original rows.
        keys: key columns in lower case.
        lateness_fields: number of leading fields in the latest row that only order rows.
    """
    from pyspark.sql import functions as F

    columns: list[Column] = []
    ordered_index, unordered_index = lateness_fields, 0
    for name, data_type in rows.dtypes:
        if name.lower() in keys:
            columns.append(F.col(quoted(name)))
        elif has_no_order(data_type):
            columns.append(F.col(f"_strandline_rest.v{unordered_index}").alias(name))
            unordered_index += 1
        else:
            columns.append(F.col(f"_strandline_latest.c{ordered_index}").alias(name))
            ordered_index += 1
    return columns
