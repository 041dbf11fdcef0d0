"""Make requests to a function of the bounds of a plan: none of the rows that these mean lies outside of what is asked for."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Any

from partitions.column.predicates import ranges_of
from partitions.instants import as_datetime
from partitions.local_time import enclosing_instants, repeated_time
from partitions.predicate import Predicate
from partitions.sources import PythonSource
from partitions.unit_values import ValueType
from partitions.window.extent import Extent
from resources.sources.python.call import FunctionCaller
from resources.sources.python.request import RowRequest


class BoundedRequests:
    """The requests of one source."""

    def __init__(self, caller: FunctionCaller, source: PythonSource, zone: tzinfo) -> None:
        """Use a function.

        Args:
            caller: of it.
            source: what the definition says of it.
            zone: of times that name none.
        """
        self._caller, self._source, self._zone = caller, source, zone

    def within(self, extent: Extent, kind: ValueType | None = None) -> RowRequest:
        """The request for an extent; its ends hold all rows of which a window column of that kind says that they are in it."""
        (unit,) = extent.units
        covered = enclosing_instants(extent.lower, extent.upper, kind, self._zone)
        ends = [None if ms is None else as_datetime(ms, self._zone) for ms in covered]
        if self._source.window_column is not None and ends[0] is not None:
            # What it yields without a zone counts as of the second pass, and is asked for with both.
            ends[0] = self._first_pass(ends[0]).astimezone(self._zone)
        return self._caller.request(start=ends[0], end=ends[1], unit=dict(unit))

    def above(self, rows: Predicate) -> RowRequest:
        """The request for rows above bounds. A time without zone counts as one of the second pass, so both passes of an hour are asked for."""
        return self._caller.request(
            bounds={
                bounded.column: replace(bounded, lower=self._first_pass(bounded.lower))
                for bounded in ranges_of(rows)
            }
        )

    def _first_pass(self, bound: Any) -> Any:
        """A lower bound; of an instant in an hour that a clock repeats the start of its first pass."""
        if not isinstance(bound, datetime) or bound.tzinfo is None:
            return bound
        stretch = repeated_time(bound.astimezone(self._zone))
        return bound if stretch is None else stretch.start
