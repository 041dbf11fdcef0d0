"""How a bound of a watermark is said in a parameter of a request (docs/source-api.md, Bounds).

A bound goes out in one of a few formats. What a format cannot say exactly is cut off, so a bound is first moved to one that it can say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Any, Literal

from partitions.errors import ConfigurationError
from partitions.instants import zone_of

Format = Literal["iso", "date", "datetime", "datetime_ms", "timestamp", "timestamp_ms"]
Exclusive = Literal["1ms", "1s", "1day"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
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
            return moment.isoformat()
        case "date":
            return moment.date().isoformat()
        case "datetime" | "datetime_ms":
            precision = "seconds" if form == "datetime" else "milliseconds"
            return moment.replace(tzinfo=None).isoformat(timespec=precision)
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if form == "timestamp":
        return str(aware.timestamp())
    elapsed = aware - _EPOCH
    milliseconds = abs(elapsed) // _MILLISECOND
    return str(milliseconds if elapsed >= timedelta(0) else -milliseconds)


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
    """

    form: Format = "iso"
    zone: tzinfo = UTC
    local_zone: tzinfo = UTC
    exclusive: Exclusive | None = None
    excludes_lower: bool = False

    @property
    def step(self) -> timedelta:
        """The finest difference between two bounds that the API can be told."""
        return max(_STEPS[self.form], _OFFSETS[self.exclusive] if self.exclusive else timedelta(0))

    def floored(self, value: Any) -> Any:
        """Return the highest bound that can be said and is not above a value; of its type, and what is no time as it is."""
        if not isinstance(value, datetime):
            return value
        if self.step < _DAY:
            start = _EPOCH if value.tzinfo else _EPOCH.replace(tzinfo=None)
            return value - (value - start) % self.step
        local = value.astimezone(self.zone) if value.tzinfo else value
        midnight = datetime.combine(local.date(), time.min, local.tzinfo)
        return midnight.astimezone(value.tzinfo) if value.tzinfo else midnight

    def raised(self, value: Any) -> Any:
        """Return the lowest bound that can be said and is not below a value."""
        floored = self.floored(value)
        if not isinstance(value, datetime) or floored == value:
            return value
        if self.step < _DAY:
            return floored + self.step
        local = floored.astimezone(self.zone) if floored.tzinfo else floored
        midnight = datetime.combine(local.date() + _DAY, time.min, local.tzinfo)
        return midnight.astimezone(value.tzinfo) if value.tzinfo else midnight

    def lower(self, value: Any) -> str:
        """Return the parameter for a lower bound: no row at or above it is left out."""
        moment = self._said(self.floored(value))
        if self.excludes_lower and isinstance(moment, datetime):
            moment = _earlier(moment, self.step)
        return formatted(moment, self.form)

    def upper(self, value: Any) -> str:
        """Return the parameter for an upper bound, which is exclusive; one that can be said exactly, as :meth:`floored` and :meth:`raised` give."""
        moment = self._said(value)
        return formatted(
            inclusive_end(moment, self.exclusive) if isinstance(moment, datetime) else moment, self.form
        )

    def _said(self, value: Any) -> Any:
        """A time in the zone that it is said in; a day as its midnight there."""
        if isinstance(value, datetime):
            if value.tzinfo is None and self.form not in ("timestamp", "timestamp_ms"):
                return value
            aware = value if value.tzinfo else value.replace(tzinfo=self.local_zone)
            return aware.astimezone(self.zone)
        if isinstance(value, date):
            return datetime.combine(value, time.min, self.zone)
        return value


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
