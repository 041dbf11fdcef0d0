"""Splits that are added, removed and merged, in both modes (docs/reference/streams.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from typing import Literal

from partitions.stream.event_time import EventTime, later

Mode = Literal["split", "unit"]


def highest(watermarks: Iterable[EventTime | None]) -> EventTime | None:
    """Return the highest watermark; None if there is none."""
    return reduce(later, watermarks, None)


def assign_watermarks(
    before: Mapping[str, EventTime | None], after: Collection[str], mode: Mode, start: EventTime | None
) -> dict[str, EventTime | None]:
    """Return the watermark of each split after the set of splits has changed.

    Args:
        before: all splits before, including removed ones.
        after: the splits now.
        mode: ``unit``: each takes the maximum of all watermarks before; ``split``: each keeps its own, and
        a new one starts at ``start``.
        start: the global watermark.
    """
    if mode == "unit":
        return dict.fromkeys(after, highest(before.values()))
    return {name: before.get(name, start) for name in after}


def merge_watermarks(
    watermarks: Mapping[str, EventTime | None], parents: Collection[str], into: str
) -> dict[str, EventTime | None]:
    """Return the watermarks after splits are merged into one.

    It takes the maximum of its parents' watermarks, and of its own if it existed.
    """
    rest = {name: at for name, at in watermarks.items() if name not in parents}
    top = highest(at for name, at in watermarks.items() if name in parents or name == into)
    return {**rest, into: top}
