"""Bounds of a watermark as parameters of a request (docs/reference/apis.md, Bounds).

Formats truncate what they cannot express, so a bound is first moved to one that its format can express.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Any, Literal, TypeGuard

from partitions.bound_text import BoundFormat, Field, ceil_local, floor_local, iso_text
from partitions.errors import ConfigurationError
from partitions.instants import zone_of
from partitions.local_time import earliest_instant, latest_instant

Format = Literal["iso", "date", "datetime", "datetime_ms", "timestamp", "timestamp_ms"]
Exclusive = Literal["1ms", "1s", "1day"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_INSTANT, _LAST_INSTANT = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
"""The calendar's limits; some zones cannot express them."""

_MILLISECOND, _SECOND, _DAY = timedelta(milliseconds=1), timedelta(seconds=1), timedelta(days=1)
_STEPS: dict[Format, timedelta] = {
    "iso": timedelta(microseconds=1),
    "timestamp": timedelta(microseconds=1),
    "datetime_ms": _MILLISECOND,
    "timestamp_ms": _MILLISECOND,
    "datetime": _SECOND,
    "date": _DAY,
}
"""The finest difference that a format can express."""

_INSTANTS: tuple[Format, ...] = ("timestamp", "timestamp_ms")
_EXACT: tuple[Format, ...] = ("iso", *_INSTANTS)
"""The formats that express an unambiguous instant."""

_FIELDS: dict[timedelta, Field] = {
    timedelta(microseconds=1): "microsecond",
    _MILLISECOND: "millisecond",
    _SECOND: "second",
    _DAY: "day",
}

_OFFSETS: dict[Exclusive, timedelta] = {"1ms": _MILLISECOND, "1s": _SECOND, "1day": _DAY}
_ISO_TEXT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d.*)?", re.DOTALL)


def format_parameter(value: Any, form: Format) -> str:
    """Return a value as the text of a parameter.

    Args:
        value: a date means midnight in UTC; ISO text is parsed; other texts and numbers stay as they are.
        form: ``date`` and ``datetime`` drop the zone without converting; ``timestamp`` takes times without
        zone as UTC.

    Raises:
        ConfigurationError: an unknown format.
    """
    if form not in _STEPS:
        raise ConfigurationError(f"watermark_param_format: expected {', '.join(_STEPS)}, found {form!r}")
    time_value = _parse_time(value)
    if time_value is None:
        return f"{value:f}" if isinstance(value, Decimal) else str(value)
    match form:
        case "iso":
            return iso_text(time_value)
        case "date":
            return time_value.date().isoformat()
        case "datetime" | "datetime_ms":
            precision = "seconds" if form == "datetime" else "milliseconds"
            return time_value.replace(tzinfo=None).isoformat(timespec=precision)
    aware = time_value if time_value.tzinfo else time_value.replace(tzinfo=UTC)
    elapsed = aware - _EPOCH
    if form == "timestamp":
        return _in_seconds(elapsed)
    milliseconds = abs(elapsed) // _MILLISECOND
    return str(milliseconds if elapsed >= timedelta(0) else -milliseconds)


def _in_seconds(elapsed: timedelta) -> str:
    """Return seconds with all their microseconds, which a double cannot hold in every year."""
    seconds, parts = divmod(abs(elapsed) // timedelta(microseconds=1), 1_000_000)
    sign = "-" if elapsed < timedelta(0) else ""
    return f"{sign}{seconds}." + (f"{parts:06}".rstrip("0") or "0")


def inclusive_end(upper: datetime, mode: Exclusive | None) -> datetime:
    """Return the inclusive end to send for our exclusive bound; without a mode the bound itself.

    Raises:
        ConfigurationError: an unknown mode.
    """
    if mode is None:
        return upper
    if mode not in _OFFSETS:
        raise ConfigurationError(f"watermark_param_exclusive: expected {', '.join(_OFFSETS)}, found {mode!r}")
    return _earlier(upper, _OFFSETS[mode])


def parameter_zone(text: str | None) -> tzinfo:
    """Return the zone in which bounds are written; UTC if none is named.

    Raises:
        ConfigurationError: an unknown zone.
    """
    return zone_of(text) if text else UTC


@dataclass(frozen=True)
class BoundFormatter:
    """How bounds are written for one API.

    Attributes:
        form: the format of the texts.
        zone: the zone of instants.
        local_zone: the zone of times without one; only used if the API expects an instant.
        exclusive: how far the API's inclusive end lies below our exclusive bound; None: its end is
        exclusive, too.
        excludes_lower: whether the API leaves out rows at the lower bound itself.
        without_offset: whether all texts are local times of ``zone``.
    """

    form: Format = "iso"
    zone: tzinfo = UTC
    local_zone: tzinfo = UTC
    exclusive: Exclusive | None = None
    excludes_lower: bool = False
    without_offset: bool = False

    @property
    def step(self) -> timedelta:
        """The finest difference between two bounds that the API can receive."""
        return max(_STEPS[self.form], _OFFSETS[self.exclusive] if self.exclusive else timedelta(0))

    @property
    def wording(self) -> BoundFormat:
        """The precision and zone of an end; an end that counts days is midnight."""
        return BoundFormat(self.zone, _FIELDS[self.step], self._text.says_offset and self.step < _DAY)

    @property
    def _text(self) -> BoundFormat:
        """The precision and zone of any time."""
        return BoundFormat(
            self.zone, _FIELDS[_STEPS[self.form]], self.form in _EXACT and not self.without_offset
        )

    def floored(self, value: Any) -> Any:
        """Return the highest expressible end at or below a value, in the value's type.

        Values other than times are returned unchanged.
        """
        if not isinstance(value, datetime):
            return value
        if value.tzinfo is None:
            return floor_local(value, self.wording.finest)
        with suppress(OverflowError):
            bound = self.wording.below(value)
            while not self._ends_at(bound):
                bound = self.wording.below(self._end(bound))
            return bound.astimezone(value.tzinfo)
        return _FIRST_INSTANT

    def raised(self, value: Any) -> Any:
        """Return the lowest expressible end at or above a value."""
        if not isinstance(value, datetime):
            return value
        if value.tzinfo is None:
            return ceil_local(value, self.wording.finest)
        with suppress(OverflowError):
            bound = self.wording.above(value)
            while not self._ends_at(bound):
                bound = self.wording.above(_later(bound, self.step))
            return bound.astimezone(value.tzinfo)
        return _LAST_INSTANT

    def begins_at(self, value: datetime) -> bool:
        """Return whether the parameter for a lower bound expresses an aware time exactly."""
        begin = _earlier(value.astimezone(self.zone), self._lower_margin)
        return self._text.is_unambiguous(value) and self._begin(value).astimezone(UTC) == begin.astimezone(
            UTC
        )

    def _ends_at(self, bound: datetime) -> bool:
        """Return whether the text of an end is unambiguous; a day ends when the next one begins."""
        text = self._text
        if text.says_offset or self.form == "date":
            return True
        end = self._end(bound)
        return text.is_unambiguous(_with_clock_time(end, floor_local(end.replace(tzinfo=None), text.finest)))

    def lower(self, value: Any) -> str:
        """Return the parameter for a lower bound: it excludes no row at or above the bound.

        Before the calendar's first instant it is that instant.
        """
        if not isinstance(value, date):
            return format_parameter(value, self.form)
        try:
            return self._lower(value)
        except OverflowError:
            return format_parameter(_match_zone(value, _FIRST_INSTANT), self.form)

    def _lower(self, value: date) -> str:
        if _is_local(value) and self._sends_local_times:
            local = self._for_local_times
            begin = local._begin(earliest_instant(value, local.zone))
            return format_parameter(begin.replace(tzinfo=None), self.form)
        return format_parameter(self._begin(self._instant(value, earliest_instant)), self.form)

    def upper(self, value: Any) -> str:
        """Return the parameter for an exclusive upper bound: it excludes no row below the bound.

        After the calendar's last instant it is that instant.
        """
        if not isinstance(value, date):
            return format_parameter(value, self.form)
        try:
            return self._upper(value)
        except OverflowError:
            return format_parameter(_match_zone(value, _LAST_INSTANT), self.form)

    def _upper(self, value: date) -> str:
        if _is_local(value) and self._sends_local_times:
            local = self._for_local_times
            end = local._end(local.raised(latest_instant(value, local.zone)))
            return format_parameter(end.replace(tzinfo=None), self.form)
        return format_parameter(self._end(self.raised(self._instant(value, latest_instant))), self.form)

    @property
    def _sends_local_times(self) -> bool:
        """Whether times without zone are sent without one."""
        return self.form not in _INSTANTS

    @property
    def _for_local_times(self) -> BoundFormatter:
        """This formatter for times without zone."""
        return replace(self, zone=self.local_zone, without_offset=True)

    @property
    def _lower_margin(self) -> timedelta:
        """How far below a lower bound requests start."""
        return self.step if self.excludes_lower else timedelta(0)

    def _begin(self, value: datetime) -> datetime:
        bound = self.wording.below(value)
        return self.wording.below(_earlier(bound, self._lower_margin)) if self._lower_margin else bound

    def _end(self, bound: datetime) -> datetime:
        """Return the end to send, in the zone in which it is written."""
        return inclusive_end(bound.astimezone(self.zone), self.exclusive)

    def _instant(self, value: date, resolve: Callable[[datetime, tzinfo], datetime]) -> datetime:
        """Return a value as an instant; an ambiguous one becomes the first or last that it can mean.

        A day is its midnight.
        """
        if not isinstance(value, datetime):
            return resolve(datetime.combine(value, time.min), self.zone)
        return value if value.tzinfo else resolve(value, self.local_zone)


def _match_zone(value: date, time_value: datetime) -> datetime:
    """Return an instant in UTC, without an offset if the value has none."""
    return time_value.replace(tzinfo=None) if _is_local(value) else time_value


def _is_local(value: date) -> TypeGuard[datetime]:
    return isinstance(value, datetime) and value.tzinfo is None


def _with_clock_time(time_value: datetime, clock_time: datetime) -> datetime:
    """Return a time with another clock time and the same fold."""
    return clock_time.replace(tzinfo=time_value.tzinfo, fold=time_value.fold)


def _later(time_value: datetime, step: timedelta) -> datetime:
    return (time_value.astimezone(UTC) + step).astimezone(time_value.tzinfo)


def _earlier(time_value: datetime, step: timedelta) -> datetime:
    """Return the time one step earlier: days by the zone's calendar, shorter steps as they elapse."""
    if time_value.tzinfo is None or step >= _DAY:
        return time_value - step
    return (time_value.astimezone(UTC) - step).astimezone(time_value.tzinfo)


def _parse_time(value: Any) -> datetime | None:
    """Return the time of a value; None if it is none."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime.combine(value, time.min, UTC)
    if isinstance(value, str) and _ISO_TEXT.fullmatch(value):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            return None
    return None
