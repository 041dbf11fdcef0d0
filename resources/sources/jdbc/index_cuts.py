"""Cut a range of a database table without a scan, along the column's index and by statistics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from partitions.column.cuts_by_statistics import DIVISIBLE_TYPES, Histogram
from partitions.column.predicates import ColumnRange, rows_in_ranges
from resources.sources.jdbc.client import Client
from resources.sources.jdbc.observing import indexed_and_never_null
from resources.sources.jdbc.questions import Questions

WALKED_ROWS = 1_000_000
"""How many index entries are walked before statistics are used: for 5,000,000 rows the walk took a twentieth of the load's time."""


def cut_along_index(
    database: Client, questions: Questions, range_: ColumnRange, rows: int, max_cuts: int, walked_rows: int
) -> Sequence[Any]:
    """Return ascending values that cut a range into parts of about ``rows`` rows.

    Each is the last value of its part; empty without an index.

    Args:
        database: the open connection.
        questions: about the source.
        range_: the range of one column.
        rows: the number of rows of a part.
        max_cuts: the most cuts.
        walked_rows: index entries to walk before statistics are used; the walk continues where statistics
        end.
    """
    indexed, _ = indexed_and_never_null(database, questions)
    if range_.column not in indexed:
        return ()
    cuts: list[Any] = []
    remaining_range, asks_statistics = range_, True
    while len(cuts) < max_cuts:
        if asks_statistics and len(cuts) * rows >= walked_rows:
            cuts += islice(
                _cuts_by_statistics(database, questions, remaining_range, rows), max_cuts - len(cuts)
            )
            remaining_range, asks_statistics = (
                replace(remaining_range, lower=cuts[-1], lower_inclusive=False),
                False,
            )
            continue
        value = database.value(questions.nth(range_.column, rows_in_ranges([remaining_range]), rows))
        if value is None or value == range_.upper:
            break
        cuts.append(value)
        remaining_range = replace(remaining_range, lower=value, lower_inclusive=False)
    return cuts


def _cuts_by_statistics(
    database: Client, questions: Questions, remaining_range: ColumnRange, rows: int
) -> Iterator[Any]:
    """Yield cuts of the remaining range from the database's statistics; none if they do not cover it."""
    (column,) = database.describe(questions.only([remaining_range.column]))
    kind = column.kind
    query = questions.spread(remaining_range.column, kind) if kind in DIVISIBLE_TYPES else None
    bounds = database.ask(query) if query is not None else ()
    if bounds:
        yield from Histogram([bound for _, bound in bounds], bounds[0][0]).cuts(
            remaining_range.lower, remaining_range.upper, rows
        )
