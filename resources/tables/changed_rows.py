"""Keyed loads that rewrite only the data files whose rows change (docs/explanation/adr/0034).

Spark joins the slice with the table by key to find these files, then writes their remaining rows again
together with the slice's rows. A MERGE would shuffle all of these files twice, since it also has to find
the rows that are new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from partitions.errors import TargetError
from partitions.loads import ByKeys, ReplaceKeys, Scd2, Upsert
from partitions.predicate import EVERYTHING, NOTHING, Predicate
from resources.connections.places import Place
from resources.spark.frames import read_once
from resources.sql import quoted
from resources.tables.contract.conflict_retries import NeedsEngine
from resources.tables.data_files.written import DataFile, WrittenFile
from resources.tables.rows.absent_columns import is_absent
from resources.tables.rows.deduplicate import drop_shared_keys
from resources.tables.rows.delete_marks import is_delete, without_deletes
from resources.tables.rows.merge_statement import condition, same_keys, sort_keys
from resources.tables.rows.scd2 import AMBIGUOUS, CHANGE, scd2_changes

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FILE_COLUMN = "_strandline_file"
"""Column with the data file of a table row."""

_SLICE_PREFIX = "_strandline_"
"""Prefix of the slice's column aliases, which no table column has, so that each name is unambiguous."""
_STORED = "_strandline_stored_"
"""Prefix of columns with values of the table beside the slice's."""
_MAX_BROADCAST = 100_000
"""Largest number of rows whose keys are broadcast; above it Spark chooses the join."""


@dataclass(frozen=True)
class KeyedChanges:
    """The rows that a slice adds to a table, and the files in which it changes rows.

    Attributes:
        added_rows: new rows, with the table's columns.
        added_count: number of added rows.
        files: files with changed or removed rows, as ``FILE_COLUMN`` names them.
        changed_count: number of rows in these files that change, removed rows included.
        removed_count: number of rows in these files that are removed.
        with_changes: turns all rows of these files into the rows that they hold afterwards, without the
            added rows.
        deleted_count: number of removed rows that a delete of an upsert removes.
    """

    added_rows: DataFrame
    added_count: int
    files: frozenset[str]
    changed_count: int
    removed_count: int
    with_changes: Callable[[DataFrame], DataFrame]
    deleted_count: int = 0

    def rewrite(self, replaced_rows: DataFrame | None, rows_before: int) -> RewrittenFiles:
        """Return the rows that replace the changed files.

        Args:
            replaced_rows: all rows of the files; None if there are no files.
            rows_before: number of rows in the files, according to the table.
        """
        # An empty frame is left out: Spark would write a file for its first partition.
        frames = [
            *([self.with_changes(replaced_rows)] if replaced_rows is not None else []),
            *([self.added_rows] if self.added_count else []),
        ]
        rows = reduce(lambda above, below: above.unionByName(below), frames) if frames else self.added_rows
        return RewrittenFiles(
            rows,
            rows_before - self.removed_count + self.added_count,
            rows_before - self.changed_count,
            self.deleted_count,
        )


@dataclass(frozen=True)
class RewrittenFiles:
    """The rows that replace data files of a table.

    Attributes:
        rows: rows to write.
        expected_rows: number of rows to write.
        unchanged_rows: number of these rows that the table already held.
        deleted_rows: number of rows of the table that a delete of an upsert removes.
    """

    rows: DataFrame
    expected_rows: int
    unchanged_rows: int
    deleted_rows: int = 0

    def count_copied(self, folder: Place, files: Sequence[DataFile | WrittenFile]) -> int:
        """Return the number of unchanged rows among the written ones.

        Raises:
            TargetError: the written files hold more or fewer rows than expected.
        """
        written = sum(file.rows for file in files)
        if written != self.expected_rows:
            raise TargetError(
                f"folder {folder}: expected {self.expected_rows:,} rows in the slice and in the files "
                f"that it changes, found {written:,}: a file of the table is damaged or was replaced. "
                "Nothing was committed. Restore the file or the table"
            )
        return self.unchanged_rows


def find_changes(
    rows: DataFrame,
    load: ByKeys,
    table: DataFrame,
    with_table_columns: Callable[[DataFrame], DataFrame],
    count: int | None,
    commit_columns: Mapping[str, str] | None = None,
) -> KeyedChanges:
    """Return the changes of a keyed load; raise NeedsEngine if it needs a MERGE.

    Args:
        rows: rows of the slice, cached, with the columns that steer the load. An upsert has each key once,
            SCD2 each key and time once.
        load: keyed load.
        table: rows of the table, with the file of each row in ``FILE_COLUMN``.
        with_table_columns: gives rows the table's columns.
        count: number of rows in the slice; None if unknown.
        commit_columns: columns that record the commit of a changed row, with their values.

    Raises:
        RowsRefused: the rows do not fit the table.
        NeedsEngine: the load also deletes rows of other keys, the table holds newer rows, or the table
            holds a key or a version twice.
    """
    match load:
        case Upsert(where=where) if where == NOTHING:
            if load.inserts_only:
                return _insert_changes(rows, load, table, with_table_columns, count)
            return _upsert_changes(rows, load, table, with_table_columns, count)
        case ReplaceKeys(where=where, later=later) if where == later == NOTHING:
            return _replace_changes(rows, load, table, with_table_columns(without_deletes(rows, load)), count)
        case Scd2():
            return _scd2_changes(rows, load, table, with_table_columns, commit_columns or {})
    raise NeedsEngine("the load also deletes rows of other keys")


def _insert_changes(
    rows: DataFrame,
    load: Upsert,
    table: DataFrame,
    with_table_columns: Callable[[DataFrame], DataFrame],
    count: int | None,
) -> KeyedChanges:
    """Return the rows whose key the table lacks; no file changes."""
    from pyspark.sql import functions as F

    slice_columns = _SliceColumns.of(rows, load.keys, count)
    has_key = slice_columns.match(load.keys, load.within)
    existing_keys = table.join(slice_columns.join_side, has_key, "left_semi").select(
        *[F.col(quoted(key)).alias(key) for key in load.keys]
    )
    new_rows = read_once(drop_shared_keys(without_deletes(rows, load), existing_keys, load.keys))
    return KeyedChanges(with_table_columns(new_rows), new_rows.count(), frozenset(), 0, 0, lambda same: same)


def _upsert_changes(
    rows: DataFrame,
    load: Upsert,
    table: DataFrame,
    with_table_columns: Callable[[DataFrame], DataFrame],
    count: int | None,
) -> KeyedChanges:
    from pyspark.sql import functions as F

    deletes = (load.deletes,) if load.deletes else ()
    slice_columns = _SliceColumns.of(
        rows, (*load.keys, *(sort_column.column for sort_column in load.guard), *deletes), count
    )
    matched_rows = table.join(slice_columns.join_side, slice_columns.match(load.keys, load.within))
    is_later = F.lit(False)
    if load.guard:
        slice_position, table_position = sort_keys(load.guard, slice_columns.names)
        is_later = slice_position < table_position
        if load.guarded != EVERYTHING:
            is_later = is_later & F.coalesce(condition(load.guarded), F.lit(False))
    is_deleted = is_delete(slice_columns.names[load.deletes.lower()]) if load.deletes else F.lit(False)
    by_key = matched_rows.groupBy(*[slice_columns.column(key) for key in load.keys]).agg(
        F.count_if(is_later).alias("later"),
        F.count("*").alias("rows"),
        F.min(FILE_COLUMN).alias("file"),
        F.count_if(is_deleted).alias("deleted"),
    )
    totals = by_key.agg(
        F.max("later"),
        F.max("rows"),
        F.coalesce(F.sum("rows"), F.lit(0)),
        F.collect_set("file"),
        F.coalesce(F.sum("deleted"), F.lit(0)),
    ).collect()[0]
    if (totals[0] or 0) > 0:
        raise NeedsEngine("the table has later rows than the slice")
    if (totals[1] or 0) > 1:
        raise NeedsEngine("a key occurs several times in the table")
    added_rows = without_deletes(_with_stored_values(rows, load, table, slice_columns), load)
    changes = slice_columns.replace_rows(with_table_columns(added_rows), load, totals[2], totals[3])
    return replace(changes, deleted_count=totals[4])


def _with_stored_values(
    rows: DataFrame, load: Upsert, table: DataFrame, slice_columns: _SliceColumns
) -> DataFrame:
    """Return rows with the table's values in immutable columns, and in those that a row lacks.

    NULL is no value of an immutable column.
    """
    from pyspark.sql import functions as F

    immutable = {name.lower() for name in load.immutable}
    absent_names: set[str] = set()
    if load.absent is not None:
        named = rows.select(F.explode(F.col(load.absent)).alias("name"))
        absent_names = {row[0] for row in named.distinct().collect()}
    kept_names = [name for name in rows.columns if name.lower() in immutable | absent_names]
    if not kept_names:
        return rows
    has_key = slice_columns.match(load.keys, load.within)
    keys = {key: f"{_STORED}key_{number}" for number, key in enumerate(load.keys)}
    stored = {name: f"{_STORED}{number}" for number, name in enumerate(kept_names)}
    stored_rows = table.join(slice_columns.join_side, has_key, "left_semi").select(
        *[F.col(quoted(name)).alias(alias) for name, alias in (*keys.items(), *stored.items())]
    )
    joined_rows = rows.join(
        stored_rows,
        same_keys(load.keys, {key.lower(): alias for key, alias in keys.items()}),
        "left",
    )

    def value(name: str) -> Column:
        own, stored_value = F.col(quoted(name)), F.col(stored[name])
        if load.absent is not None and name.lower() in absent_names:
            own = F.when(is_absent(F.col(load.absent), name), stored_value).otherwise(own)
        return (F.coalesce(stored_value, own) if name.lower() in immutable else own).alias(name)

    return joined_rows.select(
        *[value(name) if name in stored else F.col(quoted(name)) for name in rows.columns]
    )


def _replace_changes(
    rows: DataFrame, load: ReplaceKeys, table: DataFrame, added_rows: DataFrame, count: int | None
) -> KeyedChanges:
    slice_columns = _SliceColumns.of(rows, load.keys, count)
    matched_rows = table.join(slice_columns.join_side, slice_columns.match(load.keys), "left_semi")
    rows_by_file = {row[0]: row[1] for row in matched_rows.groupBy(FILE_COLUMN).count().collect()}
    return slice_columns.replace_rows(added_rows, load, sum(rows_by_file.values()), rows_by_file)


def _scd2_changes(
    rows: DataFrame,
    load: Scd2,
    table: DataFrame,
    with_table_columns: Callable[[DataFrame], DataFrame],
    commit_columns: Mapping[str, str],
) -> KeyedChanges:
    from pyspark.sql import functions as F

    versions = read_once(scd2_changes(rows, table, load, file=FILE_COLUMN))
    rows_and_files = {
        row[0]: (row[1], row[2])
        for row in versions.groupBy(CHANGE).agg(F.count("*"), F.collect_set(FILE_COLUMN)).collect()
    }
    if AMBIGUOUS in rows_and_files:
        raise NeedsEngine("a version occurs twice in the table")
    count = {change: rows for change, (rows, _) in rows_and_files.items()}
    removed_rows = count.get("delete", 0) + count.get("replace", 0)
    is_new = F.col(CHANGE).isin("insert", "replace")
    keys = (*load.keys, load.names.valid_from)
    changed_versions = versions.where(F.col(CHANGE) != "insert")
    end_columns = [name for name in load.names.all[1:] if name in versions.columns]
    slice_columns = _SliceColumns.of(
        changed_versions, (*keys, *end_columns, CHANGE), sum(count.values()) - count.get("insert", 0)
    )

    def with_changes(replaced_rows: DataFrame) -> DataFrame:
        change = slice_columns.column(CHANGE)
        new_values = {name.casefold(): slice_columns.column(name) for name in end_columns}
        new_values |= {name.casefold(): F.lit(value) for name, value in commit_columns.items()}
        joined_rows = replaced_rows.join(slice_columns.join_side, slice_columns.match(keys), "left_outer")
        return joined_rows.where(change.isNull() | (change == "close")).select(
            *[
                F.when(change.isNull(), F.col(quoted(name)))
                .otherwise(new_values[name.casefold()])
                .alias(name)
                if name.casefold() in new_values
                else F.col(quoted(name))
                for name in replaced_rows.columns
            ]
        )

    return KeyedChanges(
        with_table_columns(versions.where(is_new).drop(CHANGE, FILE_COLUMN)),
        count.get("insert", 0) + count.get("replace", 0),
        frozenset(name for _, names in rows_and_files.values() for name in names),
        removed_rows + count.get("close", 0),
        removed_rows,
        with_changes,
    )


@dataclass(frozen=True)
class _SliceColumns:
    """Columns of the slice, renamed so that the table cannot have a column of the same name.

    Attributes:
        rows: rows with the renamed columns.
        names: new names, by the slice's own name in lower case.
        count: number of rows.
    """

    rows: DataFrame
    names: Mapping[str, str]
    count: int

    @classmethod
    def of(cls, rows: DataFrame, columns: Sequence[str], count: int | None) -> _SliceColumns:
        from pyspark.sql import functions as F

        spellings = {name.lower(): name for name in columns}
        names = {name: f"{_SLICE_PREFIX}{number}" for number, name in enumerate(spellings)}
        renamed_rows = rows.select(
            *[F.col(quoted(spellings[name])).alias(alias) for name, alias in names.items()]
        )
        return cls(renamed_rows, names, rows.count() if count is None else count)

    @property
    def join_side(self) -> DataFrame:
        """Rows as the right side of a join with the table; broadcast if there are few."""
        from pyspark.sql import functions as F

        return F.broadcast(self.rows) if self.count <= _MAX_BROADCAST else self.rows

    def column(self, name: str) -> Column:
        """Return the column that the slice calls ``name``."""
        from pyspark.sql import functions as F

        return F.col(self.names[name.lower()])

    def match(self, keys: Sequence[str], within: Predicate = EVERYTHING) -> Column:
        """Return the condition that a table row has a key of the slice and lies within ``within``."""
        has_same_keys = same_keys(keys, self.names)
        return has_same_keys if within == EVERYTHING else has_same_keys & condition(within)

    def replace_rows(
        self,
        added_rows: DataFrame,
        load: Upsert | ReplaceKeys,
        removed_rows: int,
        files: Iterable[Any],
    ) -> KeyedChanges:
        """Return the changes that replace the table's rows with the slice's keys by the added rows."""
        within = load.within if isinstance(load, Upsert) else EVERYTHING
        return KeyedChanges(
            added_rows,
            self.count if load.deletes is None else added_rows.count(),
            frozenset(files),
            removed_rows,
            removed_rows,
            lambda replaced_rows: replaced_rows.join(
                self.join_side, self.match(load.keys, within), "left_anti"
            ),
        )
