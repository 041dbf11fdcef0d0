"""An HTTP API that answers in JSON (docs/reference/apis.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import tzinfo
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, ByteSize, Field, model_validator

from partitions.api.calendar_ranges import Unit
from partitions.api.paging import Cursor, Location, Name, Paging, parameter_names
from partitions.api.parameters import BoundFormatter, Exclusive, Format, parameter_zone
from partitions.errors import ConfigurationError
from partitions.model import Flag, Model
from partitions.placeholders import Placeholder, Template
from partitions.refusal import Refusal
from partitions.sources.definition import (
    NO_TIME,
    WHOLE_WINDOW,
    BoundText,
    ConnectionType,
    IncrementalSupport,
    RecordSupport,
    WindowSupport,
)
from partitions.sources.rows import ColumnName, RowsSource

NEVER_EMPTY = frozenset({401, 403, 407, 408, 425, 429})
"""Statuses from 400 to 499 that never mean that there are no rows."""
_DOTTED = re.compile(r"[^.\s]+(\.[^.\s]+)*")


def _check_path(text: str) -> str:
    Template.parse(text)
    if "://" in text or text.startswith("//") or "?" in text or "#" in text:
        raise ValueError(
            "expected a path below the connection's base_url, such as /orders; its parameters go into params"
        )
    return text


def _check_dotted_path(text: str) -> str:
    if not _DOTTED.fullmatch(text):
        raise ValueError("expected names with dots between them, such as data.items")
    return text


def _check_template(value: Any) -> Any:
    if isinstance(value, str):
        Template.parse(value)
    return value


def _check_ignored_status(status: int) -> int:
    if status in NEVER_EMPTY or not 400 <= status < 500:
        raise ValueError(
            "expected statuses from 400 to 499 that mean no rows, such as 404; a status of credentials (401, 403, "
            "407) or of a passing failure (408, 425, 429, 5xx) never does"
        )
    return status


def _check_zone(text: str) -> str:
    try:
        parameter_zone(text)
    except ConfigurationError as error:
        raise ValueError(error.message) from error
    return text


IgnoredStatus = Annotated[int, Field(strict=True), AfterValidator(_check_ignored_status)]
Param = Annotated[str | int | float | bool, AfterValidator(_check_template)]


class ParamRange(Model):
    """The length of time that one request asks for."""

    amount: Annotated[int, Field(ge=1, strict=True)]
    unit: Unit


class ApiSource(RowsSource):
    """An HTTP API that answers in JSON.

    Attributes:
        connection: a connection of ``platform.yaml``, of type api.
        path: below the connection's ``base_url``; may contain ``{start}``, ``{end}`` and ``{unit.NAME}``.
        method: the HTTP method of each request.
        params: query parameters of each request; texts may contain the same placeholders.
        body: the JSON body of each request.
        records: the dotted path of the records in an answer; None: the answer itself.
        records_optional: whether null or nothing at ``records`` means that there are no records.
        errors: the dotted path of error details in an answer; ``ignore``: there are none; None: ``errors``
        or ``error`` beside the records.
        paging: how to request further pages; None: there is one page.
        watermark_param_mapping: by column, the parameter for its lower bound.
        watermark_to_param: the parameter for the upper bound.
        watermark_param_location: where both parameters go; in a body a dot leads into an object.
        watermark_param_format: the format of both.
        watermark_param_range: the length of time that one request asks for.
        watermark_param_exclusive: how far the API's inclusive end lies below our exclusive bound.
        watermark_param_timezone: the zone in which bounds are written.
        watermark_from_exclusive: whether the API leaves out rows at the lower bound itself.
        schema_: Spark DDL; without it the schema is inferred once from the first pages and pinned.
        ignore_http_codes: statuses that mean "no rows" instead of an error, such as 404 for an empty
        window.
        total: the dotted path of a request's total number of records; fewer records are an error.
        total_header: the header with that total instead.
        max_records: the most records that the API returns for one request; a request that reaches it is
        halved, or fails.
        max_pages: the most pages of one request; more are an error.
        max_page_bytes: the largest page, uncompressed; larger ones are an error.
    """

    connection_type: ClassVar[ConnectionType | None] = "api"
    has_query: ClassVar[bool] = True
    placeholder_location: ClassVar[tuple[str, str]] = ("path", "path or params")

    type: Literal["api"]
    connection: Annotated[str, Field(min_length=1)]
    path: Annotated[str, Field(min_length=1), AfterValidator(_check_path)]
    method: Literal["GET", "POST"] = "GET"
    params: dict[Name, Param] = Field(default_factory=dict)
    body: dict[str, Any] | None = None
    records: Annotated[str, AfterValidator(_check_dotted_path)] | None = None
    records_optional: Flag = False
    errors: Annotated[str, AfterValidator(_check_dotted_path)] | None = None
    paging: Paging | None = None
    watermark_param_mapping: dict[ColumnName, Name] = Field(default_factory=dict)
    watermark_to_param: Name | None = None
    watermark_param_location: Location = "params"
    watermark_param_format: Format = "iso"
    watermark_param_range: ParamRange | None = None
    watermark_param_exclusive: Exclusive | None = None
    watermark_param_timezone: Annotated[str, AfterValidator(_check_zone)] | None = None
    watermark_from_exclusive: Flag = False
    schema_: Annotated[str | None, Field(alias="schema", min_length=1)] = None
    ignore_http_codes: tuple[IgnoredStatus, ...] = ()
    total: Annotated[str, AfterValidator(_check_dotted_path)] | None = None
    total_header: Name | None = None
    max_records: Annotated[int, Field(ge=1, strict=True)] | None = None
    max_pages: Annotated[int, Field(ge=1, strict=True)] = 10_000
    max_page_bytes: Annotated[ByteSize, Field(ge=1024)] = ByteSize(64 * 2**20)

    @model_validator(mode="after")
    def _keys_go_together(self) -> ApiSource:
        _check_keys_together(self)
        return self

    def bounds(self, local_zone: tzinfo | None = None) -> BoundFormatter:
        """Return how bounds are written in parameters; ``local_zone`` applies to times without zone."""
        zone = parameter_zone(self.watermark_param_timezone)
        return BoundFormatter(
            self.watermark_param_format,
            zone,
            local_zone or zone,
            self.watermark_param_exclusive,
            self.watermark_from_exclusive,
        )

    @property
    def label(self) -> str:
        """The path and the connection."""
        return f"{self.path} of {self.connection}"

    @property
    def form(self) -> str:
        """The type of the source: its records are rows."""
        return "api"

    @cached_property
    def request_placeholders(self) -> Sequence[Placeholder]:
        """The placeholders in path and params."""
        texts = [text for text in (self.path, *self.params.values()) if isinstance(text, str)]
        return [placeholder for text in texts for placeholder in Template.parse(text).placeholders]

    @property
    def placeholders(self) -> frozenset[str]:
        """The names of the placeholders in path and params, without braces."""
        return frozenset(placeholder.name for placeholder in self.request_placeholders)

    @property
    def incremental_support(self) -> IncrementalSupport:
        """Saves the upper bound if one is sent; detects new rows if a lower bound is sent."""
        return IncrementalSupport(
            saves_bound=self.watermark_to_param is not None,
            detects_new_rows=bool(self.watermark_param_mapping),
        )

    @property
    def sends_window(self) -> bool:
        """Whether requests contain the window, by placeholders or parameters."""
        return "start" in self.placeholders or bool(self.watermark_param_mapping)

    @property
    def window_support(self) -> WindowSupport:
        """Any range if rows have a time or both ends are sent; by start alone as in folder names.

        Parameters for the window rule the latter out.
        """
        return WindowSupport(
            by_range=self.window_column is not None or self.sends_both_ends,
            named_by_start=super().window_support.named_by_start and not self.watermark_param_mapping,
        )

    @property
    def window_placeholders(self) -> Sequence[Placeholder]:
        """The placeholders in path and params, if nothing else identifies the window of a row."""
        return (
            self.request_placeholders
            if self.window_column is None and not self.watermark_param_mapping
            else ()
        )

    def bound_texts(self, zone: tzinfo) -> Iterator[BoundText]:
        """Yield how placeholders and parameters write the ends of windows."""
        yield from super().bound_texts(zone)
        key, words = ("source", "watermark_param_format"), self.bounds(zone).wording
        for name, is_sent in (("start", self.watermark_param_mapping), ("end", self.watermark_to_param)):
            if is_sent:
                yield BoundText(name, key, f"{key[1]}: {self.watermark_param_format}", words)

    @property
    def sends_both_ends(self) -> bool:
        """Whether requests contain both the start and the end of a window."""
        return self.placeholders >= WHOLE_WINDOW or (
            bool(self.watermark_param_mapping) and self.watermark_to_param is not None
        )

    @property
    def declared_schema(self) -> str | None:
        """``schema``."""
        return self.schema_

    @property
    def record_support(self) -> RecordSupport:
        """Fields that the schema lacks can be left out."""
        return RecordSupport(always_checked=None, name_fields=True)

    def identity(self) -> dict[str, Any]:
        """Return the keys that identify the source: a change makes it another one (docs/reference/state.md)."""
        paging = self.paging.model_dump(include={"type", "param", "next"}) if self.paging else None
        if paging and isinstance(self.paging, Cursor) and self.paging.header:
            paging["header"] = self.paging.header
        keys = {
            "type",
            "connection",
            "path",
            "method",
            "params",
            "body",
            "records",
            "window_column",
            "unit_columns",
        }
        mapped_columns = {"watermark_param_mapping", "watermark_to_param"}
        return self.model_dump(include=keys | mapped_columns) | {"paging": paging}

    def reading(self) -> dict[str, Any]:
        """Return further keys that its rows depend on."""
        return {"schema": self.schema_}

    def unit_refusals(self) -> Iterator[Refusal]:
        """Yield parameters for bounds, which a list of units does not have."""
        yield from super().unit_refusals()
        for key in ("watermark_param_mapping", "watermark_to_param", "watermark_param_range"):
            if getattr(self, key):
                yield Refusal(("source", key), "it", "no such key (a list of units has no bounds)")

    def window_refusals(self, *, timed: bool, unit_fields: Sequence[str]) -> Iterator[Refusal]:
        """Yield what requests and columns lack to identify windows and units, or have too much."""
        names = self.placeholders
        if timed and self.window_column is None and not self.sends_window:
            yield Refusal(
                ("source", "window_column"),
                "nothing",
                "path or params with {start} and {end}, or watermark_param_mapping and watermark_to_param, or the column with a row's time"
                " (windows are read)",
            )
        if not timed:
            if self.window_column is not None:
                yield Refusal(("source", "window_column"), self.window_column, NO_TIME)
            if names & WHOLE_WINDOW:
                yield Refusal(("source", "path"), f"{{{min(names & WHOLE_WINDOW)}}}", NO_TIME)
            if self.watermark_param_mapping:
                yield Refusal(
                    ("source", "watermark_param_mapping"), ", ".join(self.watermark_param_mapping), NO_TIME
                )
        yield from _mapped_time_refusals(self, timed)
        if self.watermark_param_range is not None:
            yield Refusal(
                ("source", "watermark_param_range"),
                "a range with windows",
                "no such key (each window is a request; watermark.window sets its length)",
            )
        yield from self._unit_refusals(unit_fields)

    def parameter_refusals(self, columns: Sequence[str], nulls: str) -> Iterator[Refusal]:
        """Yield parameters for other columns, and bounds that one parameter cannot express."""
        for column in self.watermark_param_mapping:
            if column not in columns:
                yield Refusal(
                    ("source", "watermark_param_mapping", column),
                    column,
                    f"a column of watermark.columns: {', '.join(columns)}",
                )
        if self.watermark_to_param is not None and len(columns) > 1:
            yield Refusal(
                ("source", "watermark_to_param"),
                f"{self.watermark_to_param} with {len(columns)} columns",
                "one column in watermark.columns with it (a row is new if any of several columns rose, which one "
                "upper bound cannot express)",
            )
        if nulls in ("fail", "read"):
            yield Refusal(
                ("watermark", "nulls"),
                nulls,
                "first or skip (no parameter asks an API for rows without a value, so each run would read everything)",
            )


def _mapped_time_refusals(source: ApiSource, timed: bool) -> Iterator[Refusal]:
    key, mapped_columns = ("source", "watermark_param_mapping"), source.watermark_param_mapping
    if timed and len(mapped_columns) > 1:
        yield Refusal(key, ", ".join(mapped_columns), "one column, that of a row's time (windows are read)")
    elif (
        timed
        and mapped_columns
        and source.window_column is not None
        and source.window_column not in mapped_columns
    ):
        yield Refusal(key, ", ".join(mapped_columns), f"{source.window_column}, the window_column")
    if timed and mapped_columns and source.window_column is None and source.watermark_to_param is None:
        yield Refusal(
            ("source", "watermark_to_param"),
            "nothing",
            "the parameter for a window's end, or the column with a row's time as window_column (else a window has no end)",
        )


def _check_keys_together(source: ApiSource) -> None:
    """Check keys that need or exclude each other.

    Raises:
        ValueError: a parameter has two values, a body is not sent, a total has two paths, or a range has
        no end.
    """
    _check_unique_parameters(source)
    _check_one_total(source)
    _check_body_is_sent(source)
    _check_ranges_end(source)


def _check_unique_parameters(source: ApiSource) -> None:
    in_params, in_body = list(source.params), list(source.body or {})
    bounds = in_params if source.watermark_param_location == "params" else in_body
    bounds += [*source.watermark_param_mapping.values(), *filter(None, [source.watermark_to_param])]
    if source.paging is not None:
        (in_params if source.paging.location == "params" else in_body).extend(parameter_names(source.paging))
    for where, names in (("params", in_params), ("body", in_body)):
        repeated_name = next((name for name in names if names.count(name) > 1), None)
        if repeated_name:
            raise ValueError(f"expected each parameter once in {where}, found {repeated_name} twice")


def _check_one_total(source: ApiSource) -> None:
    if source.total is not None and source.total_header is not None:
        raise ValueError("total_header: expected it, or total, found both")


def _check_body_is_sent(source: ApiSource) -> None:
    uses = {
        "body": source.body is not None,
        "watermark_param_location": source.watermark_param_location == "body",
        "paging": source.paging is not None and source.paging.location == "body",
    }
    body_key = next((key for key, is_used in uses.items() if is_used), None)
    if body_key and source.method == "GET":
        raise ValueError(f"{body_key}: expected method: POST with parameters in a body, found GET")


def _check_ranges_end(source: ApiSource) -> None:
    if source.watermark_param_range is None:
        return
    if source.watermark_to_param is None or not source.watermark_param_mapping:
        raise ValueError(
            "watermark_param_range: expected watermark_param_mapping and watermark_to_param with it (without "
            "both, each range would have no end), found one of them at most"
        )
    if source.watermark_param_range.unit == "hour" and source.bounds().step.days:
        raise ValueError(
            "watermark_param_range: expected days or more, found hours, which dates cannot express"
        )
