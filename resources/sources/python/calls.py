"""Calls of a function with their state: requested rows, calls started by a look, staged rows.

See docs/reference/python-functions.md.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from partitions.column.predicates import ranges_of
from partitions.errors import SchemaError
from partitions.plan import pluralize
from partitions.predicate import AnyOf, Predicate
from resources.dialects.arrow import arrow_expression
from resources.sources.python.batches import column_names, row_count
from resources.sources.python.call import FunctionCaller
from resources.sources.python.request import Request
from resources.sources.python.yielded import Raw

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc


class RequestedRows(NamedTuple):
    """A call, and the rows of it to keep.

    Attributes:
        rows: the rows to keep.
        earlier: the rows of earlier calls, which are dropped.
    """

    request: Request
    rows: Predicate
    earlier: tuple[Predicate, ...] = ()

    def condition(self, schema: pa.Schema) -> pc.Expression:
        """Return the condition of the rows to keep; all rows have the schema."""
        is_requested = arrow_expression(self.rows, schema)
        return is_requested & ~arrow_expression(AnyOf(self.earlier), schema) if self.earlier else is_requested


class StartedCall(NamedTuple):
    """A call that a look started.

    Attributes:
        request: the call's request.
        first: the last batch that the look read; earlier ones have none of the rows, and none without a
        value.
        call: the remaining batches.
    """

    request: Request
    first: Raw
    call: Generator[Raw]


class FetchedRows(NamedTuple):
    """Rows that were staged before the upper bound of some columns was known.

    Attributes:
        rows: the predicate of the rows.
        paths: the files' paths.
    """

    rows: Predicate
    paths: Sequence[str]

    def has_same_lower_bounds(self, rows: Predicate) -> bool:
        """Return whether these rows have the same lower bounds.

        Rows above the highest fetched value belong to a later run.
        """
        return _lower_bounds(self.rows) == _lower_bounds(rows)


class FunctionCalls:
    """The calls of one source; each answer must have a column that decides which rows are read."""

    def __init__(self, caller: FunctionCaller, named_columns: frozenset[str]) -> None:
        """Start without a call.

        Args:
            caller: the function's caller.
            named_columns: the columns that decide which rows are read; empty if there are none.
        """
        self._caller, self._named_columns = caller, named_columns
        self._started: StartedCall | None = None

    def keep(self, started: StartedCall) -> None:
        """Store a call that a look started, for the next call with the same request."""
        self._started = started

    def batches(self, request: Request) -> Generator[Raw]:
        """Yield the batches of a call, or the remaining ones of a call that a look started."""
        started, self._started = self._started, None
        if started is not None and started.request == request:
            yield started.first
            yield from started.call
            return
        if started is not None:
            started.call.close()
        yield from self._with_named_columns(request)

    def _with_named_columns(self, request: Request) -> Generator[Raw]:
        """Yield the batches of a call; raise SourceError if none has a column that decides about rows.

        Single dict rows may lack such columns.
        """
        names, count, has_any = self._named_columns, 0, False
        for batch in self._caller.batches(request):
            count += row_count(batch)
            has_any = has_any or not names.isdisjoint(column_names(batch))
            yield batch
        if count and names and not has_any:
            missing = " or ".join(sorted(names))
            error = SchemaError(
                f"expected a column {missing}, found none in {pluralize(count, 'row')}",
                reason="missing_column",
                field=missing,
            )
            raise self._caller.misfit_error(error, request)


def _lower_bounds(rows: Predicate) -> set[tuple[str, Any, bool]]:
    bounded_ranges = [range_ for range_ in ranges_of(rows) if range_.lower is not None]
    return {(range_.column, range_.lower, range_.lower_inclusive) for range_ in bounded_ranges}
