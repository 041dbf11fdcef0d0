"""Recognises the cron texts that Dagster accepts, without importing Dagster, which takes a second.

Libraries accept more than Dagster's private copy of croniter: croniter 7 ``2W``, cronsim ``FRI,5L``, and
both times that each process draws anew, or that never occur. A text that passes here but not in Dagster
breaks the whole code location.
"""

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
    """Return whether a text is a cron expression of five fields, or a shorthand, with a time that occurs."""
    if text.strip().casefold() in _SHORTHANDS:
        return True
    fields = text.casefold().split()
    if len(fields) != len(_FIELDS):
        return False
    numbers = list(map(_numbers, fields, _FIELDS))
    if not all(numbers):
        return False
    _, _, days, months, _ = numbers
    if any(day <= _DAYS_OF_MONTH.get(month, 31) for day in days for month in months):
        return True
    # A weekday is a time of its own, but Dagster refuses 30 and 31 February beside one, too.
    return fields[4] != "*" and months != {2}


def _numbers(text: str, field: _Field) -> set[int]:
    """Return the numbers in a field; none if an item does not fit."""
    items = [_item(item, field) for item in text.split(",")]
    return {number for item in items for number in item} if all(items) else set()


def _item(item: str, field: _Field) -> range:
    """Return the numbers of an item such as ``1-5/2``; none if it does not fit."""
    match, no_numbers = _ITEM.fullmatch(item), range(0)
    if match is None or (match["step"] is not None and not 1 <= int(match["step"]) <= field.highest):
        return no_numbers
    if match["low"] is None:
        low, high = field.lowest, field.highest
    else:
        low = _number(match["low"], field)
        high = _number(match["high"], field) if match["high"] else field.highest if match["step"] else low
    return (
        range(low, high + 1, int(match["step"] or 1))
        if field.lowest <= low <= high <= field.highest
        else no_numbers
    )


def _number(text: str, field: _Field) -> int:
    """Return the number that a digit text or name stands for; -1, which no field allows, for neither."""
    return int(text) if text.isdecimal() else field.names.get(text, -1)
