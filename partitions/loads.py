"""How the rows of a slice go into its table: a value that the planner's layer chooses and a table carries out (docs/explanation/architecture.md).

Belongs here: which loads there are, and what each means for the rows that the table holds. How a format does it is the table's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from partitions.predicate import EVERYTHING, NOTHING, Predicate, all_of
from partitions.target import ORIGIN_COLUMNS, Target


@dataclass(frozen=True)
class Append:
    """Add the rows; delete none."""


@dataclass(frozen=True)
class Replace:
    """Delete the rows that fit a condition and add the slice's, in one commit.

    Attributes:
        where: over the table's columns. The rows that are added fit it, too.
    """

    where: Predicate


@dataclass(frozen=True)
class ReplaceAll:
    """Delete all rows and add the slice's, in one commit. The table takes the columns and the layout of what is added."""


@dataclass(frozen=True)
class ByValue:
    """Of two rows the one with the higher value of a column is later; NULL is below every value, and texts are compared by bytes."""

    column: str


@dataclass(frozen=True)
class ByPath:
    """Of two rows the one of the later file is later: by folder, then by name, as path watermarks order them; the column holds the path."""

    column: str


Order = tuple[ByValue | ByPath, ...]
"""Which of two rows of a key is later: the first of these in which they differ tells."""


@dataclass(frozen=True)
class Upsert:
    """Update the row that has a key of the slice's rows, and add the rows whose key is new, in one commit.

    Attributes:
        keys: columns; NULL is a value like any other. The slice's rows have each key once.
        order: by which one of several rows of a key was taken.
        guard: rows of the table that are later in this order stay as they are; without one, what is loaded last counts.
        where: over the table's columns. Rows that fit it and whose key the slice does not have are deleted.
        within: over the table's columns. Only rows that fit it are updated or deleted; those that are added fit it, too.
    """

    keys: tuple[str, ...]
    order: Order
    guard: Order = ()
    where: Predicate = NOTHING
    within: Predicate = EVERYTHING


@dataclass(frozen=True)
class ReplaceKeys:
    """Delete the rows that have a key of the slice's rows, and add all of the slice's, in one commit.

    Attributes:
        keys: columns; NULL is a value like any other. Several rows of the slice may have the same.
        where: over the table's columns. Rows that fit it are deleted, too.
        later: over the table's columns. Rows that fit it are later than the slice's: they stay with all of their key, and what the slice has of
            it is not added.
        order: only rows that are later in it than those of the slice count as later; none: all that fit ``later``.
        own: over the table's columns. Rows that fit it are the slice's as they were loaded before, and not later.
    """

    keys: tuple[str, ...]
    where: Predicate = NOTHING
    later: Predicate = NOTHING
    order: Order = ()
    own: Predicate = NOTHING


class Lacking(NamedTuple):
    """A column that the source of some rows does not have.

    Attributes:
        column: of the table.
        files: values of ``_source_file`` of these rows; None: all rows of the slice.
    """

    column: str
    files: frozenset[str] | None = None


@dataclass(frozen=True)
class Scd2:
    """Keep a version of a row for each change, in one commit: the versions of a key follow each other without gap and overlap, and the last is current.

    Attributes:
        keys: columns; NULL is a value like any other.
        effective: the column that tells from when on a row holds; NULL: since ever. The slice's rows have each key and time once.
        order: by which one of several rows of a key and a time was taken.
        ignored: columns in which two versions may differ and still be one.
        lacking: columns that the source of some rows does not have. Such a row says nothing of the column: no version differs by it, and a version that
            the row corrects keeps its value.
    """

    keys: tuple[str, ...]
    effective: str
    order: Order = ()
    ignored: tuple[str, ...] = ()
    lacking: tuple[Lacking, ...] = ()


ByKeys = Upsert | ReplaceKeys | Scd2
"""Loads that find the rows of the table by their keys."""

Load = Append | Replace | ReplaceAll | ByKeys


def within(load: Load, rows: Predicate) -> Load:
    """Return a load that leaves all rows of the table as they are but some, which it deletes or updates as before.

    Args:
        load: what it adds is among these rows.
        rows: that it may delete or update.

    Raises:
        ValueError: for a load that cannot leave rows of others alone (:meth:`partitions.target.Target.refusals`).
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
    raise ValueError(f"{type(load).__name__} cannot leave rows of others alone")


def load_into(target: Target, where: Predicate, order: Order, guard: Order = ()) -> Load:
    """Return what becomes of a target's rows.

    Args:
        target: as the user declares it.
        where: the rows of the table that are deleted in the same commit; ``NOTHING`` if none are. No version of a history is.
        order: which of two rows of a key is later.
        guard: the order in which a row of the table may be later than the slice's, and stays; none if slices are loaded in their order.
    """
    if target.load == "scd2" and target.effective_column is not None:
        ignored = (*(by.column for by in order), *ORIGIN_COLUMNS)
        return Scd2(target.merge_keys, target.effective_column, order, ignored)
    if target.load == "merge_upsert":
        return Upsert(target.merge_keys, order, guard, where)
    if target.load == "merge_overwrite" and not target.replace_by_watermark:
        return ReplaceKeys(target.merge_keys, where)
    return Append() if where == NOTHING else Replace(where)
