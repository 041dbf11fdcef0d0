"""SCD2 loads: the versions after a slice, and the changes that lead there.

See docs/reference/loads.md, scd2.

The table's versions of the slice's keys and the slice's rows are sorted by time in one pass, so the source
is read once. A version that equals the one before it is dropped; each version is valid until the next one.
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
"""Column with the change of a version: ``insert``, ``replace``, ``close`` (another end), ``delete`` or :data:`AMBIGUOUS`."""

AMBIGUOUS = "ambiguous"
"""Change of a version that the table has twice: with the same key and start."""

_OLD, _NEW = "_strandline_old", "_strandline_new"
_FACTS = "_strandline_facts"
_BEFORE = "_strandline_before"
_FILE = "_strandline_lies_in"
_TWICE = "_strandline_twice"
_KEPT = "_strandline_kept"
_LACKS = "_strandline_lacks_"
"""Prefix of the columns that say whether a row's source lacks a column."""
_KEY = "_strandline_key_"


def scd2_initial_rows(rows: DataFrame, load: Scd2) -> DataFrame:
    """Return the versions of a slice for an empty table, with the slice's and the history columns."""
    return scd2_changes(rows, None, load).drop(CHANGE)


def scd2_changes(
    rows: DataFrame, table: DataFrame | None, load: Scd2, *, file: str | None = None
) -> DataFrame:
    """Return the versions that a slice adds, changes or removes, each with its change in ``CHANGE``.

    The result has the slice's columns and the history columns.

    Args:
        rows: rows of the slice, each key and time once; cached, because they are read again if there is a
            table.
        table: all versions of the table; None if there is no table.
        load: keys, effective time, and ignored columns.
        file: table column with the file of a version; the result has it for existing versions.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    facts = _compared_columns(rows, load)
    lacking = _lacking_conditions(rows, load) if table is not None else {}
    events = _slice_versions(rows, facts, rows.columns, load, lacking)
    if table is not None:
        same_key_versions = _versions_of_same_keys(table, rows, load.keys)
        events = events.unionByName(_table_versions(same_key_versions, rows, facts, load, file, lacking))
    of_key = Window.partitionBy(*[F.col(quoted(key)) for key in load.keys])
    in_time = of_key.orderBy(F.col(VALID_FROM).asc_nulls_first(), F.col(_NEW))
    if lacking:
        events = _fill_lacking(events, facts, list(lacking), in_time)
    if file is not None:
        events = events.withColumn(_TWICE, _is_duplicate(in_time))
    versions = _drop_superseded(events, in_time)
    # Equal neighbours are one version.
    is_first = F.row_number().over(in_time) == 1
    is_unchanged = F.col(_FACTS).eqNullSafe(F.lag(_FACTS).over(in_time))
    versions = versions.withColumn(_KEPT, is_first | ~is_unchanged)
    versions = _set_ends(versions, of_key)
    change = (
        _change_column() if file is None else F.when(F.col(_TWICE), AMBIGUOUS).otherwise(_change_column())
    )
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


def _compared_columns(rows: DataFrame, load: Scd2) -> list[str]:
    """Return the columns whose values distinguish versions of a row."""
    not_compared = {name.lower() for name in (*load.keys, load.effective, *load.ignored, *HISTORY_COLUMNS)}
    return [name for name in rows.columns if name.lower() not in not_compared]


def _lacking_conditions(rows: DataFrame, load: Scd2) -> dict[str, Column]:
    """Return, by column, the condition that a row's source lacks the column."""
    from pyspark.sql import functions as F

    names = {name.lower(): name for name in rows.columns}
    required_columns = {name.lower() for name in (*load.keys, load.effective, *HISTORY_COLUMNS)}
    lacks_column: dict[str, Column] = {}
    for column, files in load.lacking:
        name = names.get(column.lower())
        if (
            name is None
            or name.lower() in required_columns
            or (files is not None and SOURCE_FILE not in names)
        ):
            continue
        of_row = F.lit(True) if files is None else F.col(quoted(SOURCE_FILE)).isin(*files)
        lacks_column[name] = F.coalesce(of_row, F.lit(False)) & F.col(quoted(name)).isNull()
    return lacks_column


def _fill_lacking(events: DataFrame, facts: list[str], lacking: list[str], in_time: WindowSpec) -> DataFrame:
    """Fill columns that a row's source lacks.

    They compare as equal to the version before. A row that corrects a version also takes that version's
    value.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    up_to = in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    begins = F.lag(VALID_FROM).over(in_time).eqNullSafe(F.col(VALID_FROM))
    corrects = F.coalesce(F.lag(_OLD).over(in_time), F.lit(False)) & begins
    values: dict[str, Column] = {}
    compared_values = {f"f{number}": F.col(f"{_FACTS}.f{number}") for number in range(max(1, len(facts)))}
    for number, name in enumerate(lacking):
        lacks = F.col(f"{_LACKS}{number}")
        last_value = F.last(F.when(~lacks, F.struct(F.col(quoted(name)).alias("value"))), ignorenulls=True)
        values[name] = F.when(lacks, F.when(corrects, last_value.over(up_to)["value"])).otherwise(
            F.col(quoted(name))
        )
        if name in facts:
            fact = f"f{facts.index(name)}"
            before = F.last(F.when(~lacks, F.struct(compared_values[fact].alias("value"))), ignorenulls=True)
            compared_values[fact] = F.when(lacks, before.over(up_to)["value"]).otherwise(
                compared_values[fact]
            )
    values[_FACTS] = F.struct(*[column.alias(name) for name, column in compared_values.items()])
    return events.withColumns(values)


def _slice_versions(
    rows: DataFrame, facts: list[str], columns: list[str], load: Scd2, lacking: Mapping[str, Column]
) -> DataFrame:
    """Return the slice's rows as versions whose end is not set yet."""
    from pyspark.sql import functions as F

    types = dict(rows.dtypes)
    begins = F.col(quoted(load.effective))
    return rows.select(
        *[F.col(quoted(name)) for name in columns],
        begins.alias(VALID_FROM),
        F.lit(None).cast(_type_of_column(types, load.effective)).alias(VALID_TO),
        F.lit(None).cast("boolean").alias(IS_CURRENT),
        F.lit(False).alias(_OLD),
        F.lit(True).alias(_NEW),
        F.lit(None).cast("string").alias(_FILE),
        _comparable_struct(facts, rows.schema).alias(_FACTS),
        *[lacks.alias(f"{_LACKS}{number}") for number, lacks in enumerate(lacking.values())],
    )


def _versions_of_same_keys(table: DataFrame, rows: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """Return the table's versions whose keys the slice has; all others stay as they are."""
    from pyspark.sql import functions as F

    slice_keys = rows.select(
        *[F.col(quoted(key)).alias(f"{_KEY}{number}") for number, key in enumerate(keys)]
    )
    same_values = [F.col(quoted(key)).eqNullSafe(F.col(f"{_KEY}{number}")) for number, key in enumerate(keys)]
    return table.join(slice_keys, reduce(lambda first, second: first & second, same_values), "left_semi")


def _table_versions(
    table: DataFrame,
    rows: DataFrame,
    facts: list[str],
    load: Scd2,
    file: str | None,
    lacking: Collection[str],
) -> DataFrame:
    """Return the table's versions, reading only the columns that are compared."""
    from pyspark.sql import functions as F

    types, table_columns = dict(rows.dtypes), {name.lower(): name for name in table.columns}
    read_columns = {name.lower() for name in (*load.keys, *lacking)}
    return table.select(
        *[
            F.col(quoted(table_columns[name.lower()])).alias(name)
            if name.lower() in read_columns
            else F.lit(None).cast(data_type).alias(name)
            for name, data_type in types.items()
        ],
        *[F.col(name) for name in HISTORY_COLUMNS],
        F.lit(True).alias(_OLD),
        F.lit(False).alias(_NEW),
        (F.col(file) if file else F.lit(None).cast("string")).alias(_FILE),
        _comparable_struct([table_columns[name.lower()] for name in facts], table.schema).alias(_FACTS),
        *[F.lit(False).alias(f"{_LACKS}{number}") for number in range(len(lacking))],
    )


def _comparable_struct(facts: list[str], columns: StructType) -> Column:
    from pyspark.sql import functions as F

    values = [
        comparable(name, columns[name].dataType).alias(f"f{number}") for number, name in enumerate(facts)
    ]
    return F.struct(*values) if values else F.struct(F.lit(1).alias("f0"))


def _drop_superseded(events: DataFrame, in_time: WindowSpec) -> DataFrame:
    """Drop each table version that a slice row of the same time supersedes.

    The slice row keeps the superseded version's values in ``_BEFORE``.
    """
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
    own_version = F.struct(
        F.col(_OLD).alias("old"),
        F.col(VALID_FROM).alias("begins"),
        F.col(VALID_TO).alias("ends"),
        F.col(IS_CURRENT).alias("current"),
        F.col(_FACTS).alias("facts"),
        F.col(_FILE).alias("file"),
    )
    return versions.withColumn(_BEFORE, F.when(stands_for, F.col(_BEFORE)).otherwise(own_version))


def _is_duplicate(in_time: WindowSpec) -> Column:
    """Return whether a row is the second table version of one time, or supersedes two of them."""
    from pyspark.sql import functions as F

    def same(before: int) -> Column:
        begins = F.lag(VALID_FROM, before).over(in_time).eqNullSafe(F.col(VALID_FROM))
        return F.coalesce(F.lag(_OLD, before).over(in_time), F.lit(False)) & begins

    return same(1) & (F.col(_OLD) | same(2))


def _set_ends(versions: DataFrame, of_key: WindowSpec) -> DataFrame:
    """Set the end of each remaining version to the start of the next one."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    later_versions = of_key.orderBy(F.col(VALID_FROM).desc_nulls_last(), F.col(_NEW).desc())
    later_versions = later_versions.rowsBetween(Window.unboundedPreceding, -1)
    is_last = F.max(F.col(_KEPT)).over(later_versions)
    return versions.withColumns(
        {
            VALID_TO: F.last(F.when(F.col(_KEPT), F.col(VALID_FROM)), ignorenulls=True).over(later_versions),
            IS_CURRENT: ~F.coalesce(is_last, F.lit(False)),
        }
    )


def _change_column() -> Column:
    from pyspark.sql import functions as F

    was_in_table, is_kept = F.col(f"{_BEFORE}.old"), F.col(_KEPT)
    same_end = F.col(VALID_TO).eqNullSafe(F.col(f"{_BEFORE}.ends"))
    same_end &= F.col(IS_CURRENT).eqNullSafe(F.col(f"{_BEFORE}.current"))
    same_facts = F.col(_FACTS).eqNullSafe(F.col(f"{_BEFORE}.facts"))
    return (
        F.when(~is_kept & was_in_table, "delete")
        .when(~is_kept, F.lit(None))
        .when(~was_in_table, "insert")
        .when(F.col(_NEW) & ~same_facts, "replace")
        .when(~same_end, "close")
    )


def _type_of_column(types: dict[str, str], column: str) -> str:
    return next(data_type for name, data_type in types.items() if name.lower() == column.lower())
