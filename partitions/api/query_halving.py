"""Queries that return at most a number of records: halved until each returns fewer.

Belongs here: where to cut a query, and which records belong to a part. Does not belong here: building
requests (:mod:`partitions.api.requests`). See docs/reference/apis.md, Pages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Any

from partitions.api.requests import ApiRequest, request_for, requests_above
from partitions.column.predicates import ColumnRange
from partitions.errors import PlanError
from partitions.instants import as_datetime, milliseconds
from partitions.local_time import enclosing_instants
from partitions.sources.api import ApiSource
from partitions.unit_values import ValueType
from partitions.watermark import compare_values
from partitions.window.extent import Extent

_MAX_DEPTH = 70
"""The most halvings of a query: enough to cut a range of 64 bits down to one value."""
_STEPS = (
    timedelta(milliseconds=1),
    timedelta(seconds=1),
    timedelta(minutes=1),
    timedelta(hours=1),
    timedelta(days=1),
)


class CannotHalve(ValueError):
    """The reason why a query cannot be halved."""


@dataclass(frozen=True)
class Query:
    """A request, and the range that it asks for.

    Attributes:
        request: the request without its pages.
        range: the values of a column that it asks for; None if it does not ask by column.
        extent: the window and unit that it asks for; None if it does not ask by window.
        kind: the pinned data type of the window column; None: there is none.
        column: the column whose values assign records to parts; None: only the API does.
        above: the lowest value of this part, if it was cut there.
        below: the lowest value after this part, if it was cut there.
        depth: how often it was cut.
    """

    request: ApiRequest
    range: ColumnRange | None = None
    extent: Extent | None = None
    kind: ValueType | None = None
    column: str | None = None
    above: Any = None
    below: Any = None
    depth: int = 0

    def contains(self, value: Any, zone: tzinfo) -> bool:
        """Return whether a record with this value in ``column`` belongs to the part.

        A record without a value, or with a text, belongs to the first part only.

        Args:
            value: from :func:`partitions.api.values.to_column_value`; None also for an incomparable value.
            zone: the zone of times and days without zone.
        """
        if value is None or isinstance(value, str):
            return self.above is None
        bound = self.below if self.above is None else self.above
        return any(self._contains(interpretation) for interpretation in _interpretations(value, bound, zone))

    def _contains(self, value: Any) -> bool:
        is_above = self.above is None or compare_values(value, self.above) >= 0
        return is_above and (self.below is None or compare_values(value, self.below) < 0)

    def halves(self, source: ApiSource, zone: tzinfo, lowest: Any, highest: Any) -> tuple[Query, Query]:
        """Return two queries that together ask for the same records.

        Args:
            source: the definition of the source.
            zone: the definition's zone.
            lowest: the lowest value of the range's column in the received records; it replaces a missing
            lower bound.
            highest: the highest value; it replaces a missing upper bound.

        Raises:
            CannotHalve: no value in between can be requested.
        """
        if self.depth >= _MAX_DEPTH:
            raise CannotHalve(
                "its parts return as many records, however small they are: the API seems to ignore the bounds"
            )
        parts = self._cut(source, zone, lowest, highest)
        if any(part.request.identity == self.request.identity for part in parts):
            raise CannotHalve("no request parameter holds the bounds")
        return parts

    def _cut(self, source: ApiSource, zone: tzinfo, lowest: Any, highest: Any) -> tuple[Query, Query]:
        if self.extent is not None:
            return self._cut_window(source, self.extent, zone)
        if self.range is not None and self.range.column in source.watermark_param_mapping:
            return self._cut_range(source, self.range, zone, lowest, highest)
        raise CannotHalve("no request parameter holds the lower bound (watermark_param_mapping)")

    def _cut_range(
        self, source: ApiSource, range_: ColumnRange, zone: tzinfo, lowest: Any, highest: Any
    ) -> tuple[Query, Query]:
        if source.watermark_to_param is None:
            raise CannotHalve("no request parameter holds the upper bound (watermark_to_param)")
        lower = range_.lower if range_.lower is not None else lowest
        upper = range_.upper if range_.upper is not None else highest
        middle = _middle(source, range_, lower, upper, zone)
        low = replace(range_, upper=middle, upper_inclusive=False)
        high = replace(range_, lower=middle, lower_inclusive=True)
        parts = (
            replace(self, range=low, column=range_.column, below=middle, depth=self.depth + 1),
            replace(self, range=high, column=range_.column, above=middle, depth=self.depth + 1),
        )
        first, second = (replace(part, request=part._range_request(source, zone)) for part in parts)
        return first, second

    def _range_request(self, source: ApiSource, zone: tzinfo) -> ApiRequest:
        range_ = self.range
        assert range_ is not None
        if isinstance(range_.lower, int) and self.above is not None:
            # An API of ids may treat its lower bound as exclusive, as it does for a run's bound.
            range_ = replace(range_, lower=range_.lower - 1)
        ((request, _),) = requests_above(source, [range_], zone)
        if self.below is None or isinstance(self.below, date) or source.watermark_to_param is None:
            return request
        return request.with_parameters(
            {source.watermark_to_param: source.bounds(zone).upper(self.below)},
            in_body=source.watermark_param_location == "body",
        )

    def _cut_window(self, source: ApiSource, extent: Extent, zone: tzinfo) -> tuple[Query, Query]:
        if extent.lower is None or extent.upper is None or not source.sends_both_ends:
            raise CannotHalve("the requests do not have both ends of the window as parameters")
        middle = next(
            (
                floored
                for step in _STEPS
                if extent.lower
                < (floored := _floored((extent.lower + extent.upper) // 2, step, zone))
                < extent.upper
                # A value that may belong to either part would be read by both.
                and enclosing_instants(floored, floored, self.kind, zone) == (floored, floored)
                and _is_expressible(source, replace(extent, lower=floored, upper=floored), zone)
            ),
            None,
        )
        if middle is None:
            raise CannotHalve("the format of the bounds cannot express a time in between")
        moment = as_datetime(middle)
        half = replace(self, column=source.window_column, depth=self.depth + 1)
        halves = (
            replace(half, extent=replace(extent, upper=middle), below=moment),
            replace(half, extent=replace(extent, lower=middle), above=moment),
        )
        try:
            first, second = (
                replace(part, request=request_for(source, part.extent, zone, self.kind))
                for part in halves
                if part.extent is not None
            )
        except PlanError as error:
            raise CannotHalve(f"a part of it cannot be requested: {error.message}") from None
        return first, second


def _middle(source: ApiSource, range_: ColumnRange, lower: Any, upper: Any, zone: tzinfo) -> Any:
    """Return an expressible value above the lower bound and below the upper one.

    It may equal the upper bound if that is a received value.
    """
    middle: Any = None
    match lower, upper:
        case (None, _) | (_, None):
            raise CannotHalve("no record has a value that could be a bound")
        case int(), int():
            first = lower + (range_.lower is not None and not range_.lower_inclusive)
            last = upper - (range_.upper is not None and not range_.upper_inclusive)
            if first < last:
                return (first + last + 1) // 2
        case datetime(), datetime():
            middle = source.bounds(zone).floored(lower + (upper - lower) / 2)
        case date(), date():
            middle = lower + timedelta(days=(upper - lower).days // 2)
        case ((int() | float() | Decimal()), (int() | float() | Decimal())):
            if source.watermark_from_exclusive:
                raise CannotHalve(
                    "the API excludes rows at the lower bound, and a fraction has no next value"
                )
            middle = (Decimal(str(lower)) + Decimal(str(upper))) / 2
        case _:
            raise CannotHalve("text has no middle")
    if middle is not None and compare_values(lower, middle) < 0 and compare_values(middle, upper) < 0:
        return middle
    raise CannotHalve("the format of the bounds cannot express a value in between")


def _floored(ms: int, step: timedelta, zone: tzinfo) -> int:
    """Return the last full step at or before a time; days follow the zone's calendar."""
    if step < timedelta(days=1):
        return ms - ms % (step // timedelta(milliseconds=1))
    local = as_datetime(ms, zone)
    return milliseconds(datetime.combine(local.date(), time.min, zone))


def _is_expressible(source: ApiSource, moment: Extent, zone: tzinfo) -> bool:
    """Return whether a time can be sent to the API exactly, as a start and as an end."""
    try:
        request_for(source.model_copy(update={"window_column": None}), moment, zone)
    except PlanError:
        return False
    return True


def _interpretations(value: Any, bound: Any, zone: tzinfo) -> list[Any]:
    """Return the values that a value can mean in the type of a bound.

    A time without zone means two instants in an hour that occurs twice.
    """
    if not isinstance(bound, datetime) or bound.tzinfo is None:
        return [value]
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            return [value]
        return [value.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]
    return [datetime.combine(value, time.min, zone)] if isinstance(value, date) else [value]
