"""Cron texts that Dagster takes, told without importing Dagster, which takes a second."""

from __future__ import annotations

import re
from typing import NamedTuple

_SHORTHANDS = {"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"}
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_DAYS_OF_MONTH = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
_ITEM = re.compile(r"(?:\*|(?P<low>\w+)(?:-(?P<high>\w+))?)(?:/(?P<step>\d+))?", re.ASCII)


class _Field(NamedTuple):
    lowest: int
    highest: int
    names: dict[str, int]


_FIELDS = (
    _Field(0, 59, {}),
    _Field(0, 23, {}),
    _Field(1, 31, {}),
    _Field(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Field(0, 7, {name: number for number, name in enumerate(_DAYS)}),
)


def is_cron(text: str) -> bool:
    """Return whether a text is a cron expression of five fields (or ``@daily`` and its like) that has a time at all."""
    if text.strip().casefold() in _SHORTHANDS:
        return True
    fields = text.casefold().split()
    if len(fields) != len(_FIELDS):
        return False
    return all(map(_fits, fields, _FIELDS)) and _some_day(*fields[2:])


def _fits(text: str, field: _Field) -> bool:
    return all(_item_fits(item, field) for item in text.split(","))


def _item_fits(item: str, field: _Field) -> bool:
    match = _ITEM.fullmatch(item)
    if match is None or (match["step"] is not None and not 1 <= int(match["step"]) <= field.highest):
        return False
    given = [_number(match[name], field) for name in ("low", "high") if match[name] is not None]
    bounds = [number for number in given if number is not None]
    inside = len(bounds) == len(given) and all(field.lowest <= bound <= field.highest for bound in bounds)
    return inside and bounds == sorted(bounds)


def _number(text: str, field: _Field) -> int | None:
    return int(text) if text.isdecimal() else field.names.get(text)


def _some_day(days: str, months: str, weekdays: str) -> bool:
    """Whether a month that is named has a day that is named; any weekday is one."""
    if weekdays != "*" or not (days.isdecimal() and re.fullmatch(r"\w+", months)):
        return True
    month = _number(months, _FIELDS[3])
    return int(days) <= _DAYS_OF_MONTH.get(month or 0, 31)
