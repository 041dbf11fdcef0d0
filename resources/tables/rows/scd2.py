"""Versions of rows: which a table must have after a slice, and what changes them into these (docs/loads.md, scd2).

The versions that a table has of the slice's keys and the slice's rows are put in the order of time, in one pass over both: a source is read once. Each
that does not differ from the one before it is none; each holds until the next one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import reduce
from typing import TYPE_CHECKING

from partitions.loads import Scd2
from partitions.target import HISTORY_COLUMNS, ORIGIN_COLUMNS
from resources.sql import quoted
from resources.tables.rows.deduplicate import comparable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType
    from pyspark.sql.window import WindowSpec

VALID_FROM, VALID_TO, IS_CURRENT = HISTORY_COLUMNS
SOURCE_FILE = ORIGIN_COLUMNS[0]

CHANGE = "_strandline_change"
"""What becomes of a version: ``insert``, ``replace``, ``close`` (another end), or ``delete``; or it is :data:`AMBIGUOUS`."""

AMBIGUOUS = "ambiguous"
"""Of a version that the table has twice: with the same key and the same beginning."""

_OLD, _NEW = "_strandline_old", "_strandline_new"
_FACTS = "_strandline_facts"
_BEFORE = "_strandline_before"
_FILE = "_strandline_lies_in"
_TWICE = "_strandline_twice"
_KEPT = "_strandline_kept"
_LACKS = "_strandline_lacks_"
"""Before the number of a column: whether the source of a row does not have it."""
_KEY = "_strandline_key_"


def first_versions(rows: DataFrame, load: Scd2) -> DataFrame:
    """Return the versions that a table without rows has after a slice, in the columns of the slice and those of the history."""
    return changed_versions(rows, None, load).drop(CHANGE)


def changed_versions(
    rows: DataFrame, table: DataFrame | None, load: Scd2, *, file: str | None = None
) -> DataFrame:
    """Return the versions that a slice adds, changes or removes, each with its change, in the columns of the slice and those of the history.

    Args:
        rows: of the slice, each key and time once; kept, since they are used more than once beside a table.
        table: all versions that are there; None if there is no table.
        load: keys, time, and what is not compared.
        file: the table's column that tells in which file a version lies; versions that change have it, too.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    facts = _facts(rows, load)
    lacking = _lacking(rows, load) if table is not None else {}
    events = _event(rows, facts, rows.columns, load, lacking)
    if table is not None:
        there = _of_same_keys(table, rows, load.keys)
        events = events.unionByName(_version(there, rows, facts, load, file, lacking))
    of_key = Window.partitionBy(*[F.col(quoted(key)) for key in load.keys])
    in_time = of_key.orderBy(F.col(VALID_FROM).asc_nulls_first(), F.col(_NEW))
    if lacking:
        events = _filled(events, facts, list(lacking), in_time)
    if file is not None:
        events = events.withColumn(_TWICE, _is_twice(in_time))
    versions = _merged(events, in_time)
    # What stays the same from one version to the next is one version.
    is_first = F.row_number().over(in_time) == 1
    same = F.col(_FACTS).eqNullSafe(F.lag(_FACTS).over(in_time))
    versions = versions.withColumn(_KEPT, is_first | ~same)
    versions = _ended(versions, of_key)
    change = _change() if file is None else F.when(F.col(_TWICE), AMBIGUOUS).otherwise(_change())
    return (
        versions.withColumn(CHANGE, change)
        .where(f"{CHANGE} IS NOT NULL")
        .select(
            *[F.col(quoted(name)) for name in rows.columns],
            *HISTORY_COLUMNS,
            CHANGE,
            *([F.col(f"{_BEFORE}.file").alias(file)] if file else []),
        )
    )


def _facts(rows: DataFrame, load: Scd2) -> list[str]:
    """The columns in which versions of a row differ."""
    others = {name.lower() for name in (*load.keys, load.effective, *load.ignored, *HISTORY_COLUMNS)}
    return [name for name in rows.columns if name.lower() not in others]


def _lacking(rows: DataFrame, load: Scd2) -> dict[str, Column]:
    """Whether the source of a row does not have a column, by the columns of which that may be so."""
    from pyspark.sql import functions as F

    names = {name.lower(): name for name in rows.columns}
    needed = {name.lower() for name in (*load.keys, load.effective, *HISTORY_COLUMNS)}
    told: dict[str, Column] = {}
    for column, files in load.lacking:
        name = names.get(column.lower())
        if name is None or name.lower() in needed or (files is not None and SOURCE_FILE not in names):
            continue
        of_row = F.lit(True) if files is None else F.col(quoted(SOURCE_FILE)).isin(*files)
        told[name] = F.coalesce(of_row, F.lit(False)) & F.col(quoted(name)).isNull()
    return told


def _filled(events: DataFrame, facts: list[str], lacking: list[str], in_time: WindowSpec) -> DataFrame:
    """The events, of which those that say nothing of a column are compared as the version before them; one that corrects a version has its value."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    up_to = in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    begins = F.lag(VALID_FROM).over(in_time).eqNullSafe(F.col(VALID_FROM))
    corrects = F.coalesce(F.lag(_OLD).over(in_time), F.lit(False)) & begins
    values: dict[str, Column] = {}
    compared = {f"f{number}": F.col(f"{_FACTS}.f{number}") for number in range(max(1, len(facts)))}
    for number, name in enumerate(lacking):
        lacks = F.col(f"{_LACKS}{number}")
        last = F.last(F.when(~lacks, F.struct(F.col(quoted(name)).alias("value"))), ignorenulls=True)
        values[name] = F.when(lacks, F.when(corrects, last.over(up_to)["value"])).otherwise(
            F.col(quoted(name))
        )
        if name in facts:
            fact = f"f{facts.index(name)}"
            before = F.last(F.when(~lacks, F.struct(compared[fact].alias("value"))), ignorenulls=True)
            compared[fact] = F.when(lacks, before.over(up_to)["value"]).otherwise(compared[fact])
    values[_FACTS] = F.struct(*[column.alias(name) for name, column in compared.items()])
    return events.withColumns(values)


def _event(
    rows: DataFrame, facts: list[str], columns: list[str], load: Scd2, lacking: Mapping[str, Column]
) -> DataFrame:
    """A row of the slice as a version that begins; where it ends is not known yet."""
    from pyspark.sql import functions as F

    kinds = dict(rows.dtypes)
    begins = F.col(quoted(load.effective))
    return rows.select(
        *[F.col(quoted(name)) for name in columns],
        begins.alias(VALID_FROM),
        F.lit(None).cast(_type(kinds, load.effective)).alias(VALID_TO),
        F.lit(None).cast("boolean").alias(IS_CURRENT),
        F.lit(False).alias(_OLD),
        F.lit(True).alias(_NEW),
        F.lit(None).cast("string").alias(_FILE),
        _compared(facts, rows.schema).alias(_FACTS),
        *[lacks.alias(f"{_LACKS}{number}") for number, lacks in enumerate(lacking.values())],
    )


def _of_same_keys(table: DataFrame, rows: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """The versions whose keys the slice has: all others stay as they are, and need no place among them."""
    from pyspark.sql import functions as F

    given = rows.select(*[F.col(quoted(key)).alias(f"{_KEY}{number}") for number, key in enumerate(keys)])
    same = [F.col(quoted(key)).eqNullSafe(F.col(f"{_KEY}{number}")) for number, key in enumerate(keys)]
    return table.join(given, reduce(lambda left, right: left & right, same), "left_semi")


def _version(
    table: DataFrame,
    rows: DataFrame,
    facts: list[str],
    load: Scd2,
    file: str | None,
    lacking: Collection[str],
) -> DataFrame:
    """Versions that are there. Of their columns only those that are compared are read."""
    from pyspark.sql import functions as F

    kinds, there = dict(rows.dtypes), {name.lower(): name for name in table.columns}
    needed = {name.lower() for name in (*load.keys, *lacking)}
    return table.select(
        *[
            F.col(quoted(there[name.lower()])).alias(name)
            if name.lower() in needed
            else F.lit(None).cast(kind).alias(name)
            for name, kind in kinds.items()
        ],
        *[F.col(name) for name in HISTORY_COLUMNS],
        F.lit(True).alias(_OLD),
        F.lit(False).alias(_NEW),
        (F.col(file) if file else F.lit(None).cast("string")).alias(_FILE),
        _compared([there[name.lower()] for name in facts], table.schema).alias(_FACTS),
        *[F.lit(False).alias(f"{_LACKS}{number}") for number in range(len(lacking))],
    )


def _compared(facts: list[str], columns: StructType) -> Column:
    from pyspark.sql import functions as F

    values = [
        comparable(name, columns[name].dataType).alias(f"f{number}") for number, name in enumerate(facts)
    ]
    return F.struct(*values) if values else F.struct(F.lit(1).alias("f0"))


def _merged(events: DataFrame, in_time: WindowSpec) -> DataFrame:
    """The versions, each once: a row of the slice stands for the version of its time, too."""
    from pyspark.sql import functions as F

    before = F.struct(
        F.lag(_OLD).over(in_time).alias("old"),
        F.lag(VALID_FROM).over(in_time).alias("begins"),
        F.lag(VALID_TO).over(in_time).alias("ends"),
        F.lag(IS_CURRENT).over(in_time).alias("current"),
        F.lag(_FACTS).over(in_time).alias("facts"),
        F.lag(_FILE).over(in_time).alias("file"),
    )
    follows = F.lead(_NEW).over(in_time) & F.lead(VALID_FROM).over(in_time).eqNullSafe(F.col(VALID_FROM))
    versions = events.withColumns(
        {_BEFORE: before, "_strandline_superseded": F.col(_OLD) & F.coalesce(follows, F.lit(False))}
    ).where("NOT _strandline_superseded")
    stands_for = F.col(_NEW) & F.coalesce(F.col(f"{_BEFORE}.old"), F.lit(False))
    stands_for &= F.col(f"{_BEFORE}.begins").eqNullSafe(F.col(VALID_FROM))
    mine = F.struct(
        F.col(_OLD).alias("old"),
        F.col(VALID_FROM).alias("begins"),
        F.col(VALID_TO).alias("ends"),
        F.col(IS_CURRENT).alias("current"),
        F.col(_FACTS).alias("facts"),
        F.col(_FILE).alias("file"),
    )
    return versions.withColumn(_BEFORE, F.when(stands_for, F.col(_BEFORE)).otherwise(mine))


def _is_twice(in_time: WindowSpec) -> Column:
    """Whether the table has two versions of one time, of which this row is the second, or stands for them."""
    from pyspark.sql import functions as F

    def same(before: int) -> Column:
        begins = F.lag(VALID_FROM, before).over(in_time).eqNullSafe(F.col(VALID_FROM))
        return F.coalesce(F.lag(_OLD, before).over(in_time), F.lit(False)) & begins

    return same(1) & (F.col(_OLD) | same(2))


def _ended(versions: DataFrame, of_key: WindowSpec) -> DataFrame:
    """Each version that is kept holds until the next one that is."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    later = of_key.orderBy(F.col(VALID_FROM).desc_nulls_last(), F.col(_NEW).desc())
    later = later.rowsBetween(Window.unboundedPreceding, -1)
    is_last = F.max(F.col(_KEPT)).over(later)
    return versions.withColumns(
        {
            VALID_TO: F.last(F.when(F.col(_KEPT), F.col(VALID_FROM)), ignorenulls=True).over(later),
            IS_CURRENT: ~F.coalesce(is_last, F.lit(False)),
        }
    )


def _change() -> Column:
    from pyspark.sql import functions as F

    was_there, kept = F.col(f"{_BEFORE}.old"), F.col(_KEPT)
    same_end = F.col(VALID_TO).eqNullSafe(F.col(f"{_BEFORE}.ends"))
    same_end &= F.col(IS_CURRENT).eqNullSafe(F.col(f"{_BEFORE}.current"))
    same_facts = F.col(_FACTS).eqNullSafe(F.col(f"{_BEFORE}.facts"))
    return (
        F.when(~kept & was_there, "delete")
        .when(~kept, F.lit(None))
        .when(~was_there, "insert")
        .when(F.col(_NEW) & ~same_facts, "replace")
        .when(~same_end, "close")
    )


def _type(kinds: dict[str, str], column: str) -> str:
    return next(kind for name, kind in kinds.items() if name.lower() == column.lower())
