"""Requests for the rows between two bounds, or of a window and a unit (docs/reference/apis.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from typing import Any
from urllib.parse import quote

from partitions.api.paging import Position
from partitions.api.values import as_json, as_text
from partitions.column.predicates import ColumnRange
from partitions.errors import ConfigurationError, PlanError
from partitions.instants import as_datetime
from partitions.local_time import enclosing_instants
from partitions.placeholders import Placeholder, Template, bound_format, format_moment, inexpressible_bound
from partitions.sources.api import ApiSource
from partitions.unit_values import ValueType
from partitions.window.extent import Extent


@dataclass(frozen=True)
class ApiRequest:
    """One request, without its pages.

    Attributes:
        method: GET or POST.
        path: below the connection's address, escaped.
        params: the query parameters.
        body: JSON; None: no body is sent.
    """

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None

    @property
    def identity(self) -> str:
        """A key that is equal for equal requests."""
        return as_json([self.method, self.path, dict(sorted(self.params.items())), self.body])

    def at(self, position: Position, *, in_body: bool) -> ApiRequest:
        """Return the request for one page."""
        if not position.parameters:
            return self
        return self.with_parameters(position.parameters, in_body=in_body)

    def with_parameters(self, parameters: Mapping[str, Any], *, in_body: bool) -> ApiRequest:
        """Return the request with more parameters; in a body a dot leads into an object."""
        if in_body:
            body = dict(self.body or {})
            for name, value in parameters.items():
                body = _with_value(body, name.split("."), value)
            return ApiRequest(self.method, self.path, self.params, body)
        texts = {name: as_text(value) for name, value in parameters.items()}
        return ApiRequest(self.method, self.path, {**self.params, **texts}, self.body)


def sample_request(source: ApiSource) -> ApiRequest:
    """Return the request of a source without placeholders, without any bound."""
    return _request(source, lambda template: template.filled(_no_value))


def requests_above(
    source: ApiSource, ranges: Sequence[ColumnRange], zone: tzinfo
) -> list[tuple[ApiRequest, ColumnRange | None]]:
    """Return requests that together return all rows of any of the ranges, each with its range.

    Ranges of several columns are joined by OR, but parameters of one request by AND: so each column has
    its own request. If one of several columns has no parameter or no lower bound, one request without bounds
    replaces them all.

    Args:
        source: the definition of the source.
        ranges: the ranges to read, one per column.
        zone: the zone of times without zone.

    Returns:
        requests with their ranges; None stands for all ranges.
    """
    plain, bounds = sample_request(source), source.bounds(zone)
    in_body = source.watermark_param_location == "body"
    requests: list[tuple[ApiRequest, ColumnRange | None]] = []
    for range_ in ranges:
        parameters: dict[str, str] = {}
        name = source.watermark_param_mapping.get(range_.column)
        if name is not None and range_.lower is not None:
            parameters[name] = bounds.lower(range_.lower)
        # Only dates are sent as upper bounds: the highest number is known from the rows alone, so the first request had no bound, and a repeat has none.
        if source.watermark_to_param is not None and isinstance(range_.upper, date):
            parameters[source.watermark_to_param] = bounds.upper(range_.upper)
        if not parameters and len(ranges) > 1:
            return [(plain, None)]
        requests.append((plain.with_parameters(parameters, in_body=in_body), range_))
    return requests or [(plain, None)]


def request_for(source: ApiSource, extent: Extent, zone: tzinfo, kind: ValueType | None = None) -> ApiRequest:
    """Return the request for a range of time of one unit.

    Args:
        source: the definition of the source.
        extent: the range and its only unit.
        zone: the definition's zone, used for placeholders.
        kind: the data type of the window column; None: there is none, or it is unknown.

    Raises:
        PlanError: a unit's value would change the path; or the parameters cannot express an end, and no
        column has a row's time.
    """
    (unit,) = extent.units
    lower, upper = enclosing_instants(extent.lower, extent.upper, kind, zone)

    def fill(template: Template, *, in_path: bool) -> str:
        return template.filled(
            lambda placeholder: _fill_placeholder(placeholder, bounds, unit, in_path=in_path)
        )

    bounds = {
        name: _placeholder_bound(source, name, ms, zone)
        for name, ms in (("start", lower), ("end", upper))
        if ms is not None and name in source.placeholders
    }
    request = _request(
        source,
        lambda template: fill(template, in_path=False),
        lambda template: fill(template, in_path=True),
    )
    return request.with_parameters(
        _window_parameters(source, lower, upper, zone), in_body=source.watermark_param_location == "body"
    )


def _window_parameters(source: ApiSource, start: int | None, end: int | None, zone: tzinfo) -> dict[str, str]:
    """Return the parameters for both ends.

    Ends may lie further out if rows have a time: the rows are filtered again.
    """
    bounds, parameters = source.bounds(zone), dict[str, str]()
    (name,) = source.watermark_param_mapping.values() or (None,)
    if name is not None and start is not None:
        lower = as_datetime(start)
        _check_expressible(source, bounds.begins_at(lower), lower)
        parameters[name] = bounds.lower(lower)
    if source.watermark_to_param is not None and end is not None:
        upper = as_datetime(end)
        _check_expressible(source, bounds.raised(upper) == upper, upper)
        parameters[source.watermark_to_param] = bounds.upper(upper)
    return parameters


def _placeholder_bound(source: ApiSource, name: str, ms: int, zone: tzinfo) -> datetime:
    """Return the start or end that its placeholders express.

    It may lie further out if rows have a time: the rows are filtered again.
    """
    moment, words = as_datetime(ms, zone), bound_format(source.request_placeholders, name, zone)
    if source.window_column is not None:
        return words.below(moment) if name == "start" else words.above(moment)
    if not (
        words.is_unambiguous(moment) or (source.window_support.named_by_start and words.can_express(moment))
    ):
        raise PlanError(inexpressible_bound(name, moment))
    return moment


def _check_expressible(source: ApiSource, is_exact: bool, moment: Any) -> None:
    if not is_exact and source.window_column is None:
        raise PlanError(
            f"source.watermark_param_format: expected a format that can express the bound {moment.isoformat()}, "
            f"found {source.watermark_param_format}; use iso, name the column with a row's time as window_column, "
            "or read whole windows (watermark.partial: false)"
        )


def _request(source: ApiSource, fill: Any, fill_path: Any = None) -> ApiRequest:
    path = (fill_path or fill)(Template.parse(source.path))
    params = {
        name: fill(Template.parse(value)) if isinstance(value, str) else as_text(value)
        for name, value in source.params.items()
    }
    return ApiRequest(source.method, path, params, source.body if source.method == "POST" else None)


def _fill_placeholder(
    placeholder: Placeholder, bounds: Mapping[str, datetime], unit: Mapping[str, Any], *, in_path: bool
) -> str:
    if placeholder.unit is not None:
        if placeholder.unit not in unit:
            raise ConfigurationError(
                f"source: expected a unit with a value {placeholder.unit}, found {', '.join(unit) or 'no units'}"
            )
        text = as_text(unit[placeholder.unit])
        return _as_segment(placeholder.unit, text) if in_path else text
    moment = bounds.get(placeholder.name)
    if moment is None:
        raise ConfigurationError(
            f"source: expected a watermark with a datetime entry for {{{placeholder.name}}}, found none"
        )
    text = format_moment(placeholder, moment)
    return quote(text, safe="") if in_path and not placeholder.form else text


def _as_segment(name: str, text: str) -> str:
    """Return a value escaped as one segment of a path."""
    if text in ("", ".", ".."):
        raise PlanError(
            f"source.path: expected a value of unit {name} that can be part of a path, found {text!r}"
        )
    return quote(text, safe="")


def _no_value(placeholder: Placeholder) -> str:
    raise AssertionError(placeholder)  # only windows have placeholders, and request_for fills them


def _with_value(target: Mapping[str, Any], names: Sequence[str], value: Any) -> dict[str, Any]:
    """Return a copy of an object with a value at a path."""
    first, *rest = names
    inner = target.get(first)
    return {
        **target,
        first: _with_value(inner if isinstance(inner, Mapping) else {}, rest, value) if rest else value,
    }
