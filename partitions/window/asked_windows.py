"""Windows and units that a user names: ``2026-01-03``, ``2026-01-01..2026-01-03/EWR``, ``EWR``.

Every command line parses them here (docs/reference/cli.md, Windows and units).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from partitions.errors import ConfigurationError, StrandlineError
from partitions.instants import HOUR, Instant, as_datetime, milliseconds
from partitions.spelling import nearest_name
from partitions.window.listed_units import ListedUnits
from partitions.window.partition_keys import parts_of_key, unit_key
from partitions.window.units import NO_UNIT, identity, unit_of
from partitions.window.work_unit import describe_unit

_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2})(?:[T ](\d{2}))?)?)?", re.ASCII)
"""A year, a month, a day or an hour: all windows within it are meant."""

_RANGE = re.compile(r"\[(.+), (.+)\)|(.+?)(?<!\.)\.\.(?!\.)(.+)")
"""A range as ``ledger`` and ``plan`` print it, and as users type it: the end is exclusive."""

_KEYS = re.compile(r"\[?(.+?)\.\.\.(.+?)\]?")
"""A range of Dagster's partitions: the last one is part of it."""

_EXAMPLES = "windows such as 2026-01-03 or 2026-01-01..2026-01-03, windows of a unit such as 2026-01-03/EWR, or a unit"


@dataclass(frozen=True)
class AskedWindows:
    """A range of time and some units.

    Attributes:
        start: epoch milliseconds, inclusive; None: all time.
        end: epoch milliseconds, exclusive; None beside a start: the window that contains the start.
        units: the units' identities.
        names_units: whether the text names them; else they are all units.
    """

    start: int | None
    end: int | None
    units: tuple[str, ...]
    names_units: bool = False


def parse_asked_windows(
    text: str,
    units: Sequence[str],
    removed: Sequence[str],
    fields: Sequence[str],
    zone: tzinfo,
    dataflow: str,
    now: datetime,
) -> AskedWindows:
    """Return the windows and units that a text names.

    Times are spelled as ``ledger`` prints them, or shorter: a day means all windows of the day. ``A..B`` is a
    range without its end. Keys of Dagster's partitions are understood, too.

    Args:
        text: what the user typed.
        units: the identities of all units: a text without a unit means all of them.
        removed: the identities of units that the state knows, and that are no longer listed.
        fields: the names of a unit's values.
        zone: the zone of times without one.
        dataflow: the dataflow's name.
        now: the clock, aware, for the bounds of a range such as ``P7D..-``.

    Raises:
        ConfigurationError: the text is neither a time nor a unit, or a range ends before it starts.
    """
    all_units = (*units, *removed)
    time_text, unit_text = _parts(text, zone, now)
    span = _span(time_text, zone, now)
    if span is None:  # the name of a unit may hold a slash
        return AskedWindows(
            None, None, parse_units(text.removeprefix("/"), all_units, fields, zone, dataflow), True
        )
    if span[1] is not None and span[0] >= span[1]:
        raise ConfigurationError(f"dataflow {dataflow}: expected a START before END, found {text!r}")
    chosen = parse_units(unit_text, all_units, fields, zone, dataflow) if unit_text else tuple(units)
    return AskedWindows(*span, chosen, bool(unit_text))


def parse_bound(text: str, zone: tzinfo, now: datetime) -> int:
    """Return a bound of a range of windows, in epoch milliseconds.

    Arguments as of :func:`parse_asked_windows`.

    Raises:
        ConfigurationError: the text is no time.
    """
    bound = _bound(text, zone, now)
    return Instant.parse(text, zone).at(now) if bound is None else bound


def _parts(text: str, zone: tzinfo, now: datetime) -> tuple[str, str]:
    """Return the time and the unit of a text; the time is "" if it names none."""
    if (keys := _KEYS.fullmatch(text)) is not None:
        (first_unit, first), (last_unit, last) = (parts_of_key(key) or ("", key) for key in keys.groups())
        return (f"{first}...{last}", first_unit) if first_unit == last_unit else ("", text)
    if (key := parts_of_key(text)) is not None:
        return key[1], key[0]
    pieces = text.split("/")  # the zone of a time may hold a slash, and the name of a unit, too
    for count in range(len(pieces), 0, -1):
        time_text = "/".join(pieces[:count])
        if _span(time_text, zone, now) is not None:
            return time_text, "/".join(pieces[count:])
    return "", text


def _span(text: str, zone: tzinfo, now: datetime) -> tuple[int, int | None] | None:
    """Return the range of a text in epoch milliseconds; None if it names no time."""
    if (keys := _KEYS.fullmatch(text)) is not None:
        first, last = (_time(key, zone) for key in keys.groups())
        return None if first is None or last is None else (first[0], last[1] or last[0] + 1)
    if (range_ := _RANGE.fullmatch(text)) is not None:
        start, end = (_bound(bound, zone, now) for bound in range_.groups() if bound is not None)
        return None if start is None or end is None else (start, end)
    return _time(text, zone)


def _bound(text: str, zone: tzinfo, now: datetime) -> int | None:
    """Return a bound of a range: a time, or an instant of a definition, such as ``P7D`` or ``-``."""
    if (time := _time(text, zone)) is not None:
        return time[0]
    with suppress(ConfigurationError):
        return Instant.parse(text, zone).at(now)
    return None


def _time(text: str, zone: tzinfo) -> tuple[int, int | None] | None:
    """Return the range of a year, month, day or hour; only a start for an instant; None for another text."""
    try:
        if (date := _DATE.fullmatch(text)) is None:
            return _instant(text, zone), None
        parts = [int(part) for part in date.groups() if part is not None]
        year, month, day, hour = (*parts, *(1, 1, 0)[len(parts) - 1 :]) if len(parts) < 4 else parts
        first = datetime(year, month, day, hour, tzinfo=zone)
        return milliseconds(first), milliseconds(_after(first, len(parts)))
    except (ValueError, OverflowError):
        return None


def _instant(text: str, zone: tzinfo) -> int:
    with suppress(ConfigurationError):  # a constant of a definition, such as one with the name of a zone
        instant = Instant.parse(text, zone, now_allowed=False)
        if instant.floor is None:
            return instant.at(None)
    at = datetime.fromisoformat(text)
    return milliseconds(at if at.tzinfo else at.replace(tzinfo=zone))


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


def parse_units(
    text: str, units: Sequence[str], fields: Sequence[str], zone: tzinfo, dataflow: str
) -> tuple[str, ...]:
    """Return the units with this text as a value, as all values, as a key, or as JSON.

    Raises:
        ConfigurationError: there is none; the message names the nearest one.
    """
    known_spelling = _spelled_as_known(text, units, zone)
    named = tuple(
        unit for unit in units if unit != NO_UNIT and (unit == known_spelling or text in _names(unit, fields))
    )
    if named:
        return named
    if set(units) <= {NO_UNIT}:
        expected = "windows such as 2026-01-03 or 2026-01-01..2026-01-03: it has no units"
    else:
        values = [str(value) for unit in units for value in unit_of(unit).values()]
        close = nearest_name(text, values)
        expected = f"{_EXAMPLES}; {f'did you mean {close}?' if close else f'there are {len(units):,} units'}"
    raise ConfigurationError(f"dataflow {dataflow}: expected {expected}, found {text!r}")


def _spelled_as_known(text: str, units: Sequence[str], zone: tzinfo) -> str | None:
    """Return the unit that a JSON text means, however it spells the values; None for another text."""
    with suppress(ValueError, TypeError, AttributeError, StrandlineError):
        return ListedUnits(tuple(units), zone).spelling_of(identity(json.loads(text)))
    return None


def _names(unit: str, fields: Sequence[str]) -> set[str]:
    values = [str(value) for value in unit_of(unit).values()]
    joined = {between.join(values) for between in (",", ", ", "/")}
    return {unit, describe_unit(unit), unit_key(unit, fields), *joined, *values}
