"""Calls of a function whose rows are meant, looked at, or staged already (docs/source-python.md)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from partitions.column.predicates import ranges_of
from partitions.predicate import AnyOf, Predicate
from resources.dialects.arrow import expression
from resources.sources.python.batches import (
    Raw,
)
from resources.sources.python.request import RowRequest

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc


class MeantRows(NamedTuple):
    """A call, and which of its rows are meant.

    Attributes:
        rows: these,
        earlier: but those of earlier calls.
    """

    request: RowRequest
    rows: Predicate
    earlier: tuple[Predicate, ...] = ()

    def condition(self, schema: pa.Schema) -> pc.Expression:
        """Of the rows that are meant; all rows have the schema."""
        is_meant = expression(self.rows, schema)
        return is_meant & ~expression(AnyOf(self.earlier), schema) if self.earlier else is_meant


class StartedCall(NamedTuple):
    """A call that was begun by a look.

    Attributes:
        request: of the call.
        first: the batch that the look ended with; those before hold none of the rows, and none without a value.
        call: the rest.
    """

    request: RowRequest
    first: Raw
    call: Generator[Raw]


class FetchedRows(NamedTuple):
    """Rows that were staged before the upper bound of some columns was known.

    Attributes:
        rows: these.
        paths: of the files.
    """

    rows: Predicate
    paths: Sequence[str]

    def begins_like(self, rows: Predicate) -> bool:
        """Return whether these rows have the same lower bounds: those that lie above the highest fetched value are another run's."""
        return _lower_bounds(self.rows) == _lower_bounds(rows)


def _lower_bounds(rows: Predicate) -> set[tuple[str, Any, bool]]:
    bounded_ranges = [range_ for range_ in ranges_of(rows) if range_.lower is not None]
    return {(range_.column, range_.lower, range_.lower_inclusive) for range_ in bounded_ranges}
