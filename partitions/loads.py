"""Loads: how the rows of a slice go into its table (docs/explanation/architecture.md).

The planner chooses a load, a table carries it out. Belongs here: which loads there are, and what each
means for the table's rows. How a format does it belongs to the table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from partitions.history import DEFAULT_NAMES, HistoryNames
from partitions.predicate import EVERYTHING, NOTHING, Predicate, all_of
from partitions.target import (
    ABSENT_COLUMN,
    BEGINS_COLUMN,
    DELETES_COLUMN,
    HELPER_PREFIX,
    INGESTED_AT,
    ORIGIN_COLUMNS,
    Target,
)


@dataclass(frozen=True)
class Append:
    """Add the rows; delete none."""


@dataclass(frozen=True)
class Replace:
    """Delete the rows that match a condition and add the slice's, in one commit.

    Attributes:
        where: over the table's columns. The added rows match it, too.
    """

    where: Predicate


@dataclass(frozen=True)
class ReplaceAll:
    """Delete all rows and add the slice's, in one commit.

    The table takes over the columns and the layout of the added rows.
    """


@dataclass(frozen=True)
class OrderByColumn:
    """Order rows by a column: the higher value is later.

    NULL is below every value; texts compare by bytes.
    """

    column: str


@dataclass(frozen=True)
class OrderByPath:
    """Order rows by the path of their file, in watermark order; ``column`` holds the path."""

    column: str


Order = tuple[OrderByColumn | OrderByPath, ...]
"""Decides which of two rows of a key is later: the first order in which they differ counts."""


class LackingColumn(NamedTuple):
    """A column that the source of some rows lacks.

    Attributes:
        column: column of the table.
        files: values of ``_source_file`` of these rows; None: all rows of the slice.
    """

    column: str
    files: frozenset[str] | None = None


@dataclass(frozen=True)
class Upsert:
    """Update rows with the same keys as the slice's, and add rows with new keys, in one commit.

    Attributes:
        keys: columns; NULL is a value like any other. Each key occurs once in the slice.
        order: the order by which the slice's row of each key was chosen.
        guard: a row of the table that is later in this order stays as it is; empty: the last load wins.
        guarded: over the table's columns. Only matching rows are guarded; the load wins over all others.
        where: over the table's columns. Matching rows whose key the slice lacks are deleted.
        within: over the table's columns. Only matching rows are updated or deleted; the added rows match
        it, too.
        deletes: boolean column of the slice's rows, which is never written. A row in which it is true
        deletes its key; None: no row does.
        inserts_only: whether rows of the table whose key the slice has stay as they are, unless they match
        ``where``. The slice's first row of each key counts.
        immutable: columns that keep their first value that is not NULL, of the table or the slice.
        absent: column of the slice's rows with the names of columns, in lower case, that the row has no
        value for; it is never written. An update leaves these as they are; None: there are none.
        lacking: columns that the source of some rows lacks, beside those that ``absent`` names.
    """

    keys: tuple[str, ...]
    order: Order
    guard: Order = ()
    where: Predicate = NOTHING
    within: Predicate = EVERYTHING
    guarded: Predicate = EVERYTHING
    deletes: str | None = None
    inserts_only: bool = False
    immutable: tuple[str, ...] = ()
    absent: str | None = None
    lacking: tuple[LackingColumn, ...] = ()


@dataclass(frozen=True)
class ReplaceKeys:
    """Delete the rows with a key of the slice, and add all of the slice's rows, in one commit.

    Attributes:
        keys: columns; NULL is a value like any other. A key may occur several times in the slice.
        where: over the table's columns. Matching rows are deleted, too.
        later: over the table's columns. Matching rows are later than the slice's: all rows of their key
        stay, and the slice's rows of that key are not added.
        order: of the rows that match ``later``, only those that are later in this order than the slice's
        count; empty: all of them count.
        own: over the table's columns. Matching rows come from an earlier load of the same slice, so they
        do not count as later.
        deletes: boolean column of the slice's rows, which is never written. A row in which it is true is
        not added, so a key whose rows all are deletes loses its rows; None: no row is.
    """

    keys: tuple[str, ...]
    where: Predicate = NOTHING
    later: Predicate = NOTHING
    order: Order = ()
    own: Predicate = NOTHING
    deletes: str | None = None


@dataclass(frozen=True)
class Scd2:
    """Keep a version of a row for each change, in one commit.

    The versions of a key follow each other without gap or overlap, and the last is current.

    Attributes:
        keys: columns; NULL is a value like any other.
        effective: the column with the time from which a row holds; NULL: no lower bound. The slice has
        each key and time once.
        order: the order by which the slice's row of each key and time was chosen.
        ignored: columns whose changes make no new version.
        tracked: the only columns whose changes make a new version; None: all others.
        lacking: columns that the source of some rows lacks. They make no new version of such a row, and a
        version that the row corrects keeps its value.
        deletes: boolean column of the slice's rows, which is never written. A row in which it is true ends
        the version of its key at its time, and that version is marked as deleted; None: no row does.
        delete_time: column with the time of such a row, of the type of ``effective``; it is never
        written. None: ``effective`` has it.
        begins: column with the start of a row's version, of the type of ``effective``, if the rows have
        it; it is never written. None: ``effective`` has it. With it each key occurs once in the slice.
        names: names of the columns that the table adds.
        open_end: end of a current version, as a text that Spark casts to the type of ``effective``; None:
        NULL.
        goes_back: column with a struct of a time, which is never written; all rows of a key have the same.
        Versions and deletes that the table has of this key after that time are removed, since the source
        has gone back to the row of that time; NULL: it has not.
        comes_back: the same for a key that a delete has ended in the table; other keys stay.
    """

    keys: tuple[str, ...]
    effective: str
    order: Order = ()
    ignored: tuple[str, ...] = ()
    tracked: tuple[str, ...] | None = None
    lacking: tuple[LackingColumn, ...] = ()
    deletes: str | None = None
    delete_time: str | None = None
    begins: str | None = None
    names: HistoryNames = DEFAULT_NAMES
    open_end: str | None = None
    goes_back: str | None = None
    comes_back: str | None = None


ByKeys = Upsert | ReplaceKeys | Scd2
"""Loads that look up rows of the table by their keys."""

Load = Append | Replace | ReplaceAll | ByKeys


def helper_columns(load: Load) -> tuple[str, ...]:
    """Return the columns of a slice's rows that only steer the load and are never written."""
    if not isinstance(load, ByKeys):
        return ()
    times = (load.delete_time, load.begins, load.goes_back, load.comes_back) if isinstance(load, Scd2) else ()
    absent = load.absent if isinstance(load, Upsert) else None
    orders = (by.column for by in load.order if by.column.startswith(HELPER_PREFIX))
    return tuple(name for name in (load.deletes, *times, absent, *orders) if name is not None)


def restrict_load(load: Load, rows: Predicate) -> Load:
    """Restrict a load to some rows of the table; all others stay as they are.

    Args:
        load: the rows that it adds match ``rows``.
        rows: the rows that it may delete or update.

    Raises:
        ValueError: the load cannot spare other dataflows' rows
        (:meth:`partitions.target.Target.refusals`).
    """
    match load:
        case _ if rows == EVERYTHING:
            return load
        case Append():
            return load
        case ReplaceAll():
            return Replace(rows)
        case Replace(where):
            return Replace(all_of((rows, where)))
        case Upsert():
            where = load.where if load.where == NOTHING else all_of((rows, load.where))
            return replace(load, where=where, within=rows)
    raise ValueError(f"{type(load).__name__} cannot leave the rows of others as they are")


def release_load(load: Load, *, origin_columns: bool) -> Load:
    """Return a load of rows that were held outside the table: a later row of a key stays as it is.

    Args:
        load: load of the target.
        origin_columns: whether rows have the time of their run, which decides if nothing else orders them.
    """
    if not isinstance(load, Upsert):
        return load
    is_stored = load.order and not any(by.column.startswith(HELPER_PREFIX) for by in load.order)
    by_run = (OrderByColumn(INGESTED_AT),) if origin_columns else ()
    guard = load.order if is_stored else by_run
    return replace(load, order=load.order or guard, guard=guard)


def load_for_target(target: Target, where: Predicate, order: Order, guard: Order = ()) -> Load:
    """Return the load that a target asks for.

    Args:
        target: as the user declares it.
        where: the rows of the table to delete in the same commit; ``NOTHING`` for none. scd2 deletes no
        versions.
        order: which of two rows of a key is later.
        guard: the order in which a later row of the table stays; empty if slices load in their own order.
    """
    deletes = DELETES_COLUMN if target.may_delete else None
    if target.load == "scd2" and target.effective_column is not None:
        return Scd2(
            target.merge_keys,
            target.effective_column,
            order,
            ignored=(*(by.column for by in order), *ORIGIN_COLUMNS, *(target.ignore or ())),
            tracked=target.track,
            deletes=deletes,
            begins=BEGINS_COLUMN if target.removes_missing else None,
            names=target.names,
            open_end=target.open_end,
        )
    if target.load == "merge_upsert":
        return Upsert(
            target.merge_keys,
            order,
            guard,
            where,
            deletes=deletes,
            inserts_only=target.insert_only,
            immutable=target.immutable or (),
            absent=ABSENT_COLUMN if target.keeps_missing_columns else None,
        )
    if target.load == "merge_overwrite" and not target.replace_by_watermark:
        return ReplaceKeys(target.merge_keys, where, deletes=deletes)
    return Append() if where == NOTHING else Replace(where)
