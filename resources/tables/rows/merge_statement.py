"""Loads by keys as one MERGE, whatever the format of the table (docs/loads.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from partitions.loads import ByKeys, Order, ReplaceKeys, Scd2, Upsert
from partitions.predicate import EVERYTHING, NOTHING, Predicate
from resources.dialects.predicates import sql
from resources.dialects.spark import SPARK
from resources.sql import quoted
from resources.tables.rows.deduplicate import position
from resources.tables.rows.scd2 import CHANGE, IS_CURRENT, VALID_FROM, VALID_TO

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.merge import MergeIntoWriter
    from pyspark.sql.types import StructType

_GIVEN = "_strandline_"
"""Before the number of a column of the slice's rows: the table has no such names, so that each name means one column."""

_DELETES = "_strandline_deletes"
"""Whether a row stands for the rows of its key in the table, which are deleted; else it is added."""


def merging_writer(
    rows: DataFrame,
    load: ByKeys,
    table: str,
    schema: StructType,
    marks: Sequence[str] = (),
) -> MergeIntoWriter:
    """Return what merges rows into a table that is there.

    Args:
        rows: of the slice, of columns that the table has; for an upsert each key once, for versions each with its change.
        load: how.
        table: its name in SQL.
        schema: of the table.
        marks: columns that each row takes from the slice's which the commit changes, whatever it changes of it.
    """
    names = {name.lower(): f"{_GIVEN}{number}" for number, name in enumerate(rows.columns)}
    given = rows.toDF(*names.values())
    match load:
        case Upsert():
            return _upsert(given, table, load, schema, names)
        case ReplaceKeys():
            return _replace(given, table, load, schema, names)
        case Scd2():
            return _change_versions(given, table, load, schema, names, marks)


def missing_rows_writer(rows: DataFrame, load: Upsert, table: str) -> MergeIntoWriter:
    """Return what deletes the rows of a table that an upsert clears: those that fit its ``where``, and whose keys the slice does not have.

    Args:
        rows: of the slice; used beside the table, so they must be kept.
        load: that clears.
        table: its name in SQL.
    """
    from pyspark.sql import functions as F

    given = [F.col(quoted(key)).alias(f"{_GIVEN}{number}") for number, key in enumerate(load.keys)]
    names = {key.lower(): f"{_GIVEN}{number}" for number, key in enumerate(load.keys)}
    cleared = rows.sparkSession.table(table).where(condition(load.where))
    missing = cleared.join(rows.select(*given), same_keys(load.keys, names), "left_anti")
    merging = (
        missing.select(*given)
        .distinct()
        .mergeInto(table, same_keys(load.keys, names) & condition(load.where))
    )
    return merging.whenMatched().delete()


def _upsert(
    given: DataFrame, table: str, load: Upsert, schema: StructType, names: Mapping[str, str]
) -> MergeIntoWriter:

    newer: Column | None = None
    if load.guard:
        mine, theirs = positions(load.guard, names)
        newer = mine >= theirs
    values = _values(schema, names)
    same = same_keys(load.keys, names)
    merging = given.mergeInto(table, same if load.within == EVERYTHING else same & condition(load.within))
    merging = merging.whenMatched(newer).update(values).whenNotMatched().insert(values)
    return _clearing(merging, load.where)


def _replace(
    given: DataFrame, table: str, load: ReplaceKeys, schema: StructType, names: Mapping[str, str]
) -> MergeIntoWriter:
    """Beside each row that is added, the first of a key is there once more, for the rows of the table that it deletes."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    keys = [F.col(names[key.lower()]) for key in load.keys]
    first = F.row_number().over(Window.partitionBy(*keys).orderBy(*keys)) == 1
    both = F.when(first, F.array(F.lit(True), F.lit(False))).otherwise(F.array(F.lit(False)))
    # Numbered before they are doubled: a window function has no place in a generator.
    doubled = given.withColumn(_DELETES, both).withColumn(_DELETES, F.explode(F.col(_DELETES)))
    merging = doubled.mergeInto(table, F.col(_DELETES) & same_keys(load.keys, names))
    merging = merging.whenMatched().delete().whenNotMatched(~F.col(_DELETES)).insert(_values(schema, names))
    return _clearing(merging, load.where)


def _change_versions(
    given: DataFrame,
    table: str,
    load: Scd2,
    schema: StructType,
    names: Mapping[str, str],
    marks: Sequence[str],
) -> MergeIntoWriter:
    from pyspark.sql import functions as F

    change = F.col(names[CHANGE])
    ends = {name: F.col(names[name]) for name in (VALID_TO, IS_CURRENT, *marks)}
    values = _values(schema, names)
    merging = given.mergeInto(table, same_keys((*load.keys, VALID_FROM), names))
    merging = merging.whenMatched(change == "delete").delete()
    merging = merging.whenMatched(change == "close").update(ends)
    merging = merging.whenMatched(change == "replace").update(values)
    return merging.whenNotMatched(change == "insert").insert(values)


def _clearing(merging: MergeIntoWriter, where: Predicate) -> MergeIntoWriter:
    return merging if where == NOTHING else merging.whenNotMatchedBySource(condition(where)).delete()


def positions(order: Order, names: Mapping[str, str]) -> tuple[Column, Column]:
    """Return how late a row of the slice is, and how late one of the table; ``names`` are those of the slice's columns, by lower case."""
    from pyspark.sql import functions as F

    mine, theirs = (
        F.struct(*[column.alias(f"c{at}") for at, column in enumerate(position(order, made))])
        for made in (lambda name: F.col(names[name.lower()]), lambda name: F.col(quoted(name)))
    )
    return mine, theirs


def condition(rows: Predicate) -> Column:
    """Return a predicate over the table's columns, with literals, by which a format passes over files, and sees that another commit touches none of these rows."""
    from pyspark.sql import functions as F

    return F.expr(sql(rows, SPARK))


def same_keys(keys: Sequence[str], names: Mapping[str, str]) -> Column:
    """Return whether a row of the table has the keys of one of the slice; ``names`` are those of the slice's columns, by lower case."""
    from pyspark.sql import functions as F

    same = [F.col(quoted(key)).eqNullSafe(F.col(names[key.lower()])) for key in keys]
    return reduce(lambda left, right: left & right, same)


def _values(schema: StructType, names: Mapping[str, str]) -> dict[str, Column]:
    """Each column of the table by name; one that the rows lack is NULL."""
    from pyspark.sql import functions as F

    return {
        quoted(field.name): F.col(names[field.name.lower()]) if field.name.lower() in names else F.lit(None)
        for field in schema
    }
