"""Bounds as text: whether a text names an instant exactly, and how far a bound moves so that no row is left out (docs/reference/windows.md, Local times).

Every bound that leaves as text passes here: parameters of an API, placeholders of a query or request. A text without an offset is a local
time. In a repeated hour it means two instants, and who reads it may take either, or compare local times: so it is never sent. A lower
bound moves down to a text that no reader takes for more, an upper bound up.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal, get_args

from partitions.local_time import earliest, latest, repeated

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
"""A moment whose text can be written, and the first and last instant that a reader takes the text for, in UTC."""


@dataclass(frozen=True)
class Wording:
    """How a bound is written.

    Attributes:
        zone: of the local time that is written.
        finest: the finest field of it.
        says_offset: whether the offset from UTC is written, too.
    """

    zone: tzinfo
    finest: Field
    says_offset: bool = False

    def below(self, instant: datetime) -> datetime:
        """Return the latest moment, in the zone, whose text no reader takes for more than an aware instant."""
        at, wall = instant.astimezone(UTC), floored(_wall(instant, self.zone), self.finest)
        while True:
            fitting = [moment for moment, _, last in self._readings(wall) if last <= at]
            if fitting:
                return fitting[-1]
            wall = floored(self._repeated(wall)[0] - _INSTANT, self.finest)

    def above(self, instant: datetime) -> datetime:
        """Return the earliest moment, in the zone, whose text no reader takes for less than an aware instant."""
        at, wall = instant.astimezone(UTC), floored(_wall(instant, self.zone), self.finest)
        while True:
            fitting = [moment for moment, first, _ in self._readings(wall) if first >= at]
            if fitting:
                return fitting[0]
            wall = raised(max(self._repeated(wall)[1], wall + _INSTANT), self.finest)

    def names(self, instant: datetime) -> bool:
        """Return whether a text names exactly an aware instant."""
        at = instant.astimezone(UTC)
        return self.below(instant).astimezone(UTC) == at == self.above(instant).astimezone(UTC)

    def is_coarser_than(self, field: Field) -> bool:
        """Return whether a field is not written."""
        return FIELDS.index(self.finest) < FIELDS.index(field)

    def says(self, moment: datetime) -> bool:
        """Return whether the fields of an aware moment in the zone are all written, or mean it since clocks skip what they say; they may name another one, too."""
        wall = _wall(moment, self.zone)
        floor = floored(wall, self.finest)
        return floor == wall or earliest(floor, self.zone) == latest(floor, self.zone) == moment.astimezone(
            UTC
        )

    def _readings(self, wall: datetime) -> list[Reading]:
        """What a local time can mean, ascending: each pass of a repeated hour if the offset is written, else nothing of such an hour."""
        aware = wall.replace(tzinfo=self.zone)
        if self.says_offset:
            passes = sorted((moment.astimezone(UTC), moment) for moment in (aware, aware.replace(fold=1)))
            return [(moment, at, at) for at, moment in passes]
        if repeated(aware) is not None:
            return []
        return [(aware, earliest(wall, self.zone), latest(wall, self.zone))]

    def _repeated(self, wall: datetime) -> tuple[datetime, datetime]:
        """The repeated local times around one that is not written; else itself."""
        stretch = None if self.says_offset else repeated(wall.replace(tzinfo=self.zone))
        if stretch is None:
            return wall, wall
        return _wall(stretch.start, self.zone), _wall(stretch.end, self.zone)


def iso(moment: datetime) -> str:
    """Return a moment as ISO 8601; in UTC if its offset has seconds, as that of the sun's time before 1970 has: ISO 8601 knows none."""
    return in_minutes(moment).isoformat()


def in_minutes(moment: datetime) -> datetime:
    """Return a moment, in UTC if its offset has seconds, which few readers know."""
    offset = moment.utcoffset()
    return moment.astimezone(UTC) if offset is not None and offset % timedelta(minutes=1) else moment


def floored(wall: datetime, finest: Field) -> datetime:
    """Return the latest local time that fields down to the finest can say, and that is not above a local time."""
    if finest == "millisecond":
        return wall.replace(microsecond=wall.microsecond // 1000 * 1000)
    cut = list(_LOWEST)[FIELDS.index(finest) :] if finest != "microsecond" else []
    return wall.replace(**{field: _LOWEST[field] for field in cut}) if cut else wall  # type: ignore[arg-type]


def raised(wall: datetime, finest: Field) -> datetime:
    """Return the earliest local time that fields down to the finest can say, and that is not below a local time."""
    floor = floored(wall, finest)
    if floor == wall:
        return wall
    if finest == "year":
        return datetime(floor.year + 1, 1, 1)  # noqa: DTZ001 - a local time
    if finest == "month":
        return datetime(floor.year + floor.month // 12, floor.month % 12 + 1, 1)  # noqa: DTZ001 - a local time
    return floor + _STEPS[finest]


def _wall(moment: datetime, zone: tzinfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)
