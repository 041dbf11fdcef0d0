"""SCD2 loads: the versions after a slice, and the changes that lead there.

See docs/reference/loads.md, scd2.

The table's versions of the slice's keys and the slice's rows are sorted by time in one pass, so the source
is read once. A version that equals the one before it is dropped; each version is valid until the next one,
or until a delete. The version that a delete ended records the delete: it is read from there again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from partitions.history import end_value
from partitions.loads import Scd2, helper_columns
from partitions.target import ORIGIN_COLUMNS
from resources.spark.frames import type_of_column
from resources.sql import quoted
from resources.tables.rows.deduplicate import comparable
from resources.tables.rows.delete_marks import is_delete
from resources.tables.rows.history_columns import compared_columns, history_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType
    from pyspark.sql.window import WindowSpec

_FROM, _TO, _CURRENT = "_strandline_from", "_strandline_to", "_strandline_current"
"""Start and end of a version, NULL if it is open, and whether it is the last one; the load has the table's names."""
SOURCE_FILE = ORIGIN_COLUMNS[0]

CHANGE = "_strandline_change"
"""Column with the change of a version: ``insert``, ``replace``, ``close`` (another end), ``delete`` or :data:`AMBIGUOUS`."""

AMBIGUOUS = "ambiguous"
"""Change of a version that the table has twice: with the same key and start."""

_OLD, _NEW = "_strandline_old", "_strandline_new"
_DELETES = "_strandline_ends_key"
"""Column that says whether an event is a delete instead of a version."""
_DELETED = "_strandline_is_deleted"
"""Column that says whether a delete ends a version."""
_FACTS = "_strandline_facts"
_BEFORE = "_strandline_before"
_FILE = "_strandline_lies_in"
_TWICE = "_strandline_twice"
_KEPT = "_strandline_kept"
_LACKS = "_strandline_lacks_"
"""Prefix of the columns that say whether a row's source lacks a column."""
_KEY = "_strandline_key_"
_BACK, _RETURN = "_strandline_goes_back_to", "_strandline_comes_back_at"
"""Columns with the times of :class:`Scd2`'s ``goes_back`` and ``comes_back``; NULL in the table's versions."""
_WITHDRAWN = "_strandline_is_withdrawn"


def scd2_initial_rows(rows: DataFrame, load: Scd2) -> DataFrame:
    """Return the versions of a slice for a table without rows, with the slice's and the history columns."""
    return scd2_changes(rows, None, load).drop(CHANGE)


def scd2_changes(
    rows: DataFrame, table: DataFrame | None, load: Scd2, *, file: str | None = None
) -> DataFrame:
    """Return the versions that a slice adds, changes or removes, each with its change in ``CHANGE``.

    The result has the slice's columns, without those that only steer the load, and the history columns.
    ``is_deleted`` is one of these if the load deletes, or the table has it.

    Args:
        rows: rows of the slice, each key and time once; cached, because they are read again if there is a
            table.
        table: all versions of the table; None if there is no table.
        load: keys, effective time, and ignored columns.
        file: table column with the file of a version; the result has it for existing versions.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    columns = [name for name in rows.columns if name not in helper_columns(load)]
    history = history_columns(columns, load, () if table is None else table.columns)
    facts = compared_columns(columns, load)
    lacking = _lacking_conditions(rows, load) if table is not None else {}
    events = _slice_events(rows, facts, columns, load, lacking)
    if table is not None:
        same_key_versions = _versions_of_same_keys(table, rows, load.keys)
        types = {name: data_type for name, data_type in rows.dtypes if name in columns}
        has_deletes = load.names.is_deleted in history and load.names.is_deleted in table.columns
        table_events = _table_events(
            same_key_versions, types, facts, load, file, lacking, has_deletes=has_deletes
        )
        if load.goes_back:
            time = F.lit(None).cast(type_of_column(rows, load.goes_back))
            table_events = table_events.withColumns({_BACK: time, _RETURN: time})
        events = events.unionByName(table_events)
    of_key = Window.partitionBy(*[F.col(quoted(key)) for key in load.keys])
    in_time = _in_time(of_key)
    if lacking:
        events = _fill_lacking(events, facts, list(lacking), in_time)
    if file is not None:
        events = events.withColumn(_TWICE, _is_duplicate(in_time))
    events = events.withColumn(_WITHDRAWN, _is_withdrawn(of_key) if load.goes_back else F.lit(False))
    versions = _drop_superseded(events, in_time)
    if load.goes_back:  # versions that the source has withdrawn are no neighbours of others
        of_key = Window.partitionBy(*[F.col(quoted(key)) for key in load.keys], _WITHDRAWN)
        in_time = _in_time(of_key)
    versions = _set_ends(versions.withColumn(_KEPT, _begins_a_version(in_time)), of_key)
    change = (
        _change_column() if file is None else F.when(F.col(_TWICE), AMBIGUOUS).otherwise(_change_column())
    )
    return (
        versions.withColumn(CHANGE, change)
        .where(f"{CHANGE} IS NOT NULL")
        .select(
            *[F.col(quoted(name)) for name in columns],
            *_history_values(load, type_of_column(rows, load.effective), history),
            CHANGE,
            *([F.col(f"{_BEFORE}.file").alias(file)] if file else []),
        )
    )


def _begins_a_version(in_time: WindowSpec) -> Column:
    """Return whether an event begins a version of its own.

    Equal neighbours are one version, unless a delete lies between them.
    """
    from pyspark.sql import functions as F

    is_first = F.row_number().over(in_time) == 1
    is_unchanged = F.col(_FACTS).eqNullSafe(F.lag(_FACTS).over(in_time))
    is_unchanged &= ~F.coalesce(F.lag(_DELETES).over(in_time), F.lit(False))
    return ~F.col(_DELETES) & ~F.col(_WITHDRAWN) & (is_first | ~is_unchanged)


def _in_time(of_key: WindowSpec) -> WindowSpec:
    """Return the order of a key's events: by time, the table's before the slice's, deletes first."""
    from pyspark.sql import functions as F

    return of_key.orderBy(F.col(_FROM).asc_nulls_first(), F.col(_NEW), F.col(_DELETES).desc())


def _history_values(load: Scd2, time: str, history: Sequence[str]) -> list[Column]:
    """Return the history columns under the table's names; an open version ends as the load says.

    Args:
        load: the load.
        time: type of the effective column.
        history: names of the columns.
    """
    from pyspark.sql import functions as F

    open_end = None if load.open_end is None else end_value(load.open_end, time)
    is_open = F.col(_CURRENT) & F.col(_TO).isNull()
    end = F.when(is_open, F.lit(open_end).cast(time)).otherwise(F.col(_TO)) if open_end else F.col(_TO)
    values = dict(zip(load.names.all, (F.col(_FROM), end, F.col(_CURRENT), F.col(_DELETED)), strict=True))
    return [values[name].alias(name) for name in history]


def _lacking_conditions(rows: DataFrame, load: Scd2) -> dict[str, Column]:
    """Return, by column, the condition that a row's source lacks the column."""
    from pyspark.sql import functions as F

    names = {name.lower(): name for name in rows.columns}
    required_columns = {name.lower() for name in (*load.keys, load.effective, *load.names.of_versions)}
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
    begins = F.lag(_FROM).over(in_time).eqNullSafe(F.col(_FROM))
    follows_version = F.lag(_OLD).over(in_time) & ~F.lag(_DELETES).over(in_time)
    corrects = F.coalesce(follows_version, F.lit(False)) & begins
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


def _slice_events(
    rows: DataFrame, facts: list[str], columns: list[str], load: Scd2, lacking: Mapping[str, Column]
) -> DataFrame:
    """Return the slice's rows as versions whose end is not set yet, and its deletes."""
    from pyspark.sql import functions as F

    begins, deletes = F.col(quoted(load.effective)), is_delete(load.deletes)
    if load.begins is not None and load.begins in rows.columns:
        begins = F.coalesce(F.col(load.begins), begins)
    return rows.select(
        *[F.col(quoted(name)) for name in columns],
        begins.alias(_FROM),
        F.lit(None).cast(type_of_column(rows, load.effective)).alias(_TO),
        F.lit(None).cast("boolean").alias(_CURRENT),
        F.lit(None).cast("boolean").alias(_DELETED),
        F.lit(False).alias(_OLD),
        F.lit(True).alias(_NEW),
        deletes.alias(_DELETES),
        F.lit(None).cast("string").alias(_FILE),
        _comparable_struct(facts, rows.schema).alias(_FACTS),
        *[(lacks | deletes).alias(f"{_LACKS}{number}") for number, lacks in enumerate(lacking.values())],
        *[F.col(name).alias(_BACK) for name in (load.goes_back,) if name],
        *[F.col(name).alias(_RETURN) for name in (load.comes_back,) if name],
    )


def _versions_of_same_keys(table: DataFrame, rows: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """Return the table's versions whose keys the slice has; all others stay as they are."""
    from pyspark.sql import functions as F

    slice_keys = rows.select(
        *[F.col(quoted(key)).alias(f"{_KEY}{number}") for number, key in enumerate(keys)]
    )
    same_values = [F.col(quoted(key)).eqNullSafe(F.col(f"{_KEY}{number}")) for number, key in enumerate(keys)]
    return table.join(slice_keys, reduce(lambda first, second: first & second, same_values), "left_semi")


def _table_events(
    table: DataFrame,
    types: Mapping[str, str],
    facts: list[str],
    load: Scd2,
    file: str | None,
    lacking: Collection[str],
    *,
    has_deletes: bool,
) -> DataFrame:
    """Return the table's versions and the deletes that ended them, with the columns that are compared.

    Args:
        table: versions of the table.
        types: types of the slice's columns, by name.
        facts: columns that distinguish versions.
        load: load of the slice.
        file: table column with the file of a version.
        lacking: columns that the source of some rows lacks.
        has_deletes: whether the table says which versions a delete ended.
    """
    from pyspark.sql import functions as F

    names = load.names
    table_columns = {name.lower(): name for name in table.columns}
    read_columns = {name.lower() for name in (*load.keys, *lacking)}
    was_deleted = F.coalesce(F.col(quoted(names.is_deleted)), F.lit(False)) if has_deletes else F.lit(False)
    # A version that a delete ended is two events.
    both = F.when(was_deleted, F.array(F.lit(False), F.lit(True))).otherwise(F.array(F.lit(False)))
    versions = table.select(
        *[
            F.col(quoted(table_columns[name.lower()])).alias(name)
            if name.lower() in read_columns
            else F.lit(None).cast(data_type).alias(name)
            for name, data_type in types.items()
        ],
        F.col(quoted(names.valid_from)).alias(_FROM),
        F.when(F.col(quoted(names.is_current)), F.lit(None))
        .otherwise(F.col(quoted(names.valid_to)))
        .alias(_TO),
        F.col(quoted(names.is_current)).alias(_CURRENT),
        was_deleted.alias(_DELETED),
        F.lit(True).alias(_OLD),
        F.lit(False).alias(_NEW),
        (F.explode(both) if has_deletes else F.lit(False)).alias(_DELETES),
        (F.col(file) if file else F.lit(None).cast("string")).alias(_FILE),
        _comparable_struct([table_columns[name.lower()] for name in facts], table.schema).alias(_FACTS),
        *[F.lit(False).alias(f"{_LACKS}{number}") for number in range(len(lacking))],
    )
    if not has_deletes:
        return versions
    lacks = {f"{_LACKS}{number}": F.col(_DELETES) for number in range(len(lacking))}
    begins = F.when(F.col(_DELETES), F.col(_TO)).otherwise(F.col(_FROM))
    return versions.withColumns({_FROM: begins, **lacks})


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
        (F.lag(_OLD).over(in_time) & ~F.lag(_DELETES).over(in_time)).alias("old"),
        F.lag(_FROM).over(in_time).alias("begins"),
        F.lag(_TO).over(in_time).alias("ends"),
        F.lag(_CURRENT).over(in_time).alias("current"),
        F.lag(_DELETED).over(in_time).alias("deleted"),
        F.lag(_FACTS).over(in_time).alias("facts"),
        F.lag(_FILE).over(in_time).alias("file"),
    )
    follows = F.lead(_FROM).over(in_time).eqNullSafe(F.col(_FROM))
    follows &= F.lead(_NEW).over(in_time) | F.col(_DELETES)
    versions = events.withColumns(
        {_BEFORE: before, "_strandline_superseded": F.col(_OLD) & F.coalesce(follows, F.lit(False))}
    ).where("NOT _strandline_superseded")
    stands_for = F.col(_NEW) & F.coalesce(F.col(f"{_BEFORE}.old"), F.lit(False))
    stands_for &= F.col(f"{_BEFORE}.begins").eqNullSafe(F.col(_FROM))
    own_version = F.struct(
        (F.col(_OLD) & ~F.col(_DELETES)).alias("old"),
        F.col(_FROM).alias("begins"),
        F.col(_TO).alias("ends"),
        F.col(_CURRENT).alias("current"),
        F.col(_DELETED).alias("deleted"),
        F.col(_FACTS).alias("facts"),
        F.col(_FILE).alias("file"),
    )
    return versions.withColumn(_BEFORE, F.when(stands_for, F.col(_BEFORE)).otherwise(own_version))


def _is_withdrawn(of_key: WindowSpec) -> Column:
    """Return whether an event of the table lies after a time to which the source has gone back."""
    from pyspark.sql import functions as F

    is_ended = ~F.coalesce(F.max(F.when(F.col(_OLD), F.col(_CURRENT))).over(of_key), F.lit(True))
    time = F.least(F.max(_BACK).over(of_key), F.when(is_ended, F.max(_RETURN).over(of_key)))
    begins, start = F.col(_FROM), time.getField("time")
    is_later = F.when(start.isNull(), begins.isNotNull()).otherwise(begins > start)
    return F.col(_OLD) & time.isNotNull() & F.coalesce(is_later, F.lit(False))


def _is_duplicate(in_time: WindowSpec) -> Column:
    """Return whether a row is the second table version of one time, or supersedes two of them."""
    from pyspark.sql import functions as F

    def same(before: int) -> Column:
        begins = F.lag(_FROM, before).over(in_time).eqNullSafe(F.col(_FROM))
        return F.coalesce(F.lag(_OLD, before).over(in_time), F.lit(False)) & begins

    return same(1) & (F.col(_OLD) | same(2))


def _set_ends(versions: DataFrame, of_key: WindowSpec) -> DataFrame:
    """Set the end of each remaining version to the next one's start, or to the time of a delete before it."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    later_events = of_key.orderBy(F.col(_FROM).desc_nulls_last(), F.col(_NEW).desc(), F.col(_DELETES).asc())
    later_events = later_events.rowsBetween(Window.unboundedPreceding, -1)
    end = F.struct(F.col(_FROM).alias("time"), F.col(_DELETES).alias("deletes"))
    end = F.last(F.when(F.col(_KEPT) | F.col(_DELETES), end), ignorenulls=True).over(later_events)
    return versions.withColumns(
        {
            _TO: end["time"],
            _CURRENT: end.isNull(),
            _DELETED: F.coalesce(end["deletes"], F.lit(False)),
        }
    )


def _change_column() -> Column:
    from pyspark.sql import functions as F

    was_in_table, is_kept = F.col(f"{_BEFORE}.old"), F.col(_KEPT)
    same_end = F.col(_TO).eqNullSafe(F.col(f"{_BEFORE}.ends"))
    same_end &= F.col(_CURRENT).eqNullSafe(F.col(f"{_BEFORE}.current"))
    same_end &= F.col(_DELETED).eqNullSafe(F.col(f"{_BEFORE}.deleted"))
    same_facts = F.col(_FACTS).eqNullSafe(F.col(f"{_BEFORE}.facts"))
    return (
        F.when(~is_kept & was_in_table, "delete")
        .when(~is_kept, F.lit(None))
        .when(~was_in_table, "insert")
        .when(F.col(_NEW) & ~same_facts, "replace")
        .when(~same_end, "close")
    )
