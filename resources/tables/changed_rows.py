"""Loads by keys into a table whose files are its rows: in which of them a slice changes rows, and what these hold afterwards (docs/adr/0034).

Spark looks for the rows by their keys, which tells the files, and then writes all rows of these files again but those that change. A MERGE would move all of
them between its tasks twice, since it must also find the rows that are new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from partitions.errors import TargetError
from partitions.loads import ByKeys, ReplaceKeys, Scd2, Upsert
from partitions.predicate import EVERYTHING, NOTHING, Predicate
from resources.connections.places import Place
from resources.spark.frames import read_once
from resources.sql import quoted
from resources.tables.contract.conflict_retries import NeedsEngine
from resources.tables.data_files.written import DataFile, Written
from resources.tables.rows.merge_statement import condition, positions, same_keys
from resources.tables.rows.scd2 import AMBIGUOUS, CHANGE, IS_CURRENT, VALID_FROM, VALID_TO, changed_versions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FILE = "_strandline_file"
"""The column of a table's rows that tells the file of each."""

_GIVEN = "_strandline_"
"""Before the number of a column of the slice's: the table has no such names, so that each name means one column."""
_SENT = 100_000
"""Rows of a slice whose keys are sent to each task that reads the table; of more Spark decides."""


@dataclass(frozen=True)
class Changes:
    """What a slice changes of a table, and adds to it.

    Attributes:
        added: rows with the table's columns.
        count: how many they are.
        files: in which rows change, or go, as the rows' column tells them.
        changed: how many rows do.
        gone: how many of these are not there any more.
        applied: makes of all rows of these files those that are there afterwards, without the added.
    """

    added: DataFrame
    count: int
    files: frozenset[str]
    changed: int
    gone: int
    applied: Callable[[DataFrame], DataFrame]

    def of(self, part: DataFrame | None, there: int) -> Change:
        """Return what is written instead of the files.

        Args:
            part: all of their rows; None if there are no files.
            there: how many these are, as the table has it.
        """
        # What comes is often less than its partitions, of which Spark writes the first also without a row.
        frames = [*([self.applied(part)] if part is not None else []), *([self.added] if self.count else [])]
        rows = reduce(lambda above, below: above.unionByName(below), frames) if frames else self.added
        return Change(rows, there - self.gone + self.count, there - self.changed)


@dataclass(frozen=True)
class Change:
    """Rows that are written instead of files, and beside those that stay.

    Attributes:
        rows: to be written.
        expected: how many they are.
        kept: how many of these stay as they are.
    """

    rows: DataFrame
    expected: int
    kept: int

    def copied(self, folder: Place, files: Sequence[DataFile | Written]) -> int:
        """Return how many rows stay as they are, once all rows are written.

        Raises:
            TargetError: the files hold more rows, or fewer.
        """
        written = sum(file.rows for file in files)
        if written != self.expected:
            raise TargetError(
                f"folder {folder}: expected {self.expected:,} rows of the slice and of the files in which it changes some, found {written:,}: a file of the"
                " table is damaged, or is not what the table says of it. Nothing was committed; restore the file, or the"
                " table"
            )
        return self.kept


def changes_of(
    rows: DataFrame,
    load: ByKeys,
    there: DataFrame,
    placed: Callable[[DataFrame], DataFrame],
    count: int | None,
    marks: Mapping[str, str] | None = None,
) -> Changes:
    """Return what a slice changes in the files of a table.

    Args:
        rows: of the slice, which are kept; for an upsert each key once, for versions each key and time.
        load: by keys.
        there: the table, as its readers see it, with the file of each row.
        placed: gives rows the table's columns.
        count: how many rows the slice has; None if nothing has told.
        marks: columns that tell which commit has changed a row, with what they tell.

    Raises:
        RowsRefused: rows do not fit the table.
        NeedsEngine: only a MERGE can: other rows are cleared, too, rows of the table are later, or a key, or a version of one time, stands there twice.
    """
    match load:
        case Upsert(where=where) if where == NOTHING:
            return _upserted(rows, load, there, placed(rows), count)
        case ReplaceKeys(where=where, later=later) if where == later == NOTHING:
            return _replaced(rows, load, there, placed(rows), count)
        case Scd2():
            return _versioned(rows, load, there, placed, marks or {})
    raise NeedsEngine("rows of other keys are cleared, too")


def _upserted(
    rows: DataFrame, load: Upsert, there: DataFrame, added: DataFrame, count: int | None
) -> Changes:
    from pyspark.sql import functions as F

    given = _Given.of(rows, (*load.keys, *(by.column for by in load.guard)), count)
    matched = there.join(given.sent, given.meets(load.keys, load.within))
    later = F.lit(False)
    if load.guard:
        mine, theirs = positions(load.guard, given.names)
        later = mine < theirs
    by_key = matched.groupBy(*[given.column(key) for key in load.keys]).agg(
        F.count_if(later).alias("later"), F.count("*").alias("rows"), F.min(FILE).alias("file")
    )
    found = by_key.agg(
        F.max("later"), F.max("rows"), F.coalesce(F.sum("rows"), F.lit(0)), F.collect_set("file")
    ).collect()[0]
    if (found[0] or 0) > 0:
        raise NeedsEngine("rows of the table are later than those of the slice")
    if (found[1] or 0) > 1:
        raise NeedsEngine("the table has a key several times")
    return given.instead(added, load.keys, load.within, found[2], found[3])


def _replaced(
    rows: DataFrame, load: ReplaceKeys, there: DataFrame, added: DataFrame, count: int | None
) -> Changes:
    given = _Given.of(rows, load.keys, count)
    matched = there.join(given.sent, given.meets(load.keys), "left_semi")
    files = {row[0]: row[1] for row in matched.groupBy(FILE).count().collect()}
    return given.instead(added, load.keys, EVERYTHING, sum(files.values()), files)


def _versioned(
    rows: DataFrame,
    load: Scd2,
    there: DataFrame,
    placed: Callable[[DataFrame], DataFrame],
    marks: Mapping[str, str],
) -> Changes:
    from pyspark.sql import functions as F

    versions = read_once(changed_versions(rows, there, load, file=FILE))
    found = {
        row[0]: (row[1], row[2])
        for row in versions.groupBy(CHANGE).agg(F.count("*"), F.collect_set(FILE)).collect()
    }
    if AMBIGUOUS in found:
        raise NeedsEngine("the table has a version twice")
    count = {change: rows for change, (rows, _) in found.items()}
    gone = count.get("delete", 0) + count.get("replace", 0)
    is_new = F.col(CHANGE).isin("insert", "replace")
    keys = (*load.keys, VALID_FROM)
    changed = versions.where(F.col(CHANGE) != "insert")
    given = _Given.of(
        changed, (*keys, VALID_TO, IS_CURRENT, CHANGE), sum(count.values()) - count.get("insert", 0)
    )

    def applied(part: DataFrame) -> DataFrame:
        change = given.column(CHANGE)
        ends = {name.casefold(): given.column(name) for name in (VALID_TO, IS_CURRENT)}
        ends |= {name.casefold(): F.lit(value) for name, value in marks.items()}
        joined = part.join(given.sent, given.meets(keys), "left_outer")
        return joined.where(change.isNull() | (change == "close")).select(
            *[
                F.when(change.isNull(), F.col(quoted(name))).otherwise(ends[name.casefold()]).alias(name)
                if name.casefold() in ends
                else F.col(quoted(name))
                for name in part.columns
            ]
        )

    return Changes(
        placed(versions.where(is_new).drop(CHANGE, FILE)),
        count.get("insert", 0) + count.get("replace", 0),
        frozenset(name for _, names in found.values() for name in names),
        gone + count.get("close", 0),
        gone,
        applied,
    )


@dataclass(frozen=True)
class _Given:
    """Some columns of the slice's rows under names that the table does not have.

    Attributes:
        rows: with these columns.
        names: of the columns, by the names that the slice has for them, in lower case.
        count: how many rows they are.
    """

    rows: DataFrame
    names: Mapping[str, str]
    count: int

    @classmethod
    def of(cls, rows: DataFrame, columns: Sequence[str], count: int | None) -> _Given:
        from pyspark.sql import functions as F

        given = {name.lower(): name for name in columns}
        names = {name: f"{_GIVEN}{number}" for number, name in enumerate(given)}
        some = rows.select(*[F.col(quoted(given[name])).alias(alias) for name, alias in names.items()])
        return cls(some, names, rows.count() if count is None else count)

    @property
    def sent(self) -> DataFrame:
        """The rows, to join the table's with them."""
        from pyspark.sql import functions as F

        return F.broadcast(self.rows) if self.count <= _SENT else self.rows

    def column(self, name: str) -> Column:
        """Return a column by its name in the slice."""
        from pyspark.sql import functions as F

        return F.col(self.names[name.lower()])

    def meets(self, keys: Sequence[str], within: Predicate = EVERYTHING) -> Column:
        """Return whether a row of the table has the keys of one of these, and may be changed."""
        same = same_keys(keys, self.names)
        return same if within == EVERYTHING else same & condition(within)

    def instead(
        self, added: DataFrame, keys: Sequence[str], within: Predicate, gone: int, files: Iterable[Any]
    ) -> Changes:
        """Return what is there if the rows of the table with these keys go."""
        return Changes(
            added,
            self.count,
            frozenset(files),
            gone,
            gone,
            lambda part: part.join(self.sent, self.meets(keys, within), "left_anti"),
        )
