"""What a repair reads again: the keys that differ, or the ranges (docs/explanation/adr/0054).

The comparison only names them. Which rows they have is read from the source when the repair runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from partitions.column.state import ColumnState
from partitions.plan import pluralize
from partitions.predicate import Among, Predicate, all_of, any_of
from partitions.reconcile.columns import ComparedColumn
from partitions.reconcile.differences import Differences, Key
from partitions.reconcile.families import family_of, type_in_words
from partitions.reconcile.ranges import ComparedRange, reached_rows
from partitions.sentinels import deserialise, serialise

MAX_KEYS = 250_000
"""Most keys of one repair."""
KEYS_OF_A_QUERY = 5_000
"""Keys that one query of a database names, unless there would be more than :data:`MAX_QUERIES`."""
MAX_QUERIES = 4
"""Most queries of a repair: each may have a connection of its own."""

_UNLISTED = ("float", "bytes", "time")
"""Families whose values are sought by no list: a time of day has other texts in the table."""

RepairedSorts = Literal["all", "missing"]
"""Which differing rows are repaired: all, or only those that the table lacks."""

SORTS: Mapping[RepairedSorts, tuple[str, ...]] = {
    "all": ("missing", "extra", "different"),
    "missing": ("missing",),
}


@dataclass(frozen=True)
class RepairedKeys:
    """Keys whose rows of the table become those of the source.

    Attributes:
        columns: merge keys, by their names in the table.
        source_columns: the same columns, by their names at the source.
        keys: distinct keys, each with a value per column; None: NULL.
        lacked: how many of the first keys the source lacked: if it still has none of their rows, they are
            deleted, or retired. Any other key without a row stays as it is until the next comparison: a list
            that finds no row must not delete what the source has.
        compared: what was compared, for the log: state, version of the table, moment of the source.
    """

    columns: tuple[str, ...]
    source_columns: tuple[str, ...]
    keys: tuple[tuple[Any, ...], ...]
    lacked: int = 0
    compared: str = ""

    @property
    def lacked_keys(self) -> RepairedKeys:
        """The keys that the source lacked."""
        return replace(self, keys=self.keys[: self.lacked])

    @property
    def rows_to_read(self) -> Sequence[Predicate]:
        """Disjoint parts of the source, which hold all rows of the keys, and of several columns others, too.

        A list of values for each column is something that every engine looks up.
        """
        if len(self.columns) == 1:
            chunks = _chunks([value for (value,) in self.keys])
            return [Among(self.source_columns[0], chunk) for chunk in chunks]
        values = [tuple(dict.fromkeys(column)) for column in zip(*self.keys, strict=True)]
        # Parts are cut by the column with most values, so that they stay disjoint.
        widest = max(range(len(values)), key=lambda place: len(values[place]))
        others = [
            Among(name, values[place])
            for place, name in enumerate(self.source_columns)
            if place != widest and len(values[place]) <= KEYS_OF_A_QUERY
        ]
        chunks = _chunks(values[widest])
        return [all_of([Among(self.source_columns[widest], chunk), *others]) for chunk in chunks]

    @property
    def words(self) -> str:
        """The keys for people."""
        return f"rows of {pluralize(len(self.keys), 'key')}"

    def stored(self) -> str:
        """Return the keys as sentinel JSON text."""
        return serialise(
            {
                "columns": [*self.columns],
                "source_columns": [*self.source_columns],
                "keys": [list(key) for key in self.keys],
                "lacked": self.lacked,
                "compared": self.compared,
            }
        )


@dataclass(frozen=True)
class RepairedRanges:
    """Ranges whose rows of the table become those of the source, up to the compared watermark.

    Attributes:
        ranges: ranges of the first watermark column.
        state: the compared state: rows above it stay.
        watermark_columns: all watermark columns.
        compared: what was compared, for the log.
    """

    ranges: tuple[ComparedRange, ...]
    state: ColumnState
    watermark_columns: tuple[str, ...]
    compared: str = ""

    @cached_property
    def rows(self) -> Predicate:
        """The rows of the ranges, of the source and of the table."""
        ranges = any_of([range_.rows for range_ in self.ranges])
        return all_of([ranges, *(reached_rows(self.state, name) for name in self.watermark_columns)])

    @property
    def rows_to_read(self) -> Sequence[Predicate]:
        """The rows as one part."""
        return [self.rows]

    @property
    def words(self) -> str:
        """The ranges for people."""
        return f"rows with {' or '.join(range_.words for range_ in self.ranges)}"

    def stored(self) -> str:
        """Return the ranges as sentinel JSON text."""
        ranges = [
            [range_.column, range_.lower, range_.upper, range_.upper_inclusive, range_.holds_nulls]
            for range_ in self.ranges
        ]
        return serialise(
            {
                "ranges": ranges,
                "state": serialise(self.state.watermark()),
                "watermark_columns": [*self.watermark_columns],
                "compared": self.compared,
            }
        )


Repaired = RepairedKeys | RepairedRanges


def read_repaired(text: str) -> Repaired:
    """Return what :meth:`RepairedKeys.stored` or :meth:`RepairedRanges.stored` has written."""
    values = deserialise(text)
    if "keys" in values:
        return RepairedKeys(
            tuple(values["columns"]),
            tuple(values["source_columns"]),
            tuple(map(tuple, values["keys"])),
            values["lacked"],
            values["compared"],
        )
    return RepairedRanges(
        tuple(ComparedRange(*range_) for range_ in values["ranges"]),
        ColumnState.of(deserialise(values["state"])),
        tuple(values["watermark_columns"]),
        values["compared"],
    )


def keys_to_repair(
    columns: Sequence[ComparedColumn], differences: Differences, sorts: Collection[str]
) -> RepairedKeys | str:
    """Return the keys of some sorts of differing rows; or, for people, why they cannot be repaired.

    Args:
        columns: merge keys.
        differences: differing rows, with at least ``MAX_KEYS`` keys of each sort if there are so many.
        sorts: sorts of rows.
    """
    for column in columns:
        is_listed = family_of(column.table_type) not in _UNLISTED and not column.table_type.dimensions
        if not is_listed:
            return (
                f"key {column.name} holds {type_in_words(column.table_type)}, which no query finds by a list"
            )
    extra: Sequence[Key] = differences.extra if "extra" in sorts else ()
    lacked = dict.fromkeys(tuple(key.values()) for key in extra)
    listed: list[Key] = [*extra, *(key for sort in sorts for key in getattr(differences, sort))]
    keys = tuple(dict.fromkeys(tuple(key.values()) for key in listed))
    if len(keys) > MAX_KEYS:
        return f"more than {MAX_KEYS:,} keys differ"
    names, source_names = zip(*((column.name, column.source_name) for column in columns), strict=True)
    return RepairedKeys(names, source_names, keys, len(lacked))


def _chunks(values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    size = max(KEYS_OF_A_QUERY, -(-len(values) // MAX_QUERIES))
    for first in range(0, len(values), size):
        yield tuple(values[first : first + size])
