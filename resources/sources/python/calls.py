"""Calls of a function, and what is known of them: which rows are meant, begun by a look, or staged already (docs/reference/python-functions.md)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from partitions.column.predicates import ranges_of
from partitions.errors import SchemaError
from partitions.plan import pluralize
from partitions.predicate import AnyOf, Predicate
from resources.dialects.arrow import arrow_expression
from resources.sources.python.batches import Raw, column_names, row_count
from resources.sources.python.call import FunctionCaller
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
        is_meant = arrow_expression(self.rows, schema)
        return is_meant & ~arrow_expression(AnyOf(self.earlier), schema) if self.earlier else is_meant


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


class FunctionCalls:
    """The calls of one source, each of whose answers must have a column that tells whether a row is wanted."""

    def __init__(self, caller: FunctionCaller, named_columns: frozenset[str]) -> None:
        """Call nothing yet.

        Args:
            caller: of the function.
            named_columns: whose values tell which rows are wanted; empty if none does.
        """
        self._caller, self._named_columns = caller, named_columns
        self._started: StartedCall | None = None

    def keep(self, started: StartedCall) -> None:
        """Go on with a call that was begun by a look, if the next one asks for the same."""
        self._started = started

    def batches(self, request: RowRequest) -> Generator[Raw]:
        """The batches of a call, or the rest of one that a look has begun."""
        started, self._started = self._started, None
        if started is not None and started.request == request:
            yield started.first
            yield from started.call
            return
        if started is not None:
            started.call.close()
        yield from self._with_named_columns(request)

    def _with_named_columns(self, request: RowRequest) -> Generator[Raw]:
        """The batches of a call, which must have a column that tells whether a row is wanted: a dict row need not have each."""
        named, count, has_any = self._named_columns, 0, False
        for batch in self._caller.batches(request):
            count += row_count(batch)
            has_any = has_any or not named.isdisjoint(column_names(batch))
            yield batch
        if count and named and not has_any:
            missing = " or ".join(sorted(named))
            error = SchemaError(
                f"expected a column {missing}, found none in {pluralize(count, 'row')}",
                reason="missing_column",
                field=missing,
            )
            raise self._caller.wrong(error, request)


def _lower_bounds(rows: Predicate) -> set[tuple[str, Any, bool]]:
    bounded_ranges = [range_ for range_ in ranges_of(rows) if range_.lower is not None]
    return {(range_.column, range_.lower, range_.lower_inclusive) for range_ in bounded_ranges}
