"""The declaration of a window watermark (docs/reference/windows.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)

from partitions.errors import ConfigurationError
from partitions.instants import Instant
from partitions.json_faults import parse_json
from partitions.model import Duration, Flag
from partitions.watermark_definition import SliceSize, WatermarkDefinition, ZonedWatermark
from partitions.window.calendar_grid import GRAINS, Grain, Grid
from partitions.window.dagster_units import MANY, MAX_KEYS, DagsterUnits
from partitions.window.entries import DatetimeEntry, Entries, UnitEntry
from partitions.window.extent import Unit
from partitions.window.incomplete import Incomplete
from partitions.window.secondary_input import SecondaryInput
from partitions.window.time_range import Composite, TimeRange
from partitions.window.windows import Windows


def _window(value: object) -> object:
    expected = f"expected one of {', '.join(GRAINS)}, or a JSON object of them to ranges"
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = parse_json(value, expected)
    if value == {}:
        raise ConfigurationError(f"{expected}, found an empty object: there would be no window")
    return value


def _whole_number(value: object) -> object:
    """Return a whole number from an integer or from decimal text, as in a properties file."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ConfigurationError(f"expected a whole number, not negative, found {value!r}")


def _iso_period(value: object) -> object:
    """Return an ISO duration for whole days of 24 hours; pass durations through."""
    if isinstance(value, timedelta):
        return value
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if text.isascii() and text.isdecimal():
        return f"P{int(text)}D"
    if isinstance(value, str) and value.startswith("P"):
        return value
    raise ConfigurationError(
        f"expected whole days or an ISO 8601 duration such as P3D or PT6H, found {value!r}"
    )


Count = Annotated[int, BeforeValidator(_whole_number), Field(ge=0)]
"""A whole number, not negative."""

Period = Annotated[Duration, BeforeValidator(_iso_period)]
"""Whole days of 24 hours, or an ISO duration."""


NOW, WATERMARK, UPSTREAM = "-", "watermark", "upstream"
"""Values of ``to`` that are no instant.

They are now, the global watermark of the stream whose table is read, and the end of the dataflow whose
table is read.
"""


_LONGEST = {
    "hourly": timedelta(hours=1),
    "daily": timedelta(days=1),
    "weekly": timedelta(days=7),
    "monthly": timedelta(days=31),
    "yearly": timedelta(days=366),
}
"""The longest that a window lasts, without an hour that clocks repeat."""


class WindowCheckpoint(SliceSize):
    """Limits on the size of a slice.

    Attributes:
        interval_windows: the most work units that share one read, one delete and one commit.
    """

    interval_windows: Annotated[int, Field(ge=1, strict=True)] = 100


class WindowWatermark(ZonedWatermark):
    """Windows of time x units.

    Attributes:
        definition: at most one datetime and at most one unit entry.
        window: how the range is cut; several grains over sub-ranges as ``{grain: [from, to]}``.
        partial: whether the short last window is loaded; it grows until it is whole.
        grace: a loaded window is read again while it ends after the highest loaded end less this duration.
        abstinent: how far past its high a window must have grown before it is read again.
        abstinent_skips: accepts that data which arrives during abstinence may stay unread.
        reread: where a loaded window is read from: the end of its last read less the grace, or its start,
            and its rows are replaced.
        refresh: ``changed``: a loaded window is read again if rows of it have changed in the lake table that
            is read, by the table's commits.
        parallelism: the most work units of one run; the oldest that were never loaded go first.
        pacing: the least time between the starts of two work units.
        incomplete: what becomes of a window whose upstream lacks a part of it; only beside ``to: upstream``.
        wait_for: inputs that windows wait for, too, with the column of their time; only beside it, too.
        min_units: the plan fails if there are fewer units.
        secondary_input: where units come from if there is no unit entry.
        dagster_units: where units show; with ``auto`` up to 100 listed units are partitions.
    """

    has_ledger: ClassVar[bool] = True
    fills_placeholders: ClassVar[bool] = True
    reads_whole: ClassVar[bool] = True

    type: Literal["window"]
    definition: Entries
    window: Annotated[Grain | Composite, BeforeValidator(_window)] = "none"
    partial: Flag = True
    grace: Period = timedelta(0)
    abstinent: Period = timedelta(0)
    abstinent_skips: Flag = False
    reread: Literal["rest", "whole"] = "rest"
    refresh: Literal["none", "changed"] = "none"
    parallelism: Annotated[Count, Field(ge=1)] | None = None
    pacing: Duration = timedelta(0)
    incomplete: Incomplete = "wait"
    wait_for: dict[str, Annotated[str, Field(min_length=1)]] = Field(default_factory=dict)
    min_units: Count = 0
    secondary_input: tuple[SecondaryInput, ...] = ()
    checkpoint: WindowCheckpoint = WindowCheckpoint()
    dagster_units: DagsterUnits = "auto"

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Self:
        """Validate a definition that comes from no project file.

        Raises:
            ConfigurationError: with the path of the key and the value expected there.
        """
        try:
            return cls.model_validate({"type": "window", **raw})
        except ValidationError as refused:
            faults = [
                f"{'.'.join(map(str, error['loc'])) or 'watermark'}: {error['msg']}"
                for error in refused.errors()
            ]
            raise ConfigurationError("; ".join(faults)) from refused

    @model_validator(mode="wrap")
    @classmethod
    def _default_partial(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        watermark = handler(value)
        is_default = watermark.follows and "partial" not in watermark.model_fields_set
        return watermark.model_copy(update={"partial": False}) if is_default else watermark

    @model_validator(mode="after")
    def _check_following(self) -> Self:
        for key in () if self.waits_for_upstream else ("incomplete", "wait_for"):
            if key in self.model_fields_set:
                raise ValueError(f"{key}: expected no such key without to: upstream")
        if not self.follows:
            return self
        if "reread" in self.model_fields_set:
            raise ValueError(
                "reread: expected no such key beside to: watermark or to: upstream (a window is read as a whole), found"
                f" {self.reread}"
            )
        to = self.time_entry.range.to if self.time_entry else ""
        if self.partial and "partial" in self.model_fields_set:
            raise ValueError(
                f"partial: expected false beside to: {to} (a window is loaded when it is complete), found true"
            )
        if self.grace:
            why = (
                "a changed window is loaded again by itself" if to == UPSTREAM else "a window is loaded once"
            )
            raise ValueError(f"grace: expected none beside to: {to} ({why}, when it is complete)")
        if self.window == "none":
            raise ValueError(f"window: expected windows such as daily beside to: {to}, found none")
        return self

    @model_validator(mode="after")
    def _check_entries(self) -> Self:
        for kind in ("datetime", "unit"):
            if sum(entry.type == kind for entry in self.definition) > 1:
                raise ValueError(f"definition: expected at most one entry of type {kind}, found two")
        if self.unit_entry and self.secondary_input:
            raise ValueError("definition and secondary_input both list units: expected one of them")
        return self

    @model_validator(mode="after")
    def _check_refresh(self) -> Self:
        if self.refreshes and self.time_entry is None:
            raise ValueError(
                "refresh: expected a datetime entry in definition beside refresh: changed, found none (each run reads every"
                " unit as a whole). Remove refresh"
            )
        return self

    @model_validator(mode="after")
    def _check_dagster_units(self) -> Self:
        is_dimension = self.dagster_units not in ("auto", "ledger")
        if is_dimension and not self.unit_entry and not self.secondary_input:
            raise ValueError("dagster_units: expected a unit entry or a secondary_input to show, found none")
        if self.dagster_units == "partitions":
            count = len(self.unit_entry.units) if self.unit_entry else 0
            if count > MAX_KEYS:
                raise ValueError(
                    f"dagster_units: expected at most {MAX_KEYS:,} units to be partitions, found {count:,}."
                    f" {MANY}"
                )
        return self

    @model_validator(mode="after")
    def _check_ranges(self) -> Self:
        if self.time_entry:
            range_ = self.time_range
            _check_order("definition.range", range_.from_, range_.to, self.zone, now_allowed=False)
        for grain, (start, end) in self._composite.items():
            _check_order(f"window.{grain}", start, end, self.zone, now_allowed=True)
        return self

    def identity(self) -> dict[str, Any]:
        """Return the parts of the definition that the state depends on (docs/reference/state.md)."""
        window = {grain: list(sub_range) for grain, sub_range in self._composite.items()} or self.window
        return {
            "time": self.time_entry.name if self.time_entry else None,
            "units": sorted(self.unit_fields),
            "from": self.time_entry.range.from_ if self.time_entry else None,
            "window": window,
            "timezone": self.timezone,
        }

    @property
    def time_entry(self) -> DatetimeEntry | None:
        """Return the entry of the time dimension; None if there is none."""
        return next((entry for entry in self.definition if isinstance(entry, DatetimeEntry)), None)

    @property
    def unit_entry(self) -> UnitEntry | None:
        """Return the entry of the units; None if there is none."""
        return next((entry for entry in self.definition if isinstance(entry, UnitEntry)), None)

    @property
    def units(self) -> tuple[Unit, ...] | None:
        """Return the listed units; None if a secondary input provides them.

        A definition without units has the single unit ``{}``.
        """
        if self.secondary_input:
            return None
        return self.unit_entry.listed if self.unit_entry else ({},)

    @property
    def unit_fields(self) -> tuple[str, ...]:
        """Return the names of a unit's values."""
        if self.unit_entry:
            return tuple(dict.fromkeys(name for unit in self.unit_entry.listed for name in unit))
        return tuple(dict.fromkeys(field for secondary in self.secondary_input for field in secondary.fields))

    @property
    def _composite(self) -> Composite:
        return self.window if isinstance(self.window, dict) else {}

    @property
    def default_grid(self) -> Grid:
        """Return the grid of most windows; for a composite, the grid of its last grain."""
        grain = self.window if isinstance(self.window, str) else (list(self.window) or ["none"])[-1]
        return Grid(grain, self.timezone) if self.time_entry is None else self.time_range.grid(grain)

    @property
    def grace_ms(self) -> int:
        """Grace in milliseconds."""
        return _milliseconds(self.grace)

    @property
    def rereads_whole(self) -> bool:
        """Return whether a window that is read again is read from its start, and its rows are replaced."""
        return self.reread == "whole"

    @property
    def refreshes(self) -> bool:
        """Return whether a loaded window is read again if rows of it have changed in the table that is read."""
        return self.refresh == "changed"

    @property
    def needs_commits(self) -> bool:
        """Return whether it needs the commits that tell which windows have changed."""
        return self.refreshes

    @property
    def reads_parts(self) -> bool:
        """Return whether a run may read a part of a window: its rest, or the end of it within the grace."""
        if self.time_entry is None or self.follows or self.rereads_whole:
            return False
        if self.partial or "none" in (grains := self._composite or (self.window,)):
            return True
        repeated = timedelta(0) if self.timezone == "UTC" else timedelta(hours=1)
        return timedelta(0) < self.grace < max(_LONGEST[str(grain)] for grain in grains) + repeated

    @property
    def whole_windows(self) -> str:
        """Return what makes runs read whole windows; "" if they do."""
        if not self.reads_parts:
            return ""
        grows = self.partial and not self.grace and self.window != "none"
        return f"watermark.reread: whole{', or watermark.partial: false' if grows else ''}"

    @property
    def abstinent_ms(self) -> int:
        """Abstinence in milliseconds."""
        return _milliseconds(self.abstinent)

    @property
    def time_range(self) -> TimeRange:
        """Return the range of the time dimension, up to now if it follows a dataflow (see :meth:`up_to`).

        Raises:
            ConfigurationError: if there is no datetime entry.
        """
        if self.time_entry is None:
            raise ConfigurationError(
                "definition: expected a datetime entry, found none: there are no windows without one"
            )
        range_ = self.time_entry.range
        to = NOW if self.follows else range_.to
        return TimeRange(range_.from_, to, self.window, self.timezone, self.partial)

    @property
    def follows(self) -> bool:
        """Return whether ``to`` depends on the dataflow whose table is read.

        A window is then due once that table is complete up to its end, or has all of its parts.
        """
        return self.time_entry is not None and self.time_entry.range.to in (WATERMARK, UPSTREAM)

    @property
    def waits_for_upstream(self) -> bool:
        """Return whether each window waits until the dataflow whose table is read has loaded all of it."""
        return self.time_entry is not None and self.time_entry.range.to == UPSTREAM

    @property
    def awaited_inputs(self) -> tuple[str, ...]:
        """The names of the inputs that windows wait for, too."""
        return tuple(self.wait_for)

    def up_to(self, reached: datetime | None) -> Self:
        """Return the definition with ``to`` set to the end of the dataflow that it follows.

        A definition that follows no other dataflow is returned unchanged.

        Args:
            reached: the end, aware; None if there is none yet, so there is no window.
        """
        time = self.time_entry
        if time is None or not self.follows:
            return self
        to = time.range.from_ if reached is None else reached.astimezone(UTC).isoformat()
        ended = time.model_copy(update={"range": time.range.model_copy(update={"to": to})})
        return self.model_copy(
            update={"definition": tuple(ended if entry is time else entry for entry in self.definition)}
        )

    def windows(self, now: datetime | None, *, clipped: bool = True) -> Windows:
        """Return all windows at an instant (see :meth:`TimeRange.windows`)."""
        return self.time_range.windows(now, clipped=clipped)


def _check_order(key: str, start: str, end: str, zone: tzinfo, *, now_allowed: bool) -> None:
    names = ("from", "to") if key.startswith("definition") else ("0", "1")
    instants = []
    for name, text in zip(names, (start, end), strict=True):
        try:
            instants.append(Instant.parse(text, zone, now_allowed=now_allowed or name in ("to", "1")))
        except ConfigurationError as error:
            raise ConfigurationError(f"{key}.{name}: {error.message}") from error
    if all(instant.floor is None for instant in instants) and instants[0].at(None) > instants[1].at(None):
        raise ConfigurationError(f"{key}: expected a start before the end, found {start!r} and {end!r}")


def secondary_inputs(watermark: WatermarkDefinition) -> Sequence[SecondaryInput]:
    """Return the secondary inputs of a watermark; empty if it has no windows or lists its units."""
    return watermark.secondary_input if isinstance(watermark, WindowWatermark) else ()


def _milliseconds(period: timedelta) -> int:
    return period // timedelta(milliseconds=1)
