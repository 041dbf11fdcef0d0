"""Loads by keys into a Delta table, each one MERGE (docs/loads.md).

Delta takes the tag and the text of a MERGE's commit from the session, and skips one whose number the table knows, like any other write.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from partitions.errors import RowsRefused
from partitions.load import ReplaceKeys, Scd2, Upsert
from partitions.predicate import EVERYTHING, NOTHING, Predicate
from resources.deduplication import position
from resources.dialects.predicates import sql
from resources.dialects.spark import SPARK
from resources.history import CHANGE, IS_CURRENT, VALID_FROM, VALID_TO, changed_versions
from resources.places import Place
from resources.spark import settings_for_a_while
from resources.sql import quoted
from resources.tables.table import Tag

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.merge import MergeIntoWriter
    from pyspark.sql.types import StructType

_GIVEN = "_strandline_"
"""Before the number of a column of the slice's rows: the table has no such names, so that each name means one column."""

_DELETES = "_strandline_deletes"
"""Whether a row stands for the rows of its key in the table, which are deleted; else it is added."""


def merge(place: Place, rows: DataFrame, load: Upsert | ReplaceKeys | Scd2, tag: Tag, text: str) -> None:
    """Merge rows into a table that is there, in one commit that carries the tag.

    Args:
        place: of the table.
        rows: of the slice; for an upsert each key once, for versions each key and time.
        load: how.
        tag: of the commit.
        text: its user metadata.

    Raises:
        RowsRefused: the table has other columns.
    """
    session = rows.sparkSession
    there = session.read.format("delta").load(place.spark_url)
    table = there.schema
    _check_columns(place, rows, table)
    if isinstance(load, Scd2):
        rows = changed_versions(rows, there, load)
    names = {name.lower(): f"{_GIVEN}{number}" for number, name in enumerate(rows.columns)}
    given = rows.toDF(*names.values())
    with settings_for_a_while(session, _tagged(tag, text)):
        match load:
            case Upsert():
                merging = _upsert(given, _name(place), load, table, names)
            case ReplaceKeys():
                merging = _replace(given, _name(place), load, table, names)
            case Scd2():
                merging = _change_versions(given, _name(place), load, table, names)
        merging.merge()


def _upsert(
    given: DataFrame, table: str, load: Upsert, schema: StructType, names: Mapping[str, str]
) -> MergeIntoWriter:
    from pyspark.sql import functions as F

    newer: Column | None = None
    if load.guard:
        mine, theirs = (
            F.struct(*[column.alias(f"c{at}") for at, column in enumerate(position(load.guard, made))])
            for made in (lambda name: F.col(names[name.lower()]), lambda name: F.col(quoted(name)))
        )
        newer = mine >= theirs
    values = _values(schema, names)
    same = _same_keys(load.keys, names)
    merging = given.mergeInto(table, same if load.within == EVERYTHING else same & _condition(load.within))
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
    merging = doubled.mergeInto(table, F.col(_DELETES) & _same_keys(load.keys, names))
    merging = merging.whenMatched().delete().whenNotMatched(~F.col(_DELETES)).insert(_values(schema, names))
    return _clearing(merging, load.where)


def _change_versions(
    given: DataFrame, table: str, load: Scd2, schema: StructType, names: Mapping[str, str]
) -> MergeIntoWriter:
    from pyspark.sql import functions as F

    change = F.col(names[CHANGE])
    ends = {name: F.col(names[name]) for name in (VALID_TO, IS_CURRENT)}
    values = _values(schema, names)
    merging = given.mergeInto(table, _same_keys((*load.keys, VALID_FROM), names))
    merging = merging.whenMatched(change == "delete").delete()
    merging = merging.whenMatched(change == "close").update(ends)
    merging = merging.whenMatched(change == "replace").update(values)
    return merging.whenNotMatched(change == "insert").insert(values)


def _clearing(merging: MergeIntoWriter, where: Predicate) -> MergeIntoWriter:
    return merging if where == NOTHING else merging.whenNotMatchedBySource(_condition(where)).delete()


def _condition(rows: Predicate) -> Column:
    """With literals, by which Delta passes over files, and sees that another commit touches none of these rows."""
    from pyspark.sql import functions as F

    return F.expr(sql(rows, SPARK))


def _same_keys(keys: tuple[str, ...], names: Mapping[str, str]) -> Column:
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


def _check_columns(place: Place, rows: DataFrame, table: StructType) -> None:
    """Refuse what an append refuses: a MERGE would convert values, or leave columns out."""
    there = {field.name.lower(): field.dataType.simpleString() for field in table}
    for name, kind in rows.dtypes:
        if there.get(name.lower()) != kind:
            theirs = there.get(name.lower())
            expected = f"type {theirs}" if theirs else f"one of its columns ({', '.join(table.names)})"
            raise RowsRefused(f"table {place}: expected {expected}, found column {name} of type {kind}")


def _name(place: Place) -> str:
    return f"delta.{quoted(place.spark_url)}"


def _tagged(tag: Tag, text: str) -> dict[str, str]:
    return {
        "spark.databricks.delta.write.txnAppId": tag.app_id,
        "spark.databricks.delta.write.txnVersion": str(tag.number),
        "spark.databricks.delta.commitInfo.userMetadata": text,
        # A MERGE looks at its rows twice; a source is read once, and may have changed the second time.
        "spark.databricks.delta.merge.materializeSource": "all",
    }
