"""Splits that report their watermarks in turn, and the global watermark after each.

Conformance cases are written this way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from partitions.stream.event_time import EventTime, later
from partitions.stream.global_watermark import global_watermark


@dataclass(frozen=True)
class Merger:
    """The reported watermarks of splits.

    Attributes:
        watermarks: the latest of each split; None: it is declared and awaited.
        idle: splits that are left out of the minimum.
        least: how many splits need a watermark before there is a global one.
        value: the global watermark, which never falls; None: undefined.
    """

    watermarks: Mapping[str, EventTime | None] = field(default_factory=dict)
    idle: frozenset[str] = frozenset()
    least: int = 0
    value: EventTime | None = None

    def heard(self, watermarks: Mapping[str, EventTime]) -> Self:
        """Return it after splits reported watermarks.

        Lower ones than before are ignored; an idle split is active again.
        """
        risen = {name: later(self.watermarks.get(name), at) for name, at in watermarks.items()}
        return self._merged({**self.watermarks, **risen}, self.idle - watermarks.keys())

    def slept(self, names: Collection[str]) -> Self:
        """Return it with these splits idle; if all are, the global watermark stays."""
        return self._merged(self.watermarks, self.idle | set(names))

    def woken(self, names: Collection[str]) -> Self:
        """Return it with these splits active again, with the watermarks they had."""
        return self._merged(self.watermarks, self.idle - set(names))

    def added(self, names: Iterable[str]) -> Self:
        """Return it with new splits at the global watermark; without one they are awaited."""
        new = {name: self.value for name in names if name not in self.watermarks}
        return self._merged({**self.watermarks, **new}, self.idle)

    def removed(self, names: Collection[str]) -> Self:
        """Return it without these splits."""
        rest = {name: at for name, at in self.watermarks.items() if name not in names}
        return self._merged(rest, self.idle - set(names))

    def _merged(self, watermarks: Mapping[str, EventTime | None], idle: frozenset[str]) -> Self:
        value = global_watermark(self.value, watermarks, idle, self.least)
        return replace(self, watermarks=watermarks, idle=idle, value=value)
