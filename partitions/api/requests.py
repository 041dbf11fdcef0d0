"""What is asked of an API for the rows between two bounds, or of a window and a unit (docs/reference/apis.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from typing import Any
from urllib.parse import quote

from partitions.api.paging import Position
from partitions.api.values import as_json, as_text
from partitions.column.predicates import Range
from partitions.errors import ConfigurationError, PlanError
from partitions.instants import as_datetime
from partitions.local_time import covering
from partitions.placeholders import Placeholder, Template, inexpressible, wording, written
from partitions.sources.api import ApiSource
from partitions.unit_values import Kind
from partitions.window.extent import Extent


@dataclass(frozen=True)
class Request:
    """One request, without its pages.

    Attributes:
        method: GET or POST.
        path: below the connection's address, escaped.
        params: of the query.
        body: JSON; None: none is sent.
    """

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None

    @property
    def identity(self) -> str:
        """What tells it from others."""
        return as_json([self.method, self.path, dict(sorted(self.params.items())), self.body])

    def at(self, position: Position, *, in_body: bool) -> Request:
        """Return the request of one page of its answer."""
        if not position.parameters:
            return self
        return self.with_parameters(position.parameters, in_body=in_body)

    def with_parameters(self, parameters: Mapping[str, Any], *, in_body: bool) -> Request:
        """Return the request with more parameters; in a body a dot leads into an object."""
        if in_body:
            body = dict(self.body or {})
            for name, value in parameters.items():
                body = _set(body, name.split("."), value)
            return Request(self.method, self.path, self.params, body)
        texts = {name: as_text(value) for name, value in parameters.items()}
        return Request(self.method, self.path, {**self.params, **texts}, self.body)


def sample_request(source: ApiSource) -> Request:
    """Return the request without any bound, of a source without placeholders."""
    return _request(source, lambda template: template.filled(_no_value))


def requests_above(
    source: ApiSource, ranges: Sequence[Range], zone: tzinfo
) -> list[tuple[Request, Range | None]]:
    """Return the requests that together answer with all rows of any of the ranges, each with the range that it is for.

    Several columns are joined by OR, which parameters of one request would join by AND: each column is asked for by itself. A column
    without a parameter, or without a lower bound, takes a request without any, and no other request is needed then.

    Args:
        source: what is asked.
        ranges: one a column.
        zone: of times that name none.

    Returns:
        a range of None stands for all of them.
    """
    plain, bounds = sample_request(source), source.bounds(zone)
    in_body = source.watermark_param_location == "body"
    asked: list[tuple[Request, Range | None]] = []
    for range_ in ranges:
        parameters: dict[str, str] = {}
        name = source.watermark_param_mapping.get(range_.column)
        if name is not None and range_.lower is not None:
            parameters[name] = bounds.lower(range_.lower)
        # How far numbers go, only the rows tell: no bound was sent when they were fetched, and none is when they are fetched again.
        if source.watermark_to_param is not None and isinstance(range_.upper, date):
            parameters[source.watermark_to_param] = bounds.upper(range_.upper)
        if not parameters and len(ranges) > 1:
            return [(plain, None)]
        asked.append((plain.with_parameters(parameters, in_body=in_body), range_))
    return asked or [(plain, None)]


def request_for(source: ApiSource, extent: Extent, zone: tzinfo, kind: Kind | None = None) -> Request:
    """Return the request for a stretch of time of one unit.

    Args:
        source: what is asked.
        extent: of one unit.
        zone: of the definition: placeholders are in it.
        kind: what the window column holds; None: there is none, or it is not known yet.

    Raises:
        PlanError: a unit's value would lead to another path; or the stretch has ends that the format of its parameters cannot say, and no
            column tells the time of a row.
    """
    (unit,) = extent.units
    lower, upper = covering(extent.lower, extent.upper, kind, zone)

    def filled(template: Template, *, in_path: bool) -> str:
        return template.filled(lambda placeholder: _filled(placeholder, bounds, unit, in_path=in_path))

    bounds = {
        name: _placeholder_bound(source, name, ms, zone)
        for name, ms in (("start", lower), ("end", upper))
        if ms is not None and name in source.placeholders
    }
    request = _request(
        source,
        lambda template: filled(template, in_path=False),
        lambda template: filled(template, in_path=True),
    )
    return request.with_parameters(
        _window_parameters(source, lower, upper, zone), in_body=source.watermark_param_location == "body"
    )


def _window_parameters(source: ApiSource, start: int | None, end: int | None, zone: tzinfo) -> dict[str, str]:
    """Both ends, where they have parameters. Rows that tell their time are filtered again, so the ends may lie further out."""
    bounds, parameters = source.bounds(zone), dict[str, str]()
    (name,) = source.watermark_param_mapping.values() or (None,)
    if name is not None and start is not None:
        lower = as_datetime(start)
        _check_said(source, bounds.begins_at(lower), lower)
        parameters[name] = bounds.lower(lower)
    if source.watermark_to_param is not None and end is not None:
        upper = as_datetime(end)
        _check_said(source, bounds.raised(upper) == upper, upper)
        parameters[source.watermark_to_param] = bounds.upper(upper)
    return parameters


def _placeholder_bound(source: ApiSource, name: str, ms: int, zone: tzinfo) -> datetime:
    """The start or end as its placeholders can say it; further out if rows that tell their time are filtered again."""
    moment, words = as_datetime(ms, zone), wording(source.asked, name, zone)
    if source.window_column is not None:
        return words.below(moment) if name == "start" else words.above(moment)
    if not (words.names(moment) or (source.asked_windows.names_place and words.says(moment))):
        raise PlanError(inexpressible(name, moment))
    return moment


def _check_said(source: ApiSource, exact: bool, moment: Any) -> None:
    if not exact and source.window_column is None:
        raise PlanError(
            f"source.watermark_param_format: expected a format that can say {moment.isoformat()}, an end of what is read, found"
            f" {source.watermark_param_format}; use iso, name the column with a row's time as window_column, or read whole windows (watermark.partial: false)"
        )


def _request(source: ApiSource, filled: Any, filled_path: Any = None) -> Request:
    path = (filled_path or filled)(Template.parse(source.path))
    params = {
        name: filled(Template.parse(value)) if isinstance(value, str) else as_text(value)
        for name, value in source.params.items()
    }
    return Request(source.method, path, params, source.body if source.method == "POST" else None)


def _filled(
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
    text = written(placeholder, moment)
    return quote(text, safe="") if in_path and not placeholder.form else text


def _as_segment(name: str, text: str) -> str:
    """A value that stays one part of a path, whatever it holds."""
    if text in ("", ".", ".."):
        raise PlanError(
            f"source.path: expected a value of unit {name} that can be a part of a path, found {text!r}"
        )
    return quote(text, safe="")


def _no_value(placeholder: Placeholder) -> str:
    raise AssertionError(placeholder)  # only windows have placeholders, and they are asked for by request_for


def _set(target: Mapping[str, Any], names: Sequence[str], value: Any) -> dict[str, Any]:
    """A copy of an object with a value somewhere in it."""
    first, *rest = names
    inner = target.get(first)
    return {
        **target,
        first: _set(inner if isinstance(inner, Mapping) else {}, rest, value) if rest else value,
    }
