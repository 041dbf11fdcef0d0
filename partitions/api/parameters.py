"""How a bound of a watermark is said in a parameter of a request (docs/reference/apis.md, Bounds).

A bound goes out in one of a few formats. What a format cannot say exactly is cut off, so a bound is first moved to one that it can say.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Any, Literal, TypeGuard

from partitions.bound_text import Field, Wording, floored, iso, raised
from partitions.errors import ConfigurationError
from partitions.instants import zone_of
from partitions.local_time import earliest, latest

Format = Literal["iso", "date", "datetime", "datetime_ms", "timestamp", "timestamp_ms"]
Exclusive = Literal["1ms", "1s", "1day"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
"""The moments beyond which a calendar says none; some zones have none of them."""

_MILLISECOND, _SECOND, _DAY = timedelta(milliseconds=1), timedelta(seconds=1), timedelta(days=1)
_STEPS: dict[Format, timedelta] = {
    "iso": timedelta(microseconds=1),
    "timestamp": timedelta(microseconds=1),
    "datetime_ms": _MILLISECOND,
    "timestamp_ms": _MILLISECOND,
    "datetime": _SECOND,
    "date": _DAY,
}
"""The finest difference that a format can say."""

_INSTANTS: tuple[Format, ...] = ("timestamp", "timestamp_ms")
_EXACT: tuple[Format, ...] = ("iso", *_INSTANTS)
"""The formats that say an instant, whatever the clock shows."""

_FIELDS: dict[timedelta, Field] = {
    timedelta(microseconds=1): "microsecond",
    _MILLISECOND: "millisecond",
    _SECOND: "second",
    _DAY: "day",
}

_OFFSETS: dict[Exclusive, timedelta] = {"1ms": _MILLISECOND, "1s": _SECOND, "1day": _DAY}
_ISO_TEXT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d.*)?", re.DOTALL)


def formatted(value: Any, form: Format) -> str:
    """Return a value as the text of a parameter.

    Args:
        value: a date is its midnight in UTC; ISO text is read, any other text stays as it is; so do numbers.
        form: ``date`` and ``datetime`` drop the zone without converting; of ``timestamp`` a time without zone is in UTC.

    Raises:
        ConfigurationError: for an unknown format.
    """
    if form not in _STEPS:
        raise ConfigurationError(f"watermark_param_format: expected {', '.join(_STEPS)}, found {form!r}")
    moment = _moment(value)
    if moment is None:
        return f"{value:f}" if isinstance(value, Decimal) else str(value)
    match form:
        case "iso":
            return iso(moment)
        case "date":
            return moment.date().isoformat()
        case "datetime" | "datetime_ms":
            precision = "seconds" if form == "datetime" else "milliseconds"
            return moment.replace(tzinfo=None).isoformat(timespec=precision)
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    elapsed = aware - _EPOCH
    if form == "timestamp":
        return _in_seconds(elapsed)
    milliseconds = abs(elapsed) // _MILLISECOND
    return str(milliseconds if elapsed >= timedelta(0) else -milliseconds)


def _in_seconds(elapsed: timedelta) -> str:
    """Seconds with all their microseconds, which a double does not have in all years."""
    seconds, parts = divmod(abs(elapsed) // timedelta(microseconds=1), 1_000_000)
    sign = "-" if elapsed < timedelta(0) else ""
    return f"{sign}{seconds}." + (f"{parts:06}".rstrip("0") or "0")


def inclusive_end(upper: datetime, mode: Exclusive | None) -> datetime:
    """Return the end that an API is asked for whose end is inclusive, below our exclusive bound; without a mode the bound itself.

    Raises:
        ConfigurationError: for an unknown mode.
    """
    if mode is None:
        return upper
    if mode not in _OFFSETS:
        raise ConfigurationError(f"watermark_param_exclusive: expected {', '.join(_OFFSETS)}, found {mode!r}")
    return _earlier(upper, _OFFSETS[mode])


def parameter_zone(text: str | None) -> tzinfo:
    """Return the zone that bounds are said in: UTC for none.

    Raises:
        ConfigurationError: for an unknown one.
    """
    return zone_of(text) if text else UTC


@dataclass(frozen=True)
class Bounds:
    """How one API is told of bounds.

    Attributes:
        form: of the texts.
        zone: that instants are said in.
        local_zone: of times without zone, which say none unless the API wants an instant.
        exclusive: how far its inclusive end lies below our exclusive bound; None: its end is exclusive, too.
        excludes_lower: whether it leaves out rows at the lower bound itself.
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
        """The finest difference between two bounds that the API can be told."""
        return max(_STEPS[self.form], _OFFSETS[self.exclusive] if self.exclusive else timedelta(0))

    @property
    def wording(self) -> Wording:
        """How an end is written that the API can be told. An end that counts days is the midnight that the API makes of one."""
        return Wording(self.zone, _FIELDS[self.step], self._text.says_offset and self.step < _DAY)

    @property
    def _text(self) -> Wording:
        """How any time is written."""
        return Wording(self.zone, _FIELDS[_STEPS[self.form]], self.form in _EXACT and not self.without_offset)

    def floored(self, value: Any) -> Any:
        """Return the highest end that can be said exactly and is not above a value; of its type, and what is no time as it is."""
        if not isinstance(value, datetime):
            return value
        if value.tzinfo is None:
            return floored(value, self.wording.finest)
        with suppress(OverflowError):
            bound = self.wording.below(value)
            while not self._ends_at(bound):
                bound = self.wording.below(self._end(bound))
            return bound.astimezone(value.tzinfo)
        return _FIRST

    def raised(self, value: Any) -> Any:
        """Return the lowest end that can be said exactly and is not below a value."""
        if not isinstance(value, datetime):
            return value
        if value.tzinfo is None:
            return raised(value, self.wording.finest)
        with suppress(OverflowError):
            bound = self.wording.above(value)
            while not self._ends_at(bound):
                bound = self.wording.above(_later(bound, self.step))
            return bound.astimezone(value.tzinfo)
        return _LAST

    def begins_at(self, value: datetime) -> bool:
        """Return whether the parameter for a lower bound says exactly an aware time."""
        begin = _earlier(value.astimezone(self.zone), self._before)
        return self._text.names(value) and self._begin(value).astimezone(UTC) == begin.astimezone(UTC)

    def _ends_at(self, bound: datetime) -> bool:
        """Whether the text of an end means that end to each reader; a day is over when the next one begins."""
        text = self._text
        if text.says_offset or self.form == "date":
            return True
        end = self._end(bound)
        return text.names(_with_wall(end, floored(end.replace(tzinfo=None), text.finest)))

    def lower(self, value: Any) -> str:
        """Return the parameter for a lower bound: no row at or above it is left out. Below what a calendar can say it is the first moment of all."""
        if not isinstance(value, date):
            return formatted(value, self.form)
        try:
            return self._lower(value)
        except OverflowError:
            return formatted(_of_kind(value, _FIRST), self.form)

    def _lower(self, value: date) -> str:
        if _is_local(value) and self._are_local:
            local = self._of_local_times
            begin = local._begin(earliest(value, local.zone))
            return formatted(begin.replace(tzinfo=None), self.form)
        return formatted(self._begin(self._instant(value, earliest)), self.form)

    def upper(self, value: Any) -> str:
        """Return the parameter for an upper bound, which is exclusive: no row below it is left out. Beyond what a calendar can say it is the last moment of all."""
        if not isinstance(value, date):
            return formatted(value, self.form)
        try:
            return self._upper(value)
        except OverflowError:
            return formatted(_of_kind(value, _LAST), self.form)

    def _upper(self, value: date) -> str:
        if _is_local(value) and self._are_local:
            local = self._of_local_times
            end = local._end(local.raised(latest(value, local.zone)))
            return formatted(end.replace(tzinfo=None), self.form)
        return formatted(self._end(self.raised(self._instant(value, latest))), self.form)

    @property
    def _are_local(self) -> bool:
        """Whether times without zone go out without one."""
        return self.form not in _INSTANTS

    @property
    def _of_local_times(self) -> Bounds:
        """The same for times without zone."""
        return replace(self, zone=self.local_zone, without_offset=True)

    @property
    def _before(self) -> timedelta:
        """How far below a lower bound the API is asked from."""
        return self.step if self.excludes_lower else timedelta(0)

    def _begin(self, value: datetime) -> datetime:
        bound = self.wording.below(value)
        return self.wording.below(_earlier(bound, self._before)) if self._before else bound

    def _end(self, bound: datetime) -> datetime:
        """The end that the API is asked for, in the zone that it is said in."""
        return inclusive_end(bound.astimezone(self.zone), self.exclusive)

    def _instant(self, value: date, reading: Callable[[datetime, tzinfo], datetime]) -> datetime:
        """A time; of one without zone, and of a day's midnight, the first or last instant that it can mean."""
        if not isinstance(value, datetime):
            return reading(datetime.combine(value, time.min), self.zone)
        return value if value.tzinfo else reading(value, self.local_zone)


def _of_kind(value: date, moment: datetime) -> datetime:
    """A moment in UTC, without an offset if a value has none."""
    return moment.replace(tzinfo=None) if _is_local(value) else moment


def _is_local(value: date) -> TypeGuard[datetime]:
    return isinstance(value, datetime) and value.tzinfo is None


def _with_wall(moment: datetime, wall: datetime) -> datetime:
    """The same pass of another local time."""
    return wall.replace(tzinfo=moment.tzinfo, fold=moment.fold)


def _later(moment: datetime, step: timedelta) -> datetime:
    return (moment.astimezone(UTC) + step).astimezone(moment.tzinfo)


def _earlier(moment: datetime, step: timedelta) -> datetime:
    """So much time before: a day by the calendar of its zone, less as it passes, also where clocks are put forward or back."""
    if moment.tzinfo is None or step >= _DAY:
        return moment - step
    return (moment.astimezone(UTC) - step).astimezone(moment.tzinfo)


def _moment(value: Any) -> datetime | None:
    """The time that a value is; None if it is none."""
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
