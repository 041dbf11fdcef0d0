"""What a user declares of a window watermark (docs/guide-windows.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, tzinfo
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from partitions.errors import ConfigurationError
from partitions.instants import DAY, Floor, Instant, floor_minute, zone_of
from partitions.model import Duration, Model
from partitions.window.extent import Unit
from partitions.window.grid import GRAINS, Grain, Grid
from partitions.window.units import SecondaryInput, explicit
from partitions.window.windows import Stretch, Windows

MOST_WINDOWS = 1_000_000
"""More windows than anybody has; a definition that has more is a mistake (hours since the year 1)."""


def _json_array(value: object) -> object:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ConfigurationError(
                f"expected a JSON array, found text that does not parse: {error}"
            ) from error
    if not isinstance(value, list | tuple):
        raise ConfigurationError(f"expected an array of watermark entries, found {type(value).__name__}")
    return value


def _window(value: object) -> object:
    expected = f"expected one of {', '.join(GRAINS)}, or a JSON object of them to ranges"
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ConfigurationError(f"{expected}, found text that does not parse: {error}") from error
    if value == {}:
        raise ConfigurationError(f"{expected}, found an empty object: there would be no window")
    return value


def _whole(value: object) -> object:
    """Whole numbers may be text, as in a properties file; nothing else is taken for one."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ConfigurationError(f"expected a whole number, not negative, found {value!r}")


def _period(value: object) -> object:
    """Whole days of 24 hours, or an ISO duration."""
    if isinstance(value, timedelta):
        return value
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if text.isascii() and text.isdecimal():
        return timedelta(days=int(text))
    if isinstance(value, str) and value.startswith("P"):
        return value
    raise ConfigurationError(
        f"expected whole days or an ISO 8601 duration such as P3D or PT6H, found {value!r}"
    )


def _zone(text: str) -> str:
    zone_of(text)
    return text


Count = Annotated[int, BeforeValidator(_whole), Field(ge=0)]
"""A whole number, not negative."""

Period = Annotated[Duration, BeforeValidator(_period)]
"""Whole days of 24 hours, or an ISO duration."""


MOST_KEYS = 10_000
"""Keys of one dimension that Dagster and its UI bear."""


MANY = (
    "Set dagster_units: {buckets: 64}, and Dagster shows buckets of units; or ledger: Dagster then shows the windows alone."
    " The ledger shows every unit"
)
"""What to do with more."""


class Buckets(Model):
    """Units show as a fixed number of buckets; by a hash of its identity each unit is in one of them."""

    buckets: Annotated[int, Field(ge=1, le=MOST_KEYS, strict=True)]


DagsterUnits = Literal["auto", "partitions", "ledger"] | Buckets
"""Where units show: as a dimension of Dagster's partitions, each for itself or in buckets, or in the ledger only."""


class Range(Model):
    """From when to when; both are instants (docs/guide-windows.md), ``to`` may be ``-``."""

    from_: Annotated[str, Field(alias="from")]
    to: str


class DatetimeEntry(Model):
    """The time dimension."""

    name: Annotated[str, Field(min_length=1)]
    type: Literal["datetime"]
    range: Range


class UnitEntry(Model):
    """The units, one by one: the value that stands under ``name``, or an object that is the whole unit."""

    name: Annotated[str, Field(min_length=1)]
    type: Literal["unit"]
    units: Annotated[tuple[str | int | float | dict[str, Any], ...], BeforeValidator(explicit)]

    @property
    def listed(self) -> tuple[Unit, ...]:
        """Each of them as names to values."""
        return tuple(unit if isinstance(unit, dict) else {self.name: unit} for unit in self.units)


Entry = Annotated[DatetimeEntry | UnitEntry, Field(discriminator="type")]
Composite = dict[Grain, tuple[str, str]]


class WindowCheckpoint(Model):
    """How large a slice may be.

    Attributes:
        interval_windows: work units that share one read, one delete and one commit, at most.
        interval_secs: an aim: slices that take longer are halved.
    """

    interval_windows: Annotated[int, Field(ge=1, strict=True)] = 100
    interval_secs: Annotated[int, Field(ge=1, strict=True)] = 60


class WindowWatermark(Model):
    """Windows of time x units.

    Attributes:
        definition: at most one datetime and at most one unit entry.
        window: how the range is cut; several grains over sub-ranges as ``{grain: [from, to]}``.
        partial: whether the short last window is loaded; it grows until it is whole.
        grace: how long after it was loaded a window is read again, for what arrives late.
        abstinent: how long after it was loaded a window is not read again.
        abstinent_skips: says that data which arrives meanwhile may stay unread.
        timezone: of texts without a zone, of day floors and of calendar steps.
        parallelism: work units of one run, at most; the oldest that were never loaded go first.
        pacing: time between the starts of two work units.
        min_units: the plan fails if there are fewer.
        secondary_input: where units come from, instead of a unit entry.
        dagster_units: where units show; ``auto``: up to 100 listed ones are partitions.
    """

    type: Literal["window"]
    definition: Annotated[tuple[Entry, ...], BeforeValidator(_json_array)]
    window: Annotated[Grain | Composite, BeforeValidator(_window)] = "none"
    partial: bool = True
    grace: Period = timedelta(0)
    abstinent: Period = timedelta(0)
    abstinent_skips: bool = False
    timezone: Annotated[str, AfterValidator(_zone)] = "UTC"
    parallelism: Annotated[Count, Field(ge=1)] | None = None
    pacing: Duration = timedelta(0)
    min_units: Count = 0
    secondary_input: tuple[SecondaryInput, ...] = ()
    checkpoint: WindowCheckpoint = WindowCheckpoint()
    max_slices: Annotated[int, Field(ge=1, strict=True)] = 100
    dagster_units: DagsterUnits = "auto"

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Self:
        """Check a definition that comes from no project file.

        Raises:
            ConfigurationError: with the path of the key, and what was expected there.
        """
        try:
            return cls.model_validate({"type": "window", **raw})
        except ValidationError as refused:
            said = [
                f"{'.'.join(map(str, error['loc'])) or 'watermark'}: {error['msg']}"
                for error in refused.errors()
            ]
            raise ConfigurationError("; ".join(said)) from refused

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        for kind in ("datetime", "unit"):
            if sum(entry.type == kind for entry in self.definition) > 1:
                raise ValueError(f"definition: expected at most one entry of type {kind}, found two")
        if self.unit_entry and self.secondary_input:
            raise ValueError("definition and secondary_input both give units: expected one of them")
        return self

    @model_validator(mode="after")
    def _shown(self) -> Self:
        shown = self.dagster_units not in ("auto", "ledger")
        if shown and not self.unit_entry and not self.secondary_input:
            raise ValueError("dagster_units: expected a unit entry or a secondary_input to show, found none")
        if self.dagster_units == "partitions":
            count = len(self.unit_entry.units) if self.unit_entry else 0
            if count > MOST_KEYS:
                raise ValueError(
                    f"dagster_units: expected at most {MOST_KEYS:,} units to be partitions, found {count:,}."
                    f" {MANY}"
                )
        return self

    @model_validator(mode="after")
    def _instants(self) -> Self:
        if self.time_entry:
            given = self.time_entry.range
            self._ordered("definition.range", given.from_, given.to, now_allowed=False)
        for grain, (start, end) in self._composite.items():
            self._ordered(f"window.{grain}", start, end, now_allowed=True)
        return self

    def _ordered(self, key: str, start: str, end: str, *, now_allowed: bool) -> None:
        names = ("from", "to") if key.startswith("definition") else ("0", "1")
        read = []
        for name, text in zip(names, (start, end), strict=True):
            try:
                read.append(Instant.parse(text, self.zone, now_allowed=now_allowed or name in ("to", "1")))
            except ConfigurationError as error:
                raise ConfigurationError(f"{key}.{name}: {error.message}") from error
        if all(instant.floor is None for instant in read) and read[0].at(None) > read[1].at(None):
            raise ConfigurationError(f"{key}: expected a start before the end, found {start!r} and {end!r}")

    target_keys: ClassVar[tuple[str, ...]] = ("merge_keys",)
    """Keys of the target, beside those of all kinds, that a write depends on."""

    def identity(self) -> dict[str, Any]:
        """What the state depends on (docs/state.md)."""
        window = {grain: list(given) for grain, given in self._composite.items()} or self.window
        return {
            "time": self.time_entry.name if self.time_entry else None,
            "units": sorted(self.unit_fields),
            "from": self.time_entry.range.from_ if self.time_entry else None,
            "window": window,
            "timezone": self.timezone,
        }

    @property
    def zone(self) -> tzinfo:
        """The definition's zone."""
        return zone_of(self.timezone)

    @property
    def time_entry(self) -> DatetimeEntry | None:
        """The entry of the time dimension."""
        return next((entry for entry in self.definition if isinstance(entry, DatetimeEntry)), None)

    @property
    def unit_entry(self) -> UnitEntry | None:
        """The entry of the units."""
        return next((entry for entry in self.definition if isinstance(entry, UnitEntry)), None)

    @property
    def units(self) -> tuple[Unit, ...] | None:
        """The explicit units, or the one unit of a definition without any; None if a secondary input gives them."""
        if self.secondary_input:
            return None
        return self.unit_entry.listed if self.unit_entry else ({},)

    @property
    def unit_fields(self) -> tuple[str, ...]:
        """The names of which a unit has values."""
        if self.unit_entry:
            return tuple(dict.fromkeys(name for unit in self.unit_entry.listed for name in unit))
        return tuple(dict.fromkeys(field for given in self.secondary_input for field in given.fields))

    @property
    def _composite(self) -> Composite:
        return self.window if isinstance(self.window, dict) else {}

    @property
    def default_grid(self) -> Grid:
        """The grid of most windows: of a composite the last one's."""
        grain = self.window if isinstance(self.window, str) else (list(self.window) or ["none"])[-1]
        return Grid(grain, self.timezone)

    @property
    def grace_ms(self) -> int:
        """Grace in milliseconds."""
        return _milliseconds(self.grace)

    @property
    def abstinent_ms(self) -> int:
        """Abstinence in milliseconds."""
        return _milliseconds(self.abstinent)

    def from_at(self, now: datetime | None) -> int:
        """Where the first window starts; only asked if there is a datetime entry."""
        return self._at(self._range().from_, now)

    def to_at(self, now: datetime | None) -> int:
        """Where the last window ends, in the future too; only asked if there is a datetime entry."""
        return self._at(self._range().to, now)

    @property
    def to_floor(self) -> Floor | None:
        """What ``to`` is floored to; None if it is constant."""
        return Instant.parse(self._range().to, self.zone).floor

    def windows(self, now: datetime | None, *, clipped: bool = True) -> Windows:
        """All windows at an instant.

        Args:
            now: the clock, aware; None if no text needs it.
            clipped: whether windows end at now, floored to the minute.
        """
        start, end = self.from_at(now), self.to_at(now)
        limit = floor_minute(now) if clipped and now is not None else None
        end = end if limit is None else min(end, limit)
        stretches = self._stretches(start, end, now)
        if (
            sum(
                (stretch.end - stretch.start) / _SHORTEST.get(stretch.grid.grain, DAY * 7)
                for stretch in stretches
            )
            > MOST_WINDOWS
        ):
            raise ConfigurationError(
                f"definition.range: expected at most {MOST_WINDOWS:,} windows, found more from {self._range().from_!r} on"
            )
        return Windows.of(stretches, partial=self.partial)

    def moving(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """What cuts windows otherwise from one day to the next, since it counts from now: its key and text."""
        if self.time_entry is None:
            return
        given = self._range().from_
        if not all(self._stands(given, grain) for grain in self._composite or (self.window,)):
            yield ("definition",), given
        for grain, (lower, upper) in self._composite.items():
            if not self._stands(lower, grain):
                yield ("window", grain), lower
            others = [begin for name, (begin, _) in self._composite.items() if name != grain]
            if self._floats(upper) and not all(self._begins_before(begin, lower) for begin in others):
                yield ("window", grain), upper

    def _floats(self, text: str) -> bool:
        return Instant.parse(text, self.zone).floor is not None

    def _begins_before(self, begin: str, other: str) -> bool:
        """Whether a range begins before another, whatever the time is."""
        fixed = not self._floats(begin) and not self._floats(other)
        return fixed and self._at(begin, None) < self._at(other, None)

    def _stands(self, text: str, grain: object) -> bool:
        """Whether windows of a grain that are cut from an instant on start where they started a day before."""
        floor, zone = Instant.parse(text, self.zone).floor, text.partition(".")[2]
        if floor is None:
            return True
        if grain == "hourly":
            return floor != "minute"
        return grain == "daily" and floor == "day" and zone in ("", self.timezone)

    def _range(self) -> Range:
        if self.time_entry is None:
            raise ConfigurationError(
                "definition: expected a datetime entry, found none: there are no windows without one"
            )
        return self.time_entry.range

    def _stretches(self, start: int, end: int, now: datetime | None) -> list[Stretch]:
        if isinstance(self.window, str):
            return [Stretch(Grid(self.window, self.timezone), start, end)]
        made: list[Stretch] = []
        reached = start
        ranges = [
            (self._at(lower, now), self._at(upper, now), Instant.parse(upper, self.zone).floor is None, grain)
            for grain, (lower, upper) in self.window.items()
        ]
        for lower, upper, fixed, grain in sorted(ranges):
            first, reached = max(lower, reached), max(reached, upper)
            made.append(Stretch(Grid(grain, self.timezone), first, min(upper, end), fixed and upper < end))
        return [stretch for stretch in made if stretch.start < stretch.end]

    def uncovered(self, now: datetime | None) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Gaps and overlaps between the sub-ranges of a composite, inside the watermark's range."""
        start, end = self.from_at(now), self.to_at(now)
        ranges = sorted((self._at(a, now), self._at(b, now)) for a, b in self._composite.values())
        gaps, overlaps, reached = [], [], start
        for lower, upper in ranges:
            if lower > reached:
                gaps.append((reached, min(lower, end)))
            elif lower < min(reached, upper) and reached > start:
                overlaps.append((max(lower, start), min(reached, upper)))
            reached = max(reached, upper)
        if ranges and reached < end:
            gaps.append((reached, end))
        return [gap for gap in gaps if gap[0] < gap[1]], [lap for lap in overlaps if lap[0] < lap[1]]

    def _at(self, text: str, now: datetime | None) -> int:
        return Instant.parse(text, self.zone).at(now)


_SHORTEST = {"hourly": DAY / 24, "daily": DAY * 0.9}


def _milliseconds(period: timedelta) -> int:
    return period // timedelta(milliseconds=1)
