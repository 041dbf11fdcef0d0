"""Look-back: how far below the stored watermark a run reads again.

See docs/reference/columns.md, Look-back. It moves the lower bound of a read, never the stored watermark,
and only down.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal, localcontext
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from partitions.errors import ConfigurationError
from partitions.model import Model
from partitions.watermark import compare_values

Unit = Literal["days", "hours", "months", "years", "closing_day", "by"]
_UNITS: tuple[Unit, ...] = ("days", "hours", "months", "years", "closing_day", "by")
_FLAT = "backward_"
_LOWEST = -(2**63)
_DIGITS = 200
"""More digits than any decimal of a source has."""

_ISO_TEXT = re.compile(
    r"\d{4}-\d\d-\d\d(?P<time>(?P<separator>[T ])\d\d(?P<rest>:\d\d(?::\d\d(?:[.,]\d+)?)?)(?P<offset>Z|[+-]\d\d:?\d\d)?)?"
)


def _count(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("expected a whole number of at least 0")
    return value


_Count = Annotated[int | None, BeforeValidator(_count)]


class LookBack(Model):
    """The distance that a run reads back.

    Attributes:
        days: days of 24 hours.
        hours: hours of elapsed time.
        months: calendar months, after days and hours; a day that the month lacks becomes its last.
        years: calendar years, as months.
        closing_day: a day of the month: up to it the previous month is read again, after it only the
        current one. ``months`` and ``years`` then move that first day; ``days`` and ``hours`` have no
        effect.
        by: a distance below a stored number. It moves no time, and the other units move no number.
    """

    days: _Count = None
    hours: _Count = None
    months: _Count = None
    years: _Count = None
    closing_day: _Count = None
    by: _Count = None

    @property
    def units(self) -> dict[str, int]:
        """The units that the user has set, even to 0."""
        values = {unit: getattr(self, unit) for unit in _UNITS}
        return {unit: value for unit, value in values.items() if value is not None}

    @property
    def in_words(self) -> str:
        """The distance for people: ``P3D``, ``P1MT6H``, ``100``; of a closing day its number."""
        if self.closing_day is not None:
            return f"closing_day {self.closing_day}"
        dates = "".join(
            f"{count}{unit}"
            for count, unit in ((self.years, "Y"), (self.months, "M"), (self.days, "D"))
            if count
        )
        times = f"T{self.hours}H" if self.hours else ""
        distances = [f"P{dates}{times}" if dates or times else "", f"{self.by:,}" if self.by else ""]
        return ", ".join(filter(None, distances))

    @property
    def reads_again(self) -> bool:
        """Whether a run reads anything below the stored watermark."""
        return self.moves_times or self.moves_numbers

    @property
    def moves_times(self) -> bool:
        """Whether a run reads times again."""
        return self.closing_day is not None or any(
            count for unit, count in self.units.items() if unit != "by"
        )

    @property
    def moves_numbers(self) -> bool:
        """Whether a run reads numbers again."""
        return bool(self.by)

    def lower_bound(self, value: Any, now: datetime) -> Any:
        """Return the lower bound of a read, in the type and form of the stored value and never above it.

        Args:
            value: the stored value. Dates, datetimes, ISO text and numbers move; every other value stays.
            now: the clock, aware: its day is compared with ``closing_day``, and its zone is that of the
            month's first day.
        """
        moved = self._earlier(value, now)
        return moved if moved != value and compare_values(moved, value) < 0 else value

    def _earlier(self, value: Any, now: datetime) -> Any:
        if isinstance(value, str):
            return self._text(value, now)
        if isinstance(value, datetime):
            return self._moved(value, now, now.tzinfo if value.tzinfo is None else None)
        if isinstance(value, date):
            return self._moved(datetime.combine(value, time.min), now).date()
        if isinstance(value, int | float | Decimal) and self.by:
            return _less(value, self.by)
        return value

    def _moved(self, value: datetime, now: datetime, zone: tzinfo | None = None) -> datetime:
        """Move a time back.

        A local time of a zone moves at least by the elapsed time, even where clocks go forward.
        """
        if self.closing_day is None:
            try:
                span = timedelta(days=self.days or 0, hours=self.hours or 0)
                earlier = value - span
                if zone is not None:
                    passed = (value.replace(tzinfo=zone).astimezone(UTC) - span).astimezone(zone)
                    earlier = min(earlier, passed.replace(tzinfo=None))
            except OverflowError:
                earlier = value.replace(year=1, month=1, day=1, hour=0, minute=0, second=0, microsecond=0)
            return self._months_before(earlier)
        boundary = self._months_before(self._month_to_read(now, self.closing_day))
        if value.tzinfo is None:
            boundary = boundary.replace(tzinfo=None)
        return min(value, boundary)

    @staticmethod
    def _month_to_read(now: datetime, closing_day: int) -> datetime:
        first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        return _months_before(first, 1) if now.day <= closing_day else first

    def _months_before(self, value: datetime) -> datetime:
        return _months_before(value, (self.months or 0) + 12 * (self.years or 0))

    def _text(self, value: str, now: datetime) -> str:
        """Move ISO text back; its date and hour change, and the rest stays as written."""
        form = _ISO_TEXT.fullmatch(value)
        try:
            before = datetime.fromisoformat(value) if form else None
        except ValueError:
            return value
        if form is None or before is None:
            return value
        after = self._moved(before, now)
        if form["time"] is None:
            return after.date().isoformat()
        if after == before:
            return value
        if self.closing_day is None:
            return f"{after.date()}{form['separator']}{after:%H}{form['rest']}{form['offset'] or ''}"
        midnight = re.sub(r"\d", "0", form["rest"])
        return f"{after.date()}{form['separator']}00{midnight}{_offset(after, form['offset'])}"


def parse_look_back(config: Mapping[str, Any]) -> LookBack | None:
    """Return the look-back of a block of settings; None if the block has no unit.

    Units may be flat (``backward_days: 7``), nested (``backward: {days: 7}``) or both.

    Args:
        config: the block; keys that do not start with ``backward`` are ignored. A nested unit wins over
        the flat one.

    Raises:
        ConfigurationError: an unknown unit, or a value that is not a whole number of at least 0.
    """
    nested = config.get("backward") or {}
    if not isinstance(nested, Mapping):
        raise ConfigurationError(
            f"backward: expected units with numbers, such as {{days: 7}}, found {nested!r}"
        )
    flat = {key.removeprefix(_FLAT): value for key, value in config.items() if key.startswith(_FLAT)}
    units = flat | {unit: value for unit, value in nested.items() if value is not None or unit not in flat}
    for unit in units:
        if unit not in _UNITS:
            raise ConfigurationError(f"backward: expected units from {', '.join(_UNITS)}, found {unit!r}")
    try:
        block = LookBack(**{unit: _count(value) for unit, value in units.items()})
    except ValueError as error:
        raise ConfigurationError(f"backward: {error}, found {dict(units)!r}") from error
    return block if block.units else None


def nest_look_back(settings: Any) -> Any:
    """Return a block of settings with flat units such as ``backward_days: 7`` as ``backward: {days: 7}``.

    Unknown units stay, to be refused as unknown keys; a value that is no block stays as it is.

    Raises:
        ConfigurationError: as :func:`parse_look_back`.
    """
    if not isinstance(settings, Mapping):
        return settings
    flat = {f"{_FLAT}{unit}" for unit in _UNITS} & settings.keys()
    if not flat or isinstance(settings.get("backward"), LookBack):
        return settings
    block = parse_look_back(
        {key: value for key, value in settings.items() if key in flat or key == "backward"}
    )
    return {key: value for key, value in settings.items() if key not in flat} | {
        "backward": block and block.units
    }


def _less(value: float | Decimal, by: int) -> float | Decimal:
    """Return a number lowered exactly; a 64-bit integer stays within 64 bits."""
    if isinstance(value, int):
        return max(value - by, _LOWEST) if value >= _LOWEST else value - by
    with localcontext(prec=_DIGITS):
        return value - by


def _months_before(value: datetime, months: int) -> datetime:
    """Return the same time some months earlier; the day is clamped to the month's last, the year to 1."""
    year, month = divmod(value.year * 12 + value.month - 1 - months, 12)
    if year < 1:
        year, month = 1, 0
    day = min(value.day, calendar.monthrange(year, month + 1)[1])
    return value.replace(year=year, month=month + 1, day=day)


def _offset(value: datetime, form: str | None) -> str:
    """Return the offset of a time in the form of a text's offset."""
    if form is None:
        return ""
    offset = value.isoformat()[-6:]
    if form == "Z" and offset == "+00:00":
        return "Z"
    return offset if form == "Z" or ":" in form else offset.replace(":", "")
