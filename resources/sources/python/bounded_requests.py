"""Requests to a function for the bounds of a plan, wide enough for all of its rows."""

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
from resources.sources.python.request import Request


class BoundedRequests:
    """The requests of one source."""

    def __init__(self, caller: FunctionCaller, source: PythonSource, zone: tzinfo) -> None:
        """Configure the requests.

        Args:
            caller: the function's caller.
            source: the definition.
            zone: the zone of times without zone.
        """
        self._caller, self._source, self._zone = caller, source, zone

    def within(self, extent: Extent, kind: ValueType | None = None) -> Request:
        """Return the request for an extent, with ends that include all rows of its window column."""
        (unit,) = extent.units
        covering_bounds = enclosing_instants(extent.lower, extent.upper, kind, self._zone)
        ends = [None if ms is None else as_datetime(ms, self._zone) for ms in covering_bounds]
        if self._source.window_column is not None and ends[0] is not None:
            # What it yields without a zone counts as of the second pass, and is asked for with both.
            ends[0] = self._first_pass(ends[0]).astimezone(self._zone)
        return self._caller.request(start=ends[0], end=ends[1], unit=dict(unit))

    def above(self, rows: Predicate) -> Request:
        """Return the request for rows above bounds.

        A time without zone counts as the second pass of a repeated hour, so both passes are requested.
        """
        return self._caller.request(
            bounds={
                range_.column: replace(range_, lower=self._first_pass(range_.lower))
                for range_ in ranges_of(rows)
            }
        )

    def _first_pass(self, bound: Any) -> Any:
        """Return a lower bound; an instant in a repeated hour becomes the start of its first pass."""
        if not isinstance(bound, datetime) or bound.tzinfo is None:
            return bound
        repeated_hour = repeated_time(bound.astimezone(self._zone))
        return bound if repeated_hour is None else repeated_hour.start
