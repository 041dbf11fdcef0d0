"""Write bounds as text so that no row is left out (docs/reference/windows.md, Local times).

Every bound that leaves as text passes here: parameters of an API, placeholders of a query or request. A
text without an offset is a local time. In a repeated hour it means two instants, and a reader may take
either of them or compare local times, so such a text is never sent. A lower bound moves down to a text
that no reader takes for more, an upper bound moves up.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal, get_args

from partitions.local_time import earliest_instant, latest_instant, repeated_time

Field = Literal["year", "month", "day", "hour", "minute", "second", "millisecond", "microsecond"]
FIELDS: tuple[Field, ...] = get_args(Field)

_LOWEST = {"month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "microsecond": 0}
_STEPS: dict[Field, timedelta] = {
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
    "millisecond": timedelta(milliseconds=1),
    "microsecond": timedelta(microseconds=1),
}
_INSTANT = timedelta(microseconds=1)

Reading = tuple[datetime, datetime, datetime]
"""A moment, and the first and last instant that a reader may take its text for, in UTC."""


@dataclass(frozen=True)
class BoundFormat:
    """The fields that the text of a bound has.

    Attributes:
        zone: zone of the local time that is written.
        finest: the finest field that is written.
        says_offset: whether the offset from UTC is written, too.
    """

    zone: tzinfo
    finest: Field
    says_offset: bool = False

    def below(self, instant: datetime) -> datetime:
        """Return the latest moment, in the zone, whose text no reader takes for more than an aware instant."""
        at, wall = instant.astimezone(UTC), floor_local(_wall(instant, self.zone), self.finest)
        while True:
            fitting = [moment for moment, _, last in self._readings(wall) if last <= at]
            if fitting:
                return fitting[-1]
            wall = floor_local(self._repeated(wall)[0] - _INSTANT, self.finest)

    def above(self, instant: datetime) -> datetime:
        """Return the earliest moment, in the zone, whose text no reader takes for less than an aware instant."""
        at, wall = instant.astimezone(UTC), floor_local(_wall(instant, self.zone), self.finest)
        while True:
            fitting = [moment for moment, first, _ in self._readings(wall) if first >= at]
            if fitting:
                return fitting[0]
            wall = ceil_local(max(self._repeated(wall)[1], wall + _INSTANT), self.finest)

    def is_unambiguous(self, instant: datetime) -> bool:
        """Return whether the text of an aware instant means exactly that instant."""
        at = instant.astimezone(UTC)
        return self.below(instant).astimezone(UTC) == at == self.above(instant).astimezone(UTC)

    def is_coarser_than(self, field: Field) -> bool:
        """Return whether the text lacks a field."""
        return FIELDS.index(self.finest) < FIELDS.index(field)

    def can_express(self, moment: datetime) -> bool:
        """Return whether the text loses no field of an aware moment in the zone.

        That also holds if a field is cut off but clocks skip every other local time with the same text.
        The text may mean a second moment, too.
        """
        wall = _wall(moment, self.zone)
        floor = floor_local(wall, self.finest)
        return floor == wall or earliest_instant(floor, self.zone) == latest_instant(
            floor, self.zone
        ) == moment.astimezone(UTC)

    def _readings(self, wall: datetime) -> list[Reading]:
        """Return what a local time can mean, ascending.

        With an offset: each pass of a repeated hour. Without one: nothing for a repeated hour.
        """
        aware = wall.replace(tzinfo=self.zone)
        if self.says_offset:
            passes = sorted((moment.astimezone(UTC), moment) for moment in (aware, aware.replace(fold=1)))
            return [(moment, at, at) for at, moment in passes]
        if repeated_time(aware) is not None:
            return []
        return [(aware, earliest_instant(wall, self.zone), latest_instant(wall, self.zone))]

    def _repeated(self, wall: datetime) -> tuple[datetime, datetime]:
        """Return the repeated local times around one that cannot be written; else the local time twice."""
        stretch = None if self.says_offset else repeated_time(wall.replace(tzinfo=self.zone))
        if stretch is None:
            return wall, wall
        return _wall(stretch.start, self.zone), _wall(stretch.end, self.zone)


def iso_text(moment: datetime) -> str:
    """Return a moment as ISO 8601, in UTC if its offset has seconds.

    ISO 8601 has no offsets with seconds; zones had them before clocks were standardised.
    """
    return with_minute_offset(moment).isoformat()


def with_minute_offset(moment: datetime) -> datetime:
    """Return the same moment, in UTC if its offset has seconds, which few readers accept."""
    offset = moment.utcoffset()
    return moment.astimezone(UTC) if offset is not None and offset % timedelta(minutes=1) else moment


def floor_local(wall: datetime, finest: Field) -> datetime:
    """Round a local time down to its finest written field."""
    if finest == "millisecond":
        return wall.replace(microsecond=wall.microsecond // 1000 * 1000)
    cut = list(_LOWEST)[FIELDS.index(finest) :] if finest != "microsecond" else []
    return wall.replace(**{field: _LOWEST[field] for field in cut}) if cut else wall  # type: ignore[arg-type]


def ceil_local(wall: datetime, finest: Field) -> datetime:
    """Round a local time up to its finest written field."""
    floor = floor_local(wall, finest)
    if floor == wall:
        return wall
    if finest == "year":
        return datetime(floor.year + 1, 1, 1)  # noqa: DTZ001 - a local time
    if finest == "month":
        return datetime(floor.year + floor.month // 12, floor.month % 12 + 1, 1)  # noqa: DTZ001 - a local time
    return floor + _STEPS[finest]


def _wall(moment: datetime, zone: tzinfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)
