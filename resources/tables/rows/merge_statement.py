"""Keyed loads as one MERGE, whatever the format of the table (docs/reference/loads.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from partitions.loads import ByKeys, Order, ReplaceKeys, Scd2, Upsert
from partitions.predicate import EVERYTHING, NOTHING, Predicate
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.sql import quoted
from resources.tables.rows.absent_columns import is_absent
from resources.tables.rows.deduplicate import numbered_struct, sort_key
from resources.tables.rows.delete_marks import is_delete
from resources.tables.rows.scd2 import CHANGE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.merge import MergeIntoWriter
    from pyspark.sql.types import StructType

_SLICE_PREFIX = "_strandline_"
"""Prefix of the slice's column aliases, which no table column has, so that each name is unambiguous."""

_CLEARS = "_strandline_clears"
"""Column: whether the row deletes the table's rows of its key; otherwise the row is inserted."""


def merge_rows(
    rows: DataFrame,
    load: ByKeys,
    table: str,
    schema: StructType,
    commit_columns: Sequence[str] = (),
) -> MergeIntoWriter:
    """Return the MERGE of a slice into an existing table.

    Args:
        rows: rows of the slice, with columns of the table and the load's own; an upsert has each key once,
            SCD2 each version with its change.
        load: keyed load.
        table: name of the table in SQL.
        schema: schema of the table.
        commit_columns: columns that every changed row takes from the slice, whatever else changes.
    """
    names = {name.lower(): f"{_SLICE_PREFIX}{number}" for number, name in enumerate(rows.columns)}
    renamed_rows = rows.toDF(*names.values())
    match load:
        case Upsert():
            return _merge_upsert(renamed_rows, table, load, schema, names)
        case ReplaceKeys():
            return _merge_replacement(renamed_rows, table, load, schema, names)
        case Scd2():
            return _merge_versions(renamed_rows, table, load, schema, names, commit_columns)


def delete_missing_rows(rows: DataFrame, load: Upsert, table: str) -> MergeIntoWriter:
    """Return the MERGE that deletes the rows that an upsert clears.

    These rows meet its ``where``, and the slice does not have their keys.

    Args:
        rows: rows of the slice, cached because they are read beside the table.
        load: upsert that clears rows.
        table: name of the table in SQL.
    """
    from pyspark.sql import functions as F

    key_columns = [
        F.col(quoted(key)).alias(f"{_SLICE_PREFIX}{number}") for number, key in enumerate(load.keys)
    ]
    names = {key.lower(): f"{_SLICE_PREFIX}{number}" for number, key in enumerate(load.keys)}
    cleared_rows = rows.sparkSession.table(table).where(condition(load.where))
    missing = cleared_rows.join(rows.select(*key_columns), same_keys(load.keys, names), "left_anti")
    merging = (
        missing.select(*key_columns)
        .distinct()
        .mergeInto(table, same_keys(load.keys, names) & condition(load.where))
    )
    return merging.whenMatched().delete()


def _merge_upsert(
    renamed_rows: DataFrame, table: str, load: Upsert, schema: StructType, names: Mapping[str, str]
) -> MergeIntoWriter:
    from pyspark.sql import functions as F

    is_not_older: Column | None = None
    if load.guard:
        slice_position, table_position = sort_keys(load.guard, names)
        is_not_older = slice_position >= table_position
        if load.guarded != EVERYTHING:
            is_not_older = is_not_older | ~F.coalesce(condition(load.guarded), F.lit(False))
    values = _column_values(schema, names)
    updates = _update_values(values, load, names)
    has_same_keys = same_keys(load.keys, names)
    merging = renamed_rows.mergeInto(
        table, has_same_keys if load.within == EVERYTHING else has_same_keys & condition(load.within)
    )
    if load.inserts_only:
        if load.where != NOTHING:
            merging = merging.whenMatched(condition(load.where)).update(values)
        merging = merging.whenNotMatched().insert(values)
    elif load.deletes is None:
        merging = merging.whenMatched(is_not_older).update(updates).whenNotMatched().insert(values)
    else:
        deletes = is_delete(names[load.deletes.lower()])
        merging = merging.whenMatched(deletes if is_not_older is None else is_not_older & deletes).delete()
        merging = merging.whenMatched(~deletes if is_not_older is None else is_not_older & ~deletes).update(
            updates
        )
        merging = merging.whenNotMatched(~deletes).insert(values)
    return _with_clearing(merging, load.where)


def _update_values(values: Mapping[str, Column], load: Upsert, names: Mapping[str, str]) -> dict[str, Column]:
    """Return the values of an update; immutable columns, and those that a row lacks, stay as they are.

    Args:
        values: value of the slice's row by quoted name of the table's column.
        load: load of the slice.
        names: aliases of the slice's columns by their name in lower case.
    """
    from pyspark.sql import functions as F

    immutable = {quoted(name).lower() for name in load.immutable}
    columns = {quoted(name): name for name in names}
    updates: dict[str, Column] = {}
    for name, value in values.items():
        column, stored, update = columns.get(name.lower()), F.expr(name), value
        if load.absent is not None:
            if column is None:
                continue
            update = F.when(is_absent(F.col(names[load.absent]), column), stored).otherwise(value)
        updates[name] = F.coalesce(stored, update) if name.lower() in immutable else update
    return updates


def _merge_replacement(
    renamed_rows: DataFrame, table: str, load: ReplaceKeys, schema: StructType, names: Mapping[str, str]
) -> MergeIntoWriter:
    """Return a MERGE that inserts every row but deletes, and deletes the table's rows of the same keys.

    The first row of each key occurs twice: once to be inserted, once to match the rows that it deletes.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    keys = [F.col(names[key.lower()]) for key in load.keys]
    is_first = F.row_number().over(Window.partitionBy(*keys).orderBy(*keys)) == 1
    delete_flags = F.when(is_first, F.array(F.lit(True), F.lit(False))).otherwise(F.array(F.lit(False)))
    # Number the rows first: Spark allows no window function inside explode.
    flagged_rows = renamed_rows.withColumn(_CLEARS, delete_flags).withColumn(
        _CLEARS, F.explode(F.col(_CLEARS))
    )
    merging = flagged_rows.mergeInto(table, F.col(_CLEARS) & same_keys(load.keys, names))
    is_inserted = ~F.col(_CLEARS)
    if load.deletes is not None:
        is_inserted &= ~is_delete(names[load.deletes.lower()])
    merging = merging.whenMatched().delete().whenNotMatched(is_inserted).insert(_column_values(schema, names))
    return _with_clearing(merging, load.where)


def _merge_versions(
    renamed_rows: DataFrame,
    table: str,
    load: Scd2,
    schema: StructType,
    names: Mapping[str, str],
    commit_columns: Sequence[str],
) -> MergeIntoWriter:
    from pyspark.sql import functions as F

    change = F.col(names[CHANGE])
    end_columns = [name for name in load.names.all[1:] if name.lower() in names]
    changed_values = {quoted(name): F.col(names[name.lower()]) for name in (*end_columns, *commit_columns)}
    values = _column_values(schema, names)
    merging = renamed_rows.mergeInto(table, same_keys((*load.keys, load.names.valid_from), names))
    merging = merging.whenMatched(change == "delete").delete()
    merging = merging.whenMatched(change == "close").update(changed_values)
    merging = merging.whenMatched(change == "replace").update(values)
    return merging.whenNotMatched(change == "insert").insert(values)


def _with_clearing(merging: MergeIntoWriter, where: Predicate) -> MergeIntoWriter:
    return merging if where == NOTHING else merging.whenNotMatchedBySource(condition(where)).delete()


def sort_keys(order: Order, names: Mapping[str, str]) -> tuple[Column, Column]:
    """Return the sort key of a slice row and of a table row.

    ``names`` maps the slice's column names in lower case to their aliases.
    """
    from pyspark.sql import functions as F

    slice_position, table_position = (
        numbered_struct("c", sort_key(order, to_column))
        for to_column in (lambda name: F.col(names[name.lower()]), lambda name: F.col(quoted(name)))
    )
    return slice_position, table_position


def condition(rows: Predicate) -> Column:
    """Return a predicate as SQL over the table's columns, with literals.

    With literals a format skips files, and sees that a concurrent commit touches none of these rows.
    """
    from pyspark.sql import functions as F

    return F.expr(predicate_sql(rows, SPARK))


def same_keys(keys: Sequence[str], names: Mapping[str, str]) -> Column:
    """Return the condition that a table row and a slice row have the same keys.

    ``names`` maps the slice's column names in lower case to their aliases.
    """
    from pyspark.sql import functions as F

    same_values = [F.col(quoted(key)).eqNullSafe(F.col(names[key.lower()])) for key in keys]
    return reduce(lambda first, second: first & second, same_values)


def _column_values(schema: StructType, names: Mapping[str, str]) -> dict[str, Column]:
    """Return the value of each table column by name; NULL if the rows lack it."""
    from pyspark.sql import functions as F

    return {
        quoted(field.name): F.col(names[field.name.lower()]) if field.name.lower() in names else F.lit(None)
        for field in schema
    }
