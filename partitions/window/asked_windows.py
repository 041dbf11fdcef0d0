"""Windows and units that a user names: ``2026-01-03``, ``2026-01-03/EWR``, ``EWR``.

See docs/reference/cli.md, why.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from partitions.errors import ConfigurationError
from partitions.instants import HOUR, as_datetime, milliseconds
from partitions.spelling import nearest_name
from partitions.window.partition_keys import parts_of_key, unit_key
from partitions.window.units import NO_UNIT, unit_of
from partitions.window.work_unit import describe_unit

_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2})(?:[T ](\d{2}))?)?)?", re.ASCII)
"""A year, a month, a day or an hour: all windows within it are meant."""

_RANGE = re.compile(r"\[(.+), (.+)\)")
"""A range as ``ledger`` and ``plan`` print it."""

_EXAMPLES = "a window such as 2026-01-03, a window of a unit such as 2026-01-03/EWR, or a unit"


@dataclass(frozen=True)
class AskedWindows:
    """A range of time and some units.

    Attributes:
        start: epoch milliseconds, inclusive; None: all time.
        end: epoch milliseconds, exclusive; None beside a start: the window that contains the start.
        units: the units' identities.
    """

    start: int | None
    end: int | None
    units: tuple[str, ...]


def parse_asked_windows(
    text: str,
    units: Sequence[str],
    removed: Sequence[str],
    fields: Sequence[str],
    zone: tzinfo,
    dataflow: str,
) -> AskedWindows:
    """Return the windows and units that a text names.

    Times are spelled as ``ledger`` prints them, or shorter: a day means all windows of the day. Keys of Dagster's
    partitions are understood, too.

    Args:
        text: what the user typed.
        units: the identities of all units: a text without a unit means all of them.
        removed: the identities of units that the state knows, and that are no longer listed.
        fields: the names of a unit's values.
        zone: the zone of times without one.
        dataflow: the dataflow's name.

    Raises:
        ConfigurationError: the text is neither a time nor a unit.
    """
    if (key := parts_of_key(text)) is not None:
        unit_text, time_text = key
    else:
        time_text, _, unit_text = text.partition("/")
    span, all_units = _span(time_text, zone), (*units, *removed)
    if span is None:  # the name of a unit may hold a slash
        return AskedWindows(None, None, _units_named(text.removeprefix("/"), all_units, fields, dataflow))
    chosen = _units_named(unit_text, all_units, fields, dataflow) if unit_text else tuple(units)
    return AskedWindows(*span, chosen)


def _span(text: str, zone: tzinfo) -> tuple[int, int | None] | None:
    """Return the range of a text in epoch milliseconds; None if it names no time."""
    try:
        if (range_ := _RANGE.fullmatch(text)) is not None:
            start, end = (_instant(bound, zone) for bound in range_.groups())
            return (start, end) if start < end else None
        if (date := _DATE.fullmatch(text)) is None:
            return _instant(text, zone), None
        parts = [int(part) for part in date.groups() if part is not None]
        year, month, day, hour = (*parts, *(1, 1, 0)[len(parts) - 1 :]) if len(parts) < 4 else parts
        first = datetime(year, month, day, hour, tzinfo=zone)
        return milliseconds(first), milliseconds(_after(first, len(parts)))
    except (ValueError, OverflowError):
        return None


def _instant(text: str, zone: tzinfo) -> int:
    instant = datetime.fromisoformat(text)
    return milliseconds(instant if instant.tzinfo else instant.replace(tzinfo=zone))


def _after(first: datetime, parts: int) -> datetime:
    """Return the end of the year, month, day or hour that begins at an instant."""
    match parts:
        case 1:
            return first.replace(year=first.year + 1)
        case 2:
            return first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
        case 3:
            return first + timedelta(days=1)
        case _:
            return as_datetime(milliseconds(first) + HOUR)


def _units_named(text: str, units: Sequence[str], fields: Sequence[str], dataflow: str) -> tuple[str, ...]:
    """Return the units with this text as a value, as all values, or as a key.

    Raises:
        ConfigurationError: there is none; the message names the nearest one.
    """
    named = tuple(unit for unit in units if unit != NO_UNIT and text in _names(unit, fields))
    if named:
        return named
    if set(units) <= {NO_UNIT}:
        expected = (
            "a window such as 2026-01-03 or [2026-01-03T00:00:00, 2026-01-04T00:00:00): it has no units"
        )
    else:
        values = [str(value) for unit in units for value in unit_of(unit).values()]
        close = nearest_name(text, values)
        expected = f"{_EXAMPLES}; {f'did you mean {close}?' if close else f'there are {len(units):,} units'}"
    raise ConfigurationError(f"dataflow {dataflow}: expected {expected}, found {text!r}")


def _names(unit: str, fields: Sequence[str]) -> set[str]:
    values = [str(value) for value in unit_of(unit).values()]
    joined = {between.join(values) for between in (",", ", ", "/")}
    return {unit, describe_unit(unit), unit_key(unit, fields), *joined, *values}
