"""Folder names and texts made from a window's start or end, and checks that they are unique and exact.

See docs/reference/windows.md, Local times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, tzinfo

from partitions.bound_text import BoundFormat, Field
from partitions.errors import ConfigurationError
from partitions.instants import HOUR, as_datetime, milliseconds
from partitions.local_time import HORIZON, offset_changes, repeated_time, repeated_times
from partitions.placeholders import TIMES, Placeholder, Template, format_moment, forms_reach
from partitions.window.calendar_grid import Grain, steps
from partitions.window.definition import WindowWatermark
from partitions.window.windows import Stretch

_FINEST: dict[Grain, Field] = {
    "yearly": "year",
    "monthly": "month",
    "weekly": "day",
    "daily": "day",
    "hourly": "hour",
}
"""The finest date field that windows of a grain differ in."""

_LONGEST_REPEAT = 24
"""The largest jump back of any zone's clocks, in hours (a move across the date line)."""

_FIRST_OF_TWO_DIGITS, _AFTER_TWO_DIGITS = (
    milliseconds(datetime(year, 1, 1, tzinfo=UTC)) for year in (1970, 2069)
)
"""All parsers read a two-digit year as one of 1970 to 2068, in any zone."""

_MAX_COMPARED = 10_000
_FAR = datetime(HORIZON, 1, 1, tzinfo=UTC)


def place_name(
    template: Template, start: int, end: int, zone: tzinfo, unit_text: Callable[[Placeholder], str]
) -> str:
    """Return the name of a window's place, such as a folder.

    Args:
        template: the name with its placeholders.
        start: the window's start, epoch milliseconds.
        end: the window's end, epoch milliseconds.
        zone: the zone of the written times.
        unit_text: returns the text of a unit's value.
    """

    def filled(placeholder: Placeholder) -> str:
        if placeholder.unit is not None:
            return unit_text(placeholder)
        return format_moment(placeholder, as_datetime(start if placeholder.name == "start" else end, zone))

    return template.filled(filled)


def belongs_to_later_window(template: Template, start: int, end: int, watermark: WindowWatermark) -> bool:
    """Return whether this window's place, such as a folder, belongs to a later window.

    A place with the rows of both passes of a repeated hour belongs to the second pass.

    Args:
        template: the template of places.
        start: the window's start, epoch milliseconds.
        end: the window's end as planned, epoch milliseconds.
        watermark: the declared watermark, which cuts the windows.
    """
    if "hourly" not in grains(watermark):
        return False
    zone, names = watermark.zone, template.names & set(TIMES)

    def text(first: int, after: int) -> str:
        return place_name(template, first, after, zone, lambda placeholder: placeholder.name)

    def offset(ms: int) -> object:
        return as_datetime(ms, zone).utcoffset()

    if (
        repeated_time(as_datetime(start, zone)) is None
        and repeated_time(as_datetime(start + HOUR - 1, zone)) is None
    ):
        return False
    own = text(start, start + HOUR if "end" in names else end)
    return any(
        offset(start) != offset(start + hours * HOUR)
        and own == text(start + hours * HOUR, start + (hours + 1) * HOUR)
        for hours in range(1, _LONGEST_REPEAT + 1)
    )


def grains(watermark: WindowWatermark) -> tuple[Grain, ...]:
    """Return the grains of a watermark's windows."""
    return (watermark.window,) if isinstance(watermark.window, str) else tuple(watermark.window)


def may_share_place(placeholders: Sequence[Placeholder], watermark: WindowWatermark) -> bool:
    """Return whether two windows may get the same name; the two passes of a repeated hour do not count.

    Up to 10,000 windows of a range that never grows are compared one by one. True if neither this nor the
    date fields can exclude it.
    """
    fields = [_FINEST[grain] for grain in grains(watermark) if grain in _FINEST]
    if all(forms_reach(placeholders, field) for field in fields):
        return False
    return not _all_names_differ(placeholders, watermark)


def exceeds_two_digit_years(watermark: WindowWatermark) -> bool:
    """Return whether a fixed bound lies outside 1970 to 2068, the years that two digits tell apart."""
    range_ = watermark.time_range
    begins = None if range_.start_counts_from_now else range_.start(None)
    ends = None if range_.to_floor is not None else range_.end(None)
    return (begins is not None and begins < _FIRST_OF_TWO_DIGITS) or (
        ends is not None and ends > _AFTER_TWO_DIGITS
    )


def _all_names_differ(placeholders: Sequence[Placeholder], watermark: WindowWatermark) -> bool:
    if watermark.time_range.to_floor is not None:
        return False
    try:
        windows = watermark.windows(None, clipped=False)
    except ConfigurationError:  # `from` or `to` is relative to now
        return False
    if len(windows) > _MAX_COMPARED:
        return False
    template = Template(tuple(placeholders))
    texts = {
        place_name(template, start, end, watermark.zone, lambda placeholder: placeholder.name)
        for start, end in windows
    }
    return len(texts) == len(windows)


def inexpressible_start(watermark: WindowWatermark, format_: BoundFormat) -> datetime | None:
    """Return a window start that the text format cannot express; None if it can express all.

    An example is half past one after a clock change of half an hour, in a text without minutes.
    """
    for stretch in _stretches(watermark):
        changes = [milliseconds(change.at) for change in offset_changes(watermark.zone)]
        # The first two windows, and the first one after each clock change: all others start with the same fields as one of them.
        probes = [stretch.start + 1, *(at for at in changes if stretch.start < at < stretch.end)]
        bounds = {stretch.start, *(_first_bound(stretch, at) for at in probes)}
        starts = (as_datetime(bound, watermark.zone) for bound in sorted(bounds) if bound <= stretch.end)
        if (
            inexpressible := next((start for start in starts if not format_.can_express(start)), None)
        ) is not None:
            return inexpressible
    return None


def inexpressible_end(watermark: WindowWatermark, format_: BoundFormat) -> datetime | None:
    """Return the fixed end of a partial last window that the format cannot express; None otherwise."""
    if not watermark.partial or watermark.time_range.to_floor is not None:
        return None
    ends = (stretch.end for stretch in _stretches(watermark))
    return next((end for ms in ends if not format_.can_express(end := as_datetime(ms, watermark.zone))), None)


def ambiguous_bound(watermark: WindowWatermark, format_: BoundFormat, *, whole: bool) -> datetime | None:
    """Return a read's bound in a repeated hour, which would mean two instants; None if there is none.

    Args:
        watermark: the declared watermark, which cuts the windows.
        format_: the format of its bounds.
        whole: whether only whole windows are read; else an open window may end at any minute.
    """
    zone, bounds = format_.zone, list[datetime]()
    if format_.says_offset:
        return None
    floor = watermark.time_range.to_floor
    grows = (
        watermark.partial and not whole and floor in ("hour", "minute") and not format_.is_coarser_than(floor)
    )
    for stretch in _stretches(watermark):
        for repeat in repeated_times(zone):
            first, after = milliseconds(repeat.start), milliseconds(repeat.end)
            bound = first if grows else _first_bound(stretch, first)
            if stretch.start <= bound <= stretch.end and first <= bound < after:
                bounds.append(as_datetime(bound, watermark.zone))
                break
    return next((bound for bound in bounds if not format_.is_unambiguous(bound)), None)


def _stretches(watermark: WindowWatermark) -> Sequence[Stretch]:
    return watermark.up_to(_FAR).time_range.stretches(_FAR)


def _first_bound(stretch: Stretch, at: int) -> int:
    """Return the first bound of a window at or after an instant."""
    if at <= stretch.start:
        return stretch.start
    return steps(stretch.grid, stretch.start).next(at - 1)
