"""Partitions of the ledger of files: by time template, by folder, or by day of arrival.

See docs/reference/files.md, The ledger of partitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from partitions.path.time_template import TimeTemplate

By = Literal["template", "folder", "arrival"]
"""The rule that has named a partition."""

_DAY = re.compile(r"((?:19|20|21)\d\d)-?(\d\d)-?(\d\d)")
_YEAR, _MONTH = re.compile(r"(?:19|20|21)\d\d"), re.compile(r"((?:19|20|21)\d\d)-(\d\d)")
_DIGITS = re.compile(r"\d{1,2}")
_FINER = ("year", "month", "day", "hour")


class FilePlace(NamedTuple):
    """The place of files before their partition is named.

    Attributes:
        folder: the folder of the files; "" is the root.
        day: the day of arrival in UTC, ISO, for files at the root; "" for others.
    """

    folder: str
    day: str = ""


class LedgerPartition(NamedTuple):
    """A partition of the ledger.

    Attributes:
        name: the folder, or the day of arrival.
        by: the rule that has named it.
        start: the start of its time, in UTC; None if its name has no time.
        group: the components of the name without time, which tell partitions of one time apart.
    """

    name: str
    by: By
    start: datetime | None = None
    group: str = ""


@dataclass(frozen=True)
class PartitionNames:
    """Names the partition of files.

    Attributes:
        template: the template that reads the time of a folder; None: folders name partitions.
    """

    template: TimeTemplate | None = None

    def partition_of(self, place: FilePlace) -> LedgerPartition:
        """Return the partition of the files at a place."""
        if not place.folder:
            start = datetime.fromisoformat(place.day).replace(tzinfo=UTC) if place.day else None
            return LedgerPartition(place.day, "arrival", start)
        if self.template is not None and (prefix := self.template.prefix(place.folder)) is not None:
            group = "/".join(self.template.components_without_time(prefix))
            return LedgerPartition(prefix, "template", self.template.time(prefix), group)
        return _partition_of_folder(place.folder)


def _partition_of_folder(folder: str) -> LedgerPartition:
    """Return the partition of a folder, with the time of its components, such as ``date=2024-01-28``."""
    parts: dict[str, int] = {}
    others = []
    for component in folder.split("/"):
        times = dict(_times_of(component, parts))
        parts |= times
        if not times:
            others.append(component)
    try:
        start = (
            datetime(
                parts["year"], parts.get("month", 1), parts.get("day", 1), parts.get("hour", 0), tzinfo=UTC
            )
            if parts
            else None
        )
    except ValueError:
        return LedgerPartition(folder, "folder", None, folder)
    return LedgerPartition(folder, "folder", start, "/".join(others))


def _times_of(component: str, before: dict[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the units of time in a component, given those of the components before it."""
    name, _, value = component.rpartition("=")
    if not before:
        if match := _DAY.fullmatch(value) or _MONTH.fullmatch(value):
            yield from zip(_FINER, map(int, match.groups()), strict=False)
        elif _YEAR.fullmatch(value) and name.lower() in ("", "y", "yyyy", "year"):
            yield "year", int(value)
        return
    unit = next((unit for unit in _FINER if unit not in before), None)
    names = {unit, unit[0], unit[0] * 2} if unit else set()
    if unit and _DIGITS.fullmatch(value) and (name.lower() in names or (not name and len(value) == 2)):
        yield unit, int(value)
